/* Records of fields as rows: types, times, templates, columns. */
#include "formats/fields.h"

#include "base/limits.h"
#include "formats/testing/testing.h"

static void types_go_both_ways(void **state)
{
    static const struct {
        enum field_type type;
        const char *text, *hex, *again; /* NULL: as it came */
    } cases[] = {
        {FIELD_STRING, "text", "74657874", NULL},
        {FIELD_STRING, "", "", NULL},
        {FIELD_INT64, "0", "0000000000000000", NULL},
        {FIELD_INT64, "258", "0000000000000102", NULL},
        {FIELD_INT64, "-1", "ffffffffffffffff", NULL},
        {FIELD_INT64, "9223372036854775807", "7fffffffffffffff", NULL},
        {FIELD_INT64, "-9223372036854775808", "8000000000000000", NULL},
        {FIELD_INT64, "1e3", "00000000000003e8", "1000"},
        {FIELD_DOUBLE, "1.5", "3ff8000000000000", NULL},
        {FIELD_DOUBLE, "-0.1", "bfb999999999999a", NULL},
        {FIELD_DOUBLE, "5e-324", "0000000000000001", "4.94065645841247e-324"},
        {FIELD_DOUBLE, "NaN", "7ff8000000000000", NULL},
        {FIELD_DOUBLE, "-Infinity", "fff0000000000000", NULL},
        {FIELD_BASE64, "AP8=", "00ff", NULL},
        {FIELD_BASE64, "AP8", "00ff", "AP8="},
        {FIELD_HEX, "00fF", "00ff", "00ff"},
        {FIELD_HEX, "", "", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buffer hex = {0}, again = {0};
        bytes value = {0};
        assert_ok(field_to_bytes(cases[i].type, bytes_of(cases[i].text), *state, &value));
        assert_ok(field_to_text(FIELD_HEX, value, &hex));
        assert_true(bytes_equal(buffer_bytes(&hex), bytes_of(cases[i].hex)));
        assert_ok(field_to_text(cases[i].type, value, &again));
        buffer_append_byte(&again, '\0');
        assert_string_equal((const char *)again.data,
                            cases[i].again != NULL ? cases[i].again : cases[i].text);
        buffer_free(&hex);
        buffer_free(&again);
    }
}

static void what_is_not_of_its_type_is_refused(void **state)
{
    static const struct {
        enum field_type type;
        const char *text;
    } cases[] = {
        {FIELD_INT64, ""},
        {FIELD_INT64, "x"},
        {FIELD_INT64, "1.5"},
        {FIELD_INT64, "1 "},
        {FIELD_INT64, "9223372036854775808"},
        {FIELD_DOUBLE, ""},
        {FIELD_DOUBLE, "1x"},
        {FIELD_DOUBLE, " 1"},
        {FIELD_DOUBLE, "0x10"},
        {FIELD_DOUBLE, "inf"},
        {FIELD_DOUBLE, "1e"},
        {FIELD_BASE64, "A"},
        {FIELD_BASE64, "?"},
        {FIELD_HEX, "0"},
        {FIELD_HEX, "0g"},
    };
    struct buffer out = {0};
    bytes value = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_status(field_to_bytes(cases[i].type, bytes_of(cases[i].text), *state, &value),
                      STATUS_INVALID_ARGUMENT);
    assert_status(field_to_text(FIELD_INT64, bytes_of("1234567"), &out), STATUS_INVALID_ARGUMENT);
    assert_status(field_to_text(FIELD_DOUBLE, bytes_of("123456789"), &out),
                  STATUS_INVALID_ARGUMENT);
    buffer_free(&out);
}

static void times_are_understood(void **state)
{
    static const struct {
        const char *text;
        int64_t us; /* -1: it is none */
    } cases[] = {
        {"0", 0},
        {"1500000000", 1500000000000000},
        {"1500000000.25", 1500000000250000},
        {"1500000000123", 1500000000123000},
        {"1500000000123456", 1500000000123000},
        {"2017-07-14T02:40:00.5Z", 1500000000500000},
        {"-1", -1},
        {"", -1},
        {"tomorrow", -1},
        {"1e30", -1},
        {"1960-01-01T00:00:00Z", -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t us = -1;
        assert_int_equal(field_to_time(bytes_of(cases[i].text), &us), cases[i].us >= 0);
        if (cases[i].us >= 0)
            assert_int_equal(us, cases[i].us);
    }
}

/* --- layouts --- */

static struct field field(const char *name, const char *text)
{
    return (struct field){.name = bytes_of(name),
                          .text = bytes_of(text == NULL ? "" : text),
                          .is_null = text == NULL};
}

/* "key family:qualifier@timestamp=value …" */
static void show(const struct move_change *row, struct buffer *out)
{
    buffer_append_bytes(out, row->row_key);
    for (size_t i = 0; i < row->count; i++) {
        const struct move_cell *cell = &row->cells[i];
        buffer_append_format(out, " %s:%.*s@%lld=%.*s", cell->family, (int)cell->qualifier.size,
                             (const char *)cell->qualifier.data, (long long)cell->timestamp_us,
                             (int)cell->value.size, (const char *)cell->value.data);
    }
    buffer_append_byte(out, '\0');
}

static status lay_out(const struct field_words *words, struct arena *arena, struct move_change *out)
{
    const struct field fields[] = {
        field("customer", "c{1}"), field("order", "258"), field("title", "Tea"),
        field("none", NULL),       field("empty", ""),    field("when", "2017-07-14T02:40:00Z"),
    };
    struct field_layout layout;
    TRY(field_layout_parse(words, arena, &layout));
    layout.default_us = 7000;
    return fields_lay_out(&layout, fields, sizeof fields / sizeof *fields, arena, out);
}

static void rows_are_made(void **state)
{
    static const struct {
        struct field_words words;
        const char *expected;
    } cases[] = {
        {{"{customer}#{order}", NULL, NULL, "f", NULL},
         "c{1}#258 f:title@7000=Tea f:empty@7000= f:when@7000=2017-07-14T02:40:00Z"},
        {{"{{{order}}}", "title,order=g:n:o", NULL, "f", NULL},
         "{258} f:title@7000=Tea g:n:o@7000=258"},
        {{"x{customer}", "title=g:,none=g:x", NULL, NULL, "when"}, "xc{1} g:@1500000000000000=Tea"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct move_change row = {0};
        struct buffer out = {0};
        assert_ok(lay_out(&cases[i].words, *state, &row));
        show(&row, &out);
        assert_string_equal((const char *)out.data, cases[i].expected);
        buffer_free(&out);
    }
}

static void types_apply_to_keys_and_cells(void **state)
{
    const struct field_words words = {"k{order:int64}", "order", "order=int64", "f", NULL};
    struct move_change row = {0};
    struct field_layout layout;
    const struct field_words colons = {"{a:b}{a:b:hex}{a::hex}", NULL, NULL, "f", NULL};
    assert_ok(field_layout_parse(&colons, *state, &layout));
    assert_true(bytes_equal(layout.key[0].text, bytes_of("a:b")));
    assert_int_equal(layout.key[0].type, FIELD_STRING);
    assert_true(bytes_equal(layout.key[1].text, bytes_of("a:b")));
    assert_int_equal(layout.key[1].type, FIELD_HEX);
    assert_true(bytes_equal(layout.key[2].text, bytes_of("a:")));
    assert_ok(lay_out(&words, *state, &row));
    assert_true(bytes_equal(row.row_key, bytes_make("k\0\0\0\0\0\0\x01\x02", 9)));
    bytes value = row.count == 1 ? row.cells[0].value : bytes_of("");
    assert_true(bytes_equal(value, bytes_make("\0\0\0\0\0\0\x01\x02", 8)));
}

static void what_makes_no_row_is_refused(void **state)
{
    static const struct {
        struct field_words words;
        const char *message;
    } cases[] = {
        {{"{nothing}", NULL, NULL, "f", NULL}, "the field nothing, of the row key, is not there"},
        {{"{none}", NULL, NULL, "f", NULL}, "the field none, of the row key, is not there"},
        {{"{empty}", NULL, NULL, "f", NULL}, "the field empty, of the row key, is empty"},
        {{"{title:int64}", NULL, NULL, "f", NULL}, "the field title is no integer of 64 bits"},
        {{"{order}", "title", "title=double", "f", NULL}, "the field title is no number"},
        {{"{order}", "none", NULL, "f", NULL}, "there is no value beside the row key"},
        {{"{order}", NULL, NULL, "f", "title"},
         "the field title is no time: neither a number since 1970, nor as in RFC 3339"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct move_change row = {0};
        status s = lay_out(&cases[i].words, *state, &row);
        assert_string_equal(status_message(s), cases[i].message);
        assert_status(s, STATUS_INVALID_ARGUMENT);
    }
}

static void words_that_make_no_sense_are_refused(void **state)
{
    static const struct field_words cases[] = {
        {"", NULL, NULL, "f", NULL},        {"same", NULL, NULL, "f", NULL},
        {"{a", NULL, NULL, "f", NULL},      {"a}", NULL, NULL, "f", NULL},
        {"{}", NULL, NULL, "f", NULL},      {"{:int64}", NULL, NULL, "f", NULL},
        {"{a}", "", NULL, "f", NULL},       {"{a}", "b,,c", NULL, "f", NULL},
        {"{a}", "b", NULL, NULL, NULL},     {"{a}", "b=c", NULL, "f", NULL},
        {"{a}", "b=:c", NULL, "f", NULL},   {"{a}", NULL, "b", "f", NULL},
        {"{a}", NULL, "b=text", "f", NULL}, {"{a}", NULL, "=int64", "f", NULL},
    };
    struct field_layout layout;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_status(field_layout_parse(&cases[i], *state, &layout), STATUS_INVALID_ARGUMENT);
}

static void limits_are_held(void **state)
{
    static char large[LIMIT_QUALIFIER_BYTES + 2];
    memset(large, 'x', sizeof large - 1);
    const struct field fields[] = {field("a", large), field(large, "v"), field("b", "k")};
    const struct field_words by_value = {"{a}", "b", NULL, "f", NULL};
    const struct field_words by_name = {"{b}", NULL, NULL, "f", NULL};
    struct field_layout layout;
    struct move_change row = {0};
    assert_ok(field_layout_parse(&by_value, *state, &layout));
    assert_status(fields_lay_out(&layout, fields, 3, *state, &row), STATUS_INVALID_ARGUMENT);
    assert_ok(field_layout_parse(&by_name, *state, &layout));
    assert_status(fields_lay_out(&layout, fields, 3, *state, &row), STATUS_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(types_go_both_ways, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_of_its_type_is_refused, setup, teardown),
        cmocka_unit_test(times_are_understood),
        cmocka_unit_test_setup_teardown(rows_are_made, setup, teardown),
        cmocka_unit_test_setup_teardown(types_apply_to_keys_and_cells, setup, teardown),
        cmocka_unit_test_setup_teardown(what_makes_no_row_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(words_that_make_no_sense_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(limits_are_held, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
