/* Tests of find_nearest over a database in memory: what is near, what is left out, what is shown,
 * and what is refused. */
#include "datastore/query/query_nearest.h"

#include "base/limits.h"
#include "base/testing/testing.h"
#include "datastore/testing/query_fake.h"
#include "datastore/testing/query_random.h"
#include "datastore/testing/testing.h"

#include <math.h>
#include <stdio.h>

#define DOUBLE(value)   "{'doubleValue': " value "}"
#define VALUES(numbers) "'arrayValue': {'values': [" numbers "]}"
#define VECTOR(numbers) "{'meaning': 31, " VALUES(numbers) "}"
#define XY(x, y)        VECTOR(DOUBLE(x) "," DOUBLE(y))
#define NEAREST(rest)   "'findNearest': {'vectorProperty': {'name': 'v'}, " rest "}"
#define TO(x, y, measure)                                                                          \
    "'queryVector': " XY(x, y) ", 'distanceMeasure': '" measure "', 'limit': 10"
#define KIND "'kind': [{'name': 'K'}], "

/* --- running --- */

static status run(struct fake *fake, Ds__Query *request, Ds__QueryResultBatch **out)
{
    const struct ds_database database = {.project = "p", .id = ""};
    struct ds_nearest nearest;
    struct ds_query query;
    struct ds_plan plan;
    struct ds_reads reads;
    Ds__Query *candidates;
    TRY(ds_nearest_check(request, fake->arena, &nearest, &candidates));
    TRY(ds_query_check(candidates, NULL, &database, fake->arena, &query));
    TRY(ds_plan_make(&query, NULL, 0, fake->arena, &plan));
    struct ds_reading reading = fake_reading(fake);
    status s = ds_nearest_batch(&nearest, &query, NULL, &plan, &reading, fake->arena, &reads, out);
    assert_int_equal(fake->opened, 0);
    return s;
}

static Ds__QueryResultBatch *find(struct fake *fake, const char *parts)
{
    struct buffer json = {0};
    Ds__QueryResultBatch *batch = NULL;
    buffer_append_format(&json, "{%s%s}", KIND, parts);
    buffer_append_byte(&json, '\0');
    assert_false(json.failed);
    assert_ok(run(fake, test_query(fake->arena, (const char *)json.data), &batch));
    buffer_free(&json);
    return batch;
}

static void assert_finds(struct fake *fake, const char *parts, const char *expected)
{
    struct buffer text = {0};
    const Ds__QueryResultBatch *batch = find(fake, parts);
    for (size_t i = 0; i < batch->n_entity_results; i++) {
        const Ds__Key *key = batch->entity_results[i]->entity->key;
        buffer_append_format(&text, i > 0 ? " %lld" : "%lld",
                             (long long)key->path[key->n_path - 1]->id);
    }
    buffer_append_byte(&text, '\0');
    assert_string_equal((const char *)text.data, expected);
    buffer_free(&text);
}

static void assert_refused(struct fake *fake, const char *json, const char *message)
{
    Ds__QueryResultBatch *batch;
    status s = run(fake, test_query(fake->arena, json), &batch);
    assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
    assert_string_equal(status_message(s), message);
    status_free(s);
}

/* --- what is near --- */

static void put_points(struct fake *fake)
{
    fake_put(fake, "K/1", "'v': " XY("3", "4") ", 'n': {'integerValue': 1}");
    fake_put(fake, "K/2", "'v': " XY("1", "0") ", 'n': {'integerValue': 2}");
    fake_put(fake, "K/3", "'v': " XY("-2", "0") ", 'n': {'integerValue': 1}");
    fake_put(fake, "K/4", "'v': " XY("0", "1") ", 'n': {'integerValue': 1}");
    fake_put(fake, "J/5", "'v': " XY("0", "0"));
}

static void test_the_nearest_come_first(void **state)
{
    struct fake *fake = *state;
    put_points(fake);
    assert_finds(fake, NEAREST(TO("0", "0", "EUCLIDEAN")), "2 4 3 1");
    assert_finds(fake, NEAREST(TO("2", "0", "COSINE")), "2 1 4 3");
    assert_finds(fake, NEAREST(TO("1", "1", "DOT_PRODUCT")), "1 2 4 3");
    assert_finds(fake,
                 NEAREST("'queryVector': " XY("0", "0") ", 'limit': 2, "
                                                        "'distanceMeasure': 'EUCLIDEAN'"),
                 "2 4");
    assert_finds(fake, NEAREST(TO("0", "0", "EUCLIDEAN")) ", 'limit': 3", "2 4 3");
    assert_finds(fake, NEAREST(TO("0", "0", "EUCLIDEAN")) ", 'limit': 0", "");
}

