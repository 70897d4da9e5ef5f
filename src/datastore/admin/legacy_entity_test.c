/* Tests of entities in their first form. The bytes of records are what Google's emulator writes. */
#include "datastore/admin/legacy_entity.h"

#include "base/testing/testing.h"
#include "datastore/testing/testing.h"
#include "wire/proto.h"

#include <stdio.h>

static const struct ds_database database = {"p", ""};

static int setup(void **state)
{
    *state = arena_create(1 << 24);
    return *state == NULL;
}

static int teardown(void **state)
{
    arena_destroy(*state);
    return 0;
}

static Ds__Entity *decode(struct arena *arena, bytes wire)
{
    Ds__Entity *entity;
    assert_ok(ds_legacy_decode(wire, &database, arena, &entity));
    return entity;
}

static bytes encode(struct arena *arena, const Ds__Entity *entity)
{
    struct buffer out = {0};
    ds_legacy_encode(entity, &out);
    bytes kept = arena_copy(arena, buffer_bytes(&out));
    assert_false(out.failed);
    buffer_free(&out);
    return kept;
}

static Ds__Entity *entity_with(struct arena *arena, const char *properties)
{
    struct buffer json = {0};
    buffer_append_format(&json,
                         "{'key': {'partitionId': {'projectId': 'p'}, 'path': [{'kind': 'K', "
                         "'id': '1'}]}, 'properties': {%s}}%c",
                         properties, 0);
    Ds__Entity *entity = test_entity(arena, (const char *)json.data);
    buffer_free(&json);
    return entity;
}

/* Through the first form and back it is `expected`, properties as JSON; NULL: what it was. */
static void assert_comes_back(struct arena *arena, const char *properties, const char *expected)
{
    Ds__Entity *entity = entity_with(arena, properties);
    Ds__Entity *wanted = expected == NULL ? entity : entity_with(arena, expected);
    Ds__Entity *back = decode(arena, encode(arena, entity));
    struct buffer of_back = {0}, of_wanted = {0};
    proto_encode(&back->base, &of_back);
    proto_encode(&wanted->base, &of_wanted);
    if (!bytes_equal(buffer_bytes(&of_back), buffer_bytes(&of_wanted)))
        print_error("%s\n", properties);
    assert_true(bytes_equal(buffer_bytes(&of_back), buffer_bytes(&of_wanted)));
    buffer_free(&of_back);
    buffer_free(&of_wanted);
}

/* --- every type --- */

static void test_every_type_comes_back(void **state)
{
    const char *const values[] = {
        "'nullValue': null",
        "'booleanValue': true",
        "'booleanValue': false",
        "'integerValue': '-7'",
        "'integerValue': '9223372036854775807'",
        "'doubleValue': -2.5",
        "'doubleValue': 'NaN'",
        "'timestampValue': '2020-09-13T12:26:40.123456Z'",
        "'timestampValue': '1969-12-31T23:59:59.999999Z'",
        "'timestampValue': '0001-01-01T00:00:00Z'",
        "'stringValue': 'h\303\251llo'",
        "'stringValue': ''",
        "'blobValue': 'AP8='",
        "'geoPointValue': {'latitude': 1.5, 'longitude': -2.5}",
        ("'keyValue': {'partitionId': {'projectId': 'p'}, 'path': [{'kind': 'A', 'name': 'x'}, "
         "{'kind': 'B', 'id': '7'}]}"),
        ("'keyValue': {'partitionId': {'projectId': 'other', 'databaseId': 'd', 'namespaceId': "
         "'n'}, 'path': [{'kind': 'A', 'id': '-1'}]}"),
        ("'entityValue': {'properties': {'a': {'integerValue': '1'}, 'b': {'stringValue': 'x', "
         "'excludeFromIndexes': true}}}"),
        "'entityValue': {'key': {'partitionId': {'projectId': 'p'}, 'path': [{'kind': 'I'}]}}",
        "'entityValue': {}",
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char properties[2000];
        snprintf(properties, sizeof properties,
                 "'a': {%s}, 'b': {%s, 'excludeFromIndexes': true}, 'c': {'arrayValue': {'values': "
                 "[{%s}, {%s, 'excludeFromIndexes': true}, {%s}]}}",
                 values[i], values[i], values[i], values[i], values[i]);
        assert_comes_back(*state, properties, NULL);
    }
}

