/* Tests of queries over a database in memory: what they give, in which order, and what is refused.
 * query_random_test.c holds them against a plain evaluation. */
#include "base/check.h"
#include "base/testing/testing.h"
#include "datastore/query/query_cursor.h"
#include "datastore/query/query_explain.h"
#include "datastore/testing/query_fake.h"
#include "datastore/testing/testing.h"

#include <stdio.h>

/* --- entities and queries from short texts --- */

#define INT(name, value)   "'" name "': {'integerValue': " value "}"
#define INTS(name, values) "'" name "': {'arrayValue': {'values': [" values "]}}"
#define I(value)           "{'integerValue': " value "}"
#define FILTER(name, op, value)                                                                    \
    "{'propertyFilter': {'property': {'name': '" name "'}, 'op': '" op "', 'value': " value "}}"
#define ALL(filters)           "{'compositeFilter': {'op': 'AND', 'filters': [" filters "]}}"
#define ANY(filters)           "{'compositeFilter': {'op': 'OR', 'filters': [" filters "]}}"
#define ARRAY(values)          "{'arrayValue': {'values': [" values "]}}"
#define ORDER(name, direction) "{'property': {'name': '" name "'}, 'direction': '" direction "'}"
#define UP(name)               ORDER(name, "ASCENDING")
#define DOWN(name)             ORDER(name, "DESCENDING")
#define PROJECT(name)          "{'property': {'name': '" name "'}}"
#define KEY(path)              "{'keyValue': {'path': [" path "]}}"
#define ELEMENT(kind, id)      "{'kind': '" kind "', 'id': " id "}"

static Ds__Query *query_of(struct fake *fake, const char *parts, const char *kind)
{
    struct buffer json = {0};
    const char *comma = parts[0] != '\0' && kind != NULL ? "," : "";
    buffer_append_format(&json, "{%s%s", parts, comma);
    if (kind != NULL)
        buffer_append_format(&json, "'kind': [{'name': '%s'}]", kind);
    buffer_append_byte(&json, '}');
    buffer_append_byte(&json, '\0');
    assert_false(json.failed);
    Ds__Query *query = test_query(fake->arena, (const char *)json.data);
    buffer_free(&json);
    return query;
}

static void assert_text(struct buffer *text, const char *expected)
{
    buffer_append_byte(text, '\0');
    assert_false(text->failed);
    assert_string_equal((const char *)text->data, expected);
    buffer_free(text);
}

/* In one pass, and one by one, each from the cursor of the one before. */
static void assert_lists(struct fake *fake, const char *parts, const char *kind,
                         const char *expected)
{
    for (int page = 0; page < 3; page++) {
        struct buffer list = {0};
        assert_ok(fake_list(fake, query_of(fake, parts, kind), page, &list));
        assert_text(&list, expected);
    }
}

static void assert_refused(struct fake *fake, const char *parts, const char *kind,
                           enum status_code code, const char *message)
{
    Ds__QueryResultBatch *batch;
    status s = fake_run(fake, query_of(fake, parts, kind), "", &batch);
    assert_int_equal(s.code, code);
    assert_string_equal(status_message(s), message);
    status_free(s);
}

static void assert_invalid(struct fake *fake, const char *parts, const char *message)
{
    assert_refused(fake, parts, "K", STATUS_INVALID_ARGUMENT, message);
}

/* --- built-in indexes --- */

