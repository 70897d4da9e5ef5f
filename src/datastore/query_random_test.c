/* Queries made up at random, held against a plain evaluation of what query_check.h says that they
 * mean: all entities, all their positions, sorted. Each query is run in one pass, and in pages from
 * cursor to cursor; the index that it is refused for is made, and must be enough. */
#include "base/testing.h"
#include "datastore/query_random.h"

enum { ROUNDS = 1500 };

/* --- results against the evaluation --- */

static void assert_result(const struct evaluation *evaluation, const struct position *expected,
                          const Ds__EntityResult *result)
{
    assert_int_equal(ds_key_value_compare(expected->entity->key, result->entity->key), 0);
    for (int i = 0; i < evaluation->order_count; i++) {
        if (!evaluation->orders[i].is_projected)
            continue;
        const char *name = random_names[evaluation->orders[i].property];
        size_t at = 0;
        while (at < result->entity->n_properties &&
               strcmp(result->entity->properties[at]->key, name) != 0)
            at++;
        assert_true(at < result->entity->n_properties);
        const Ds__Value *value = result->entity->properties[at]->value;
        assert_int_equal(ds_value_compare(value, expected->values[i]), 0);
        assert_int_equal(value->value_type_case, expected->values[i]->value_type_case);
    }
}

/* The index that the refusal recommends. */
static void add_recommended(struct fake *fake, const char *message)
{
    struct buffer text = {0};
    const char *line = strstr(message, "- kind: ");
    assert_non_null(line);
    if (strstr(message, "ancestor: yes") != NULL)
        buffer_append_byte(&text, '^');
    buffer_append_byte(&text, 'K');
    for (const char *at = strstr(line, "- name: "); at != NULL;) {
        const char *next = strstr(at + 1, "- name: "), *down = strstr(at, "direction: desc");
        bool is_down = down != NULL && (next == NULL || down < next);
        const char *name = at + strlen("- name: ");
        buffer_append_format(&text, " %s%.*s", is_down ? "-" : "", (int)strcspn(name, "\n"), name);
        at = next;
    }
    buffer_append_byte(&text, '\0');
    assert_false(text.failed);
    fake_add_index(fake, (const char *)text.data);
    buffer_free(&text);
}

/* Runs it, and makes the indexes that it lacks. False if it is one that may not be asked. */
static bool run(struct fake *fake, const Ds__Query *request, Ds__QueryResultBatch **out)
{
    for (int i = 0; i < MOST_PARTS; i++) {
        status s = fake_run(fake, request, "", out);
        if (status_is_ok(s))
            return true;
        if (s.code == STATUS_INVALID_ARGUMENT) {
            const char *why = status_message(s);
            bool is_known = strstr(why, "first sort property") != NULL ||
                            strstr(why, "ordered by __key__") != NULL ||
                            strstr(why, "more than 30 disjunctions") != NULL;
            if (!is_known)
                print_error("%s\n", why);
            assert_true(is_known);
            status_free(s);
            return false;
        }
        assert_int_equal(s.code, STATUS_FAILED_PRECONDITION);
        add_recommended(fake, status_message(s));
        status_free(s);
    }
    fail_msg("no index is enough");
    return false;
}

/* In batches of `page` results, each after `skip` that are passed over at first. */
static bool check(struct fake *fake, const struct evaluation *evaluation, Ds__Query *request,
                  int page, int skip)
{
    Pb__Int32Value limit = PB__INT32_VALUE__INIT;
    Ds__QueryResultBatch *batch;
    int at = 0;
    limit.value = page;
    request->limit = page > 0 ? &limit : NULL;
    request->offset = skip;
    request->start_cursor = (ProtobufCBinaryData){0};
    do {
        if (!run(fake, request, &batch))
            return false;
        at += batch->skipped_results;
        for (size_t i = 0; i < batch->n_entity_results; i++, at++) {
            assert_true(at < evaluation->count);
            assert_result(evaluation, &evaluation->positions[at], batch->entity_results[i]);
        }
        request->offset = 0;
        request->start_cursor = batch->end_cursor;
    } while (batch->more_results != DS__QUERY_RESULT_BATCH__MORE_RESULTS_TYPE__NO_MORE_RESULTS);
    assert_int_equal(at, evaluation->count);
    return true;
}

/* Up to the cursor of one of the results. */
static void check_end(struct fake *fake, const struct evaluation *evaluation, Ds__Query *request)
{
    Ds__QueryResultBatch *batch;
    request->limit = NULL;
    request->offset = 0;
    request->start_cursor = (ProtobufCBinaryData){0};
    if (evaluation->count == 0)
        return;
    unsigned at = random_below((unsigned)evaluation->count);
    assert_true(run(fake, request, &batch));
    request->end_cursor = batch->entity_results[at]->cursor;
    assert_true(run(fake, request, &batch));
    assert_int_equal(batch->n_entity_results, at + 1);
}

/* --- rounds --- */

static int checked, found;
static uint64_t round_seed;
static bool is_done;

static void run_round(uint64_t seed)
{
    struct fake fake = {.arena = arena_create(512 << 20)};
    struct evaluation evaluation;
    random_seed(seed);
    round_seed = seed;
    assert_non_null(fake.arena);
    random_fill(&fake);
    struct asked asked = random_query(fake.arena);
    Ds__Query *request = random_request(fake.arena, &asked);
    if (asked.projected_count == 0 && random_below(2) == 0)
        random_indexes(&fake); /* a projection might follow one */
    evaluate(&fake, &asked, &evaluation);
    if (check(&fake, &evaluation, request, 0, 0)) {
        check(&fake, &evaluation, request, 1, 0);
        check(&fake, &evaluation, request, 2, 1 + (int)random_below(3));
        check_end(&fake, &evaluation, request);
        checked++;
        found += evaluation.count;
    }
    arena_destroy(fake.arena);
}

static void test_queries_give_what_they_mean(void **state)
{
    (void)state;
    const char *seed = getenv("QUERY_SEED");
    if (seed != NULL) {
        run_round(strtoull(seed, NULL, 10));
        is_done = true;
        return;
    }
    for (uint64_t i = 0; i < ROUNDS; i++)
        run_round(i);
    is_done = true;
    print_message("# %d queries, %d results\n", checked, found);
    assert_true(checked > ROUNDS * 3 / 4 && found > ROUNDS);
}

/* How to have the round again that failed. */
static int tell_seed(void **state)
{
    (void)state;
    if (!is_done)
        print_message("QUERY_SEED=%llu\n", (unsigned long long)round_seed);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_queries_give_what_they_mean, tell_seed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
