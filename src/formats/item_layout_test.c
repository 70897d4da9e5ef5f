/* Where an item's attributes come to lie in a row. */
#include "formats/item_layout.h"

#include "formats/testing/testing.h"

#include <stdio.h>

static struct item_layout layout_of(enum item_form form)
{
    return (struct item_layout){
        .form = form, .partition_key = "Id", .delimiter = "#", .family = "f", .default_us = 5000};
}

static void check(struct arena *arena, const struct item_layout *layout, const char *json,
                  const char *expected)
{
    struct item_value item;
    struct move_change change;
    struct buffer out = {0};
    assert_ok(item_read_json_map(bytes_of(json), arena, &item));
    assert_ok(item_lay_out(layout, &item, arena, &change));
    describe(&change, &out);
    assert_false(out.failed);
    assert_string_equal((const char *)out.data, expected);
    buffer_free(&out);
}

static void check_refused(struct arena *arena, const struct item_layout *layout, const char *json,
                          const char *expected)
{
    struct item_value item;
    struct move_change change;
    assert_ok(item_read_json_map(bytes_of(json), arena, &item));
    status s = item_lay_out(layout, &item, arena, &change);
    assert_string_equal(status_message(s), expected);
    assert_status(s, STATUS_INVALID_ARGUMENT);
}

static const char all_types[] =
    "{\"Id\":{\"S\":\"k\"},\"b\":{\"B\":\"AP8=\"},\"l\":{\"L\":[{\"N\":\"1\"},{\"S\":\"x\"}]},"
    "\"m\":{\"M\":{\"a\":{\"N\":\"1\"},\"n\":{\"M\":{\"b\":{\"BOOL\":true}}},\"z\":{\"M\":{}}}},"
    "\"n\":{\"N\":\"1.50\"},\"o\":{\"BOOL\":false},\"s\":{\"S\":\"text\"},\"t\":{\"SS\":[\"y\","
    "\"x\"]},\"u\":{\"NULL\":true}}";

static void columns_are_what_a_client_would_write(void **state)
{
    struct item_layout layout = layout_of(ITEM_AS_COLUMNS);
    check(*state, &layout, all_types,
          "k | f:b=\\00\\ff | f:l=[1,\"x\"] | f:m={\"a\":1,\"n\":{\"b\":true},\"z\":{}} | f:n=1.50"
          " | f:o=false | f:s=text | f:t=[\"y\",\"x\"] | f:u=");
    check(*state, &layout, "{\"Id\":{\"S\":\"k\"}}", "k | f:=");
}

static void googles_utility_flattens_maps(void **state)
{
    struct item_layout layout = layout_of(ITEM_AS_GOOGLE);
    check(*state, &layout, all_types,
          "k | f:b@0=AP8= | f:l@0=[1,\"x\"] | f:m.a@0=1 | f:m.n.b@0=true | f:n@0=1.50 | f:o@0=false"
          " | f:s@0=text | f:t@0=[\"y\",\"x\"] | f:u@0=");
}

/* As Java's Long and BigDecimal print them. */
static void googles_utility_prints_numbers_as_java(void **state)
{
    static const char *const numbers[][2] = {
        {"007", "7"},
        {"-12", "-12"},
        {"1.50", "1.50"},
        {"1.5E3", "1.5E+3"},
        {"-0.0", "0.0"},
        {"0.000001", "0.000001"},
        {"0.0000001", "1E-7"},
        {"1.0E10", "1.0E+10"},
        {"1.5E-9", "1.5E-9"},
        {"123.4E1", "1234"},
        {"00.5", "0.5"},
        {"1E5", "100000"},
        {"99999999999999999999", "99999999999999999999"},
    };
    struct item_layout layout = layout_of(ITEM_AS_GOOGLE);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char json[128], expected[128];
        snprintf(json, sizeof json, "{\"Id\":{\"S\":\"k\"},\"n\":{\"N\":\"%s\"}}", numbers[i][0]);
        snprintf(expected, sizeof expected, "k | f:n@0=%s", numbers[i][1]);
        check(*state, &layout, json, expected);
    }
}

