/* Values of every type in every format. Types and values are written as protobuf's JSON. */
#include "base/testing/testing.h"
#include "cmd/sql/sql_print.h"
#include "cmd/sql/sql_values.h"
#include "wire/json.h"

enum { ARENA_LIMIT = 16 << 20 };

struct fixture {
    struct arena *arena;
    struct buffer out;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.arena = arena_create(ARENA_LIMIT)};
    *state = &fixture;
    return fixture.arena == NULL;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    arena_destroy(f->arena);
    buffer_free(&f->out);
    return 0;
}

static const void *message(struct fixture *f, const ProtobufCMessageDescriptor *type,
                           const char *json)
{
    struct buffer wire = {0};
    ProtobufCMessage *decoded;
    assert_ok(json_decode(type, bytes_of(json), &wire));
    bytes kept = arena_copy(f->arena, buffer_bytes(&wire));
    buffer_free(&wire);
    assert_ok(proto_decode(type, kept, f->arena, &decoded));
    return decoded;
}

static const Bt__Type *type_of(struct fixture *f, const char *json)
{
    return message(f, &bt__type__descriptor, json);
}

static const Bt__Value *value_of(struct fixture *f, const char *json)
{
    return message(f, &bt__value__descriptor, json);
}

static void assert_out(struct fixture *f, const char *expected)
{
    buffer_append_byte(&f->out, '\0');
    assert_string_equal((const char *)f->out.data, expected);
    buffer_clear(&f->out);
}

/* The value as a table, CSV (before its quotes) and JSON have it. */
static void assert_value(struct fixture *f, const char *type_json, const char *value_json,
                         const char *table, const char *csv, const char *json)
{
    const Bt__Type *type = type_of(f, type_json);
    const Bt__Value *value = value_of(f, value_json);
    assert_ok(shell_value_check(type, value));
    shell_value_append_text(&f->out, type, value, true);
    assert_out(f, table);
    shell_value_append_text(&f->out, type, value, false);
    assert_out(f, csv);
    shell_value_append_json(&f->out, type, value);
    assert_out(f, json);
}

#define BOOL      "{\"boolType\": {}}"
#define INT64     "{\"int64Type\": {}}"
#define FLOAT32   "{\"float32Type\": {}}"
#define FLOAT64   "{\"float64Type\": {}}"
#define STRING    "{\"stringType\": {}}"
#define BYTES     "{\"bytesType\": {}}"
#define DATE      "{\"dateType\": {}}"
#define TIMESTAMP "{\"timestampType\": {}}"

static void numbers(void **state)
{
    struct fixture *f = *state;
    assert_value(f, BOOL, "{\"boolValue\": true}", "true", "true", "true");
    assert_value(f, BOOL, "{\"boolValue\": false}", "false", "false", "false");
    assert_value(f, INT64, "{\"intValue\": -12}", "-12", "-12", "-12");
    assert_value(f, INT64, "{\"intValue\": \"9007199254740993\"}", "9007199254740993",
                 "9007199254740993", "\"9007199254740993\"");
    assert_value(f, FLOAT64, "{\"floatValue\": 0.1}", "0.1", "0.1", "0.1");
    assert_value(f, FLOAT32, "{\"floatValue\": 0.10000000149011612}", "0.1", "0.1", "0.1");
    assert_value(f, FLOAT64, "{\"floatValue\": \"-Infinity\"}", "-inf", "-inf", "\"-Infinity\"");
    assert_value(f, FLOAT64, "{\"floatValue\": \"NaN\"}", "nan", "nan", "\"NaN\"");
    assert_value(f, "{\"enumType\": {\"enumName\": \"E\"}}", "{\"intValue\": 3}", "3", "3", "3");
}

