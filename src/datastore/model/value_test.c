/* Tests of values: their bytes, their order in an index, and what comes back of them. */
#include "datastore/model/value.h"

#include "base/testing/testing.h"
#include "datastore/testing/testing.h"
#include "wire/proto.h"

static int make_arena(void **state)
{
    *state = arena_create(16 << 20);
    return *state == NULL;
}

static int free_arena(void **state)
{
    arena_destroy(*state);
    return 0;
}

static bytes encoded(struct arena *arena, const Ds__Value *value, enum ds_flip flip)
{
    struct buffer out = {0};
    ds_value_append(&out, value, flip);
    bytes copy = arena_copy(arena, buffer_bytes(&out));
    buffer_free(&out);
    assert_non_null(copy.data);
    return copy;
}

#define LITERAL(string) bytes_make(string, sizeof(string) - 1)
#define KEY(path)       "{'keyValue': {'partitionId': {'projectId': 'p'}, 'path': [" path "]}}"

static void test_values_are_as_documented(void **state)
{
    struct arena *arena = *state;
    const struct {
        const char *json;
        bytes expected;
    } cases[] = {
        {"{'nullValue': 'NULL_VALUE'}", LITERAL("\x05")},
        {"{'integerValue': 5}", LITERAL("\x10\x80\0\0\0\0\0\0\5")},
        {"{'integerValue': -1}", LITERAL("\x10\x7f\xff\xff\xff\xff\xff\xff\xff")},
        {"{'timestampValue': '1970-01-01T00:00:01.000002999Z'}",
         LITERAL("\x10\x80\0\0\0\0\x0f\x42\x42")},
        {"{'booleanValue': true}", LITERAL("\x20\1")},
        {"{'stringValue': 'ab'}", LITERAL("\x30"
                                          "ab\0\1")},
        {"{'blobValue': 'AAE='}", LITERAL("\x30\0\xff\1\0\1")}, /* 00 01 */
        {"{'doubleValue': 1}", LITERAL("\x40\xbf\xf0\0\0\0\0\0\0")},
        {"{'doubleValue': -1}", LITERAL("\x40\x40\x0f\xff\xff\xff\xff\xff\xff")},
        {"{'geoPointValue': {'latitude': 1, 'longitude': 0}}",
         LITERAL("\x50\xbf\xf0\0\0\0\0\0\0\x80\0\0\0\0\0\0\0")},
        {KEY("{'kind': 'K', 'id': 7}"), LITERAL("\x60p\0\1\0\1\0\1K\0\1\1\x80\0\0\0\0\0\0\7\0\1")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const Ds__Value *value = test_value(arena, cases[i].json);
        bytes ascending = encoded(arena, value, DS_ASCENDING);
        bytes descending = encoded(arena, value, DS_DESCENDING);
        assert_true(bytes_equal(ascending, cases[i].expected));
        assert_int_equal(descending.size, ascending.size);
        for (size_t at = 0; at < ascending.size; at++)
            assert_int_equal(descending.data[at], (uint8_t)~ascending.data[at]);
    }
}

/* As both of Google's emulators order one property; what they hold for equal has the same place. */
static const struct {
    int place;
    const char *json;
} rising[] = {
    {0, "{'nullValue': 'NULL_VALUE'}"},
    {1, "{'timestampValue': '1960-01-01T00:00:00Z'}"},
    {2, "{'integerValue': -3}"},
    {3, "{'integerValue': 0}"},
    {3, "{'timestampValue': '1970-01-01T00:00:00Z'}"},
    {4, "{'integerValue': 5}"},
    {5, "{'timestampValue': '2020-01-01T00:00:00Z'}"},
    {6, "{'booleanValue': false}"},
    {7, "{'booleanValue': true}"},
    {8, "{'stringValue': ''}"},
    {9, "{'blobValue': 'YWJj'}"},
    {9, "{'stringValue': 'abc'}"},
    {10, "{'stringValue': 'abcd'}"},
    {11, "{'stringValue': 'é'}"},
    {12, "{'stringValue': '\xef\xbf\xae'}"}, /* U+FFEE */
    {13, "{'stringValue': '\xf0\x9f\x98\x80'}"},
    {14, "{'blobValue': '/wA='}"}, /* ff 00 */
    {15, "{'doubleValue': '-Infinity'}"},
    {16, "{'doubleValue': -7.5}"},
    {17, "{'doubleValue': -0.0}"},
    {17, "{'doubleValue': 0.0}"},
    {18, "{'doubleValue': 5.0}"},
    {19, "{'doubleValue': 5.5}"},
    {20, "{'doubleValue': 'Infinity'}"},
    {21, "{'doubleValue': 'NaN'}"},
    {22, "{'geoPointValue': {'latitude': -10}}"},
    {23, "{'geoPointValue': {'latitude': 10, 'longitude': -1}}"},
    {24, "{'geoPointValue': {'latitude': 10, 'longitude': 1}}"},
    {25, KEY("{'kind': 'K', 'id': 7}")},
    {26, KEY("{'kind': 'K', 'id': 7}, {'kind': 'J', 'id': 1}")},
    {27, KEY("{'kind': 'K', 'name': 'a'}")},
    {28, "{'keyValue': {'partitionId': {'projectId': 'p', 'namespaceId': 'n'},"
         " 'path': [{'kind': 'A', 'id': 1}]}}"},
    {29, "{'keyValue': {'partitionId': {'projectId': 'p', 'databaseId': 'd'},"
         " 'path': [{'kind': 'A', 'id': 1}]}}"},
    {30, "{'keyValue': {'partitionId': {'projectId': 'pp'}, 'path': [{'kind': 'A', 'id': 1}]}}"},
};
enum { RISING = sizeof rising / sizeof rising[0] };

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

static void test_values_order_as_production_has_them(void **state)
{
    struct arena *arena = *state;
    for (size_t i = 0; i < RISING; i++)
        for (size_t j = 0; j < RISING; j++) {
            int expected = sign(rising[i].place - rising[j].place);
            const Ds__Value *a = test_value(arena, rising[i].json);
            const Ds__Value *b = test_value(arena, rising[j].json);
            assert_int_equal(sign(ds_value_compare(a, b)), expected);
            assert_int_equal(ds_value_equal(a, b), expected == 0);
            assert_int_equal(sign(bytes_compare(encoded(arena, a, DS_ASCENDING),
                                                encoded(arena, b, DS_ASCENDING))),
                             expected);
            assert_int_equal(sign(bytes_compare(encoded(arena, a, DS_DESCENDING),
                                                encoded(arena, b, DS_DESCENDING))),
                             -expected);
        }
}

static void test_nans_are_one(void **state)
{
    Ds__Value a = DS__VALUE__INIT, b = DS__VALUE__INIT;
    a.value_type_case = b.value_type_case = DS__VALUE__VALUE_TYPE_DOUBLE_VALUE;
    uint64_t odd = 0xfff8000000000123;
    memcpy(&a.double_value, &odd, sizeof odd);
    b.double_value = __builtin_nan("");
    assert_true(ds_value_equal(&a, &b));
    assert_true(bytes_equal(encoded(*state, &a, DS_ASCENDING), encoded(*state, &b, DS_ASCENDING)));
}

static void assert_comes_back(struct arena *arena, const Ds__Value *value, enum ds_flip flip)
{
    Ds__Value *back;
    bytes bytes_of_it = encoded(arena, value, flip);
    assert_int_equal(ds_value_size(bytes_of_it, flip), bytes_of_it.size);
    assert_ok(ds_value_decode(bytes_of_it, flip, ds_value_type(value), arena, &back));
    assert_true(ds_value_equal(back, value));
    if (value->value_type_case != DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE) {
        assert_int_equal(back->value_type_case, value->value_type_case);
        assert_int_equal(back->meaning, 0);
        return;
    }
    assert_int_equal(back->value_type_case, DS__VALUE__VALUE_TYPE_INTEGER_VALUE);
    assert_int_equal(back->meaning, 18);
}

static void test_values_come_back_as_projections_have_them(void **state)
{
    for (size_t i = 0; i < RISING; i++) {
        assert_comes_back(*state, test_value(*state, rising[i].json), DS_ASCENDING);
        assert_comes_back(*state, test_value(*state, rising[i].json), DS_DESCENDING);
    }
}

static void test_a_row_of_another_type_is_damaged(void **state)
{
    Ds__Value *back;
    bytes five = encoded(*state, test_value(*state, "{'integerValue': 5}"), DS_ASCENDING);
    for (int type = 0; type < 256; type++) {
        bool is_integer = type == DS__VALUE__VALUE_TYPE_INTEGER_VALUE ||
                          type == DS__VALUE__VALUE_TYPE_TIMESTAMP_VALUE;
        assert_status(ds_value_decode(five, DS_ASCENDING, (uint8_t)type, *state, &back),
                      is_integer ? STATUS_OK : STATUS_INTERNAL);
    }
}

static void test_what_is_no_value_is_refused(void **state)
{
    const bytes bad[] = {
        LITERAL(""),
        LITERAL("\x06"),
        LITERAL("\x10"
                "1234567"),
        LITERAL("\x20"),
        LITERAL("\x30"
                "abc"),
        LITERAL("\x40"),
        LITERAL("\x50"
                "123456781234567"),
        LITERAL("\x60"),
        LITERAL("\x60p\0\1\0\1\0\1K\0\1\1\x80\0\0\0\0\0\0\7"),
        LITERAL("\x60p\0\1\0\1\0\1\0\1"),
    };
    Ds__Value *back;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(ds_value_size(bad[i], DS_ASCENDING), 0);
        for (int type = 0; type < 32; type++)
            assert_status(ds_value_decode(bad[i], DS_ASCENDING, (uint8_t)type, *state, &back),
                          STATUS_INTERNAL);
    }
    assert_status(ds_value_decode(LITERAL("\x20\2"), DS_ASCENDING,
                                  DS__VALUE__VALUE_TYPE_BOOLEAN_VALUE, *state, &back),
                  STATUS_INTERNAL);
    assert_status(ds_value_decode(LITERAL("\x20\1\1"), DS_ASCENDING,
                                  DS__VALUE__VALUE_TYPE_BOOLEAN_VALUE, *state, &back),
                  STATUS_INTERNAL);
}