static void test_the_threshold_is_kept(void **state)
{
    struct fake *fake = *state;
    put_points(fake);
    assert_finds(fake, NEAREST(TO("0", "0", "EUCLIDEAN") ", 'distanceThreshold': 2"), "2 4 3");
    assert_finds(fake, NEAREST(TO("0", "0", "EUCLIDEAN") ", 'distanceThreshold': 1.99"), "2 4");
    assert_finds(fake, NEAREST(TO("2", "0", "COSINE") ", 'distanceThreshold': 0.5"), "2 1");
    assert_finds(fake, NEAREST(TO("1", "1", "DOT_PRODUCT") ", 'distanceThreshold': 1"), "1 2 4");
}

static void test_what_cannot_be_compared_is_left_out(void **state)
{
    struct fake *fake = *state;
    put_points(fake);
    fake_put(fake, "K/6", "'v': " VECTOR(DOUBLE("1")));
    fake_put(fake, "K/7", "'v': {" VALUES(DOUBLE("0") "," DOUBLE("0")) "}"); /* no meaning */
    fake_put(fake, "K/8", "'v': " VECTOR("{'integerValue': 0}, {'integerValue': 0}"));
    fake_put(fake, "K/9", "'v': {'doubleValue': 0}");
    fake_put(fake, "K/10", "");
    fake_put(fake, "K/11", "'v': " XY("0", "0"));
    fake_put(fake, "K/12",
             "'v': {'meaning': 31, 'excludeFromIndexes': true, " VALUES(
                 DOUBLE("0") "," DOUBLE("0.5")) "}");
    assert_finds(fake, NEAREST(TO("0", "0", "EUCLIDEAN")), "11 12 2 4 3 1");
    assert_finds(fake, NEAREST(TO("2", "0", "COSINE")), "2 1 4 12 3"); /* 11 has no direction */
}

static void test_filters_come_before(void **state)
{
    struct fake *fake = *state;
    put_points(fake);
    assert_finds(fake,
                 NEAREST(TO("0", "0", "EUCLIDEAN")) ", 'filter': {'propertyFilter': {'property': "
                                                    "{'name': 'n'}, 'op': 'EQUAL', "
                                                    "'value': {'integerValue': 1}}}",
                 "4 3 1");
}

static void test_a_vector_may_lie_in_an_entity(void **state)
{
    struct fake *fake = *state;
    fake_put(fake, "K/1", "'o': {'entityValue': {'properties': {'v': " XY("3", "4") "}}}");
    fake_put(fake, "K/2", "'o': {'entityValue': {'properties': {'v': " XY("0", "4") "}}}");
    assert_finds(
        fake, "'findNearest': {'vectorProperty': {'name': 'o.v'}, " TO("0", "0", "EUCLIDEAN") "}",
        "2 1");
}

/* All entities sorted by their distance and key must begin with what is found. */
static void test_random_vectors(void **state)
{
    enum { ENTITIES = 500, DIMENSION = 3, LIMIT = 40 };
    struct fake *fake = *state;
    double squares[ENTITIES + 1];
    random_seed(7);
    for (int i = 1; i <= ENTITIES; i++) {
        unsigned x = random_below(9), y = random_below(9), z = random_below(9);
        char path[16], properties[250];
        squares[i] = (double)(x * x + y * y + z * z);
        snprintf(path, sizeof path, "K/%d", i);
        snprintf(properties, sizeof properties,
                 "'v': {'meaning': 31, 'arrayValue': {'values': [{'doubleValue': %u}, "
                 "{'doubleValue': %u}, {'doubleValue': %u}]}}",
                 x, y, z);
        fake_put(fake, path, properties);
    }
    Ds__QueryResultBatch *batch =
        find(fake, NEAREST("'queryVector': " VECTOR(DOUBLE("0") "," DOUBLE("0") "," DOUBLE(
                       "0")) ", 'distanceMeasure': 'EUCLIDEAN', 'limit': 40"));
    assert_int_equal(batch->n_entity_results, LIMIT);
    int64_t last = 0;
    for (size_t i = 0; i < LIMIT; i++) {
        int64_t id = batch->entity_results[i]->entity->key->path[0]->id;
        size_t before = 0;
        for (int64_t j = 1; j <= ENTITIES; j++)
            before += squares[j] < squares[id] || (squares[j] == squares[id] && j < id);
        assert_int_equal(before, i);
        assert_true(id != last);
        last = id;
    }
}

