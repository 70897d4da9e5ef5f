/* Functions that make numbers of bytes, count bits, and make UUIDs: functions_conversion.c. */
#include "sql/expression_testing.h"
#include "sql/function.h"

#define WRONG_SIZE(words) "INVALID_ARGUMENT: incorrect value size. expected: " words

static void numbers_come_of_bytes(void **state)
{
    (void)state;
    static const struct expression_case cases[] = {
        {"TO_INT64(b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x64')", "100", "big-endian"},
        {"TO_INT64(b'\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff')", "-1", "two's complement"},
        {"TO_INT64(b'\\x7f\\xff\\xff\\xff\\xff\\xff\\xff\\xff')", "9223372036854775807",
         "the greatest"},
        {"TO_INT64(b'\\x80\\x00\\x00\\x00\\x00\\x00\\x00\\x00')", "-9223372036854775808",
         "the least"},
        {"TO_INT64('abcdefgh')", "7017280452245743464", "a literal is bytes"},
        {"TO_INT64(NULL)", "NULL", "NULL"},
        {"TO_INT64(CAST(NULL AS BYTES))", "NULL", "NULL bytes"},
        {"TO_INT64(b'hello world')", WRONG_SIZE("8 bytes, actual: 11 bytes"), "too long"},
        {"TO_INT64(b'')", WRONG_SIZE("8 bytes, actual: 0 bytes"), "empty"},
        {"SAFE.TO_INT64(b'abc')", WRONG_SIZE("8 bytes, actual: 3 bytes"), "SAFE does not help"},
        {"TO_INT64(1)",
         "INVALID_ARGUMENT: No matching signature for function TO_INT64 for argument type: INT64 "
         "[at 1:8]",
         "a number"},
        {"TO_INT64(CAST('a' AS STRING))",
         "INVALID_ARGUMENT: No matching signature for function TO_INT64 for argument type: STRING "
         "[at 1:8]",
         "a STRING that is no literal"},
        {"TO_FLOAT64(b'\\x3f\\xf8\\x00\\x00\\x00\\x00\\x00\\x00')", "1.5", "IEEE 754"},
        {"TO_FLOAT64(b'\\xc0\\x00\\x00\\x00\\x00\\x00\\x00\\x00')", "-2.0", "negative"},
        {"TO_FLOAT64(b'\\x7f\\xf0\\x00\\x00\\x00\\x00\\x00\\x00')", "CAST(\"inf\" AS FLOAT64)",
         "infinite"},
        {"IS_NAN(TO_FLOAT64(b'\\x7f\\xf8\\x00\\x00\\x00\\x00\\x00\\x01'))", "true", "NaN"},
        {"TO_FLOAT64(b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01') > 0", "true", "subnormal"},
        {"TO_FLOAT64(b'1234')", WRONG_SIZE("8 bytes, actual: 4 bytes"), "too short"},
        {"TO_FLOAT64(NULL)", "NULL", "NULL"},
        {"TO_FLOAT32(b'\\x3f\\xc0\\x00\\x00')", "1.5", "of four bytes"},
        {"TO_FLOAT32(b'\\x3d\\xcc\\xcc\\xcd') = CAST(0.1 AS FLOAT32)", "true", "a float's 0.1"},
        {"TO_FLOAT32(b'\\xff\\x80\\x00\\x00')", "CAST(\"-inf\" AS FLOAT32)", "infinite"},
        {"TO_FLOAT32(b'12345678')", WRONG_SIZE("4 bytes, actual: 8 bytes"), "too long"},
        {"TO_FLOAT32(NULL)", "NULL", "NULL"},
        {"TO_VECTOR32(b'\\x3f\\x80\\x00\\x00\\xc0\\x00\\x00\\x00')", "[1.0, -2.0]", "two floats"},
        {"TO_VECTOR32(b'')", "[]", "none"},
        {"TO_VECTOR32(b'12345')", WRONG_SIZE("a multiple of 4 bytes, actual: 5 bytes"), "a rest"},
        {"TO_VECTOR32(NULL)", "NULL", "NULL"},
        {"TO_VECTOR64(b'\\x3f\\xf0\\x00\\x00\\x00\\x00\\x00\\x00"
         "\\xc0\\x00\\x00\\x00\\x00\\x00\\x00\\x00')",
         "[1.0, -2.0]", "two doubles"},
        {"TO_VECTOR64(b'1234')", WRONG_SIZE("a multiple of 8 bytes, actual: 4 bytes"),
         "half of one"},
        {"TO_VECTOR64(b'')", "[]", "no doubles"},
        {"TO_VECTOR64(NULL)", "NULL", "NULL"},
    };
    CHECK_EXPRESSIONS(cases);
}

