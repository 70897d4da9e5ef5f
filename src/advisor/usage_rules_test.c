/* Tests of the rules about what requests do: each with a look-alike that is as it should be. */
#include "advisor/testing/testing.h"

/* Keys that no other rule has anything to say about. */
static void add_rows(struct made_sample *sample)
{
    static const char *const first[] = {"amber", "birch", "cedar", "daisy", "elder", "fern"};
    static const char *const second[] = {"bridge", "castle", "harbour", "meadow", "river", "tower"};
    static const char *const third[] = {"apple", "grape", "lemon", "melon", "peach", "plum"};
    char key[SAMPLE_KEY];
    for (unsigned i = 0; i < 200; i++) {
        unsigned at = i * 83 % 216;
        snprintf(key, sizeof key, "%s-%s-%s/note", first[at / 36], second[at / 6 % 6],
                 third[at % 6]);
        sample_add(sample, bytes_of(key));
    }
    sample->seen.usage.from_us = SAMPLE_NOW_US - 3 * HOUR_US;
}

static int usage_setup(void **state)
{
    int result = sample_setup(state);
    add_rows(*state);
    return result;
}

static bool says(const struct made_sample *sample, const char *rule, const char *words)
{
    const struct advice_finding *finding = sample_finding(sample, rule);
    assert_non_null(finding);
    if (strstr(finding->evidence, words) == NULL)
        fail_msg("not in \"%s\": %s", finding->evidence, words);
    return true;
}

static void expect_silence(struct made_sample *sample, const char *rule)
{
    sample->advice.count = 0;
    sample_look(sample);
    assert_null(sample_finding(sample, rule));
}

static void expect(struct made_sample *sample, const char *rule)
{
    sample->advice.count = 0;
    sample_look(sample);
    assert_non_null(sample_finding(sample, rule));
}

/* --- scans --- */

static void scans_that_throw_most_away_are_told(void **state)
{
    struct made_sample *sample = *state;
    struct advice_scans scans[] = {
        {.kind = ADVICE_ALL_ROWS, .scans = 900, .seen = 90000, .answered = 90000},
        {.kind = ADVICE_BY_VALUE,
         .profile = bytes_of("web"),
         .scans = 120,
         .seen = 180000,
         .answered = 12,
         .start = bytes_of("u2"),
         .family = bytes_of("f"),
         .qualifier = bytes_of("town")}};
    sample->seen.usage.scans = scans;
    sample->seen.usage.scan_count = 2;
    expect(sample, "filtered-scans");
    says(sample, "filtered-scans", "Within 3 hours 120 ReadRows");
    says(sample, "filtered-scans", "the app profile web");
    says(sample, "filtered-scans", "by values of f:town");
    says(sample, "filtered-scans",
         "CREATE MATERIALIZED VIEW `t-by-town` AS SELECT `f`[b'town'] AS value, _key AS source "
         "FROM `t` ORDER BY value, source");
    scans[1].qualifier = bytes_make("it's\n\xff\\", 7);
    expect(sample, "filtered-scans");
    says(sample, "filtered-scans", "VIEW `t-by-it-s---` AS SELECT `f`[b'it\\x27s\\x0a\\xff\\x5c']");
    scans[1].qualifier = bytes_of("town");
    expect(sample, "filtered-scans");
    const struct advice_finding *finding = sample_finding(sample, "filtered-scans");
    assert_true(finding->has_range);
    assert_true(bytes_start_with(finding->better[0].better, bytes_of("<value of f:town>#")));
    scans[1].answered = 30000; /* a filter that keeps much */
    expect_silence(sample, "filtered-scans");
    scans[1].answered = 12;
    scans[1].scans = SCANS_LEAST - 1; /* now and then */
    expect_silence(sample, "filtered-scans");
    scans[1].scans = 500;
    scans[1].seen = SCANNED_LEAST - 1; /* of a small table */
    expect_silence(sample, "filtered-scans");
}

static void a_pattern_of_keys_wants_another_order(void **state)
{
    struct made_sample *sample = *state;
    struct advice_scans scans = {.kind = ADVICE_BY_KEY, .scans = 100, .seen = 50000};
    sample->seen.usage.scans = &scans;
    sample->seen.usage.scan_count = 1;
    expect(sample, "filtered-scans");
    says(sample, "filtered-scans", "a pattern of their keys");
    const struct advice_finding *finding = sample_finding(sample, "filtered-scans");
    assert_true(bytes_start_with(finding->better[0].better, bytes_of("note/")));
}