static void test_a_kind_is_listed_in_the_order_of_keys(void **state)
{
    struct fake *fake = *state;
    fake_put(fake, "K/10", "");
    fake_put(fake, "K/2", "");
    fake_put(fake, "J/1", "");
    fake_put(fake, "K/2/K/3", "");
    fake_put(fake, "A/1/K/5", "");
    assert_lists(fake, "", "K", "5 2 3 10");
    assert_lists(fake, "", NULL, "5 1 2 3 10");
    assert_lists(fake, "", "none", "");
    assert_lists(fake, "'filter': " FILTER("__key__", "HAS_ANCESTOR", KEY(ELEMENT("K", "2"))), NULL,
                 "2 3");
    assert_lists(fake, "'filter': " FILTER("__key__", "HAS_ANCESTOR", KEY(ELEMENT("A", "1"))), "K",
                 "5");
    assert_lists(fake, "'filter': " FILTER("__key__", "GREATER_THAN", KEY(ELEMENT("K", "2"))), "K",
                 "3 10");
    assert_lists(fake, "'filter': " FILTER("__key__", "LESS_THAN_OR_EQUAL", KEY(ELEMENT("K", "2"))),
                 NULL, "5 1 2");
    assert_lists(fake, "'filter': " FILTER("__key__", "EQUAL", KEY(ELEMENT("K", "2"))), NULL, "2");
    assert_lists(fake, "'filter': " FILTER("__key__", "NOT_EQUAL", KEY(ELEMENT("K", "2"))), "K",
                 "5 3 10");
}

/* One value of each type, in the order of types; an integer is no double. */
static void test_values_of_all_types_have_one_order(void **state)
{
    struct fake *fake = *state;
    fake_put(fake, "K/1", "'v': {'keyValue': {'path': [{'kind': 'K', 'id': 7}]}}");
    ((Ds__Entity *const *)fake->entities.items)[0]->properties[0]->value->key_value =
        test_key(fake->arena, "", "K/7");
    fake_put(fake, "K/2", "'v': {'geoPointValue': {'latitude': 1, 'longitude': 2}}");
    fake_put(fake, "K/3", "'v': {'doubleValue': 5.0}");
    fake_put(fake, "K/4", "'v': {'stringValue': 'abc'}");
    fake_put(fake, "K/5", "'v': {'booleanValue': true}");
    fake_put(fake, "K/6", "'v': {'integerValue': 5}");
    fake_put(fake, "K/7", "'v': {'nullValue': null}");
    fake_put(fake, "K/8", "'v': {'timestampValue': '1960-01-01T00:00:00Z'}");
    fake_put(fake, "K/9", "'v': {'blobValue': 'YWJj'}");
    fake_put(fake, "K/10", "'v': {'integerValue': 5, 'excludeFromIndexes': true}");
    assert_lists(fake, "'order': [" UP("v") "]", "K", "7 8 6 5 4 9 3 2 1");
    assert_lists(fake, "'order': [" DOWN("v") "]", "K", "1 2 3 4 9 5 6 8 7");
    assert_lists(fake, "'filter': " FILTER("v", "EQUAL", I("5")), "K", "6");
    assert_lists(fake, "'filter': " FILTER("v", "EQUAL", "{'stringValue': 'abc'}"), "K", "4 9");
    assert_lists(fake, "'filter': " FILTER("v", "GREATER_THAN", I("3")), "K", "6 5 4 9 3 2 1");
}

static void test_an_array_is_at_its_first_value(void **state)
{
    struct fake *fake = *state;
    fake_put(fake, "K/1", INTS("v", I("9") "," I("1")));
    fake_put(fake, "K/2", INT("v", "5"));
    fake_put(fake, "K/3", INTS("v", I("2") "," I("6") "," I("6")));
    fake_put(fake, "K/4", INTS("v", ""));
    assert_lists(fake, "'order': [" UP("v") "]", "K", "1 3 2");
    assert_lists(fake, "'order': [" DOWN("v") "]", "K", "1 3 2");
    assert_lists(fake, "'filter': " FILTER("v", "GREATER_THAN", I("4")), "K", "2 3 1");
    assert_lists(fake, "'filter': " FILTER("v", "LESS_THAN", I("7")) ", 'order': [" DOWN("v") "]",
                 "K", "3 2 1");
    assert_lists(fake,
                 "'filter': " ALL(FILTER("v", "EQUAL", I("9")) "," FILTER("v", "EQUAL", I("1"))),
                 "K", "1");
    assert_lists(
        fake,
        "'filter': " ALL(FILTER("v", "GREATER_THAN", I("2")) "," FILTER("v", "LESS_THAN", I("5"))),
        "K", "");
}

