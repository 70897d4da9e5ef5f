/* Row sets as sorted ranges, and the words of errors about rows. */
#include "bigtable/row_error.h"
#include "bigtable/row_ranges.h"

#include "base/testing/testing.h"

enum { ARENA_LIMIT = 1 << 20 };

static int setup(void **state)
{
    *state = arena_create(ARENA_LIMIT);
    return 0;
}

static int teardown(void **state)
{
    arena_destroy(*state);
    return 0;
}

/* "[a" closed and "(a" open starts, "a]" closed and "a)" open ends, NULL none. */
static Bt__RowRange make_range(const char *start, const char *end)
{
    Bt__RowRange range = BT__ROW_RANGE__INIT;
    if (start != NULL && start[0] == '[') {
        range.start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_CLOSED;
        range.start_key_closed = proto_data(bytes_of(start + 1));
    } else if (start != NULL) {
        range.start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_OPEN;
        range.start_key_open = proto_data(bytes_of(start + 1));
    }
    if (end == NULL)
        return range;
    bytes key = bytes_make(end, strlen(end) - 1);
    if (end[key.size] == ']') {
        range.end_key_case = BT__ROW_RANGE__END_KEY_END_KEY_CLOSED;
        range.end_key_closed = proto_data(key);
    } else {
        range.end_key_case = BT__ROW_RANGE__END_KEY_END_KEY_OPEN;
        range.end_key_open = proto_data(key);
    }
    return range;
}

/* A range without ends has a test of its own. */
struct case_ {
    const char *keys[4];
    const char *ranges[4][2];
    /* Each "from|to"; a '+' stands for a NUL, a leading '*' marks a point. */
    const char *expected[4];
};

static const struct case_ cases[] = {
    {.expected = {"|"}},
    {.keys = {"b", "a", "b"}, .expected = {"*a|a+", "*b|b+"}},
    {.ranges = {{"[b", "d]"}}, .expected = {"b|d+"}},
    {.ranges = {{"(b", "d)"}}, .expected = {"b+|d"}},
    {.ranges = {{"[", ")"}}, .expected = {"|"}},
    {.ranges = {{"[d", NULL}}, .expected = {"d|"}},
    {.ranges = {{NULL, "b]"}}, .expected = {"|b+"}},
    {.ranges = {{"[b", "b]"}}, .expected = {"b|b+"}},
    {.ranges = {{"[d", "f)"}, {"[a", "c)"}}, .expected = {"a|c", "d|f"}},
    {.ranges = {{"[a", "c)"}, {"[b", "d)"}}, .expected = {"a|d"}},
    {.ranges = {{"[a", "d)"}, {"[b", "c)"}}, .expected = {"a|d"}},
    {.ranges = {{"[a", NULL}, {"[b", "c)"}}, .expected = {"a|"}},
    {.ranges = {{"[b", NULL}, {"[a", "c)"}}, .expected = {"a|"}},
    {.ranges = {{"[a", "b)"}, {"[b", "c)"}}, .expected = {"a|b", "b|c"}},
    {.keys = {"b", "x"}, .ranges = {{"[a", "c)"}}, .expected = {"a|c", "*x|x+"}},
    {.keys = {"c"}, .ranges = {{"[a", "c)"}}, .expected = {"a|c", "*c|c+"}},
};

static void show(const struct key_range *range, char *text, size_t size)
{
    size_t length = 0;
    if (range->is_point)
        text[length++] = '*';
    const bytes parts[] = {range->from, bytes_of("|"), range->to};
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < parts[i].size && length < size - 1; j++)
            text[length++] = parts[i].data[j] == '\0' ? '+' : (char)parts[i].data[j];
    text[length] = '\0';
}