static void reading_all_again_and_again_is_told(void **state)
{
    struct made_sample *sample = *state;
    struct advice_scans scans = {
        .scans = 100, .whole = 100, .seen = 150000, .whole_seen = 150000, .answered = 150000};
    sample->seen.usage.scans = &scans;
    sample->seen.usage.scan_count = 1;
    expect(sample, "whole-scans");
    says(sample, "whole-scans", "100 ReadRows by the default app profile");
    scans.whole = 2; /* an export a day */
    scans.whole_seen = 3000;
    expect_silence(sample, "whole-scans");
    scans.whole = 100; /* of a table of some rows */
    scans.whole_seen = 10000;
    expect_silence(sample, "whole-scans");
}

/* --- columns --- */

static void columns_of_two_families_that_are_read_together_are_told(void **state)
{
    struct made_sample *sample = *state;
    struct advice_asked_column columns[] = {
        {.family = bytes_of("f"), .qualifier = bytes_of("a"), .has_qualifier = true},
        {.family = bytes_of("g"), .qualifier = bytes_of("b"), .has_qualifier = true}};
    struct advice_asked asked[] = {{.reads = 600, .columns = columns, .count = 2}, {.reads = 300}};
    sample->families[1] = sample->families[0];
    sample->families[1].name = "g";
    sample->seen.family_count = 2;
    sample->seen.usage.reads = 900;
    sample->seen.usage.asked = asked;
    sample->seen.usage.asked_count = 2;
    expect(sample, "columns-apart");
    says(sample, "columns-apart", "67 % of 900 ReadRows asked for just f:a and g:b");
    sample->families[1].most_versions = 5; /* families that live differently long */
    expect_silence(sample, "columns-apart");
    sample->families[1].most_versions = 0;
    columns[1].family = bytes_of("f"); /* of one family */
    expect_silence(sample, "columns-apart");
    columns[1].family = bytes_of("g");
    asked[0].reads = 400; /* fewer than half */
    expect_silence(sample, "columns-apart");
}

static void give_three_families(struct made_sample *sample)
{
    static const char *const names[] = {"f", "g", "h"};
    for (unsigned i = 0; i < 3; i++) {
        sample->families[i] = sample->families[0];
        sample->families[i].name = names[i];
    }
    sample->seen.family_count = 3;
    for (size_t i = 0; i < sample->seen.row_count; i++) {
        struct advice_row *row = &sample->rows[i];
        row->cells = arena_zalloc(sample->arena, 3 * sizeof *row->cells);
        assert_non_null(row->cells);
        for (uint32_t j = 0; j < 3; j++)
            row->cells[j] = (struct advice_cell){
                .family = j, .qualifier = bytes_of("q"), .size = 9, .hash = i * 3 + j + 1};
        row->cell_count = 3;
    }
}

static void families_of_a_column_that_are_read_together_are_told(void **state)
{
    struct made_sample *sample = *state;
    struct advice_asked_column one = {.family = bytes_of("g")};
    struct advice_asked asked[] = {{.reads = 850}, {.reads = 50, .columns = &one, .count = 1}};
    give_three_families(sample);
    sample->seen.usage.reads = 860;
    sample->seen.usage.asked = asked;
    sample->seen.usage.asked_count = 1;
    expect(sample, "columns-apart");
    says(sample, "columns-apart", "all of 3 families");
    sample->seen.usage.reads = 900;
    sample->seen.usage.asked_count = 2; /* one in 18 reads one apart */
    expect_silence(sample, "columns-apart");
    sample->seen.usage.reads = 850;
    sample->seen.usage.asked_count = 1;
    sample->families[1].most_age_us = DAY_US; /* it lives differently long */
    expect_silence(sample, "columns-apart");
}

/* --- rows --- */

static void parts_of_a_thing_that_lie_apart_are_told(void **state)
{
    struct made_sample *sample = *state;
    struct advice_usage *usage = &sample->seen.usage;
    usage->several_reads = 700;
    usage->scattered_reads = 690;
    usage->scattered_keys[0] = bytes_of("prof#user-1");
    usage->scattered_keys[1] = bytes_of("sett#user-1");
    expect(sample, "parts-apart");
    const struct advice_finding *finding = sample_finding(sample, "parts-apart");
    assert_true(bytes_equal(finding->better[0].better, bytes_of("user-1#prof")));
    assert_true(bytes_equal(finding->better[1].better, bytes_of("user-1#sett")));
    usage->scattered_reads = 300; /* among other rows */
    expect_silence(sample, "parts-apart");
}

