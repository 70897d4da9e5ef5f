/* Rows as JSON: what comes back, what is refused and where. */
#include "formats/row_json.h"

#include "formats/testing/testing.h"

enum { SOME_TIME = 5000 };

static void rows_come_back(void **state)
{
    static const char *const rows[] = {
        "{\"key\":\"r\",\"cells\":[{\"family\":\"f\",\"qualifier\":\"\",\"timestamp\":0,"
        "\"value\":\"\"}]}",
        "{\"key\":\"a\\\"\\n\\u0000\xc3\xa9\",\"cells\":[{\"family\":\"f\",\"qualifier\":\"q\","
        "\"timestamp\":1500000000000000,\"value\":\"v\"},{\"family\":\"g\",\"qualifier\":{"
        "\"base64\":\"/w==\"},\"timestamp\":9223372036854775000,\"value\":{\"base64\":\"AP8=\"}}]}",
        "{\"key\":{\"base64\":\"/w==\"},\"cells\":[{\"family\":\"f\",\"qualifier\":\"q\","
        "\"timestamp\":1000,\"value\":\"v\"}]}",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct move_change row = {0};
        struct buffer out = {0};
        assert_ok(row_json_read(bytes_of(rows[i]), SOME_TIME, *state, &row));
        row_json_write(&row, &out);
        buffer_append_byte(&out, '\0');
        assert_string_equal((const char *)out.data, rows[i]);
        buffer_free(&out);
    }
}

static void members_stand_in_any_order(void **state)
{
    struct move_change row = {0};
    assert_ok(row_json_read(bytes_of(" { \"cells\" : [ { \"value\" : \"v\" , \"qualifier\":\"q\","
                                     "\"family\":\"f\" } ] , \"key\" : \"r\" } "),
                            SOME_TIME, *state, &row));
    assert_int_equal(row.count, 1);
    assert_int_equal(row.cells[0].timestamp_us, SOME_TIME);
    assert_true(bytes_equal(row.row_key, bytes_of("r")));
    assert_int_equal(row.bytes, 2);
}

#define CELL(inner) "{\"key\":\"r\",\"cells\":[" inner "]}"

static void what_is_no_row_is_refused(void **state)
{
    static const struct {
        const char *json, *message;
    } cases[] = {
        {"", "byte 1: '{' is expected"},
        {"{}", "byte 2: a string is expected"},
        {"{\"key\":\"r\"}", "byte 12: the row has no cells"},
        {CELL(""), "byte 23: the row has no cells"},
        {"{\"cells\":[{\"family\":\"f\",\"qualifier\":\"q\",\"value\":\"v\"}]}",
         "the row key is empty"},
        {CELL("{\"family\":\"f\",\"qualifier\":\"q\"}"),
         "byte 51: the cell before lacks its family, qualifier or value"},
        {CELL("{\"family\":\"f\",\"family\":\"f\"}"),
         "byte 44: a cell has one family, qualifier, timestamp and value, no more"},
        {CELL("{\"familie\":\"f\"}"),
         "byte 32: a cell has one family, qualifier, timestamp and value, no more"},
        {CELL("{\"timestamp\":\"1\"}"), "byte 34: a number of microseconds is expected"},
        {CELL("{\"timestamp\":1.5}"), "byte 37: the number before is no timestamp"},
        {CELL("{\"timestamp\":99999999999999999999}"),
         "byte 54: the number before is no timestamp"},
        {CELL("{\"value\":{\"base64\":\"A\"}}"), "byte 43: the string before is not base64"},
        {CELL("{\"value\":{\"hex\":\"00\"}}"),
         "byte 37: bytes are a string, or {\"base64\":\"…\"}"},
        {CELL("{\"value\":\"\xff\"}"),
         "byte 33: the string before is not UTF-8, or has a bad escape"},
        {"{\"key\":\"r\",\"key\":\"s\"}", "byte 18: a row has one key and cells, no more"},
        {"{\"key\":\"r\",\"cells\":[{\"family\":\"f\",\"qualifier\":\"q\",\"value\":\"v\"}]} x",
         "byte 66: something follows the object"},
        {CELL("{\"family\":\"f\",\"qualifier\":\"q\",\"value\":\"v\",\"timestamp\":1}"),
         "the timestamp 1 of q is not of whole milliseconds since 1970"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct move_change row = {0};
        status s = row_json_read(bytes_of(cases[i].json), SOME_TIME, *state, &row);
        assert_string_equal(status_message(s), cases[i].message);
        assert_status(s, STATUS_INVALID_ARGUMENT);
    }
}

static void objects_are_fields(void **state)
{
    static const char *const expected[][2] = {
        {"s", "a\nb"}, {"n", "-1.50e3"}, {"t", "true"}, {"l", "[1, {\"x\":null}]"}, {"o", "{}"},
    };
    struct field *fields;
    size_t count;
    assert_ok(row_json_fields(bytes_of("{\"s\":\"a\\nb\", \"n\": -1.50e3,\"t\":true,\"l\":[1, "
                                       "{\"x\":null}],\"o\":{},\"z\":null}"),
                              *state, &fields, &count));
    assert_int_equal(count, 6);
    for (size_t i = 0; i < 5; i++) {
        assert_true(bytes_equal(fields[i].name, bytes_of(expected[i][0])));
        assert_true(bytes_equal(fields[i].text, bytes_of(expected[i][1])));
        assert_false(fields[i].is_null);
    }
    assert_true(fields[5].is_null);
    assert_ok(row_json_fields(bytes_of("{}"), *state, &fields, &count));
    assert_int_equal(count, 0);
}

static void what_is_no_object_is_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "[]",
        "1",
        "{",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1",
        "{\"a\":1,}",
        "{\"a\":1}{}",
        "{\"a\":1,\"a\":2}",
        "{\"a\":tru}",
        "{\"\xff\":1}",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct field *fields;
        size_t count;
        assert_status(row_json_fields(bytes_of(cases[i]), *state, &fields, &count),
                      STATUS_INVALID_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(members_stand_in_any_order, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_row_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(objects_are_fields, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_object_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