static void test_arrays_come_back(void **state)
{
    assert_comes_back(*state, "'a': {'arrayValue': {}}", NULL);
    assert_comes_back(*state, "'a': {'arrayValue': {}, 'excludeFromIndexes': true}", NULL);
    assert_comes_back(*state, "'a': {'arrayValue': {'values': [{'integerValue': '5'}]}}", NULL);
    assert_comes_back(*state,
                      "'a': {'arrayValue': {'values': [{'stringValue': 'p', 'excludeFromIndexes': "
                      "true}, {'stringValue': 'q'}]}}, 'b': {'arrayValue': {'values': [{"
                      "'nullValue': null}, {'arrayValue': {}}]}}",
                      "'a': {'arrayValue': {'values': [{'stringValue': 'p', 'excludeFromIndexes': "
                      "true}, {'stringValue': 'q'}]}}, 'b': {'arrayValue': {'values': [{"
                      "'nullValue': null}, {'nullValue': null}]}}");
    assert_comes_back(*state,
                      "'v': {'meaning': 31, 'arrayValue': {'values': [{'doubleValue': 1}, "
                      "{'doubleValue': 0.5}]}}",
                      NULL);
    assert_comes_back(*state,
                      "'a': {'excludeFromIndexes': true, 'arrayValue': {'values': [{"
                      "'integerValue': '5'}]}}",
                      "'a': {'arrayValue': {'values': [{'integerValue': '5', "
                      "'excludeFromIndexes': true}]}}");
}

static void test_meanings_come_back(void **state)
{
    assert_comes_back(*state,
                      "'a': {'stringValue': 'x', 'meaning': 15, 'excludeFromIndexes': true}, "
                      "'b': {'stringValue': 'x', 'meaning': 2}, "
                      "'c': {'stringValue': 'x', 'meaning': 17}, "
                      "'d': {'blobValue': 'AA==', 'meaning': 22, 'excludeFromIndexes': true}, "
                      "'e': {'blobValue': 'AA==', 'meaning': 16, 'excludeFromIndexes': true}, "
                      "'f': {'geoPointValue': {'latitude': 1}, 'meaning': 23}",
                      NULL);
    assert_comes_back(*state,
                      "'u': {'meaning': 20, 'entityValue': {'properties': {'auth_domain': {"
                      "'stringValue': 'g', 'excludeFromIndexes': true}, 'email': {'stringValue': "
                      "'a@b', 'excludeFromIndexes': true}}}}",
                      "'u': {'meaning': 20, 'entityValue': {'properties': {'email': {"
                      "'stringValue': 'a@b', 'excludeFromIndexes': true}, 'auth_domain': {"
                      "'stringValue': 'g', 'excludeFromIndexes': true}}}}");
    /* A type's own meaning does not make another type of the value. */
    assert_comes_back(*state, "'a': {'integerValue': '1', 'meaning': 7}",
                      "'a': {'integerValue': '1'}");
    assert_comes_back(*state, "'a': {'stringValue': 'x', 'meaning': 14}",
                      "'a': {'stringValue': 'x'}");
}

static void test_timestamps_are_to_the_microsecond(void **state)
{
    assert_comes_back(*state, "'a': {'timestampValue': '1970-01-01T00:00:01.000001999Z'}",
                      "'a': {'timestampValue': '1970-01-01T00:00:01.000001Z'}");
}

/* --- Google's bytes --- */

static void test_bytes_are_the_emulators(void **state)
{
    const char record[] = "j\x12j\x01pr\r\x0b\x12\x03One\"\x04when\x0cr\x15\x08\x07\x1a\x04when "
                          "\x00*\t\x08\xc0\xc4\x97\xbd\x90\xe6\xeb\x02\x82\x01\r\x0b\x12\x03One\""
                          "\x04when\x0c";
    bytes wire = bytes_make(record, sizeof record - 1);
    Ds__Entity *entity = decode(*state, wire);
    assert_json(&entity->base,
                "{'key':{'partitionId':{'projectId':'p'},'path':[{'kind':'One','name':'when'}]},"
                "'properties':{'when':{'timestampValue':'2020-09-13T12:26:40.123456Z'}}}");
    bytes again = encode(*state, entity);
    assert_true(bytes_equal(again, wire));
}

static void test_a_user_of_app_engine_is_read(void **state)
{
    const char record[] = "j\x15j\x01pr\x0b\x0b\x12\x01V\"\x04user\x0c\xa2\x01\x02nsr\x1b\x1a\x04"
                          "user \x00*\x11"
                          "CJ\x03"
                          "a@bR\x01g\x90\x01\x00\x9a\x01\x01"
                          "7D\x82\x01\x0b\x0b\x12\x01V\"\x04user\x0c";
    bytes wire = bytes_make(record, sizeof record - 1);
    Ds__Entity *entity = decode(*state, wire);
    assert_string_equal(entity->key->partition_id->namespace_id, "ns");
    entity->key = NULL;
    assert_json(&entity->base,
                "{'properties':{'user':{'entityValue':{'properties':{"
                "'email':{'stringValue':'a@b','excludeFromIndexes':true},"
                "'auth_domain':{'stringValue':'g','excludeFromIndexes':true},"
                "'user_id':{'stringValue':'7','excludeFromIndexes':true}}},'meaning':20}}}");
    assert_int_equal(encode(*state, decode(*state, wire)).size, wire.size);
}