static void test_equalities_are_merged(void **state)
{
    struct fake *fake = *state;
    for (int i = 1; i <= 60; i++) {
        char path[16], properties[200];
        snprintf(path, sizeof path, "K/%d", i);
        snprintf(properties, sizeof properties,
                 "'a': {'integerValue': %d}, 'b': {'integerValue': %d}, 'c': {'integerValue': %d}",
                 i % 2, i % 3, i % 5);
        fake_put(fake, path, properties);
    }
    assert_lists(
        fake,
        "'filter': " ALL(FILTER("a", "EQUAL", I("0")) "," FILTER(
            "b", "EQUAL", I("0")) ","
                                  "{"
                                  "'propertyFilter': {'property': {'name': 'c'}, 'op': 'EQUAL', "
                                  "'value': {'integerValue': 0}}}"),
        "K", "30 60");
}

static void test_unions_give_each_result_once(void **state)
{
    struct fake *fake = *state;
    fake_put(fake, "K/1", INTS("v", I("1") "," I("2") "," I("3")) "," INT("w", "1"));
    fake_put(fake, "K/2", INT("v", "2") "," INT("w", "2"));
    fake_put(fake, "K/3", INT("v", "3") "," INT("w", "1"));
    fake_put(fake, "K/4", INT("v", "4") "," INT("w", "2"));
    assert_lists(fake, "'filter': " FILTER("v", "IN", ARRAY(I("3") "," I("1") "," I("2"))), "K",
                 "1 2 3");
    assert_lists(fake,
                 "'filter': " ANY(FILTER("v", "EQUAL", I("4")) "," FILTER("w", "EQUAL", I("1"))),
                 "K", "1 3 4");
    assert_lists(fake, "'filter': " FILTER("v", "NOT_EQUAL", I("2")), "K", "1 3 4");
    assert_lists(fake, "'filter': " FILTER("v", "NOT_IN", ARRAY(I("2") "," I("1"))), "K", "1 3 4");
    assert_lists(fake,
                 "'order': [" DOWN("v") "], 'filter': " FILTER("v", "IN",
                                                               ARRAY(I("1") "," I("2") "," I("3"))),
                 "K", "1 3 2");
}

/* --- composite indexes --- */

static void put_grid(struct fake *fake)
{
    fake_put(fake, "R/1/K/1", INT("a", "1") "," INT("b", "3"));
    fake_put(fake, "R/1/K/2", INT("a", "2") "," INT("b", "2"));
    fake_put(fake, "R/1/K/3", INT("a", "1") "," INT("b", "1"));
    fake_put(fake, "R/2/K/4", INT("a", "2") "," INT("b", "2"));
    fake_put(fake, "R/2/K/5", INT("a", "1") "," INT("b", "2"));
}

static void test_composite_indexes_serve_the_rest(void **state)
{
    struct fake *fake = *state;
    put_grid(fake);
    fake_add_index(fake, "K a -b");
    fake_add_index(fake, "^K b");
    fake_add_index(fake, "K __key__");
    fake_add_index(fake, "K -__key__");
    fake_add_index(fake, "K b -__key__");
    assert_lists(fake, "'order': [" UP("a") "," DOWN("b") "]", "K", "1 5 3 2 4");
    assert_lists(fake, "'filter': " FILTER("a", "EQUAL", I("1")) ", 'order': [" DOWN("b") "]", "K",
                 "1 5 3");
    assert_lists(fake,
                 "'filter': " FILTER("__key__", "HAS_ANCESTOR",
                                     KEY(ELEMENT("R", "1"))) ", 'order': [" UP("b") "]",
                 "K", "3 2 1");
    assert_lists(fake, "'order': [" DOWN("__key__") "]", "K", "5 4 3 2 1");
    assert_lists(fake, "'order': [" UP("b") "," DOWN("__key__") "]", "K", "3 5 4 2 1");
    assert_lists(
        fake,
        "'order': [" UP("a") "," DOWN("b") "], 'filter': " FILTER("b", "GREATER_THAN", I("1")), "K",
        "1 5 2 4");
}

