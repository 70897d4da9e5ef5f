/* DynamoDB's JSON: read, written, refused with the place of the mistake. */
#include "formats/item.h"

#include "formats/testing/testing.h"

static void check_written(const struct buffer *out, const char *expected)
{
    assert_false(out->failed);
    if (out->size != strlen(expected) || memcmp(out->data, expected, out->size) != 0)
        fail_msg("%.*s, not %s", (int)out->size, (const char *)out->data, expected);
}

static void every_type_is_read_and_written(void **state)
{
    static const struct {
        const char *json, *plain;
    } cases[] = {
        {"{\"S\":\"na\\u00efve \\\"\\n\"}", "\"na\xc3\xafve \\\"\\n\""},
        {"{\"S\":\"\"}", "\"\""},
        {"{\"N\":\"-1.50E+3\"}", "-1.50E+3"},
        {"{\"N\":\"+.5\"}", "0.5"},
        {"{\"B\":\"AP8=\"}", "\"AP8=\""},
        {"{\"B\":\"\"}", "\"\""},
        {"{\"B\":\"YWJj\"}", "\"YWJj\""},
        {"{\"BOOL\":false}", "false"},
        {"{\"NULL\":true}", "null"},
        {"{\"SS\":[\"b\",\"a\"]}", "[\"b\",\"a\"]"},
        {"{\"NS\":[\"1\",\"2.5\"]}", "[1,2.5]"},
        {"{\"BS\":[\"YQ==\"]}", "[\"YQ==\"]"},
        {"{\"L\":[]}", "[]"},
        {"{\"L\":[{\"L\":[{\"N\":\"1\"}]},{\"NULL\":true}]}", "[[1],null]"},
        {"{\"M\":{}}", "{}"},
        {"{\"M\":{\"\":{\"N\":\"2\"},\"a b\":{\"BOOL\":true}}}", "{\"\":2,\"a b\":true}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct item_value value, again;
        struct buffer out = {0};
        assert_ok(item_read_json(bytes_of(cases[i].json), *state, &value));
        item_write_json(&value, &out);
        assert_ok(item_read_json(buffer_bytes(&out), *state, &again));
        assert_true(item_equal(&value, &again));
        buffer_clear(&out);
        item_write_plain(&value, &out);
        check_written(&out, cases[i].plain);
        buffer_free(&out);
    }
}

static void bytes_are_decoded(void **state)
{
    struct item_value value;
    assert_ok(item_read_json(bytes_of(" { \"B\" : \"AP8=\" } "), *state, &value));
    assert_true(bytes_equal(value.text, bytes_make("\0\xff", 2)));
}

static void maps_are_sorted_and_searched(void **state)
{
    struct item_value map;
    const char *json = "{\"b\":{\"N\":\"2\"},\"a\":{\"N\":\"1\"},\"c\":{\"N\":\"3\"},"
                       "\"e\":{\"N\":\"5\"},\"d\":{\"N\":\"4\"}}";
    assert_ok(item_read_json_map(bytes_of(json), *state, &map));
    assert_int_equal(map.count, 5);
    for (int i = 0; i < 5; i++) {
        const char name = (char)('a' + i);
        const struct item_value *value = item_find(&map, bytes_make(&name, 1));
        assert_non_null(value);
        assert_int_equal(value->text.data[0], '1' + i);
    }
    assert_null(item_find(&map, bytes_of("")));
    assert_null(item_find(&map, bytes_of("cc")));
    assert_null(item_find(&map, bytes_of("f")));
}

static void mistakes_are_told_with_their_place(void **state)
{
    static const struct {
        const char *json, *message;
    } cases[] = {
        {"", "byte 1: '{' is expected"},
        {"{\"S\":1}", "byte 6: a string is expected"},
        {"{\"S\":\"\\x\"}", "byte 10: the string before is not UTF-8, or has a bad escape"},
        {"{\"S\":\"\xff\"}", "byte 9: the string before is not UTF-8, or has a bad escape"},
        {"{\"N\":1}", "byte 6: a number in quotes is expected"},
        {"{\"N\":\"1x\"}", "byte 10: 1x is no number"},
        {"{\"B\":\"*\"}", "byte 9: the string before is not base64"},
        {"{\"NULL\":false}", "byte 14: NULL can be nothing but true"},
        {"{\"BOOL\":\"true\"}", "byte 9: true or false is expected"},
        {"{\"X\":\"a\"}", "byte 6: the name before is no type of DynamoDB"},
        {"{\"SS\":[1]}", "byte 8: a string is expected"},
        {"{\"L\":[{\"S\":\"a\"}", "byte 16: ',' or ']' is expected"},
        {"{\"M\":{\"a\":{\"N\":\"1\"},\"a\":{\"N\":\"1\"}}}",
         "byte 35: a name is twice in the map before"},
        {"{\"S\":\"a\",\"N\":\"1\"}", "byte 9: '}' is expected"},
        {"{\"S\":\"a\"} x", "byte 11: something follows the value"},
        {"{\"S\":\"a", "byte 6: a string is expected"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct item_value value;
        status s = item_read_json(bytes_of(cases[i].json), *state, &value);
        assert_string_equal(status_message(s), cases[i].message);
        assert_status(s, STATUS_INVALID_ARGUMENT);
    }
}

static void nest(struct buffer *out, unsigned levels)
{
    buffer_clear(out);
    for (unsigned i = 0; i < levels; i++)
        buffer_append_bytes(out, bytes_of("{\"L\":["));
    for (unsigned i = 0; i < levels; i++)
        buffer_append_bytes(out, bytes_of("]}"));
}

static void nesting_is_bounded(void **state)
{
    struct buffer json = {0};
    struct item_value value;
    nest(&json, ITEM_MOST_DEPTH);
    assert_ok(item_read_json(buffer_bytes(&json), *state, &value));
    nest(&json, ITEM_MOST_DEPTH + 1);
    assert_status(item_read_json(buffer_bytes(&json), *state, &value), STATUS_INVALID_ARGUMENT);
    nest(&json, 100000);
    assert_status(item_read_json(buffer_bytes(&json), *state, &value), STATUS_INVALID_ARGUMENT);
    buffer_free(&json);
}

static void memory_is_bounded(void **state)
{
    (void)state;
    struct arena *arena = arena_create(300);
    assert_non_null(arena);
    struct item_value value;
    bytes json = bytes_of("{\"SS\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\"]}");
    assert_status(item_read_json(json, arena, &value), STATUS_RESOURCE_EXHAUSTED);
    arena_destroy(arena);
}

static void equality_knows_sets_and_numbers(void **state)
{
    static const struct {
        const char *a, *b;
        bool are_equal;
    } cases[] = {
        {"{\"N\":\"1.50\"}", "{\"N\":\"15e-1\"}", true},
        {"{\"N\":\"1\"}", "{\"N\":\"-1\"}", false},
        {"{\"N\":\"1\"}", "{\"S\":\"1\"}", false},
        {"{\"NS\":[\"1\",\"2\"]}", "{\"NS\":[\"2.0\",\"1\"]}", true},
        {"{\"SS\":[\"a\",\"b\"]}", "{\"SS\":[\"a\",\"c\"]}", false},
        {"{\"SS\":[\"a\",\"b\"]}", "{\"SS\":[\"a\"]}", false},
        {"{\"L\":[{\"N\":\"1\"},{\"N\":\"2\"}]}", "{\"L\":[{\"N\":\"2\"},{\"N\":\"1\"}]}", false},
        {"{\"M\":{\"a\":{\"N\":\"1\"},\"b\":{\"NULL\":true}}}",
         "{\"M\":{\"b\":{\"NULL\":true},\"a\":{\"N\":\"1.0\"}}}", true},
        {"{\"M\":{\"a\":{\"N\":\"1\"}}}", "{\"M\":{\"b\":{\"N\":\"1\"}}}", false},
        {"{\"M\":{\"a\":{\"BOOL\":true}}}", "{\"M\":{\"a\":{\"BOOL\":false}}}", false},
        {"{\"B\":\"YQ==\"}", "{\"B\":\"YQ\"}", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct item_value a, b;
        assert_ok(item_read_json(bytes_of(cases[i].a), *state, &a));
        assert_ok(item_read_json(bytes_of(cases[i].b), *state, &b));
        assert_int_equal(item_equal(&a, &b), cases[i].are_equal);
        assert_int_equal(item_equal(&b, &a), cases[i].are_equal);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_type_is_read_and_written),
        TEST(bytes_are_decoded),
        TEST(maps_are_sorted_and_searched),
        TEST(mistakes_are_told_with_their_place),
        TEST(nesting_is_bounded),
        TEST(memory_is_bounded),
        TEST(equality_knows_sets_and_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
