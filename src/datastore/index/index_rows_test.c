/* Tests of index rows: which an entity has, and what a change makes of them. */
#include "datastore/index/index_rows.h"

#include "base/limits.h"
#include "base/testing/testing.h"
#include "datastore/testing/testing.h"
#include "wire/json.h"

#include <stdio.h>

static int make_arena(void **state)
{
    *state = arena_create(256 << 20);
    return *state == NULL;
}

static int free_arena(void **state)
{
    arena_destroy(*state);
    return 0;
}

#define ENTITY(properties)                                                                         \
    "{'key': {'partitionId': {'projectId': 'p'}, 'path': [{'kind': 'R', 'id': 9},"                 \
    " {'kind': 'K', 'id': 1}]}, 'properties': {" properties "}}"

/* --- rows as text: "A p=5(2)": the property, the value as it is in the row, and its type --- */

static void describe_value(struct buffer *out, bytes *values, enum ds_flip flip, uint8_t type,
                           struct arena *arena)
{
    const struct json_style style = {.compact = true};
    size_t size = ds_value_size(*values, flip);
    Ds__Value *value;
    struct buffer json = {0};
    assert_ok(ds_value_decode(bytes_make(values->data, size), flip, type, arena, &value));
    value->meaning = 0;
    json_encode(&value->base, &style, &json);
    buffer_append_byte(&json, '\0');
    assert_false(json.failed);
    char *text = strchr((char *)json.data, ':') + 1; /* of {"integerValue":"5"} */
    *strchr(text, '}') = '\0';
    buffer_append_format(out, "%s", text);
    buffer_append_format(out, "(%d) ", type);
    *values = bytes_from(*values, size);
    buffer_free(&json);
}

static void describe_row(struct buffer *out, bytes key, bytes types,
                         const struct ds_index_shape *shape, struct arena *arena)
{
    struct ds_row row;
    assert_true(ds_row_parse(key, shape, &row));
    buffer_append_format(out, "%c ", (char)row.kind);
    if (row.property.size > 0)
        buffer_append_format(out, "%s=", (const char *)row.property.data);
    if (row.ancestor.size > 0)
        buffer_append_format(out, "/%zu ", row.ancestor.size);
    bytes values = row.values;
    for (size_t i = 0; i < types.size; i++) {
        bool is_composite = shape != NULL && i < shape->values;
        enum ds_flip flip = is_composite ? shape->flips[i] : DS_ASCENDING;
        describe_value(out, &values, flip, types.data[i], arena);
    }
    assert_int_equal(values.size, 0);
    buffer_append_byte(out, '\n');
}

static void assert_text(struct buffer *text, const char *expected)
{
    buffer_append_byte(text, '\0');
    assert_false(text->failed);
    assert_string_equal((const char *)text->data, expected);
    buffer_free(text);
}

static void assert_rows(struct arena *arena, const char *json, const char *expected)
{
    struct buffer text = {0};
    struct ds_index_rows rows;
    assert_ok(ds_index_rows(test_entity(arena, json), NULL, 0, arena, &rows));
    for (size_t i = 0; i < rows.count; i++) {
        assert_true(i == 0 || bytes_compare(rows.rows[i - 1].key, rows.rows[i].key) < 0);
        describe_row(&text, rows.rows[i].key, rows.rows[i].types, NULL, arena);
    }
    assert_text(&text, expected);
}

/* --- built-in indexes --- */

static void test_an_entity_is_in_its_kinds_index(void **state)
{
    struct arena *arena = *state;
    struct buffer expected = {0};
    struct ds_index_rows rows;
    Ds__Entity *entity = test_entity(arena, ENTITY(""));
    assert_ok(ds_index_rows(entity, NULL, 0, arena, &rows));
    ds_kind_row(&expected, entity->key);
    assert_int_equal(rows.count, 1);
    assert_true(bytes_equal(rows.rows[0].key, buffer_bytes(&expected)));
    assert_int_equal(rows.rows[0].types.size, 0);
    buffer_free(&expected);
}