static void a_lossless_row_gives_the_item_back(void **state)
{
    struct item_layout layout = layout_of(ITEM_LOSSLESS);
    struct item_value item, again;
    struct move_change change;
    assert_ok(item_read_json_map(bytes_of(all_types), *state, &item));
    assert_ok(item_lay_out(&layout, &item, *state, &change));
    assert_ok(item_pick_up(change.cells, change.count, *state, &again));
    assert_true(item_equal(&item, &again));
    change.cells[3].value = bytes_of("{\"N\":1}");
    assert_status(item_pick_up(change.cells, change.count, *state, &again), STATUS_DATA_LOSS);
}

static void row_keys_are_made_of_both_keys(void **state)
{
    struct item_layout layout = layout_of(ITEM_AS_COLUMNS);
    layout.sort_key = "Sk";
    check(*state, &layout, "{\"Id\":{\"S\":\"hats\"},\"Sk\":{\"S\":\"fedoras#brandA\"}}",
          "hats#fedoras#brandA | f:=");
    check(*state, &layout, "{\"Id\":{\"S\":\"a#b%\"},\"Sk\":{\"S\":\"c%\"}}", "a%23b%25#c% | f:=");
    check(*state, &layout, "{\"Id\":{\"N\":\"1.0e1\"},\"Sk\":{\"B\":\"AA==\"}}", "10#\\00 | f:=");
    layout.delimiter = "::";
    check(*state, &layout, "{\"Id\":{\"S\":\"a:\"},\"Sk\":{\"S\":\"c\"}}", "a%3A::c | f:=");
    layout.delimiter = "#";
    layout.orders_numbers = true;
    check(*state, &layout, "{\"Id\":{\"N\":\"35\"},\"Sk\":{\"N\":\"-1\"}}",
          "\\02\\80\\02$\\00#\\00\\7f\\fe\\f4\\ff | f:=");
}

/* All items of a partition have one salt, and there are as many as were asked for. */
static void salts_spread(void **state)
{
    struct item_layout layout = layout_of(ITEM_AS_COLUMNS);
    layout.salts = 16;
    bool seen[16] = {false};
    for (int i = 0; i < 500; i++) {
        char json[64];
        struct item_value item;
        struct move_change change;
        snprintf(json, sizeof json, "{\"Id\":{\"S\":\"key-%d\"}}", i);
        assert_ok(item_read_json_map(bytes_of(json), *state, &item));
        assert_ok(item_lay_out(&layout, &item, *state, &change));
        assert_int_equal(change.row_key.data[2], '#');
        int salt = 10 * (change.row_key.data[0] - '0') + (change.row_key.data[1] - '0');
        assert_in_range(salt, 0, 15);
        seen[salt] = true;
    }
    for (int i = 0; i < 16; i++)
        assert_true(seen[i]);
}

static void counters_families_and_times(void **state)
{
    static const char *const counters[] = {"Likes"}, *const families[] = {"Tags", "Spec"};
    struct item_layout layout = layout_of(ITEM_AS_COLUMNS);
    layout.counters = (struct item_names){.names = counters, .count = 1};
    layout.families = (struct item_names){.names = families, .count = 2};
    layout.timestamp = "At";
    check(*state, &layout,
          "{\"Id\":{\"S\":\"k\"},\"At\":{\"N\":\"1730928816.5\"},\"Likes\":{\"N\":\"258\"},"
          "\"Spec\":{\"M\":{\"cpu\":{\"N\":\"4\"}}},\"Tags\":{\"SS\":[\"a\",\"b\"]}}",
          "k | f:At@1730928816500000=1730928816.5"
          " | f:Likes@1730928816500000=\\00\\00\\00\\00\\00\\00\\01\\02"
          " | Spec:cpu@1730928816500000=4 | Tags:a@1730928816500000=\\00"
          " | Tags:b@1730928816500000=\\00");
    check(*state, &layout, "{\"Id\":{\"S\":\"k\"},\"At\":{\"N\":\"1730928816123\"}}",
          "k | f:At@1730928816123000=1730928816123");
    check(*state, &layout, "{\"Id\":{\"S\":\"k\"},\"At\":{\"S\":\"2024-11-06T21:33:36.7891Z\"}}",
          "k | f:At@1730928816789000=2024-11-06T21:33:36.7891Z");
    check(*state, &layout, "{\"Id\":{\"S\":\"k\"},\"x\":{\"S\":\"y\"}}", "k | f:x=y");
}