static void test_a_missing_index_is_recommended(void **state)
{
    struct fake *fake = *state;
    const enum status_code code = STATUS_FAILED_PRECONDITION;
    assert_refused(fake, "'filter': " FILTER("a", "EQUAL", I("1")) ", 'order': [" DOWN("b") "]",
                   "K", code,
                   "no matching index found. recommended index is:\n- kind: K\n  properties:\n"
                   "  - name: a\n  - name: b\n    direction: desc\n");
    assert_refused(
        fake,
        "'filter': " FILTER("__key__", "HAS_ANCESTOR",
                            KEY(ELEMENT("R", "1"))) ", 'order': [" UP("b") "," DOWN("__key__") "]",
        "K", code,
        "no matching index found. recommended index is:\n- kind: K\n  ancestor: yes\n"
        "  properties:\n  - name: b\n  - name: __key__\n    direction: desc\n");
}

/* --- projections --- */

static void test_projections_come_from_the_index(void **state)
{
    struct fake *fake = *state;
    fake_put(fake, "K/1", INTS("v", I("9") "," I("1")) "," INT("w", "1"));
    fake_put(fake, "K/2", INT("v", "5") "," INT("w", "1"));
    fake_put(fake, "K/3", INT("w", "1"));
    fake_put(fake, "K/4", "'v': {'timestampValue': '1970-01-01T00:00:01Z'}");
    fake_add_index(fake, "K w v");
    assert_lists(fake, "'projection': [" PROJECT("v") "]", "K", "1(1) 2(5) 1(9) 4(1000000)");
    assert_lists(fake, "'projection': [" PROJECT("v") "], 'order': [" DOWN("v") "]", "K",
                 "4(1000000) 1(9) 2(5) 1(1)");
    assert_lists(fake, "'projection': [" PROJECT("v") "," PROJECT("w") "], 'order': [" UP("w") "]",
                 "K", "1(1,1) 2(5,1) 1(9,1)");
    assert_lists(fake, "'projection': [" PROJECT("__key__") "]", "K", "1 2 3 4");
    assert_lists(fake,
                 "'projection': [" PROJECT("v") "," PROJECT("w") "], 'distinctOn': [{'name': 'w'}]",
                 "K", "1(1,1)");
}

/* A query that only projects properties takes them in any order, which their index has. */
static void test_projections_follow_an_index(void **state)
{
    struct fake *fake = *state;
    fake_put(fake, "K/1", INT("a", "1") "," INT("b", "1") "," INT("c", "1"));
    fake_put(fake, "K/2", INT("a", "2") "," INT("b", "2") "," INT("c", "1"));
    fake_put(fake, "K/3", INT("a", "1") "," INT("b", "2") "," INT("c", "2"));
    fake_add_index(fake, "K c -b a");
    assert_lists(fake,
                 "'filter': " FILTER("c", "EQUAL",
                                     I("1")) ", 'projection': [" PROJECT("a") "," PROJECT("b") "]",
                 "K", "2(2,2) 1(1,1)");
    assert_lists(fake, "'order': [" UP("c") "], 'projection': [" PROJECT("a") "," PROJECT("b") "]",
                 "K", "2(2,2) 1(1,1) 3(1,2)");
    assert_refused(fake, "'projection': [" PROJECT("a") "," PROJECT("c") "]", "K",
                   STATUS_FAILED_PRECONDITION,
                   "no matching index found. recommended index is:\n- kind: K\n  properties:\n"
                   "  - name: a\n  - name: c\n");
}

/* --- explanations --- */