static void test_what_has_bytes(void **state)
{
    Ds__Value unset = DS__VALUE__INIT;
    assert_false(ds_value_has_bytes(&unset));
    assert_false(ds_value_has_bytes(test_value(*state, "{'arrayValue': {}}")));
    assert_false(ds_value_has_bytes(test_value(*state, "{'entityValue': {}}")));
    assert_false(ds_value_has_bytes(test_value(*state, KEY("{'kind': 'K'}"))));
    for (size_t i = 0; i < RISING; i++)
        assert_true(ds_value_has_bytes(test_value(*state, rising[i].json)));
}

static void test_timestamps_beyond_numbers_stay_at_their_ends(void **state)
{
    (void)state;
    Pb__Timestamp timestamp = PB__TIMESTAMP__INIT;
    timestamp.seconds = INT64_MAX;
    assert_true(ds_timestamp_us(&timestamp) == INT64_MAX);
    timestamp.seconds = INT64_MIN;
    assert_true(ds_timestamp_us(&timestamp) == INT64_MIN);
    timestamp.seconds = -1;
    timestamp.nanos = 999999999;
    assert_true(ds_timestamp_us(&timestamp) == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_as_documented),
        cmocka_unit_test(test_values_order_as_production_has_them),
        cmocka_unit_test(test_nans_are_one),
        cmocka_unit_test(test_values_come_back_as_projections_have_them),
        cmocka_unit_test(test_a_row_of_another_type_is_damaged),
        cmocka_unit_test(test_what_is_no_value_is_refused),
        cmocka_unit_test(test_what_has_bytes),
        cmocka_unit_test(test_timestamps_beyond_numbers_stay_at_their_ends),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