static void check_case(const struct case_ *c, struct arena *arena)
{
    ProtobufCBinaryData keys[4];
    Bt__RowRange ranges[4];
    Bt__RowRange *range_list[4];
    Bt__RowSet rows = BT__ROW_SET__INIT;
    rows.row_keys = keys;
    rows.row_ranges = range_list;
    for (; rows.n_row_keys < 4 && c->keys[rows.n_row_keys] != NULL; rows.n_row_keys++)
        keys[rows.n_row_keys] = proto_data(bytes_of(c->keys[rows.n_row_keys]));
    for (size_t i = 0; i < 4 && (c->ranges[i][0] != NULL || c->ranges[i][1] != NULL); i++) {
        ranges[i] = make_range(c->ranges[i][0], c->ranges[i][1]);
        range_list[i] = &ranges[i];
        rows.n_row_ranges++;
    }
    struct row_ranges found;
    assert_ok(row_ranges_from_message(&rows, arena, &found));
    size_t i = 0;
    for (; i < 4 && c->expected[i] != NULL; i++) {
        char text[64];
        assert_true(i < found.count);
        show(&found.items[i], text, sizeof text);
        assert_string_equal(text, c->expected[i]);
    }
    assert_int_equal(found.count, i);
}

static void row_sets_become_sorted_disjoint_ranges(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i], *state);
}

static void ranges_are_met_with_prefixes(void **state)
{
    static const struct {
        const char *prefixes[2];
        const char *expected[5];
    } of_prefixes[] = {
        {{"", NULL}, {"*a|a+", "b|d", "*f|f+", "g|"}},
        {{NULL}, {NULL}},
        {{"b", "ca"}, {"b|c", "ca|cb"}},
        {{"f", "e"}, {"*f|f+"}},
        {{"f+", "h"}, {"h|i"}},
        {{"z", "a"}, {"*a|a+", "z|{"}},
    };
    const struct key_range given[] = {
        {.from = bytes_of("a"), .to = bytes_make("a", 2), .is_point = true},
        {.from = bytes_of("b"), .to = bytes_of("d")},
        {.from = bytes_of("f"), .to = bytes_make("f", 2), .is_point = true},
        {.from = bytes_of("g")}};
    for (size_t i = 0; i < sizeof of_prefixes / sizeof *of_prefixes; i++) {
        struct key_range items[4];
        struct row_ranges ranges = {.items = items, .count = 4};
        ProtobufCBinaryData prefixes[2];
        struct string_set rows;
        size_t count = 0;
        memcpy(items, given, sizeof given);
        for (; count < 2 && of_prefixes[i].prefixes[count] != NULL; count++)
            prefixes[count] = proto_data(bytes_of(of_prefixes[i].prefixes[count]));
        assert_ok(string_set_make(NULL, 0, prefixes, count, *state, &rows));
        assert_ok(row_ranges_intersect(&ranges, &rows, *state));
        for (count = 0; of_prefixes[i].expected[count] != NULL; count++) {
            char text[64];
            assert_true(count < ranges.count);
            show(&ranges.items[count], text, sizeof text);
            assert_string_equal(text, of_prefixes[i].expected[count]);
        }
        assert_int_equal(ranges.count, count);
    }
}

static void no_row_set_is_the_whole_table(void **state)
{
    struct row_ranges found;
    assert_ok(row_ranges_from_message(NULL, *state, &found));
    assert_int_equal(found.count, 1);
    assert_int_equal(found.items[0].from.size + found.items[0].to.size, 0);
}

static void a_range_without_ends_is_the_whole_table(void **state)
{
    Bt__RowRange range = BT__ROW_RANGE__INIT;
    Bt__RowRange *ranges[] = {&range};
    Bt__RowSet rows = BT__ROW_SET__INIT;
    rows.n_row_ranges = 1;
    rows.row_ranges = ranges;
    struct row_ranges found;
    assert_ok(row_ranges_from_message(&rows, *state, &found));
    assert_int_equal(found.count, 1);
}

static void inverted_ranges_are_refused_in_words(void **state)
{
    Bt__RowRange fine = make_range("[a", "b)");
    Bt__RowRange inverted = make_range("(b", "a]");
    Bt__RowRange *ranges[] = {&fine, &inverted};
    Bt__RowSet rows = BT__ROW_SET__INIT;
    rows.n_row_ranges = 2;
    rows.row_ranges = ranges;
    struct row_ranges found;
    status s = row_ranges_from_message(&rows, *state, &found);
    assert_string_equal(status_message(s),
                        "Error in element #1: start_key_open must be less than end_key_closed");
    assert_status(s, STATUS_INVALID_ARGUMENT);
}

