/* Ion text, as exports have it: read to what DynamoDB's JSON says of the same item. */
#include "formats/item.h"

#include "formats/testing/testing.h"

static void ion_is_what_json_is(void **state)
{
    static const struct {
        const char *ion, *json;
    } cases[] = {
        {"{}", "{}"},
        {"$ion_1_0 {a:103.}", "{\"a\":{\"N\":\"103\"}}"},
        {"{a:6d2,b:-1.5d-3,c:7,d:2.50}", "{\"a\":{\"N\":\"600\"},\"b\":{\"N\":\"-0.0015\"},\"c\":{"
                                         "\"N\":\"7\"},\"d\":{\"N\":\"2.5\"}}"},
        {"{'a b':\"x\",\"c\":\"\"}", "{\"a b\":{\"S\":\"x\"},\"c\":{\"S\":\"\"}}"},
        {"{a:\"\\\"\\n\\x41\\u00e9\\U0001F600\\ud83d\\ude00\\0\"}",
         "{\"a\":{\"S\":\"\\\"\\nA\\u00e9\\ud83d\\ude00\\ud83d\\ude00\\u0000\"}}"},
        {"{a:true,b:false,c:null,d:null.string}", "{\"a\":{\"BOOL\":true},\"b\":{\"BOOL\":false},"
                                                  "\"c\":{\"NULL\":true},\"d\":{\"NULL\":true}}"},
        {"{a:{{aGk=}},b:{{ a G k }},c:{{}}}",
         "{\"a\":{\"B\":\"aGk=\"},\"b\":{\"B\":\"aGk\"},\"c\":{\"B\":\"\"}}"},
        {"{a:$dynamodb_SS::[\"x\",\"y\"],b:$dynamodb_NS::[1.,2d1],c:$dynamodb_BS::[{{YQ==}}]}",
         "{\"a\":{\"SS\":[\"x\",\"y\"]},\"b\":{\"NS\":[\"1\",\"20\"]},\"c\":{\"BS\":[\"YQ==\"]}}"},
        {"{a:[1,{b:[]},\"s\"],c:{d:{}}}",
         "{\"a\":{\"L\":[{\"N\":\"1\"},{\"M\":{\"b\":{\"L\":[]}}},{\"S\":\"s\"}]},"
         "\"c\":{\"M\":{\"d\":{\"M\":{}}}}}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct item_value ion, json;
        assert_ok(item_read_ion(bytes_of(cases[i].ion), *state, &ion));
        assert_ok(item_read_json_map(bytes_of(cases[i].json), *state, &json));
        if (!item_equal(&ion, &json))
            fail_msg("%s is not %s", cases[i].ion, cases[i].json);
    }
}

static void mistakes_are_told_with_their_place(void **state)
{
    static const struct {
        const char *ion, *message;
    } cases[] = {
        {"", "byte 1: a struct is expected"},
        {"{a}", "byte 3: ':' is expected"},
        {"{a:1x}", "byte 6: 1x is no number"},
        {"{a:\"x}", "byte 7: the text ends within quotes, is not UTF-8 or has a bad escape"},
        {"{a:\"\\q\"}", "byte 7: the text ends within quotes, is not UTF-8 or has a bad escape"},
        {"{a:\"\\ud800\"}",
         "byte 11: the text ends within quotes, is not UTF-8 or has a bad escape"},
        {"{a:1 b:2}", "byte 6: ',' or the closing bracket is expected"},
        {"{a:1,a:2}", "byte 10: a name is twice in the struct before"},
        {"{a:maybe}", "byte 9: a value of DynamoDB is expected before"},
        {"{a:$other::[]}", "byte 4: an annotation that DynamoDB does not write"},
        {"{a:$dynamodb_SS::[1]}", "byte 21: the set before has elements of another type"},
        {"{a:{{*}}}", "byte 9: what is between {{ and }} is not base64"},
        {"{} {}", "byte 4: something follows the struct"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct item_value value;
        status s = item_read_ion(bytes_of(cases[i].ion), *state, &value);
        assert_string_equal(status_message(s), cases[i].message);
        assert_status(s, STATUS_INVALID_ARGUMENT);
    }
}

static void nesting_is_bounded(void **state)
{
    struct buffer ion = {0};
    struct item_value value;
    buffer_append_bytes(&ion, bytes_of("{a:"));
    for (unsigned i = 0; i < 100000; i++)
        buffer_append_byte(&ion, '[');
    assert_false(ion.failed);
    status s = item_read_ion(buffer_bytes(&ion), *state, &value);
    assert_string_equal(status_message(s), "byte 37: more than 32 levels of lists and structs");
    assert_status(s, STATUS_INVALID_ARGUMENT);
    buffer_free(&ion);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ion_is_what_json_is),
        TEST(mistakes_are_told_with_their_place),
        TEST(nesting_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
