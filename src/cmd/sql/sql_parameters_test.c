#include "base/testing/testing.h"
#include "cmd/sql/sql_parameters.h"
#include "cmd/sql/sql_values.h"

/* Sets @p from the text, and holds its value, as a table shows it, against what is expected. */
static void assert_parameter(const char *text, const char *type, const char *expected)
{
    struct shell_parameters parameters = {0};
    struct buffer out = {0};
    assert_ok(shell_parameters_set_from(&parameters, text));
    assert_int_equal(parameters.count, 1);
    const struct shell_parameter *parameter = parameters.first;
    shell_type_append(&out, parameter->type);
    buffer_append_byte(&out, '\0');
    assert_string_equal((const char *)out.data, type);
    buffer_clear(&out);
    assert_ok(shell_value_check(parameter->type, parameter->value));
    if (shell_value_is_null(parameter->value))
        buffer_append_format(&out, "NULL");
    else
        shell_value_append_text(&out, parameter->type, parameter->value, true);
    buffer_append_byte(&out, '\0');
    assert_string_equal((const char *)out.data, expected);
    buffer_free(&out);
    shell_parameters_free(&parameters);
}

static void every_simple_type(void **state)
{
    (void)state;
    assert_parameter("p=BOOL:true", "BOOL", "true");
    assert_parameter("p=int64:-12", "INT64", "-12");
    assert_parameter("p=FLOAT32:0.1", "FLOAT32", "0.1");
    assert_parameter("p=FLOAT64:inf", "FLOAT64", "inf");
    assert_parameter("p=STRING:a: \"b\" \\n", "STRING", "a: \"b\" \\n");
    assert_parameter("p=STRING:", "STRING", "");
    assert_parameter("p=DATE:2024-02-29", "DATE", "2024-02-29");
    assert_parameter("p=TIMESTAMP:2024-06-01 10:00:00.5+02", "TIMESTAMP",
                     "2024-06-01 08:00:00.500+00");
}

static void bytes_have_escapes(void **state)
{
    (void)state;
    assert_parameter("p=BYTES:ab\xc3\xbc", "BYTES", "abü");
    assert_parameter("p=BYTES:a\\xFf\\\\\\x00", "BYTES", "a\\xff\\\\\\x00");
}

static void without_a_value_it_is_null(void **state)
{
    (void)state;
    assert_parameter("p=STRING", "STRING", "NULL");
    assert_parameter("p=ARRAY<INT64>", "ARRAY<INT64>", "NULL");
}

static void arrays(void **state)
{
    (void)state;
    assert_parameter("p=ARRAY<INT64>:[1, -2 , NULL]", "ARRAY<INT64>", "[1, -2, NULL]");
    assert_parameter("p=array<int64>: [] ", "ARRAY<INT64>", "[]");
    assert_parameter("p=ARRAY<STRING>:['a,]', \"b\\n\", c d, null]", "ARRAY<STRING>",
                     "[\"a,]\", \"b\\n\", \"c d\", NULL]");
    assert_parameter("p=ARRAY<BYTES>:[b'\\xff', \"a\\\\b\"]", "ARRAY<BYTES>",
                     "[b\"\\xff\", b\"a\\\\b\"]");
    assert_parameter("p=ARRAY<DATE>:['2024-02-29']", "ARRAY<DATE>", "[DATE \"2024-02-29\"]");
    assert_parameter("p=ARRAY<FLOAT64>:[1e3, -inf]", "ARRAY<FLOAT64>", "[1000, -inf]");
    assert_parameter("p=ARRAY<BOOL>:[true, FALSE]", "ARRAY<BOOL>", "[true, false]");
}

static void malformed_parameters_are_refused(void **state)
{
    (void)state;
    struct shell_parameters parameters = {0};
    const char *const bad[] = {
        "p",
        "=INT64:1",
        "1p=INT64:1",
        "a b=INT64:1",
        "p=NUMERIC:1",
        "p=ARRAY<ARRAY<INT64>>:[]",
        "p=STRUCT<INT64>:(1)",
        "p=BYTES:\\n",
        "p=BYTES:\\x0",
        "p=STRING:\xff",
        "p=ARRAY<INT64>:1",
        "p=ARRAY<INT64>:[1",
        "p=ARRAY<INT64>:[1] 2",
        "p=ARRAY<STRING>:['a' 'b']",
        "p=ARRAY<INT64>:[1,,2]",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(shell_parameters_set_from(&parameters, bad[i]), STATUS_INVALID_ARGUMENT);
    assert_status(shell_parameters_set_from(&parameters, "p=INT64:x"), STATUS_OUT_OF_RANGE);
    assert_status(shell_parameters_set_from(&parameters, "p=DATE:2023-02-29"), STATUS_OUT_OF_RANGE);
    assert_int_equal(parameters.count, 0);
}

static void names_are_set_once(void **state)
{
    (void)state;
    struct shell_parameters parameters = {0};
    assert_ok(shell_parameters_set_from(&parameters, "a=INT64:1"));
    assert_ok(shell_parameters_set_from(&parameters, "b=INT64:2"));
    assert_ok(shell_parameters_set_from(&parameters, "a=STRING:x"));
    assert_int_equal(parameters.count, 2);
    assert_string_equal(parameters.first->name, "a");
    assert_string_equal(parameters.first->value->string_value, "x");
    assert_true(shell_parameters_unset(&parameters, bytes_of("a")));
    assert_false(shell_parameters_unset(&parameters, bytes_of("a")));
    assert_int_equal(parameters.count, 1);
    shell_parameters_free(&parameters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_simple_type),
        cmocka_unit_test(bytes_have_escapes),
        cmocka_unit_test(without_a_value_it_is_null),
        cmocka_unit_test(arrays),
        cmocka_unit_test(malformed_parameters_are_refused),
        cmocka_unit_test(names_are_set_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