static void assert_explained(struct fake *fake, const char *parts, const char *kind,
                             const char *expected)
{
    struct ds_database database = {.project = "p", .id = ""};
    const struct ds_reads reads = {.rows = 5, .entities = 2};
    struct ds_query query;
    struct ds_plan plan;
    Ds__ExplainMetrics *metrics = NULL;
    assert_ok(ds_query_check(query_of(fake, parts, kind), NULL, &database, fake->arena, &query));
    assert_ok(ds_plan_make(&query, fake->indexes.items, fake->indexes.count, fake->arena, &plan));
    assert_ok(ds_explain_plan(&query, &plan, fake->arena, &metrics));
    CHECK(metrics != NULL);
    assert_json(&metrics->plan_summary->base, expected);
    assert_ok(ds_explain_run(&reads, DS_BILLED_ENTITIES, 2, 1500000, fake->arena, metrics));
    assert_json(&metrics->execution_stats->base,
                "{'resultsReturned':'2','executionDuration':'1.500s','readOperations':'2',"
                "'debugStats':{'index_entries_scanned':'5','documents_scanned':'2',"
                "'billing_details':{'documents_billable':'2','index_entries_billable':'0',"
                "'small_ops':'0','min_query_cost':'0'}}}");
}

static void test_a_plan_says_its_indexes(void **state)
{
    struct fake *fake = *state;
    fake_add_index(fake, "^K a -b");
    assert_explained(fake, "", "K",
                     "{'indexesUsed':[{'query_scope':'Collection group',"
                     "'properties':'(__name__ ASC)'}]}");
    assert_explained(
        fake,
        "'filter': " ALL(
            FILTER("a", "IN", ARRAY(I("3") "," I("4"))) "," FILTER("b", "EQUAL", I("1"))),
        "K",
        "{'indexesUsed':[{'query_scope':'Collection group','properties':'(a ASC, __name__ ASC)'},"
        "{'query_scope':'Collection group','properties':'(b ASC, __name__ ASC)'}]}");
    assert_explained(fake,
                     "'order': [" UP("a") "," DOWN("b") "], 'filter': " FILTER(
                         "__key__", "HAS_ANCESTOR", KEY(ELEMENT("R", "1"))),
                     "K",
                     "{'indexesUsed':[{'query_scope':'Includes ancestors',"
                     "'properties':'(a ASC, b DESC, __name__ ASC)'}]}");
}

/* --- batches --- */

static Ds__QueryResultBatch *run(struct fake *fake, const char *parts)
{
    Ds__QueryResultBatch *batch;
    assert_ok(fake_run(fake, query_of(fake, parts, "K"), "", &batch));
    return batch;
}

static void test_a_batch_says_how_it_ended(void **state)
{
    struct fake *fake = *state;
    put_grid(fake);
    Ds__QueryResultBatch *batch = run(fake, "'offset': 1, 'limit': 2");
    assert_int_equal(batch->skipped_results, 1);
    assert_int_equal(batch->n_entity_results, 2);
    assert_int_equal(batch->more_results,
                     DS__QUERY_RESULT_BATCH__MORE_RESULTS_TYPE__MORE_RESULTS_AFTER_LIMIT);
    assert_int_equal(batch->entity_results[0]->version, 3);
    assert_int_equal(batch->entity_results[0]->create_time->nanos, 2000);
    assert_int_equal(batch->snapshot_version, 7);
    Ds__Query *query = query_of(fake, "", "K");
    query->end_cursor = batch->end_cursor;
    Ds__QueryResultBatch *first;
    assert_ok(fake_run(fake, query, "", &first));
    assert_int_equal(first->n_entity_results, 3);
    assert_int_equal(first->more_results,
                     DS__QUERY_RESULT_BATCH__MORE_RESULTS_TYPE__MORE_RESULTS_AFTER_CURSOR);
    batch = run(fake, "'offset': 9");
    assert_int_equal(batch->skipped_results, 5);
    assert_int_equal(batch->more_results,
                     DS__QUERY_RESULT_BATCH__MORE_RESULTS_TYPE__NO_MORE_RESULTS);
    batch = run(fake, "'limit': 0");
    assert_int_equal(batch->n_entity_results, 0);
    assert_true(batch->end_cursor.len > 0);
}

static void test_a_batch_has_so_many_results(void **state)
{
    struct fake *fake = *state;
    for (int i = 1; i <= DS_BATCH_RESULTS + 5; i++) {
        char path[16];
        snprintf(path, sizeof path, "K/%d", i);
        fake_put(fake, path, "");
    }
    Ds__QueryResultBatch *batch = run(fake, "");
    assert_int_equal(batch->n_entity_results, DS_BATCH_RESULTS);
    assert_int_equal(batch->more_results, DS__QUERY_RESULT_BATCH__MORE_RESULTS_TYPE__NOT_FINISHED);
}

