/* Tests of aggregations over a database in memory. */
#include "datastore/query/aggregation.h"

#include "base/check.h"
#include "base/testing/testing.h"
#include "datastore/query/query_cursor.h"
#include "datastore/query/query_seen.h"
#include "datastore/testing/query_fake.h"
#include "datastore/testing/testing.h"

static void put_numbers(struct fake *fake)
{
    fake_put(fake, "K/1", "'n': {'integerValue': 5}");
    fake_put(fake, "K/2", "'n': {'integerValue': 6}, 'm': {'integerValue': 1}");
    fake_put(fake, "K/3", "'n': {'stringValue': 'x'}, 'm': {'integerValue': 2}");
    fake_put(fake, "K/4", "'o': {'entityValue': {'properties': {'n': {'doubleValue': 1.5}}}}");
    fake_put(fake, "K/5", "'n': {'integerValue': 100, 'excludeFromIndexes': true}");
}

static status aggregate(struct fake *fake, const char *json, Ds__AggregationResultBatch **out)
{
    const Ds__AggregationQuery *request = test_aggregation_query(fake->arena, json);
    struct ds_database database = {.project = "p", .id = ""};
    struct ds_aggregations aggregations;
    struct ds_query *query = arena_alloc(fake->arena, sizeof *query);
    struct ds_plan plan;
    struct ds_reading reading = fake_reading(fake);
    assert_non_null(query);
    TRY(ds_aggregations_check(request, fake->arena, &aggregations));
    TRY(ds_query_check(request->nested_query, NULL, &database, fake->arena, query));
    TRY(ds_aggregations_check_query(&aggregations, query));
    TRY(ds_aggregations_plan(&aggregations, request->nested_query, fake->indexes.items,
                             fake->indexes.count, fake->arena, query, &plan));
    TRY(ds_cursors_read(request->nested_query, query));
    return ds_aggregations_run(&aggregations, query, &plan, &reading, fake->arena, &fake->reads,
                               out);
}

#define OVER_K   ", 'nestedQuery': {'kind': [{'name': 'K'}]}}"
#define OF(name) "{'property': {'name': '" name "'}}"

static void assert_aggregates(struct fake *fake, const char *json, const char *expected)
{
    Ds__AggregationResultBatch *batch = NULL;
    assert_ok(aggregate(fake, json, &batch));
    CHECK(batch != NULL);
    assert_int_equal(batch->n_aggregation_results, 1);
    assert_json(&batch->aggregation_results[0]->base, expected);
}

static void test_counts(void **state)
{
    struct fake *fake = *state;
    put_numbers(fake);
    assert_aggregates(fake,
                      "{'aggregations': [{'count': {}}, {'count': {'upTo': '2'}, 'alias': 'two'},"
                      " {'count': {'upTo': '9'}}]" OVER_K,
                      "{'aggregateProperties':{'property_1':{'integerValue':'5'},"
                      "'two':{'integerValue':'2'},'property_2':{'integerValue':'5'}}}");
    assert_aggregates(fake,
                      "{'aggregations': [{'count': {}}], 'nestedQuery':"
                      " {'kind': [{'name': 'K'}], 'offset': 1, 'limit': 3}}",
                      "{'aggregateProperties':{'property_1':{'integerValue':'3'}}}");
}

/* A string has no sum, but counts; an entity without the property does not. */
static void test_sums_and_averages(void **state)
{
    struct fake *fake = *state;
    put_numbers(fake);
    assert_aggregates(
        fake, "{'aggregations': [{'sum': " OF("n") "}, {'avg': " OF("n") "}, {'count': {}}]" OVER_K,
        "{'aggregateProperties':{'property_1':{'integerValue':'11'},"
        "'property_2':{'doubleValue':5.5},'property_3':{'integerValue':'3'}}}");
    assert_aggregates(fake, "{'aggregations': [{'sum': " OF("n") "}, {'sum': " OF("m") "}]" OVER_K,
                      "{'aggregateProperties':{'property_1':{'integerValue':'6'},"
                      "'property_2':{'integerValue':'3'}}}");
    assert_aggregates(fake, "{'aggregations': [{'sum': " OF("o.n") "}]" OVER_K,
                      "{'aggregateProperties':{'property_1':{'doubleValue':1.5}}}");
    assert_aggregates(fake, "{'aggregations': [{'sum': " OF("x") "}, {'avg': " OF("x") "}]" OVER_K,
                      "{'aggregateProperties':{'property_1':{'integerValue':'0'},"
                      "'property_2':{'nullValue':null}}}");
}