/* --- what is shown --- */

static void test_the_distance_is_shown(void **state)
{
    struct fake *fake = *state;
    fake_put(fake, "K/1", "'v': " XY("3", "4") ", 'd': {'stringValue': 'old'}");
    Ds__QueryResultBatch *batch =
        find(fake, NEAREST(TO("0", "0", "EUCLIDEAN") ", 'distanceResultProperty': 'd'"));
    const Ds__Entity *entity = batch->entity_results[0]->entity;
    assert_int_equal(entity->n_properties, 2);
    assert_json(&entity->properties[0]->value->base, "{'doubleValue':5}");
    assert_int_equal(batch->entity_results[0]->version, 3);
    assert_int_equal(batch->more_results,
                     DS__QUERY_RESULT_BATCH__MORE_RESULTS_TYPE__NO_MORE_RESULTS);
    assert_int_equal(batch->entity_results[0]->cursor.len, 0);
}

static void test_what_is_projected_is_shown(void **state)
{
    struct fake *fake = *state;
    put_points(fake);
    Ds__QueryResultBatch *batch = find(
        fake, NEAREST(TO("0", "0", "EUCLIDEAN") ", 'distanceResultProperty': 'd'") ", 'projection':"
                                                                                   " [{'property':"
                                                                                   " {'name': "
                                                                                   "'n'}}]");
    assert_int_equal(batch->entity_result_type, DS__ENTITY_RESULT__RESULT_TYPE__PROJECTION);
    const Ds__Entity *entity = batch->entity_results[0]->entity;
    assert_int_equal(entity->n_properties, 2);
    assert_string_equal(entity->properties[0]->key, "d");
    assert_string_equal(entity->properties[1]->key, "n");
    batch = find(fake, NEAREST(TO("0", "0", "EUCLIDEAN")) ", 'projection': [{'property': {'name': "
                                                          "'__key__'}}]");
    assert_int_equal(batch->entity_result_type, DS__ENTITY_RESULT__RESULT_TYPE__KEY_ONLY);
    assert_int_equal(batch->entity_results[0]->entity->n_properties, 0);
    assert_int_equal(batch->entity_results[0]->entity->key->path[0]->id, 2);
}

/* Results come at once, so they may not be too many bytes; their keys may be asked for. */
static void test_results_are_bounded(void **state)
{
    struct fake *fake = *state;
    char *text = arena_alloc(fake->arena, 1000001);
    assert_non_null(text);
    memset(text, 'x', 1000000);
    text[1000000] = '\0';
    for (int i = 1; i <= 11; i++) {
        char path[16];
        snprintf(path, sizeof path, "K/%d", i);
        fake_put(fake, path,
                 "'v': " XY("1", "0") ", 's': {'stringValue': '', 'excludeFromIndexes': true}");
        ((Ds__Entity *const *)fake->entities.items)[i - 1]->properties[0]->value->string_value =
            text;
    }
    Ds__Query *request = test_query(
        fake->arena, "{" KIND "'findNearest': {'vectorProperty': {'name': 'v'}, 'queryVector': " XY(
                         "0", "0") ", 'distanceMeasure': 'COSINE', 'limit': 100}}");
    Ds__QueryResultBatch *batch;
    request->find_nearest->distance_measure = DS__FIND_NEAREST__DISTANCE_MEASURE__EUCLIDEAN;
    assert_status(run(fake, request, &batch), STATUS_RESOURCE_EXHAUSTED);
    assert_finds(fake,
                 NEAREST(TO("0", "0", "EUCLIDEAN")) ", 'projection': [{'property': {'name': "
                                                    "'__key__'}}]",
                 "1 2 3 4 5 6 7 8 9 10");
}

/* --- what is refused --- */