static void test_properties_have_a_row(void **state)
{
    assert_rows(*state,
                ENTITY("'p': {'integerValue': 5}, 't': {'timestampValue': '1970-01-01T00:00:01Z'},"
                       "'s': {'stringValue': 'x', 'excludeFromIndexes': true}"),
                "A p=\"5\"(2) \nA t=\"1000000\"(10) \nK \n");
}

static void test_arrays_have_a_row_for_each_different_value(void **state)
{
    assert_rows(*state,
                ENTITY("'p': {'arrayValue': {'values': [{'stringValue': 'b'}, {'stringValue': 'a'},"
                       "{'stringValue': 'b'}, {'blobValue': 'Yg=='},"
                       "{'stringValue': 'c', 'excludeFromIndexes': true}]}},"
                       "'empty': {'arrayValue': {}},"
                       "'none': {'excludeFromIndexes': true,"
                       " 'arrayValue': {'values': [{'integerValue': 1}]}},"
                       "'vector': {'meaning': 31, 'arrayValue': {'values': [{'doubleValue': 1}]}}"),
                "A p=\"a\"(17) \nA p=\"b\"(17) \nK \n");
}

static void test_entities_in_values_have_their_properties(void **state)
{
    assert_rows(*state,
                ENTITY("'o': {'entityValue': {'properties': {'i': {'integerValue': 1},"
                       "'d': {'entityValue': {'properties': {'e': {'booleanValue': true}}}}}}},"
                       "'l': {'arrayValue': {'values': ["
                       "{'entityValue': {'properties': {'i': {'integerValue': 2}}}},"
                       "{'entityValue': {'properties': {'i': {'integerValue': 3}}}},"
                       "{'excludeFromIndexes': true,"
                       " 'entityValue': {'properties': {'i': {'integerValue': 4}}}}]}},"
                       "'x': {'excludeFromIndexes': true,"
                       " 'entityValue': {'properties': {'i': {'integerValue': 1}}}}"),
                "A l.i=\"2\"(2) \nA l.i=\"3\"(2) \nA o.d.e=true(1) \nA o.i=\"1\"(2) \nK \n");
}

/* --- the sample --- */

/* How many rows the key has in the sample, and its value there. */
static size_t scatter_rows(struct arena *arena, const char *path, bytes *value)
{
    Ds__Entity *entity = test_entity(arena, "{}");
    struct ds_index_rows rows;
    size_t found = 0;
    entity->key = test_key(arena, "", path);
    assert_ok(ds_index_rows(entity, NULL, 0, arena, &rows));
    for (size_t i = 0; i < rows.count; i++) {
        struct ds_row row;
        assert_true(ds_row_parse(rows.rows[i].key, NULL, &row));
        if (row.property.size == 0)
            continue;
        assert_string_equal((const char *)row.property.data, DS_SCATTER_PROPERTY);
        assert_int_equal(rows.rows[i].types.data[0], DS__VALUE__VALUE_TYPE_BLOB_VALUE);
        *value = row.values;
        found++;
    }
    return found;
}

/* About as many as there should be; all with different values, which say nothing of the order of
 * keys. */
static void test_a_sample_of_keys_is_scattered(void **state)
{
    enum { KEYS = 20000, MOST = 2 * KEYS / DS_SCATTER_SHARE };
    bytes values[MOST] = {{0}};
    size_t count = 0, ascents = 0;
    for (int i = 1; i <= KEYS; i++) {
        char path[32];
        bytes value = {0};
        snprintf(path, sizeof path, i % 2 == 0 ? "K/%d" : "R/'x'/K/'n%d'", i);
        size_t rows = scatter_rows(*state, path, &value);
        assert_in_range(rows, 0, 1);
        if (rows == 0)
            continue;
        assert_true(count < MOST);
        for (size_t j = 0; j < count; j++)
            assert_false(bytes_equal(values[j], value));
        ascents += count > 0 && bytes_compare(values[count - 1], value) < 0;
        values[count++] = value;
    }
    assert_in_range(count, KEYS / DS_SCATTER_SHARE * 3 / 4, KEYS / DS_SCATTER_SHARE * 5 / 4);
    assert_in_range(ascents, count * 2 / 5, count * 3 / 5);
}