/* --- databases --- */

static void test_keys_move_to_the_database(void **state)
{
    struct ds_database other = {"q", "d"};
    Ds__Entity *entity = entity_with(
        *state, "'own': {'keyValue': {'partitionId': {'projectId': 'p'}, 'path': [{'kind': 'A', "
                "'id': '1'}]}}, 'others': {'keyValue': {'partitionId': {'projectId': 's~r'}, "
                "'path': [{'kind': 'A', 'id': '1'}]}}");
    Ds__Entity *back;
    assert_ok(ds_legacy_decode(encode(*state, entity), &other, *state, &back));
    assert_json(&back->base,
                "{'key':{'partitionId':{'projectId':'q','databaseId':'d'},'path':[{'kind':'K',"
                "'id':'1'}]},'properties':{'others':{'keyValue':{'partitionId':{'projectId':'r'},"
                "'path':[{'kind':'A','id':'1'}]}},'own':{'keyValue':{'partitionId':{'projectId':"
                "'q','databaseId':'d'},'path':[{'kind':'A','id':'1'}]}}}}");
}

/* --- what is none --- */

static void assert_refused(struct arena *arena, bytes wire)
{
    Ds__Entity *entity;
    assert_status(ds_legacy_decode(wire, &database, arena, &entity), STATUS_INVALID_ARGUMENT);
}

static void test_torn_bytes_are_refused_or_read(void **state)
{
    Ds__Entity *entity = entity_with(
        *state,
        "'a': {'keyValue': {'path': [{'kind': 'A', 'id': '1'}]}}, 'b': {'entityValue': {}}, "
        "'c': {'geoPointValue': {'latitude': 1}}");
    bytes whole = encode(*state, entity);
    Ds__Entity *back;
    for (size_t size = 0; size < whole.size; size++) {
        bytes copy = bytes_make(whole.data, size);
        uint8_t *exact = malloc(size + 1); /* so that a byte too far is seen */
        assert_non_null(exact);
        memcpy(exact, copy.data, size);
        status s = ds_legacy_decode(bytes_make(exact, size), &database, *state, &back);
        assert_true(status_is_ok(s) || s.code == STATUS_INVALID_ARGUMENT);
        status_free(s);
        free(exact);
    }
}

static void test_what_is_no_entity_is_refused(void **state)
{
    assert_refused(*state, bytes_of(""));
    assert_refused(*state, bytes_of("j\x05j\x01p"));
    assert_refused(*state, bytes_of("j\x05j\x01pr\x01")); /* torn */
    assert_refused(*state, bytes_of("\x0b\x0c"));         /* a group, and no key */
    assert_refused(*state, bytes_of("\x0b\x14"));         /* the end of another */
    assert_refused(*state, bytes_of("\x0c"));
    /* A kind that is no UTF-8. */
    assert_refused(*state, bytes_of("j\x0aj\x01pr\x05\x0b\x12\x01\xff\x0c"));
}

static void test_depth_is_bounded(void **state)
{
    struct buffer json = {0};
    for (int i = 0; i < 40; i++)
        buffer_append_format(&json, "%s", "\x0b");
    assert_refused(*state, buffer_bytes(&json));
    buffer_free(&json);
    bytes wire = encode(*state, entity_with(*state, ""));
    for (int i = 0; i < 40; i++) {
        Ds__Entity *entity = entity_with(*state, "'a': {'blobValue': ''}");
        Ds__Value *value = entity->properties[0]->value;
        struct buffer out = {0};
        value->blob_value.len = wire.size;
        value->blob_value = proto_data(wire);
        ds_legacy_encode(entity, &out);
        /* The blob becomes an entity by its meaning. */
        for (size_t at = 0; at + 3 < out.size; at++)
            if (memcmp(out.data + at, "\x08\x10\x1a\x01", 4) == 0) {
                out.data[at + 1] = 19;
                break;
            }
        wire = arena_copy(*state, buffer_bytes(&out));
        buffer_free(&out);
    }
    assert_refused(*state, wire);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_type_comes_back),        TEST(arrays_come_back),
        TEST(meanings_come_back),           TEST(timestamps_are_to_the_microsecond),
        TEST(bytes_are_the_emulators),      TEST(a_user_of_app_engine_is_read),
        TEST(keys_move_to_the_database),    TEST(torn_bytes_are_refused_or_read),
        TEST(what_is_no_entity_is_refused), TEST(depth_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