static void ranges_that_start_at_their_end_are_a_row_or_refused(void **state)
{
    static const char *const refused[][2] = {{"(b", "b]"}, {"[b", "b)"}, {"(b", "b)"}};
    Bt__RowRange range = make_range("[b", "b]"), *ranges[] = {&range};
    Bt__RowSet rows = BT__ROW_SET__INIT;
    rows.n_row_ranges = 1;
    rows.row_ranges = ranges;
    struct row_ranges found;
    assert_ok(row_ranges_from_message(&rows, *state, &found));
    assert_int_equal(found.count, 1);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        range = make_range(refused[i][0], refused[i][1]);
        status s = row_ranges_from_message(&rows, *state, &found);
        assert_string_equal(status_message(s),
                            "Error in element #0: start_key must be less than end_key");
        assert_status(s, STATUS_INVALID_ARGUMENT);
    }
}

static void an_empty_key_is_refused(void **state)
{
    ProtobufCBinaryData keys[] = {proto_data(bytes_of("a")), proto_data(bytes_of(""))};
    Bt__RowSet rows = BT__ROW_SET__INIT;
    rows.n_row_keys = 2;
    rows.row_keys = keys;
    struct row_ranges found;
    status s = row_ranges_from_message(&rows, *state, &found);
    assert_string_equal(status_message(s), "Row keys must be non-empty");
    assert_status(s, STATUS_INVALID_ARGUMENT);
}

/* --- errors about rows --- */

static void errors_show_any_key(void **state)
{
    (void)state;
    status s = row_error(STATUS_NOT_FOUND, "mutating", bytes_make("a'\0\xff", 4), "t", "why");
    assert_string_equal(status_message(s),
                        "Error while mutating the row 'a\\x27\\x00\\xff' (t) : why");
    assert_status(s, STATUS_NOT_FOUND);
}

static void long_keys_are_cut(void **state)
{
    (void)state;
    uint8_t key[4096];
    memset(key, 0xff, sizeof key);
    status s = row_error(STATUS_NOT_FOUND, "mutating", bytes_make(key, sizeof key), "t", "why");
    assert_non_null(strstr(status_message(s), "\\xff...'"));
    assert_true(strlen(status_message(s)) < 600);
    status_free(s);
}

static void keys_of_zero_and_too_many_bytes_are_refused(void **state)
{
    (void)state;
    uint8_t key[4097] = {0};
    assert_status(row_key_check(bytes_make(key, 0)), STATUS_INVALID_ARGUMENT);
    assert_ok(row_key_check(bytes_make(key, 1)));
    assert_ok(row_key_check(bytes_make(key, 4096)));
    assert_status(row_key_check(bytes_make(key, 4097)), STATUS_INVALID_ARGUMENT);
}

/* Clients find the key of a row to skip in the ErrorInfo. */
static void a_row_that_is_too_large_is_named_for_machines(void **state)
{
    (void)state;
    status s = row_too_large(bytes_of("key"), "t");
    bytes details = status_details(s);
    bytes expected = bytes_of("rowKeyBase64Encoded\x12\x04"
                              "a2V5");
    assert_non_null(memmem(details.data, details.size, expected.data, expected.size));
    bytes reason = bytes_of("LargeRowReadError");
    assert_non_null(memmem(details.data, details.size, reason.data, reason.size));
    assert_status(s, STATUS_FAILED_PRECONDITION);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(row_sets_become_sorted_disjoint_ranges),
        TEST(ranges_are_met_with_prefixes),
        TEST(no_row_set_is_the_whole_table),
        TEST(a_range_without_ends_is_the_whole_table),
        TEST(inverted_ranges_are_refused_in_words),
        TEST(ranges_that_start_at_their_end_are_a_row_or_refused),
        TEST(an_empty_key_is_refused),
        TEST(errors_show_any_key),
        TEST(long_keys_are_cut),
        TEST(keys_of_zero_and_too_many_bytes_are_refused),
        TEST(a_row_that_is_too_large_is_named_for_machines),
    };
    return cmocka_run_group_tests_name("row_ranges", tests, NULL, NULL);
}