/* Stored rows depend on the sample: it must be the same for ever. */
static void test_the_sample_does_not_change(void **state)
{
    const uint8_t id[] = {0x30, 0x18, 0x05, 0xd8, 0xd2, 0x90, 0x3b, 0xa3, 0x6a, 0, 1};
    const uint8_t name[] = {0x30, 0x89, 0xa2, 0x06, 0x4a, 0xfa, 0x45, 0x76, 0xd3, 0, 1};
    bytes value = {0};
    assert_int_equal(scatter_rows(*state, "K/274", &value), 1);
    assert_true(bytes_equal(value, bytes_make(id, sizeof id)));
    assert_int_equal(scatter_rows(*state, "R/'x'/K/'n125'", &value), 1);
    assert_true(bytes_equal(value, bytes_make(name, sizeof name)));
    assert_int_equal(scatter_rows(*state, "K/275", &value), 0);
}

/* --- composite indexes --- */

static const enum ds_flip flips[] = {DS_ASCENDING, DS_DESCENDING};
static const char *const names[] = {"a", "b"};

static struct ds_index make_index(bool has_ancestors, enum ds_flip key_flip)
{
    return (struct ds_index){
        .id = 7,
        .kind = "K",
        .properties = names,
        .shape = {
            .flips = flips, .values = 2, .key_flip = key_flip, .has_ancestors = has_ancestors}};
}

/* The rows of the composite index alone. */
static void assert_composite(struct arena *arena, const struct ds_index *index, const char *json,
                             const char *expected)
{
    struct buffer text = {0};
    struct ds_index_rows rows;
    const Ds__Entity *entity = test_entity(arena, json);
    assert_ok(ds_index_rows(entity, index, 1, arena, &rows));
    for (size_t i = 0; i < rows.count; i++) {
        struct ds_row row;
        Ds__Key *key;
        if (rows.rows[i].key.data[0] != DS_COMPOSITE_ROW)
            continue;
        describe_row(&text, rows.rows[i].key, rows.rows[i].types, &index->shape, arena);
        assert_true(ds_row_parse(rows.rows[i].key, &index->shape, &row));
        assert_int_equal(row.index, 7);
        assert_ok(ds_row_entity(&row, "p", "", arena, &key));
        assert_int_equal(ds_key_value_compare(key, entity->key), 0);
    }
    assert_text(&text, expected);
}

#define A_AND_B                                                                                    \
    "'a': {'arrayValue': {'values': [{'integerValue': 1}, {'integerValue': 2}]}},"                 \
    "'b': {'arrayValue': {'values': [{'stringValue': 'x'}, {'booleanValue': false}]}}"

static void test_composite_rows_are_the_product(void **state)
{
    struct ds_index index = make_index(false, DS_ASCENDING);
    static const char product[] = "C \"1\"(2) \"x\"(17) \nC \"1\"(2) false(1) \n"
                                  "C \"2\"(2) \"x\"(17) \nC \"2\"(2) false(1) \n";
    assert_composite(*state, &index, ENTITY(A_AND_B), product);
    index.shape.key_flip = DS_DESCENDING;
    assert_composite(*state, &index, ENTITY(A_AND_B), product);
    assert_composite(*state, &index, ENTITY("'a': {'integerValue': 1}"), "");
    assert_composite(*state, &index, ENTITY("'a': {'integerValue': 1}, 'b': {'arrayValue': {}}"),
                     "");
    index.kind = "R";
    assert_composite(*state, &index, ENTITY(A_AND_B), "");
}

static void test_an_index_with_ancestors_has_rows_for_each(void **state)
{
    const struct ds_index index = make_index(true, DS_ASCENDING);
    assert_composite(*state, &index, ENTITY("'a': {'integerValue': 1}, 'b': {'integerValue': 2}"),
                     "C /12 \"1\"(2) \"2\"(2) \nC /24 \"1\"(2) \"2\"(2) \n");
}

