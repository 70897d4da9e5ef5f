/* Queries made up at random, held against a plain evaluation of what query_check.h says that they
 * mean: all entities, all their positions, sorted. Each query is run in one pass, and in pages from
 * cursor to cursor; the index that it is refused for is made, and must be enough. */
#include "base/testing/testing.h"
#include "datastore/query/aggregation.h"
#include "datastore/testing/query_random.h"

enum { ROUNDS = 1500, MOST_AGGREGATED = 2 };

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

/* --- aggregations --- */

/* Results of which values are summed up, in order. */
struct aggregated {
    int properties[MOST_AGGREGATED];
    int property_count;
    const Ds__Value *(*rows)[MOST_AGGREGATED];
    int count;
};

static int compare_values(const void *a, const void *b)
{
    return ds_value_compare(*(const Ds__Value *const *)a, *(const Ds__Value *const *)b);
}

/* The combinations of an entity's values, each once. */
static void add_combinations(struct aggregated *all, const Ds__Entity *entity)
{
    const Ds__Value *values[MOST_AGGREGATED][MOST_VALUES];
    int counts[MOST_AGGREGATED] = {1, 1};
    for (int i = 0; i < all->property_count; i++) {
        int kept = 0, count = random_values(entity, all->properties[i], values[i]);
        if (count > 1)
            qsort(values[i], (size_t)count, sizeof values[i][0], compare_values);
        for (int j = 0; j < count; j++)
            if (kept == 0 || ds_value_compare(values[i][kept - 1], values[i][j]) != 0)
                values[i][kept++] = values[i][j];
        counts[i] = kept;
    }
    for (int i = 0; i < counts[0]; i++)
        for (int j = 0; j < counts[1]; j++, all->count++) {
            all->rows[all->count][0] = values[0][i];
            all->rows[all->count][1] = values[1][j];
        }
}

static int number_of(const char *name)
{
    int property = 0;
    while (strcmp(random_names[property], name) != 0)
        property++;
    return property;
}

/* As if the properties were projected, in the order that the plan says. */
static void add_positions(struct aggregated *all, const struct fake *fake,
                          const struct asked *asked, const struct ds_query *query)
{
    struct asked projected = *asked;
    struct evaluation evaluation;
    projected.order_count = (int)query->order_count;
    for (size_t i = 0; i < query->order_count; i++)
        projected.orders[i] = (struct order){.property = number_of(query->orders[i].property),
                                             .is_down = query->orders[i].flip == DS_DESCENDING};
    projected.projected_count = all->property_count;
    for (int i = 0; i < all->property_count; i++)
        projected.projected[i] = all->properties[i];
    evaluate(fake, &projected, &evaluation);
    for (; all->count < evaluation.count; all->count++)
        for (int i = 0; i < all->property_count; i++)
            for (int j = 0; j < evaluation.order_count; j++)
                if (evaluation.orders[j].property == all->properties[i])
                    all->rows[all->count][i] = evaluation.positions[all->count].values[j];
}

static void assert_sum(const struct aggregated *all, int at, int first, int end,
                       const Ds__Value *sum)
{
    double expected = 0;
    bool has_double = false;
    for (int i = first; i < end; i++) {
        const Ds__Value *value = all->rows[i][at];
        has_double = has_double || value->value_type_case == DS__VALUE__VALUE_TYPE_DOUBLE_VALUE;
        if (value->value_type_case == DS__VALUE__VALUE_TYPE_DOUBLE_VALUE)
            expected += value->double_value;
        else if (value->value_type_case == DS__VALUE__VALUE_TYPE_INTEGER_VALUE)
            expected += (double)value->integer_value;
    }
    bool is_double = sum->value_type_case == DS__VALUE__VALUE_TYPE_DOUBLE_VALUE;
    assert_true(is_double == has_double);
    double found = is_double ? sum->double_value : (double)sum->integer_value;
    assert_true(found == expected); /* halves: their sums are exact */
}

static void *new_message(struct arena *arena, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *made = arena_alloc(arena, type->sizeof_message);
    assert_non_null(made);
    protobuf_c_message_init(type, made);
    return made;
}

#define NEW_AGGREGATION(arena) new_message(arena, &ds__aggregation_query__aggregation__descriptor)