static void test_cursors_of_others_are_refused(void **state)
{
    struct fake *fake = *state;
    put_grid(fake);
    Ds__QueryResultBatch *batch = run(fake, "'limit': 1"), *next;
    Ds__Query *query = query_of(fake, "'order': [" UP("a") "]", "K");
    query->start_cursor = batch->end_cursor;
    status s = fake_run(fake, query, "", &next);
    assert_status(s, STATUS_INVALID_ARGUMENT);
    query = query_of(fake, "", "K");
    for (size_t size = 1; size < batch->end_cursor.len; size++) {
        query->start_cursor = (ProtobufCBinaryData){.data = batch->end_cursor.data, .len = size};
        s = fake_run(fake, query, "", &next);
        if (status_is_ok(s))
            assert_true(size == 9 || size == 9 + 12); /* the start, and behind R/1 */
        status_free(s);
    }
}

/* A transaction depends on all ranges that were read to their end, and of the others up to the last
 * row. */
static void test_what_was_looked_at_is_noted(void **state)
{
    struct fake *fake = *state;
    struct buffer prefix = {0};
    put_grid(fake);
    ds_kind_prefix(&prefix, bytes_of(""), bytes_of("K"));
    run(fake, "'limit': 1");
    run(fake, "");
    const struct ds_read_range *ranges = fake->ranges.items;
    assert_int_equal(fake->ranges.count, 2);
    assert_true(bytes_equal(ranges[0].from, buffer_bytes(&prefix)));
    assert_true(bytes_start_with(ranges[0].to, buffer_bytes(&prefix)));
    assert_true(bytes_equal(ranges[1].from, buffer_bytes(&prefix)));
    assert_false(bytes_start_with(ranges[1].to, buffer_bytes(&prefix)));
    buffer_free(&prefix);
}

/* --- what there is --- */

static void assert_keys(struct fake *fake, const char *parts, const char *kind, int page,
                        const char *expected)
{
    Ds__Query *query = query_of(fake, parts, kind);
    Pb__Int32Value limit = PB__INT32_VALUE__INIT;
    struct buffer text = {0};
    Ds__QueryResultBatch *batch = NULL;
    limit.value = page;
    query->limit = &limit;
    do {
        assert_ok(fake_run(fake, query, "", &batch));
        CHECK(batch != NULL);
        for (size_t i = 0; i < batch->n_entity_results; i++) {
            const Ds__Key *key = batch->entity_results[i]->entity->key;
            for (size_t j = 0; j < key->n_path; j++) {
                bool has_name = key->path[j]->id_type_case == DS__KEY__PATH_ELEMENT__ID_TYPE_NAME;
                buffer_append_format(&text, "%s%s", j > 0 ? "/" : "",
                                     has_name ? key->path[j]->name : "1");
            }
            buffer_append_byte(&text, ' ');
        }
        query->start_cursor = batch->end_cursor;
    } while (batch->n_entity_results > 0);
    assert_text(&text, expected);
}

