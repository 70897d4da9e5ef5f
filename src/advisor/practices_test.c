/* Tests that practices, rules and examples know of one another. Whether the tests that they name
 * are there is looked up by tests/e2e/test_advise.py, in the page that is made of them. */
#include "advisor/practices.h"

#include "base/testing/testing.h"

#include <stdio.h>

static bool is_rule(const char *id, size_t size)
{
    for (size_t i = 0; i < ADVICE_RULES; i++)
        if (strlen(advice_rules[i].id) == size && memcmp(advice_rules[i].id, id, size) == 0)
            return true;
    return false;
}

static void there_are_the_practices_of_both_pages(void **state)
{
    size_t counts[PRACTICE_PAGES] = {0};
    (void)state;
    for (size_t i = 0; i < practice_count; i++) {
        char number[8];
        enum practice_page page = practices[i].page;
        snprintf(number, sizeof number, "%c%zu", page == PRACTICE_BIGTABLE ? 'B' : 'D',
                 ++counts[page]);
        assert_string_equal(practices[i].number, number);
        assert_true(practices[i].heading[0] != '\0' && practices[i].how[0] != '\0');
    }
    assert_int_equal(counts[PRACTICE_BIGTABLE], 28);
    assert_int_equal(counts[PRACTICE_DATASTORE], 16);
}

/* A practice that a rule tells of, or the API refuses, has a test that proves it. */
static void what_is_seen_has_a_test(void **state)
{
    (void)state;
    for (size_t i = 0; i < practice_count; i++) {
        const struct practice *practice = &practices[i];
        bool is_told = practice->rules[0] != '\0' || practice->seen == PRACTICE_REFUSED;
        if (is_told && practice->tests[0] == '\0')
            fail_msg("%s has no test", practice->number);
        if (practice->seen == PRACTICE_UNSEEN || practice->seen == PRACTICE_REFUSED)
            assert_string_equal(practice->rules, "");
    }
}

static void each_trial_has_a_test(void **state)
{
    (void)state;
    for (size_t i = 0; i < trial_count; i++)
        assert_true(trials[i].told[0] != '\0' && trials[i].tests[0] != '\0');
}

static void rules_that_are_named_are_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < practice_count; i++)
        for (const char *at = practices[i].rules; *at != '\0';) {
            size_t size = strcspn(at, " ");
            if (!is_rule(at, size))
                fail_msg("%s names %s", practices[i].number, at);
            at += size;
            at += *at == ' ';
        }
    for (size_t i = 0; i < advice_example_count; i++) {
        if (!is_rule(advice_examples[i].rule, strlen(advice_examples[i].rule)))
            fail_msg("there is no rule %s", advice_examples[i].rule);
        assert_ptr_equal(advice_example_of(advice_examples[i].rule), &advice_examples[i]);
    }
}

static void names_are_whole_words(void **state)
{
    const struct practice practice = {.rules = "key-size row-size"};
    (void)state;
    assert_true(practice_names(&practice, "key-size") && practice_names(&practice, "row-size"));
    assert_false(practice_names(&practice, "size") || practice_names(&practice, "key"));
    assert_false(practice_names(&(struct practice){.rules = ""}, "key"));
    assert_null(advice_example_of("nothing"));
}

/* Rules about garbage collection, sizes of entities and calls to tables are of no practice of the
 * pages. */
static void rules_have_an_example_and_a_practice(void **state)
{
    static const char *const beyond[] = {"gc-none", "gc-versions", "gc-old", "entity-size",
                                         "single-calls"};
    (void)state;
    for (size_t i = 0; i < ADVICE_RULES; i++) {
        bool is_named = false;
        for (size_t j = 0; j < practice_count; j++)
            is_named |= practice_names(&practices[j], advice_rules[i].id);
        for (size_t j = 0; j < sizeof beyond / sizeof *beyond; j++)
            is_named |= strcmp(beyond[j], advice_rules[i].id) == 0;
        if (!is_named)
            fail_msg("no practice names %s: practices.def", advice_rules[i].id);
        if (advice_example_of(advice_rules[i].id) == NULL)
            fail_msg("%s has no example: examples.def", advice_rules[i].id);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_are_the_practices_of_both_pages),
        cmocka_unit_test(what_is_seen_has_a_test),
        cmocka_unit_test(each_trial_has_a_test),
        cmocka_unit_test(rules_that_are_named_are_there),
        cmocka_unit_test(names_are_whole_words),
        cmocka_unit_test(rules_have_an_example_and_a_practice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
