/* Tests of what may be stored, and of the words with which the rest is refused. */
#include "datastore/model/validate.h"

#include "base/limits.h"
#include "base/testing/testing.h"
#include "datastore/testing/testing.h"
#include "wire/proto.h"

static const struct ds_database database = {.project = "p", .id = ""};

static int make_arena(void **state)
{
    *state = arena_create(64 << 20);
    return *state == NULL;
}

static int free_arena(void **state)
{
    arena_destroy(*state);
    return 0;
}

/* NULL: it is fine. */
static void assert_says(status s, const char *expected)
{
    if (expected != NULL)
        assert_string_equal(status_message(s), expected);
    assert_status(s, expected == NULL ? STATUS_OK : STATUS_INVALID_ARGUMENT);
}

/* `count` times the letter, in the arena. */
static const char *letters(struct arena *arena, size_t count)
{
    char *text = arena_alloc(arena, count + 1);
    assert_non_null(text);
    memset(text, 'x', count);
    text[count] = '\0';
    return text;
}

static void test_keys_are_checked_for_their_use(void **state)
{
    static const char incomplete[] = "Key path element must not be incomplete: [M: ]";
    static const char inner[] = "Key path element must not be incomplete: [M: , J: x, I: 7]";
    const struct {
        const char *path;
        enum ds_key_use use;
        const char *says;
    } cases[] = {
        {"K/1", DS_KEY_READ, NULL},
        {"K/-1", DS_KEY_WRITE, NULL},
        {"K/'a.b c'", DS_KEY_WRITE, NULL},
        {"", DS_KEY_READ, "Key path is empty."},
        {"M", DS_KEY_READ, incomplete},
        {"M/0", DS_KEY_READ, incomplete},
        {"M", DS_KEY_WRITE, incomplete},
        {"M", DS_KEY_VALUE, incomplete},
        {"M", DS_KEY_INSERT, NULL},
        {"M", DS_KEY_NESTED, NULL},
        {"M", DS_KEY_ALLOCATE, NULL},
        {"M/0/J/'x'/I/7", DS_KEY_INSERT, inner},
        {"M/1", DS_KEY_ALLOCATE, "Key path element must not be complete: [M: 1]"},
        {"K/''", DS_KEY_READ, "The key path element name is the empty string."},
        {"/1", DS_KEY_READ, "The kind is the empty string."},
        {"__bad__/1", DS_KEY_INSERT, "The kind \"__bad__\" is reserved."},
        {"____/1", DS_KEY_WRITE, "The kind \"____\" is reserved."},
        {"___/1", DS_KEY_WRITE, NULL},
        {"__bad__/1", DS_KEY_READ, NULL},
        {"K/'__n__'", DS_KEY_WRITE, "The key path element name \"__n__\" is reserved."},
        {"K/'__n__'", DS_KEY_VALUE, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_says(ds_key_check(test_key(*state, "", cases[i].path), &database, cases[i].use),
                    cases[i].says);
}

static void test_names_and_keys_are_bounded(void **state)
{
    struct arena *arena = *state;
    Ds__Key *key = test_key(arena, "", "K/'n'/K/'n'/K/'n'/K/'n'");
    key->path[0]->name = letters(arena, 1500);
    assert_says(ds_key_check(key, &database, DS_KEY_READ), NULL);
    key->path[0]->name = letters(arena, 1501);
    assert_says(ds_key_check(key, &database, DS_KEY_READ),
                "The key path element name is longer than 1500 bytes.");
    key->path[0]->name = "n";
    key->path[0]->kind = letters(arena, 1501);
    assert_says(ds_key_check(key, &database, DS_KEY_READ), "The kind is longer than 1500 bytes.");
    for (size_t i = 0; i < 4; i++) {
        key->path[i]->kind = "K";
        key->path[i]->name = letters(arena, 1500);
    }
    assert_says(ds_key_check(key, &database, DS_KEY_READ), NULL); /* 16 + 4 · 1503 */
    key->path[0]->kind = letters(arena, 117);
    assert_says(ds_key_check(key, &database, DS_KEY_READ), NULL); /* 6144 */
    key->path[0]->kind = letters(arena, 118);
    assert_says(ds_key_check(key, &database, DS_KEY_READ), "The key is longer than 6144 bytes.");
}

static void test_paths_are_bounded(void **state)
{
    struct buffer path = {0};
    for (int i = 0; i < 100; i++)
        buffer_append_format(&path, "K/%d/", i + 1);
    char *text = bytes_to_string(buffer_bytes(&path));
    assert_says(ds_key_check(test_key(*state, "", text), &database, DS_KEY_READ), NULL);
    free(text);
    buffer_append_format(&path, "K/1");
    text = bytes_to_string(buffer_bytes(&path));
    assert_says(ds_key_check(test_key(*state, "", text), &database, DS_KEY_READ),
                "Key path is too long. Cannot exceed 100 elements.");
    free(text);
    buffer_free(&path);
}

static void test_partitions_are_checked(void **state)
{
    struct arena *arena = *state;
    Ds__Key *key = test_key(arena, "a.b_C-9", "K/1");
    assert_says(ds_key_check(key, &database, DS_KEY_WRITE), NULL);
    key->partition_id->namespace_id = "a b";
    assert_says(ds_key_check(key, &database, DS_KEY_READ),
                "Illegal string \"a b\" in namespace id.");
    key->partition_id->namespace_id = "\xc3\xa9";
    assert_says(ds_key_check(key, &database, DS_KEY_READ),
                "Illegal string \"\xc3\xa9\" in namespace id.");
    key->partition_id->namespace_id = letters(arena, 101);
    assert_says(
        ds_key_check(key, &database, DS_KEY_READ),
        "Illegal string \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\" in namespace id.");
    key->partition_id->namespace_id = "__n__";
    assert_says(ds_key_check(key, &database, DS_KEY_READ), NULL);
    assert_says(ds_key_check(key, &database, DS_KEY_WRITE),
                "The namespace id \"__n__\" is reserved.");
    key->partition_id->namespace_id = "";
    key->partition_id->database_id = "d";
    assert_says(ds_key_check(key, &database, DS_KEY_READ),
                "mismatched databases within request: p vs. p#d");
    assert_says(ds_partition_check(key->partition_id, &database),
                "mismatched databases within request: p vs. p#d");
    assert_says(ds_key_check(key, &database, DS_KEY_VALUE), NULL);
    assert_says(ds_partition_check(NULL, &database), NULL);
    key->partition_id->project_id = "";
    assert_says(ds_partition_check(key->partition_id, &database), NULL);
    assert_says(ds_key_check(key, &database, DS_KEY_READ), "The project id is the empty string.");
}

#define ENTITY(properties)                                                                         \
    "{'key': {'partitionId': {'projectId': 'p'}, 'path': [{'kind': 'K', 'id': 1}]},"               \
    " 'properties': {" properties "}}"

static void test_entities_are_checked(void **state)
{
    const struct {
        const char *json;
        const char *says;
    } cases[] = {
        {"{}", "Entity is missing key."},
        {ENTITY(""), NULL},
        {ENTITY("'a.b/c': {'integerValue': 1}"), NULL},
        {ENTITY("'': {'integerValue': 1}"), "The property.name is the empty string."},
        {ENTITY("'__foo__': {'integerValue': 1}"), "The property.name \"__foo__\" is reserved."},
        {ENTITY("'a': {'entityValue': {'properties': {'__b__': {'integerValue': 1}}}}"),
         "The property.name \"__b__\" is reserved."},
        {ENTITY("'a': {}"), "The value \"a\" does not contain a value."},
        {ENTITY("'a': {'arrayValue': {'values': [{'arrayValue': {}}]}}"),
         "list_value cannot contain a Value containing another list_value."},
        {ENTITY("'a': {'arrayValue': {'values': [{'entityValue': {'properties': "
                "{'b': {'arrayValue': {}}}}}]}}"),
         NULL},
        {ENTITY("'a': {'arrayValue': {}, 'meaning': 31}"), "Cannot have a zero length vector."},
        {ENTITY("'a': {'arrayValue': {'values': [{'doubleValue': 1}]}, 'meaning': 31}"), NULL},
        {ENTITY("'a': {'geoPointValue': {'latitude': 90.5}}"),
         "Geo point latitude outside permitted range -90.0 to 90.0."},
        {ENTITY("'a': {'geoPointValue': {'longitude': 'NaN'}}"),
         "Geo point longitude outside permitted range -180.0 to 180.0."},
        {ENTITY("'a': {'keyValue': {'partitionId': {'projectId': 'other'},"
                " 'path': [{'kind': '__k__', 'id': 1}]}}"),
         NULL},
        {ENTITY("'a': {'keyValue': {'partitionId': {'projectId': 'p'}, 'path': [{'kind': 'M'}]}}"),
         "Key path element must not be incomplete: [M: ]"},
        {ENTITY("'a': {'entityValue': {'key': {'partitionId': {'projectId': 'p'},"
                " 'path': [{'kind': 'M'}]}}}"),
         NULL},
        {ENTITY("'a': {'entityValue': {'key': {}}}"), NULL},
        {ENTITY("'a': {'timestampValue': '9999-12-31T23:59:59.999999999Z'}"), NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_says(ds_entity_check(test_entity(*state, cases[i].json), &database, DS_KEY_INSERT),
                    cases[i].says);
}

static void test_timestamps_have_four_digits_of_years(void **state)
{
    Ds__Value *value = test_value(*state, "{'timestampValue': '0001-01-01T00:00:00Z'}");
    assert_says(ds_value_check(value, "t"), NULL);
    value->timestamp_value->seconds--;
    assert_says(ds_value_check(value, "t"),
                "The timestamp of property \"t\" is not within the years 1 to 9999.");
    value->timestamp_value->seconds = 0;
    value->timestamp_value->nanos = -1;
    assert_says(ds_value_check(value, "t"),
                "The timestamp of property \"t\" is not within the years 1 to 9999.");
}

static Ds__Value *text_value(struct arena *arena, size_t size, bool is_blob, bool is_excluded)
{
    Ds__Value *value = test_value(arena, is_blob ? "{'blobValue': ''}" : "{'stringValue': ''}");
    const char *text = letters(arena, size);
    value->exclude_from_indexes = is_excluded;
    if (is_blob)
        value->blob_value = proto_data(bytes_make(text, size));
    else
        value->string_value = text;
    return value;
}

static void test_texts_are_bounded(void **state)
{
    struct arena *arena = *state;
    for (int is_blob = 0; is_blob < 2; is_blob++) {
        assert_says(ds_value_check(text_value(arena, 1500, is_blob, false), "a"), NULL);
        assert_says(ds_value_check(text_value(arena, 1501, is_blob, false), "a"),
                    "The value of property \"a\" is longer than 1500 bytes.");
        assert_says(ds_value_check(text_value(arena, 1048487, is_blob, true), "a"), NULL);
        assert_says(ds_value_check(text_value(arena, 1048488, is_blob, true), "a"),
                    "The value of property \"a\" is longer than 1048487 bytes.");
    }
}

/* Production looks at each text by itself: an entity that is excluded does not excuse it. */
static void test_exclusion_is_of_the_text_itself(void **state)
{
    struct arena *arena = *state;
    Ds__Value *value = test_value(arena, "{'entityValue': {'properties': {'b': {'arrayValue': "
                                         "{'values': [{'stringValue': ''}]}}}}}");
    const Ds__Value *array = value->entity_value->properties[0]->value;
    Ds__Value *text = array->array_value->values[0];
    value->exclude_from_indexes = true;
    text->string_value = letters(arena, 1501);
    assert_says(ds_value_check(value, "v"),
                "The value of property \"b\" is longer than 1500 bytes.");
    text->exclude_from_indexes = true;
    assert_says(ds_value_check(value, "v"), NULL);
}

static void test_meanings_belong_to_types(void **state)
{
    static const struct {
        const char *json;
        const char *says;
    } cases[] = {
        {"'stringValue': 'x', 'meaning': 15, 'excludeFromIndexes': true", NULL},
        {"'stringValue': 'x', 'meaning': 15", "Indexed value has meaning 15."},
        {"'integerValue': 1, 'meaning': 15",
         "Value \"a\" has a meaning 15 which does not match string_value field."},
        {"'arrayValue': {'values': [{'integerValue': 1, 'meaning': 16}]}",
         "Value \"a\" has a meaning 16 which does not match blob_value field."},
        {"'stringValue': 'x', 'meaning': 6", NULL},
        {"'geoPointValue': {}, 'meaning': 23", NULL},
        {"'integerValue': 1, 'meaning': 18", "Projection property cannot be used."},
        {"'integerValue': 1, 'meaning': 7",
         "A timestamp in range [0001-01-01T00:00:00Z, 9999-12-31T23:59:59.999999Z] must be stored "
         "as a timestamp value."},
        {"'integerValue': '253402300800000000', 'meaning': 7", NULL},
        {"'integerValue': 1, 'meaning': 99", "Unknown value meaning 99."},
        {"'integerValue': 1, 'meaning': 31",
         "Value \"a\" has a meaning 31 which does not match vector field."},
        {"'arrayValue': {'values': [{'doubleValue': 1}]}, 'meaning': 31", NULL},
        {"'arrayValue': {'values': [{'doubleValue': 1}]}, 'meaning': 31, "
         "'excludeFromIndexes': true",
         NULL},
        {"'arrayValue': {}, 'meaning': 15",
         "A Value containing a list_value cannot specify a meaning."},
        {"'arrayValue': {}, 'excludeFromIndexes': true",
         "Exclude from indexes cannot be set on a list value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buffer json = {0};
        buffer_append_format(&json, ENTITY("'a': {%s}"), cases[i].json);
        buffer_append_byte(&json, 0);
        assert_says(
            ds_entity_check(test_entity(*state, (const char *)json.data), &database, DS_KEY_WRITE),
            cases[i].says);
        buffer_free(&json);
    }
}

/* A value to compare with may come from a projection. */
static void test_meanings_do_not_matter_for_comparing(void **state)
{
    assert_says(ds_value_check(test_value(*state, "{'integerValue': 1, 'meaning': 18}"), "a"),
                NULL);
}

/* Production takes a blob of the greatest size in an entity with a short key. */
static void test_entities_are_bounded(void **state)
{
    struct arena *arena = *state;
    Ds__Entity *entity = test_entity(
        arena, ENTITY("'p': {'nullValue': 'NULL_VALUE'}, 'q': {'nullValue': 'NULL_VALUE'}"));
    entity->properties[0]->value = text_value(arena, 1048487, true, true);
    assert_says(ds_entity_check(entity, &database, DS_KEY_WRITE), NULL);
    entity->properties[1]->value = text_value(arena, 1000, true, true);
    assert_says(ds_entity_check(entity, &database, DS_KEY_WRITE), "entity is too big");
}

static void test_nesting_is_bounded(void **state)
{
    struct arena *arena = *state;
    Ds__Entity *entity = test_entity(arena, ENTITY("'a': {'integerValue': 1}"));
    for (int depth = 1; depth <= 21; depth++) {
        Ds__Entity *outer = test_entity(arena, ENTITY("'a': {'entityValue': {}}"));
        outer->properties[0]->value->entity_value = entity;
        entity = outer;
        assert_says(ds_entity_check(entity, &database, DS_KEY_WRITE),
                    depth <= 20 ? NULL : "At most 20 nested entity values are supported.");
    }
}

static void test_entities_are_normalised(void **state)
{
    static const struct ds_database other = {.project = "q", .id = "d"};
    Ds__Entity *entity =
        test_entity(*state, "{'key': {'path': [{'kind': 'K', 'id': 1}]}, 'properties': {"
                            "'c': {'arrayValue': {'values': [{'keyValue': {'path': []}}]}},"
                            "'b': {'integerValue': 1}, 'a': {'integerValue': 2},"
                            "'d': {'entityValue': {'properties': {'k': {'keyValue': {'partitionId':"
                            " {'projectId': 'x', 'namespaceId': 'n'}}}}}}}}");
    entity->properties[2]->key = "b";
    assert_ok(ds_entity_normalise(entity, &other, *state));
    assert_int_equal(entity->n_properties, 3);
    assert_string_equal(entity->properties[0]->key, "b");
    assert_int_equal(entity->properties[0]->value->integer_value, 2);
    assert_string_equal(entity->key->partition_id->project_id, "q");
    assert_string_equal(entity->key->partition_id->database_id, "d");
    const Ds__Value *array = entity->properties[1]->value;
    assert_string_equal(array->array_value->values[0]->key_value->partition_id->project_id, "q");
    const Ds__Entity *inner = entity->properties[2]->value->entity_value;
    assert_string_equal(inner->properties[0]->value->key_value->partition_id->project_id, "x");
    assert_string_equal(inner->properties[0]->value->key_value->partition_id->database_id, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_checked_for_their_use),
        cmocka_unit_test(test_names_and_keys_are_bounded),
        cmocka_unit_test(test_paths_are_bounded),
        cmocka_unit_test(test_partitions_are_checked),
        cmocka_unit_test(test_entities_are_checked),
        cmocka_unit_test(test_timestamps_have_four_digits_of_years),
        cmocka_unit_test(test_texts_are_bounded),
        cmocka_unit_test(test_exclusion_is_of_the_text_itself),
        cmocka_unit_test(test_meanings_belong_to_types),
        cmocka_unit_test(test_meanings_do_not_matter_for_comparing),
        cmocka_unit_test(test_entities_are_bounded),
        cmocka_unit_test(test_nesting_is_bounded),
        cmocka_unit_test(test_entities_are_normalised),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