/* An entity whose property has so many different values, "v" and "w" alike. */
static Ds__Entity *make_wide(struct arena *arena, const char *name, int count, int others)
{
    struct buffer json = {0};
    buffer_append_format(&json, "{'key': {'partitionId': {'projectId': 'p'}, 'path': "
                                "[{'kind': 'K', 'id': 1}]}, 'properties': {");
    for (int which = 0; which < 2; which++) {
        buffer_append_format(&json, "%s'%s': {'arrayValue': {'values': [", which == 0 ? "" : ", ",
                             which == 0 ? name : "b");
        for (int i = 0; i < (which == 0 ? count : others); i++)
            buffer_append_format(&json, "%s{'integerValue': %d}", i == 0 ? "" : ", ", i);
        buffer_append_format(&json, "]}}");
    }
    buffer_append_format(&json, "}}");
    char *text = bytes_to_string(buffer_bytes(&json));
    Ds__Entity *entity = test_entity(arena, text);
    free(text);
    buffer_free(&json);
    return entity;
}

static void assert_too_many(status s)
{
    assert_string_equal(status_message(s), "too many index entries for entity");
    assert_status(s, STATUS_INVALID_ARGUMENT);
}

static void test_entries_are_bounded(void **state)
{
    struct arena *arena = *state;
    struct ds_index_rows rows;
    const struct ds_index index = make_index(false, DS_ASCENDING);
    assert_ok(ds_index_rows(make_wide(arena, "v", 20000, 0), NULL, 0, arena, &rows));
    assert_int_equal(rows.count, 20001);
    assert_too_many(ds_index_rows(make_wide(arena, "v", 20001, 0), NULL, 0, arena, &rows));
    /* 200 + 98 values and 19,600 combinations; 198 + 100 and 19,800 */
    assert_ok(ds_index_rows(make_wide(arena, "a", 200, 98), &index, 1, arena, &rows));
    assert_int_equal(rows.count, 1 + 298 + 19600);
    assert_too_many(ds_index_rows(make_wide(arena, "a", 198, 100), &index, 1, arena, &rows));
    assert_too_many(ds_index_rows(make_wide(arena, "a", 15000, 5000), &index, 1, arena, &rows));
}

static void test_bytes_of_composite_rows_are_bounded(void **state)
{
    struct arena *arena = *state;
    struct ds_index_rows rows;
    struct ds_index index = make_index(false, DS_ASCENDING);
    char *name = arena_alloc(arena, 1501);
    assert_non_null(name);
    memset(name, 'x', 1500);
    name[1500] = '\0';
    Ds__Entity *entity = make_wide(arena, "a", 1200, 1);
    Ds__Value *value = entity->properties[1]->value->array_value->values[0];
    value->value_type_case = DS__VALUE__VALUE_TYPE_STRING_VALUE;
    value->string_value = name;
    assert_ok(ds_index_rows(entity, &index, 1, arena, &rows)); /* 1.8 MB */
    entity = make_wide(arena, "a", 1400, 1);
    entity->properties[1]->value->array_value->values[0] = value;
    assert_too_many(ds_index_rows(entity, &index, 1, arena, &rows));
}

static void test_paths_of_indexed_properties_are_bounded(void **state)
{
    struct arena *arena = *state;
    struct ds_index_rows rows;
    char *name = arena_alloc(arena, 1499);
    assert_non_null(name);
    memset(name, 'x', 1498);
    name[1498] = '\0';
    Ds__Entity *entity = test_entity(
        arena, ENTITY("'o': {'entityValue': {'properties': {'i': {'integerValue': 1}}}}"));
    Ds__Entity *inner = entity->properties[0]->value->entity_value;
    inner->properties[0]->key = name;
    assert_ok(ds_index_rows(entity, NULL, 0, arena, &rows));
    entity->properties[0]->key = "oo";
    status s = ds_index_rows(entity, NULL, 0, arena, &rows);
    assert_string_equal(status_message(s), "The property.name is longer than 1500 bytes.");
    assert_status(s, STATUS_INVALID_ARGUMENT);
    inner->properties[0]->value->exclude_from_indexes = true;
    assert_ok(ds_index_rows(entity, NULL, 0, arena, &rows));
}

/* --- differences --- */

static void describe_types(struct buffer *out, bool is_there, const char *sign, bytes types)
{
    if (is_there)
        buffer_append_format(out, "%s", sign);
    if (types.size > 0)
        buffer_append_format(out, "%d", types.data[0]);
}