/* A count, and the sum of each property. */
static Ds__AggregationQuery *aggregation_request(struct arena *arena, const struct aggregated *all,
                                                 Ds__Query *nested)
{
    Ds__AggregationQuery *made = new_message(arena, &ds__aggregation_query__descriptor);
    made->nested_query = nested;
    made->aggregations = arena_alloc(arena, (1 + MOST_AGGREGATED) * sizeof(void *));
    assert_non_null(made->aggregations);
    for (int i = -1; i < all->property_count; i++) {
        Ds__AggregationQuery__Aggregation *one = NEW_AGGREGATION(arena);
        made->aggregations[made->n_aggregations++] = one;
        one->operator_case = DS__AGGREGATION_QUERY__AGGREGATION__OPERATOR_COUNT;
        one->count = new_message(arena, &ds__aggregation_query__aggregation__count__descriptor);
        if (i < 0)
            continue;
        one->operator_case = DS__AGGREGATION_QUERY__AGGREGATION__OPERATOR_SUM;
        one->sum = new_message(arena, &ds__aggregation_query__aggregation__sum__descriptor);
        one->sum->property = new_message(arena, &ds__property_reference__descriptor);
        one->sum->property->name = random_names[all->properties[i]];
    }
    return made;
}

static int by_index, by_entities;

/* The query's results, and whether it was planned so that they are positions. */
static Ds__AggregationResult *aggregate(struct fake *fake, const Ds__AggregationQuery *request,
                                        struct ds_query *query, bool *by_position)
{
    struct ds_database database = {.project = "p", .id = ""};
    struct ds_aggregations aggregations;
    struct ds_reading reading = fake_reading(fake);
    struct ds_plan plan;
    Ds__AggregationResultBatch *batch = NULL;
    assert_ok(ds_aggregations_check(request, fake->arena, &aggregations));
    assert_ok(ds_query_check(request->nested_query, NULL, &database, fake->arena, query));
    assert_ok(ds_aggregations_plan(&aggregations, request->nested_query, fake->indexes.items,
                                   fake->indexes.count, fake->arena, query, &plan));
    assert_ok(ds_aggregations_run(&aggregations, query, &plan, &reading, fake->arena, &fake->reads,
                                  &batch));
    assert_int_equal(fake->opened, 0);
    *by_position = aggregations.by_position;
    if (*by_position && fake->past.count == 0 && query->order_count == aggregations.property_count)
        assert_int_equal(fake->reads.entities, 0);
    return batch->aggregation_results[0];
}

/* Of some properties, over a part of the results. */
static void check_aggregation(struct fake *fake, const struct evaluation *evaluation,
                              const struct asked *asked, Ds__Query *request)
{
    Pb__Int32Value limit = PB__INT32_VALUE__INIT;
    struct aggregated all = {.property_count = 1 + (int)random_below(MOST_AGGREGATED)};
    struct ds_query query;
    bool by_position;
    all.properties[0] = (int)random_below(PROPERTIES - 1);
    all.properties[1] = all.properties[0] + 1;
    all.rows = arena_alloc(fake->arena, MOST_POSITIONS * sizeof *all.rows);
    assert_non_null(all.rows);
    limit.value = (int)random_below(8);
    request->limit = random_below(2) == 0 ? &limit : NULL;
    request->offset = (int)random_below(2) * (int)random_below(4);
    request->start_cursor = request->end_cursor = (ProtobufCBinaryData){0};
    const Ds__AggregationResult *result =
        aggregate(fake, aggregation_request(fake->arena, &all, request), &query, &by_position);
    if (by_position)
        add_positions(&all, fake, asked, &query);
    for (int i = 0; !by_position && i < evaluation->count; i++)
        add_combinations(&all, evaluation->positions[i].entity);
    int first = request->offset < all.count ? request->offset : all.count, end = all.count;
    if (request->limit != NULL && limit.value < end - first)
        end = first + limit.value;
    assert_int_equal(result->aggregate_properties[0]->value->integer_value, end - first);
    for (int i = 0; i < all.property_count; i++)
        assert_sum(&all, i, first, end, result->aggregate_properties[i + 1]->value);
    *(by_position ? &by_index : &by_entities) += end > first;
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
        if (asked.projected_count == 0 && !asked.is_keys_only)
            check_aggregation(&fake, &evaluation, &asked, request);
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
    print_message("# %d queries, %d results; aggregations: %d by indexes, %d by entities\n",
                  checked, found, by_index, by_entities);
    assert_true(checked > ROUNDS * 3 / 4 && found > ROUNDS);
    assert_true(by_index > ROUNDS / 50 && by_entities > ROUNDS / 20);
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