static void bits_are_counted(void **state)
{
    (void)state;
    static const struct expression_case cases[] = {
        {"BIT_COUNT(0)", "0", "none"},
        {"BIT_COUNT(255)", "8", "a byte"},
        {"BIT_COUNT(5)", "2", "two"},
        {"BIT_COUNT(-1)", "64", "two's complement"},
        {"BIT_COUNT(-2)", "63", "but one"},
        {"BIT_COUNT(9223372036854775807)", "63", "the greatest"},
        {"BIT_COUNT(-9223372036854775808)", "1", "the sign"},
        {"BIT_COUNT(b'\\xff\\x01')", "9", "bytes"},
        {"BIT_COUNT(b'')", "0", "no bytes"},
        {"BIT_COUNT(NULL)", "NULL", "NULL"},
        {"BIT_COUNT(1.5)",
         "INVALID_ARGUMENT: No matching signature for function BIT_COUNT for argument type: "
         "FLOAT64 [at 1:8]",
         "a float"},
    };
    CHECK_EXPRESSIONS(cases);
}

static void uuids_are_random(void **state)
{
    (void)state;
    static const struct expression_case cases[] = {
        {"LENGTH(GENERATE_UUID())", "36", "digits and dashes"},
        {"GENERATE_UUID() LIKE '________-____-4___-____-____________'", "true", "version 4"},
        {"SUBSTR(GENERATE_UUID(), 20, 1) IN ('8', '9', 'a', 'b')", "true", "the variant"},
        {"GENERATE_UUID() = GENERATE_UUID()", "false", "each is another"},
        {"GENERATE_UUID() = LOWER(GENERATE_UUID())", "false", "each is another, folded"},
        {"ARRAY_IS_DISTINCT(ARRAY_TRANSFORM([1, 2, 3], e -> GENERATE_UUID()))", "true",
         "in a lambda too"},
        {"VIEW_PARAMETERS('a')",
         "INVALID_ARGUMENT: VIEW_PARAMETERS is allowed in the query of a logical view only [at "
         "1:8]",
         "only in views"},
    };
    CHECK_EXPRESSIONS(cases);
}

static void views_are_asked_with_parameters(void **state)
{
    (void)state;
    static const struct test_cell cells[] = {{"a", "f", "x", 1000, "1"},
                                             {"b", "f", "x", 1000, "2"}};
    static const struct sql_view_parameter parameters[] = {
        {"user", {.text = {(const uint8_t *)"b", 1}}},
        {"none", {.is_null = true}},
    };
    static const struct {
        const char *view;
        const char *expected;
    } cases[] = {
        {"SELECT _key FROM t WHERE _key = CAST(VIEW_PARAMETERS('user') AS BYTES)", "b\"b\"\n"},
        {"SELECT _key FROM t WHERE STARTS_WITH(_key, CAST(VIEW_PARAMETERS('none') AS BYTES))", ""},
        {"SELECT _key FROM t WHERE _key = CAST(VIEW_PARAMETERS('User') AS BYTES)",
         "INVALID_ARGUMENT: view_parameters does not contain key 'User'\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct test_database database = {.cells = cells,
                                         .count = 2,
                                         .view = cases[i].view,
                                         .view_parameters = parameters,
                                         .view_parameter_count = 2};
        struct buffer out = {0};
        test_query(&database, "SELECT * FROM v", NULL, 0, &out);
        assert_string_equal((char *)out.data, cases[i].expected);
        buffer_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_come_of_bytes),
        cmocka_unit_test(bits_are_counted),
        cmocka_unit_test(uuids_are_random),
        cmocka_unit_test(views_are_asked_with_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