/* An entity that is in no aggregation is not counted by offset and limit either. */
static void test_offset_and_limit_are_of_what_is_aggregated(void **state)
{
    struct fake *fake = *state;
    fake_put(fake, "K/1", "'m': {'integerValue': 1}");
    fake_put(fake, "K/2", "'n': {'integerValue': 10}");
    fake_put(fake, "K/3", "'m': {'integerValue': 1}");
    fake_put(fake, "K/4", "'n': {'integerValue': 100}");
    fake_put(fake, "K/5", "'n': {'integerValue': 1000}");
    assert_aggregates(
        fake,
        "{'aggregations': [{'sum': " OF("n") "}, {'count': {}}], 'nestedQuery':"
                                             " {'kind': [{'name': 'K'}], 'offset': 1, 'limit': 1}}",
        "{'aggregateProperties':{'property_1':{'integerValue':'100'},"
        "'property_2':{'integerValue':'1'}}}");
    assert_aggregates(fake, "{'aggregations': [{'count': {'upTo': '0'}}]" OVER_K,
                      "{'aggregateProperties':{'property_1':{'integerValue':'0'}}}");
}

static void test_sums_beyond_an_integer_are_doubles(void **state)
{
    struct fake *fake = *state;
    fake_put(fake, "K/1", "'n': {'integerValue': '9223372036854775807'}, 'd': {'doubleValue': 1}");
    fake_put(fake, "K/2", "'n': {'integerValue': 1}, 'd': {'doubleValue': 'NaN'}");
    assert_aggregates(fake, "{'aggregations': [{'sum': " OF("n") "}, {'sum': " OF("d") "}]" OVER_K,
                      "{'aggregateProperties':{'property_1':{'doubleValue':9.223372036854776e+18},"
                      "'property_2':{'doubleValue':'NaN'}}}");
}

/* More than are remembered: which were counted is then asked of the entities. */
static void test_each_of_many_counts_once(void **state)
{
    enum { MANY = DS_MOST_SEEN + 10 };
    struct fake *fake = *state;
    Ds__Entity *like = test_entity(fake->arena, "{'properties': {'v': {'arrayValue': {'values': ["
                                                "{'integerValue': 1}, {'integerValue': 2}]}}}}");
    for (int i = 1; i <= MANY; i++) {
        Ds__Entity *entity = arena_alloc(fake->arena, sizeof *entity);
        Ds__Key *key = test_key(fake->arena, "", "K/1");
        assert_non_null(entity);
        key->path[0]->id = i;
        *entity = *like;
        entity->key = key;
        fake_add(fake, entity);
    }
    assert_aggregates(fake,
                      "{'aggregations': [{'count': {}}], 'nestedQuery': {'kind': [{'name': 'K'}],"
                      " 'order': [{'property': {'name': 'v'}}]}}",
                      "{'aggregateProperties':{'property_1':{'integerValue':'65546'}}}");
    assert_int_equal(fake->reads.rows, 2 * MANY);
    assert_int_equal(fake->reads.entities, MANY + 10);
}

#define SUM_OF_N "{'aggregations': [{'sum': " OF("n") "}, {'count': {}}], 'nestedQuery': "
#define IS(sum, count)                                                                             \
    "{'aggregateProperties':{'property_1':{'integerValue':'" sum "'},"                             \
    "'property_2':{'integerValue':'" count "'}}}"
#define BELOW_R                                                                                    \
    "{'propertyFilter': {'property': {'name': '__key__'}, 'op': 'HAS_ANCESTOR', "                  \
    "'value': {'keyValue': {'path': [{'kind': 'R', 'id': '1'}]}}}}"