/* "-17+18A p": a row of p that was, with type 17, and is, with 18. */
static void assert_changes(struct arena *arena, const Ds__Entity *old, const Ds__Entity *new_one,
                           const char *expected)
{
    struct buffer text = {0};
    struct ds_index_changes changes;
    assert_ok(ds_index_difference(old, new_one, NULL, 0, arena, &changes));
    for (size_t i = 0; i < changes.count; i++) {
        const struct ds_index_change *change = &changes.changes[i];
        struct ds_row row;
        assert_true(ds_row_parse(change->key, NULL, &row));
        describe_types(&text, change->was, "-", change->past);
        describe_types(&text, change->is, "+", change->now);
        buffer_append_format(&text, "%c", (char)row.kind);
        if (row.property.size > 0)
            buffer_append_format(&text, " %s", (const char *)row.property.data);
        buffer_append_byte(&text, '\n');
    }
    assert_text(&text, expected);
}

static void test_differences_are_what_comes_and_goes(void **state)
{
    struct arena *arena = *state;
    Ds__Entity *old =
        test_entity(arena, ENTITY("'gone': {'integerValue': 1}, 'same': {'integerValue': 2},"
                                  "'type': {'stringValue': 'x'}"));
    Ds__Entity *new_one =
        test_entity(arena, ENTITY("'come': {'integerValue': 3}, 'same': {'integerValue': 2},"
                                  "'type': {'blobValue': 'eA=='}"));
    assert_changes(arena, NULL, old, "+2A gone\n+2A same\n+17A type\n+K\n");
    assert_changes(arena, old, NULL, "-2A gone\n-2A same\n-17A type\n-K\n");
    assert_changes(arena, old, new_one, "+2A come\n-2A gone\n-17+18A type\n");
    assert_changes(arena, old, old, "");
    assert_changes(arena, NULL, NULL, "");
}

/* An entity that an index, defined later, would not take can still be deleted. */
static void test_what_is_there_is_not_refused(void **state)
{
    struct arena *arena = *state;
    struct ds_index_changes changes;
    const struct ds_index index = make_index(false, DS_ASCENDING);
    const Ds__Entity *wide = make_wide(arena, "a", 200, 150);
    assert_too_many(ds_index_difference(NULL, wide, &index, 1, arena, &changes));
    assert_ok(ds_index_difference(wide, NULL, &index, 1, arena, &changes));
    assert_int_equal(changes.count, 1 + 350);
    assert_ok(ds_index_difference(make_wide(arena, "v", 20001, 0), NULL, NULL, 0, arena, &changes));
    assert_int_equal(changes.count, 20002);
}

static void test_without_memory_there_are_no_rows(void **state)
{
    const struct ds_index index = make_index(true, DS_DESCENDING);
    const Ds__Entity *entity = test_entity(*state, ENTITY(A_AND_B));
    for (size_t limit = 0; limit < 8192; limit += 64) {
        struct arena *small = arena_create(limit);
        struct ds_index_changes changes;
        status s = ds_index_difference(NULL, entity, &index, 1, small, &changes);
        assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
        status_free(s);
        arena_destroy(small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_entity_is_in_its_kinds_index),
        cmocka_unit_test(test_properties_have_a_row),
        cmocka_unit_test(test_arrays_have_a_row_for_each_different_value),
        cmocka_unit_test(test_entities_in_values_have_their_properties),
        cmocka_unit_test(test_a_sample_of_keys_is_scattered),
        cmocka_unit_test(test_the_sample_does_not_change),
        cmocka_unit_test(test_composite_rows_are_the_product),
        cmocka_unit_test(test_an_index_with_ancestors_has_rows_for_each),
        cmocka_unit_test(test_entries_are_bounded),
        cmocka_unit_test(test_bytes_of_composite_rows_are_bounded),
        cmocka_unit_test(test_paths_of_indexed_properties_are_bounded),
        cmocka_unit_test(test_differences_are_what_comes_and_goes),
        cmocka_unit_test(test_what_is_there_is_not_refused),
        cmocka_unit_test(test_without_memory_there_are_no_rows),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