static void an_item_that_does_not_fit_is_refused(void **state)
{
    static const char *const counters[] = {"c"}, *const families[] = {"g"};
    struct item_layout layout = layout_of(ITEM_AS_COLUMNS);
    layout.sort_key = "Sk";
    layout.counters = (struct item_names){.names = counters, .count = 1};
    layout.families = (struct item_names){.names = families, .count = 1};
    layout.timestamp = "At";
    static const struct {
        const char *json, *message;
    } cases[] = {
        {"{\"Sk\":{\"S\":\"x\"}}", "the key attribute Id is not there"},
        {"{\"Id\":{\"S\":\"x\"}}", "the key attribute Sk is not there"},
        {"{\"Id\":{\"BOOL\":true}}", "the key attribute Id is of type BOOL"},
        {"{\"Id\":{\"S\":\"\"}}", "the key attribute Id is empty"},
        {"{\"Id\":{\"S\":\"x\"},\"Sk\":{\"S\":\"y\"},\"c\":{\"N\":\"1.5\"}}",
         "the counter c is no integer of 64 bits"},
        {"{\"Id\":{\"S\":\"x\"},\"Sk\":{\"S\":\"y\"},\"c\":{\"S\":\"1\"}}",
         "the counter c is of type S"},
        {"{\"Id\":{\"S\":\"x\"},\"Sk\":{\"S\":\"y\"},\"g\":{\"S\":\"1\"}}",
         "g is to be a family, and is no set or map"},
        {"{\"Id\":{\"S\":\"x\"},\"Sk\":{\"S\":\"y\"},\"At\":{\"S\":\"yesterday\"}}",
         "At is no time: neither seconds or milliseconds since 1970, nor as in RFC 3339"},
        {"{\"Id\":{\"S\":\"x\"},\"Sk\":{\"S\":\"y\"},\"At\":{\"N\":\"-1\"}}",
         "At is no time: neither seconds or milliseconds since 1970, nor as in RFC 3339"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(*state, &layout, cases[i].json, cases[i].message);
}

static void long_keys_and_names_are_refused(void **state)
{
    struct item_layout layout = layout_of(ITEM_AS_COLUMNS);
    for (int which = 0; which < 2; which++) {
        size_t size = which == 0 ? 4097 : 16385;
        struct buffer json = {0};
        buffer_append_format(&json, which == 0 ? "{\"Id\":{\"S\":\"" : "{\"Id\":{\"S\":\"k\"},\"");
        for (size_t i = 0; i < size; i++)
            buffer_append_byte(&json, 'x');
        buffer_append_format(&json, which == 0 ? "\"}}%c" : "\":{\"N\":\"1\"}}%c", 0);
        struct item_value item;
        struct move_change change;
        assert_ok(item_read_json_map(bytes_of((const char *)json.data), *state, &item));
        status s = item_lay_out(&layout, &item, *state, &change);
        assert_non_null(strstr(status_message(s), which == 0 ? "the row key has 4097 bytes"
                                                             : "has 16385 bytes, more than 16384"));
        assert_status(s, STATUS_INVALID_ARGUMENT);
        buffer_free(&json);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(columns_are_what_a_client_would_write),
        TEST(googles_utility_flattens_maps),
        TEST(googles_utility_prints_numbers_as_java),
        TEST(a_lossless_row_gives_the_item_back),
        TEST(row_keys_are_made_of_both_keys),
        TEST(salts_spread),
        TEST(counters_families_and_times),
        TEST(an_item_that_does_not_fit_is_refused),
        TEST(long_keys_and_names_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