static void texts(void **state)
{
    struct fixture *f = *state;
    assert_value(f, STRING, "{\"stringValue\": \"é\\\\n\"}", "é\\n", "é\\n", "\"é\\\\n\"");
    assert_value(f, STRING, "{\"stringValue\": \"a\\nb\\u001b[2J\\\\\"}", "a\\nb\\u001b[2J\\\\",
                 "a\nb\033[2J\\", "\"a\\nb\\u001b[2J\\\\\"");
    assert_value(f, STRING, "{\"stringValue\": \"\\u0085\\u2028\"}", "\\u0085\\u2028",
                 "\xc2\x85\xe2\x80\xa8", "\"\xc2\x85\xe2\x80\xa8\"");
    assert_value(f, STRING, "{\"stringValue\": \"\"}", "", "", "\"\"");
}

static void bytes_are_text_if_they_can_be(void **state)
{
    struct fixture *f = *state;
    assert_value(f, BYTES, "{\"bytesValue\": \"w7w=\"}", "ü", "ü", "\"ü\"");
    assert_value(f, BYTES, "{\"bytesValue\": \"YQD/XA==\"}", "a\\x00\\xff\\\\", "a\\x00\\xff\\\\",
                 "{\"base64\": \"YQD/XA==\"}");
    assert_value(f, BYTES, "{\"bytesValue\": \"YQpi\"}", "a\\x0ab", "a\nb", "\"a\\nb\"");
    assert_value(f, "{\"protoType\": {}}", "{\"bytesValue\": \"CAE=\"}", "\\x08\\x01", "\b\001",
                 "\"\\b\\u0001\"");
}

static void times(void **state)
{
    struct fixture *f = *state;
    assert_value(f, DATE, "{\"dateValue\": {\"year\": 33, \"month\": 4, \"day\": 3}}", "0033-04-03",
                 "0033-04-03", "\"0033-04-03\"");
    assert_value(f, TIMESTAMP, "{\"timestampValue\": \"2024-06-01T08:00:00.5Z\"}",
                 "2024-06-01 08:00:00.500+00", "2024-06-01 08:00:00.500+00",
                 "\"2024-06-01T08:00:00.500Z\"");
    assert_value(f, TIMESTAMP, "{\"timestampValue\": \"1969-12-31T23:59:59Z\"}",
                 "1969-12-31 23:59:59+00", "1969-12-31 23:59:59+00", "\"1969-12-31T23:59:59Z\"");
}

static void arrays_and_structs_are_printed(void **state)
{
    struct fixture *f = *state;
    assert_value(f, "{\"arrayType\": {\"elementType\": " STRING "}}",
                 "{\"arrayValue\": {\"values\": [{\"stringValue\": \"a\\\"\\n\"}, {}]}}",
                 "[\"a\\\"\\n\", NULL]", "[\"a\\\"\\n\", NULL]", "[\"a\\\"\\n\", null]");
    assert_value(f, "{\"arrayType\": {\"elementType\": " INT64 "}}", "{\"arrayValue\": {}}", "[]",
                 "[]", "[]");
    assert_value(f,
                 "{\"structType\": {\"fields\": [{\"fieldName\": \"at\", \"type\": " TIMESTAMP
                 "}, {\"type\": " DATE "}]}}",
                 "{\"arrayValue\": {\"values\": [{\"timestampValue\": \"2024-06-01T08:00:00Z\"}, "
                 "{\"dateValue\": {\"year\": 2024, \"month\": 6, \"day\": 1}}]}}",
                 "(TIMESTAMP \"2024-06-01 08:00:00+00\", DATE \"2024-06-01\")",
                 "(TIMESTAMP \"2024-06-01 08:00:00+00\", DATE \"2024-06-01\")",
                 "{\"at\": \"2024-06-01T08:00:00Z\", \"_field_2\": \"2024-06-01\"}");
    assert_value(f, "{\"mapType\": {\"keyType\": " BYTES ", \"valueType\": " INT64 "}}",
                 "{\"arrayValue\": {\"values\": ["
                 "{\"arrayValue\": {\"values\": [{\"bytesValue\": \"cQ==\"}, {\"intValue\": 1}]}}, "
                 "{\"arrayValue\": {\"values\": [{\"bytesValue\": \"/w==\"}, {}]}}, "
                 "{\"arrayValue\": {\"values\": [{}, {}]}}]}}",
                 "{b\"q\": 1, b\"\\xff\": NULL, NULL: NULL}",
                 "{b\"q\": 1, b\"\\xff\": NULL, NULL: NULL}",
                 "{\"q\": 1, \"base64:/w==\": null, \"null\": null}");
}