static void test_clauses_that_cannot_be_combined(void **state)
{
    struct fake *fake = *state;
#define ALL NEAREST(TO("0", "0", "EUCLIDEAN"))
    assert_refused(fake, "{" KIND ALL ", 'order': [{'property': {'name': 'n'}}]}",
                   "find_nearest cannot be combined with an order.");
    assert_refused(fake, "{" KIND ALL ", 'offset': 1}",
                   "find_nearest cannot be combined with an offset.");
    assert_refused(fake, "{" KIND ALL ", 'startCursor': 'AQ=='}",
                   "find_nearest cannot be combined with a cursor.");
    assert_refused(fake, "{" KIND ALL ", 'distinctOn': [{'name': 'n'}]}",
                   "find_nearest cannot be combined with distinct_on.");
    assert_refused(fake, "{" ALL "}", "kind is required for find_nearest");
}

static void test_fields_that_are_required(void **state)
{
    struct fake *fake = *state;
    static const char limit[] = "find_nearest.limit must be a positive integer of no more than "
                                "100.";
#define REST ", 'distanceMeasure': 'COSINE'"
    assert_refused(fake, "{" KIND NEAREST("'queryVector': " XY("0", "0") REST) "}", limit);
    assert_refused(fake, "{" KIND NEAREST("'limit': 0, 'queryVector': " XY("0", "0") REST) "}",
                   limit);
    assert_refused(fake, "{" KIND NEAREST("'limit': 101, 'queryVector': " XY("0", "0") REST) "}",
                   limit);
    assert_refused(fake, "{" KIND NEAREST("'limit': 1, 'queryVector': " XY("0", "0")) "}",
                   "find_nearest has no distance_measure.");
    assert_refused(fake, "{" KIND NEAREST("'limit': 1" REST) "}",
                   "Query Value must be of type vector.");
    assert_refused(
        fake, "{" KIND NEAREST("'limit': 1, 'queryVector': {" VALUES(DOUBLE("0")) "}" REST) "}",
        "Query Value must be of type vector.");
    assert_refused(fake, "{" KIND NEAREST("'limit': 1, 'queryVector': " VECTOR("") REST) "}",
                   "A vector must have at least one dimension.");
    assert_refused(fake,
                   "{" KIND NEAREST("'limit': 1, 'distanceResultProperty': '__d__', "
                                    "'queryVector': " XY("0", "0") REST) "}",
                   "The property.name \"__d__\" is reserved.");
    assert_refused(fake, "{" KIND "'findNearest': {}}", "find_nearest has no vector_property.");
}

static void test_dimensions_are_bounded(void **state)
{
    struct fake *fake = *state;
    for (int size = LIMIT_DS_VECTOR_DIMENSIONS; size <= LIMIT_DS_VECTOR_DIMENSIONS + 1; size++) {
        struct buffer json = {0};
        buffer_append_format(&json,
                             "{%s'findNearest': {'vectorProperty': {'name': 'v'}, 'limit': 1, "
                             "'distanceMeasure': 'COSINE', 'queryVector': {'meaning': 31, "
                             "'arrayValue': {'values': [",
                             KIND);
        for (int i = 0; i < size; i++)
            buffer_append_format(&json, "%s{'doubleValue': 1}", i > 0 ? "," : "");
        buffer_append_format(&json, "]}}}}");
        buffer_append_byte(&json, '\0');
        Ds__QueryResultBatch *batch;
        status s = run(fake, test_query(fake->arena, (const char *)json.data), &batch);
        assert_int_equal(s.code, size > LIMIT_DS_VECTOR_DIMENSIONS ? STATUS_INVALID_ARGUMENT : 0);
        if (!status_is_ok(s))
            assert_string_equal(status_message(s), "A vector must have no more than 2048 "
                                                   "dimensions. The query vector has 2049.");
        status_free(s);
        buffer_free(&json);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_the_nearest_come_first),
        TEST(test_the_threshold_is_kept),
        TEST(test_what_cannot_be_compared_is_left_out),
        TEST(test_filters_come_before),
        TEST(test_a_vector_may_lie_in_an_entity),
        TEST(test_random_vectors),
        TEST(test_the_distance_is_shown),
        TEST(test_what_is_projected_is_shown),
        TEST(test_results_are_bounded),
        TEST(test_clauses_that_cannot_be_combined),
        TEST(test_fields_that_are_required),
        TEST(test_dimensions_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