static void put_descending(struct fake *fake)
{
    fake_put(fake, "R/1/K/1", "'n': {'integerValue': 100}, 't': {'integerValue': 7}");
    fake_put(fake, "R/1/K/2", "'n': {'integerValue': 10}, 't': {'integerValue': 7}");
    fake_put(fake, "R/1/K/3", "'n': {'integerValue': 1}, 't': {'integerValue': 7}");
    fake_put(fake, "R/1/K/4", "'m': {'integerValue': 5}");
}

static void assert_reads(struct fake *fake, int rows, int entities)
{
    assert_int_equal(fake->reads.rows, rows);
    assert_int_equal(fake->reads.entities, entities);
}

static void test_values_come_from_an_index(void **state)
{
    struct fake *fake = *state;
    put_descending(fake);
    assert_aggregates(fake, SUM_OF_N "{'kind': [{'name': 'K'}]}}", IS("111", "3"));
    assert_reads(fake, 3, 0);
    assert_aggregates(fake, SUM_OF_N "{'kind': [{'name': 'K'}], 'limit': 2}}", IS("11", "2"));
    assert_aggregates(fake, SUM_OF_N "{'kind': [{'name': 'K'}], 'offset': 1, 'limit': 1}}",
                      IS("10", "1"));
}

static void test_a_composite_index_serves_filters(void **state)
{
    struct fake *fake = *state;
    put_descending(fake);
    assert_aggregates(fake,
                      SUM_OF_N "{'kind': [{'name': 'K'}], 'limit': 2, 'filter': " BELOW_R "}}",
                      IS("110", "2"));
    assert_reads(fake, 2, 2);
    fake_add_index(fake, "^K n");
    assert_aggregates(fake,
                      SUM_OF_N "{'kind': [{'name': 'K'}], 'limit': 2, 'filter': " BELOW_R "}}",
                      IS("11", "2"));
    assert_reads(fake, 2, 0);
    fake_add_index(fake, "K t n");
    assert_aggregates(fake,
                      SUM_OF_N "{'kind': [{'name': 'K'}], 'limit': 1, 'filter': {'propertyFilter':"
                               " {'property': {'name': 't'}, 'op': 'EQUAL',"
                               " 'value': {'integerValue': 7}}}}}",
                      IS("1", "1"));
    assert_reads(fake, 1, 0);
}

/* A query with a start or an order means its own order. */
static void test_an_order_of_ones_own(void **state)
{
    struct fake *fake = *state;
    put_descending(fake);
    assert_aggregates(fake,
                      SUM_OF_N "{'kind': [{'name': 'K'}], 'limit': 1, 'order':"
                               " [{'property': {'name': '__key__'}}]}}",
                      IS("100", "1"));
    assert_aggregates(fake,
                      SUM_OF_N "{'kind': [{'name': 'K'}], 'limit': 1, 'order':"
                               " [{'property': {'name': 'n'}, 'direction': 'DESCENDING'}]}}",
                      IS("100", "1"));
    assert_reads(fake, 1, 0);
    assert_aggregates(fake,
                      SUM_OF_N "{'kind': [{'name': 'K'}], 'projection':"
                               " [{'property': {'name': 'n'}}]}}",
                      IS("111", "3"));
    assert_reads(fake, 3, 0);
}

#define THREE(a, b, c)                                                                             \
    "{'arrayValue': {'values': [{'integerValue': " a "}, {'integerValue': " b                      \
    "}, {'integerValue': " c "}]}}"

/* Each different element is a value, whether it comes from an index or from entities; these are
 * what offset and limit are of. Of two arrays there is each combination. */