static void test_kinds_and_properties_are_listed(void **state)
{
    struct fake *fake = *state;
    Ds__Entity *other = test_entity(fake->arena, "{}");
    put_grid(fake);
    fake_put(fake, "J/1",
             "'x': {'stringValue': 's'}, 'y': {'entityValue': {'properties': {"
             "'z': {'nullValue': null}}}}");
    fake_put(fake, "J/2", "'x': {'integerValue': 1}");
    fake_put(fake, "J/3", "'x': {'blobValue': 'YQ=='}");
    other->key = test_key(fake->arena, "n", "N/1");
    fake_add(fake, other);
    for (int page = 1; page < 4; page += 2) {
        assert_keys(fake, "", "__namespace__", page, "1 n ");
        assert_keys(fake, "", "__kind__", page, "J K ");
        assert_keys(fake, "", "__property__", page, "J/x J/y.z K/a K/b ");
        assert_keys(fake,
                    "'filter': " FILTER("__key__", "HAS_ANCESTOR",
                                        KEY("{'kind': '__kind__', 'name': 'J'}")),
                    "__property__", page, "J/x J/y.z ");
        assert_keys(fake,
                    "'filter': " FILTER("__key__", "GREATER_THAN",
                                        KEY("{'kind': '__kind__', 'name': 'J'}")),
                    "__kind__", page, "K ");
    }
    Ds__QueryResultBatch *batch;
    assert_ok(fake_run(fake, query_of(fake, "", "__property__"), "", &batch));
    const Ds__Entity *x = batch->entity_results[0]->entity;
    assert_string_equal(x->properties[0]->key, "property_representation");
    assert_json(&x->properties[0]->value->base,
                "{'arrayValue':{'values':[{'stringValue':'INT64'},{'stringValue':'STRING'}]}}");
    assert_refused(fake, "'filter': " FILTER("a", "EQUAL", I("1")), "__kind__",
                   STATUS_INVALID_ARGUMENT,
                   "Queries of the kind __kind__ can have only filters on __key__, all of them "
                   "true, and be in its ascending order");
}

/* Keys of a kind in an order that has nothing to do with theirs; no entity has the property. */
static void test_a_kinds_keys_are_sampled(void **state)
{
    struct fake *fake = *state;
    for (int i = 1; i <= 2000; i++) {
        char path[16];
        snprintf(path, sizeof path, "K/%d", i);
        fake_put(fake, path, INT("a", "1"));
    }
    Ds__QueryResultBatch *batch =
        run(fake, "'order': [" UP("__scatter__") "], 'projection': [" PROJECT("__key__") "]");
    assert_in_range(batch->n_entity_results, 8, 24);
    assert_int_equal(batch->entity_result_type, DS__ENTITY_RESULT__RESULT_TYPE__KEY_ONLY);
    size_t ascents = 0;
    for (size_t i = 1; i < batch->n_entity_results; i++)
        ascents += ds_key_compare(batch->entity_results[i - 1]->entity->key,
                                  batch->entity_results[i]->entity->key) < 0;
    assert_in_range(ascents, 1, batch->n_entity_results - 2);
    const Ds__EntityResult *first = batch->entity_results[0];
    const int64_t id = first->entity->key->path[0]->id;
    batch = run(fake, "'order': [" UP("__scatter__") "], 'limit': 1");
    assert_int_equal(batch->entity_results[0]->entity->key->path[0]->id, id);
    assert_int_equal(batch->entity_results[0]->entity->n_properties, 1);
    assert_keys(fake, "", "__property__", 5, "K/a ");
    assert_invalid(fake, "'projection': [" PROJECT("__scatter__") "]",
                   "projections are not supported for the property: __scatter__");
}

/* --- what is refused --- */