/* --- calls --- */

static void increments_are_told(void **state)
{
    struct made_sample *sample = *state;
    struct advice_usage *usage = &sample->seen.usage;
    usage->increments = INCREMENTS_LEAST;
    usage->incremented_family = bytes_of("n");
    usage->incremented_qualifier = bytes_of("views");
    usage->incremented_key = bytes_of("u123");
    expect(sample, "read-modify-writes");
    says(sample, "read-modify-writes", "n:views");
    usage->increments--;
    expect_silence(sample, "read-modify-writes");
}

static void reading_to_write_is_told(void **state)
{
    struct made_sample *sample = *state;
    struct advice_usage *usage = &sample->seen.usage;
    usage->single_writes = 1200;
    usage->rewrites = 1150;
    usage->few_rewrites = 1100;
    expect(sample, "read-modify-writes");
    usage->few_rewrites = 20; /* each of another row: a form that is changed */
    expect_silence(sample, "read-modify-writes");
    usage->few_rewrites = 1100;
    usage->single_writes = 20000;
    expect_silence(sample, "read-modify-writes");
}

static void calls_in_the_order_of_keys_are_told(void **state)
{
    struct made_sample *sample = *state;
    struct advice_usage *usage = &sample->seen.usage;
    usage->single_writes = 5000;
    usage->rising_writes = 4900;
    usage->rising_write_key = bytes_of("u900");
    expect(sample, "single-calls");
    says(sample, "single-calls", "4900 of 5000 MutateRow");
    usage->rising_writes = 2500; /* in no order: each for another user */
    expect_silence(sample, "single-calls");
    usage->single_reads = 2000;
    usage->rising_reads = 1999;
    expect(sample, "single-calls");
    says(sample, "single-calls", "ReadRows of one row");
}

static void no_finding_without_counts(void **state)
{
    struct made_sample *sample = *state;
    sample->seen.usage = (struct advice_usage){.increments = 100000};
    sample_expect(sample, NULL);
}

/* And nothing that is not of requests: the rows of this sample begin with dates, too. */
static void requests_since_then_are_told(void **state)
{
    struct made_sample *sample = *state;
    struct advice_scans scans = {.kind = ADVICE_BY_VALUE, .scans = 120, .seen = 180000};
    sample->seen.usage.from_us = SAMPLE_NOW_US - HOUR_US;
    char key[SAMPLE_KEY];
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "2024-01-%02d#%03d", i % 28 + 1, i);
        sample_add(sample, bytes_of(key));
    }
    sample->seen.usage.scans = &scans;
    sample->seen.usage.scan_count = 1;
    sample->seen.usage.increments = INCREMENTS_LEAST;
    expect(sample, "key-time-first");
    sample->seen.since_us = SAMPLE_NOW_US - HOUR_US;
    expect(sample, "filtered-scans");
    expect(sample, "read-modify-writes");
    assert_int_equal(sample->advice.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(scans_that_throw_most_away_are_told, usage_setup,
                                        sample_teardown),
        cmocka_unit_test_setup_teardown(a_pattern_of_keys_wants_another_order, usage_setup,
                                        sample_teardown),
        cmocka_unit_test_setup_teardown(reading_all_again_and_again_is_told, usage_setup,
                                        sample_teardown),
        cmocka_unit_test_setup_teardown(columns_of_two_families_that_are_read_together_are_told,
                                        usage_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(families_of_a_column_that_are_read_together_are_told,
                                        usage_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(parts_of_a_thing_that_lie_apart_are_told, usage_setup,
                                        sample_teardown),
        cmocka_unit_test_setup_teardown(increments_are_told, usage_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(reading_to_write_is_told, usage_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(calls_in_the_order_of_keys_are_told, usage_setup,
                                        sample_teardown),
        cmocka_unit_test_setup_teardown(no_finding_without_counts, usage_setup, sample_teardown),
        cmocka_unit_test_setup_teardown(requests_since_then_are_told, sample_setup,
                                        sample_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