static void test_values_of_arrays(void **state)
{
    struct fake *fake = *state;
    fake_put(fake, "K/1", "'n': " THREE("1", "1", "5") ", 'm': " THREE("2", "5", "2"));
    assert_aggregates(fake, SUM_OF_N "{'kind': [{'name': 'K'}]}}", IS("6", "2"));
    assert_aggregates(fake, SUM_OF_N "{'kind': [{'name': 'K'}], 'offset': 1}}", IS("5", "1"));
    assert_aggregates(fake,
                      SUM_OF_N "{'kind': [{'name': 'K'}], 'offset': 1, 'order':"
                               " [{'property': {'name': '__key__'}}]}}",
                      IS("5", "1"));
    static const char both[] =
        "{'aggregations': [{'sum': " OF("n") "}, {'count': {}}, {'sum': " OF("m") "}]" OVER_K;
    static const char expected[] = "{'aggregateProperties':{'property_1':{'integerValue':'12'},"
                                   "'property_2':{'integerValue':'4'},"
                                   "'property_3':{'integerValue':'14'}}}";
    assert_aggregates(fake, both, expected);
    assert_reads(fake, 1, 1);
    fake_add_index(fake, "K n m");
    assert_aggregates(fake, both, expected);
    assert_reads(fake, 4, 0);
}

static void test_timestamps_are_no_numbers(void **state)
{
    struct fake *fake = *state;
    fake_put(fake, "K/1", "'n': {'timestampValue': '1970-01-01T00:00:01Z'}");
    fake_put(fake, "K/2",
             "'n': {'arrayValue': {'values': [{'integerValue': 2}, {'timestampValue':"
             " '1970-01-01T00:00:01Z'}]}}");
    assert_aggregates(fake, SUM_OF_N "{'kind': [{'name': 'K'}]}}", IS("2", "3"));
    assert_aggregates(fake,
                      SUM_OF_N "{'kind': [{'name': 'K'}], 'order':"
                               " [{'property': {'name': '__key__'}}]}}",
                      IS("2", "3"));
}

static void assert_refused(struct fake *fake, const char *json, const char *message)
{
    Ds__AggregationResultBatch *batch;
    status s = aggregate(fake, json, &batch);
    assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
    assert_string_equal(status_message(s), message);
    status_free(s);
}

static void test_what_may_not_be_asked(void **state)
{
    struct fake *fake = *state;
    assert_refused(fake,
                   "{'aggregations': [{'count': {}}, {'count': {}}, {'count': {}}, {'count': {}},"
                   " {'count': {}}, {'count': {}}]" OVER_K,
                   "The maximum number of aggregations allowed in an aggregation query is 5. "
                   "Received: 6");
    assert_refused(fake, "{'aggregations': [{'count': {'upTo': '-1'}}]" OVER_K,
                   "The `up_to` value in a COUNT aggregation must be greater than or equal to "
                   "zero.");
    assert_refused(fake, "{'aggregations': [{'count': {}, 'alias': '__a__'}]" OVER_K,
                   "The property.name \"__a__\" is reserved.");
    assert_refused(fake, "{'aggregations': [{'sum': " OF("__key__") "}]" OVER_K,
                   "Aggregations are not supported for the property: __key__");
    assert_refused(fake,
                   "{'aggregations': [{'sum': " OF(
                       "n") "}], 'nestedQuery': {'kind': "
                            "[{'name': 'K'}], 'projection': [{'property': {'name': '__key__'}}]}}",
                   "Aggregation over non-key properties is not supported for base query that only "
                   "returns keys.");
    assert_refused(fake,
                   "{'aggregations': [{'sum': " OF(
                       "n") "}], 'nestedQuery': {'kind': "
                            "[{'name': 'K'}], 'projection': [{'property': {'name': 'm'}}]}}",
                   "The aggregation property n is not present in the base query's projection.");
    assert_refused(
        fake, "{'aggregations': [{'count': {}, 'alias': 'a'}, {'count': {}, 'alias': 'a'}]" OVER_K,
        "The alias \"a\" is of more than one aggregation.");
    assert_refused(fake, "{'aggregations': [{}]" OVER_K, "An aggregation has no operator.");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_counts),
        TEST(test_sums_and_averages),
        TEST(test_offset_and_limit_are_of_what_is_aggregated),
        TEST(test_sums_beyond_an_integer_are_doubles),
        TEST(test_each_of_many_counts_once),
        TEST(test_values_come_from_an_index),
        TEST(test_a_composite_index_serves_filters),
        TEST(test_an_order_of_ones_own),
        TEST(test_values_of_arrays),
        TEST(test_timestamps_are_no_numbers),
        TEST(test_what_may_not_be_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