static void test_what_no_query_may_say(void **state)
{
    struct fake *fake = *state;
    const enum status_code code = STATUS_INVALID_ARGUMENT;
    assert_refused(fake, "'filter': " FILTER("a", "EQUAL", I("1")), NULL, code,
                   "kind is required for non-__key__ filters");
    assert_refused(fake, "'order': [" DOWN("__key__") "]", NULL, code,
                   "kind is required for all orders except __key__ ascending");
    assert_invalid(fake,
                   "'filter': " FILTER("a", "EQUAL", I("1")) ", 'projection': [" PROJECT("a") "]",
                   "cannot use projection on a property with an equality filter");
    assert_invalid(fake, /* though nothing can fit it */
                   "'filter': " ALL(FILTER("a", "EQUAL", I("1")) "," FILTER(
                       "a", "GREATER_THAN", I("1"))) ", 'projection': [" PROJECT("a") "]",
                   "cannot use projection on a property with an equality filter");
    assert_invalid(fake,
                   "'filter': " FILTER("a", "EQUAL", I("1")) ", 'distinctOn': [{'name': 'a'}]",
                   "cannot use group by on a property with an equality filter");
    assert_invalid(fake, "'projection': [" PROJECT("a") "," PROJECT("a") "]",
                   "cannot project a property multiple times");
    assert_invalid(fake, "'order': [" UP("b") "], 'distinctOn': [{'name': 'a'}]",
                   "must specify all group by orderings before any non group by orderings");
    assert_invalid(fake, "'offset': -1", "Offset must be non-negative.");
    assert_invalid(fake, "'limit': -1", "Limit must be non-negative.");
    assert_invalid(fake, "'filter': " FILTER("__key__", "EQUAL", I("1")),
                   "__key__ filter value must be a Key");
    assert_invalid(
        fake,
        "'filter': " ALL(FILTER("a", "NOT_EQUAL", I("1")) "," FILTER("b", "NOT_EQUAL", I("1"))),
        "Only a single 'NOT_EQUAL' or 'NOT_IN' is allowed per query.");
    assert_invalid(
        fake, "'filter': " FILTER("a", "GREATER_THAN", I("1")) ", 'order': [" UP("__key__") "]",
        "The first sort property must be the same as the property to which the "
        "inequality filter is applied. In your query the first sort property is "
        "__key__ but the inequality filter is on a");
}

static void append_values(struct buffer *json, int count)
{
    for (int i = 0; i < count; i++)
        buffer_append_format(json, "%s{'integerValue': %d}", i > 0 ? "," : "", i);
}

static void assert_list_refused(struct fake *fake, const char *op, int count, const char *message)
{
    struct buffer json = {0};
    buffer_append_format(&json,
                         "'filter': {'propertyFilter': {'property': {'name': 'a'}, 'op': '%s',"
                         "'value': {'arrayValue': {'values': [",
                         op);
    append_values(&json, count);
    buffer_append_format(&json, "]}}}}");
    buffer_append_byte(&json, '\0');
    assert_invalid(fake, (const char *)json.data, message);
    buffer_free(&json);
}

static void test_lists_have_limits(void **state)
{
    struct fake *fake = *state;
    assert_list_refused(
        fake, "IN", 31,
        "IN supports up to 30 values. There are 31 values in the IN filter in your query.");
    assert_list_refused(
        fake, "NOT_IN", 11,
        "NOT_IN supports up to 10 values. There are 11 values in the NOT_IN filter in your query.");
    assert_list_refused(fake, "IN", 0, "IN requires at least one value.");
    struct buffer json = {0};
    buffer_append_format(&json, "'filter': {'compositeFilter': {'op': 'AND', 'filters': [");
    for (int i = 0; i < 2; i++) {
        buffer_append_format(&json,
                             "%s{'propertyFilter': {'property': {'name': 'p%d'}, 'op': 'IN',"
                             "'value': {'arrayValue': {'values': [",
                             i > 0 ? "," : "", i);
        append_values(&json, 6);
        buffer_append_format(&json, "]}}}}");
    }
    buffer_append_format(&json, "]}}");
    buffer_append_byte(&json, '\0');
    assert_invalid(fake, (const char *)json.data,
                   "The query has more than 30 disjunctions in disjunctive normal form.");
    buffer_free(&json);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_kind_is_listed_in_the_order_of_keys),
        TEST(test_values_of_all_types_have_one_order),
        TEST(test_an_array_is_at_its_first_value),
        TEST(test_equalities_are_merged),
        TEST(test_unions_give_each_result_once),
        TEST(test_composite_indexes_serve_the_rest),
        TEST(test_a_missing_index_is_recommended),
        TEST(test_projections_come_from_the_index),
        TEST(test_projections_follow_an_index),
        TEST(test_a_plan_says_its_indexes),
        TEST(test_a_batch_says_how_it_ended),
        TEST(test_a_batch_has_so_many_results),
        TEST(test_cursors_of_others_are_refused),
        TEST(test_what_was_looked_at_is_noted),
        TEST(test_kinds_and_properties_are_listed),
        TEST(test_a_kinds_keys_are_sampled),
        TEST(test_what_no_query_may_say),
        TEST(test_lists_have_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