static void types_have_names(void **state)
{
    struct fixture *f = *state;
    shell_type_append(&f->out, type_of(f, "{\"structType\": {\"fields\": [{\"fieldName\": \"a\", "
                                          "\"type\": " BOOL "}, {\"type\": " FLOAT32 "}]}}"));
    assert_out(f, "STRUCT<a BOOL, FLOAT32>");
    shell_type_append(&f->out, type_of(f, "{\"mapType\": {\"keyType\": " STRING ", \"valueType\": "
                                          "{\"arrayType\": {\"elementType\": " BYTES "}}}}"));
    assert_out(f, "MAP<STRING, ARRAY<BYTES>>");
    shell_type_append(&f->out, type_of(f, "{\"protoType\": {\"schemaBundleId\": \"b\", "
                                          "\"messageName\": \"pkg.M\"}}"));
    assert_out(f, "b.pkg.M");
    shell_type_append(&f->out, type_of(f, "{}"));
    assert_out(f, "?");
}

static void a_value_of_another_type_is_refused(void **state)
{
    struct fixture *f = *state;
    const char *const bad[][2] = {
        {INT64, "{\"stringValue\": \"1\"}"},
        {"{}", "{\"intValue\": 1}"},
        {"{\"aggregateType\": {}}", "{\"intValue\": 1}"},
        {DATE, "{\"dateValue\": {\"year\": 2023, \"month\": 2, \"day\": 29}}"},
        {"{\"arrayType\": {\"elementType\": " INT64 "}}",
         "{\"arrayValue\": {\"values\": [{\"boolValue\": true}]}}"},
        {"{\"structType\": {\"fields\": [{\"type\": " INT64 "}]}}", "{\"arrayValue\": {}}"},
        {"{\"mapType\": {\"keyType\": " BYTES ", \"valueType\": " INT64 "}}",
         "{\"arrayValue\": {\"values\": [{\"intValue\": 1}]}}"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(shell_value_check(type_of(f, bad[i][0]), value_of(f, bad[i][1])),
                      STATUS_INTERNAL);
    Pb__Timestamp late = PB__TIMESTAMP__INIT;
    Bt__Value value = BT__VALUE__INIT;
    late.seconds = INT64_MAX;
    value.kind_case = BT__VALUE__KIND_TIMESTAMP_VALUE;
    value.timestamp_value = &late;
    assert_status(shell_value_check(type_of(f, TIMESTAMP), &value), STATUS_INTERNAL);
}

/* --- whole results --- */

#define SCHEMA                                                                                     \
    "{\"columns\": [{\"name\": \"name\", \"type\": " STRING                                        \
    "}, {\"name\": \"n\", \"type\": " INT64 "}, {\"name\": \"last\", \"type\": " STRING "}]}"

static void print(struct fixture *f, struct shell_style style, bool is_whole)
{
    const char *const rows[][3] = {
        {"{\"stringValue\": \"a,\\\"b\\\"\"}", "{\"intValue\": 5}", "{\"stringValue\": \"\"}"},
        {"{\"stringValue\": \"日本\"}", "{\"intValue\": 1234}", "{}"},
    };
    struct shell_printer printer;
    const Bt__ProtoSchema *schema = message(f, &bt__proto_schema__descriptor, SCHEMA);
    assert_ok(shell_printer_begin(&printer, style, schema, f->arena, &f->out));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Bt__Value *values[3];
        for (size_t k = 0; k < 3; k++)
            values[k] = value_of(f, rows[i][k]);
        assert_ok(shell_printer_row(&printer, values));
    }
    shell_printer_end(&printer, is_whole);
}

static void a_table_is_as_wide_as_it_looks(void **state)
{
    struct fixture *f = *state;
    print(f, (struct shell_style){.format = FORMAT_TABLE}, true);
    assert_out(f, " name  | n    | last\n"
                  "-------+------+------\n"
                  " a,\"b\" |    5 |\n"
                  " 日本  | 1234 | NULL\n"
                  "(2 rows)\n");
    print(f, (struct shell_style){.format = FORMAT_TABLE, .no_header = true}, true);
    assert_out(f, " a,\"b\" |    5 |\n 日本  | 1234 | NULL\n");
    print(f, (struct shell_style){.format = FORMAT_TABLE}, false);
    assert_out(f, " name  | n    | last\n"
                  "-------+------+------\n"
                  " a,\"b\" |    5 |\n"
                  " 日本  | 1234 | NULL\n");
}

static void an_expanded_table_has_a_line_for_each_column(void **state)
{
    struct fixture *f = *state;
    print(f, (struct shell_style){.format = FORMAT_TABLE, .expanded = true}, true);
    assert_out(f, "-[ RECORD 1 ]-\nname | a,\"b\"\nn    | 5\nlast | \n"
                  "-[ RECORD 2 ]-\nname | 日本\nn    | 1234\nlast | NULL\n(2 rows)\n");
}

static void csv_is_quoted_where_it_must_be(void **state)
{
    struct fixture *f = *state;
    print(f, (struct shell_style){.format = FORMAT_CSV}, true);
    assert_out(f, "name,n,last\r\n\"a,\"\"b\"\"\",5,\"\"\r\n日本,1234,\r\n");
    print(f, (struct shell_style){.format = FORMAT_CSV, .no_header = true}, true);
    assert_out(f, "\"a,\"\"b\"\"\",5,\"\"\r\n日本,1234,\r\n");
}

static void json_is_an_object_a_line(void **state)
{
    struct fixture *f = *state;
    print(f, (struct shell_style){.format = FORMAT_JSON}, true);
    assert_out(f, "{\"name\": \"a,\\\"b\\\"\", \"n\": 5, \"last\": \"\"}\n"
                  "{\"name\": \"日本\", \"n\": 1234, \"last\": null}\n");
}

/* The first 1000 rows say how wide the columns are; from then on nothing is kept. */
static void a_long_table_flows(void **state)
{
    struct fixture *f = *state;
    struct text_column columns[] = {{.name = "a"}, {.name = "b"}};
    struct text_table table;
    text_table_begin(&table, columns, 2, true, &f->out);
    for (size_t i = 1; i < TEXT_TABLE_ROWS_KEPT; i++) {
        text_table_add(&table, bytes_of("x"));
        text_table_add(&table, bytes_of("y"));
    }
    assert_int_equal(f->out.size, 0);
    text_table_add(&table, bytes_of("wide"));
    text_table_add(&table, bytes_of("y"));
    assert_true(f->out.size > 0);
    buffer_clear(&f->out);
    text_table_add(&table, bytes_of("wider than it was"));
    text_table_add(&table, bytes_of("y"));
    text_table_add(&table, bytes_of("x"));
    text_table_add(&table, bytes_of("y"));
    text_table_end(&table);
    assert_out(f, " wider than it was | y\n x    | y\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(texts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bytes_are_text_if_they_can_be, set_up, tear_down),
        cmocka_unit_test_setup_teardown(times, set_up, tear_down),
        cmocka_unit_test_setup_teardown(arrays_and_structs_are_printed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(types_have_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_value_of_another_type_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_table_is_as_wide_as_it_looks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_expanded_table_has_a_line_for_each_column, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(csv_is_quoted_where_it_must_be, set_up, tear_down),
        cmocka_unit_test_setup_teardown(json_is_an_object_a_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_long_table_flows, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
