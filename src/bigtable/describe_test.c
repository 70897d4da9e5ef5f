/* Tests of requests in words. tests/e2e/test_slow_requests.py has what is said of whole calls. */
#include "bigtable/describe.h"

#include "base/testing/testing.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "wire/proto.h"

static struct arena *arena;
static struct buffer words;

static int set_up(void **state)
{
    (void)state;
    arena = arena_create(1 << 20);
    assert_non_null(arena);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    buffer_free(&words);
    words = (struct buffer){0};
    arena_destroy(arena);
    return 0;
}

static void assert_words(const char *expected)
{
    assert_false(words.failed);
    buffer_append_byte(&words, 0);
    assert_string_equal((const char *)words.data, expected);
    buffer_clear(&words);
}

static const char *describe(const char *method, const ProtobufCMessage *request)
{
    const char *profile;
    struct buffer wire = {0};
    proto_encode(request, &wire);
    bytes copy = arena_copy(arena, buffer_bytes(&wire));
    buffer_free(&wire);
    bigtable_describe(method, copy, arena, &words, &profile);
    return profile;
}

static void test_rows(void **state)
{
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    Bt__RowSet rows = BT__ROW_SET__INIT;
    ProtobufCBinaryData keys[5];
    Bt__RowRange open = BT__ROW_RANGE__INIT, closed = BT__ROW_RANGE__INIT,
                 all = BT__ROW_RANGE__INIT;
    Bt__RowRange *ranges[] = {&open, &closed, &all};
    (void)state;
    request.app_profile_id = "profile";
    assert_string_equal(describe("ReadRows", &request.base), "profile");
    assert_words("the whole table\n");
    request.rows = &rows;
    for (size_t i = 0; i < 5; i++)
        keys[i] = proto_data(bytes_of("k"));
    rows.row_keys = keys;
    rows.n_row_keys = 5;
    describe("ReadRows", &request.base);
    assert_words("5 keys: \"k\", \"k\", \"k\" and 2 more\n");
    rows.n_row_keys = 0;
    open.start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_OPEN;
    open.start_key_open = proto_data(bytes_make("\0a", 2));
    open.end_key_case = BT__ROW_RANGE__END_KEY_END_KEY_CLOSED;
    open.end_key_closed = proto_data(bytes_of("z"));
    closed.start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_CLOSED;
    closed.start_key_closed = proto_data(bytes_of("b"));
    rows.row_ranges = ranges;
    rows.n_row_ranges = 3;
    request.reversed = true;
    describe("ReadRows", &request.base);
    assert_words(
        "3 ranges: behind \"\\x00a\" up to \"z\", from \"b\" to the end, from the start to "
        "the end\nreversed\n");
}

static void test_long_keys(void **state)
{
    char key[1000];
    Bt__MutateRowRequest request = BT__MUTATE_ROW_REQUEST__INIT;
    (void)state;
    memset(key, 'k', sizeof key);
    request.row_key = proto_data(bytes_make(key, sizeof key));
    describe("MutateRow", &request.base);
    assert_words("1 key: \"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk...\"\n"
                 "0 mutations\n");
}

static void test_what_cannot_be_described(void **state)
{
    const char *profile;
    (void)state;
    bigtable_describe("ReadRows", bytes_of("\xff\xff"), arena, &words, &profile);
    assert_string_equal(profile, "");
    bigtable_describe("PingAndWarm", bytes_of(""), arena, &words, &profile);
    bigtable_describe("ReadRows", bytes_make(NULL, 0), arena, &words, &profile);
    assert_words("the whole table\n");
}

/* --- filters --- */

static Bt__RowFilter simple(int filter_case)
{
    Bt__RowFilter filter = BT__ROW_FILTER__INIT;
    filter.filter_case = filter_case;
    return filter;
}

static void test_filters(void **state)
{
    Bt__RowFilter column = simple(BT__ROW_FILTER__FILTER_COLUMN_QUALIFIER_REGEX_FILTER);
    Bt__RowFilter latest = simple(BT__ROW_FILTER__FILTER_CELLS_PER_COLUMN_LIMIT_FILTER);
    Bt__RowFilter strip = simple(BT__ROW_FILTER__FILTER_STRIP_VALUE_TRANSFORMER);
    Bt__RowFilter chain = simple(BT__ROW_FILTER__FILTER_CHAIN);
    Bt__RowFilter condition = simple(BT__ROW_FILTER__FILTER_CONDITION);
    Bt__RowFilter__Chain list = BT__ROW_FILTER__CHAIN__INIT;
    Bt__RowFilter__Condition parts = BT__ROW_FILTER__CONDITION__INIT;
    Bt__RowFilter *filters[] = {&column, &latest};
    (void)state;
    describe_filter(NULL, &words);
    assert_words("");
    column.column_qualifier_regex_filter = proto_data(bytes_of("q.*"));
    latest.cells_per_column_limit_filter = 3;
    chain.chain = &list;
    list.filters = filters;
    list.n_filters = 2;
    condition.condition = &parts;
    parts.predicate_filter = &chain;
    parts.true_filter = &strip;
    describe_filter(&condition, &words);
    assert_words("filter: (if (column matches \"q.*\", then 3 cells a column) then values stripped "
                 "else nothing)\n");
}

static void test_ranges_in_filters(void **state)
{
    Bt__RowFilter columns = simple(BT__ROW_FILTER__FILTER_COLUMN_RANGE_FILTER);
    Bt__RowFilter times = simple(BT__ROW_FILTER__FILTER_TIMESTAMP_RANGE_FILTER);
    Bt__ColumnRange range = BT__COLUMN_RANGE__INIT;
    Bt__TimestampRange time = BT__TIMESTAMP_RANGE__INIT;
    (void)state;
    columns.column_range_filter = &range;
    range.family_name = "f";
    range.start_qualifier_case = BT__COLUMN_RANGE__START_QUALIFIER_START_QUALIFIER_CLOSED;
    range.start_qualifier_closed = proto_data(bytes_of("a"));
    range.end_qualifier_case = BT__COLUMN_RANGE__END_QUALIFIER_END_QUALIFIER_OPEN;
    range.end_qualifier_open = proto_data(bytes_of("b"));
    describe_filter(&columns, &words);
    assert_words("filter: columns of \"f\" from \"a\" before \"b\"\n");
    times.timestamp_range_filter = &time;
    time.start_timestamp_micros = 1000;
    describe_filter(&times, &words);
    assert_words("filter: timestamps from 1000\n");
}

static void test_a_filter_of_many(void **state)
{
    enum { COUNT = 400, MOST = 2000 };
    Bt__RowFilter key = simple(BT__ROW_FILTER__FILTER_ROW_KEY_REGEX_FILTER);
    Bt__RowFilter all = simple(BT__ROW_FILTER__FILTER_INTERLEAVE);
    Bt__RowFilter__Interleave list = BT__ROW_FILTER__INTERLEAVE__INIT;
    Bt__RowFilter *filters[COUNT];
    (void)state;
    key.row_key_regex_filter = proto_data(bytes_of("a pattern"));
    for (size_t i = 0; i < COUNT; i++)
        filters[i] = &key;
    all.interleave = &list;
    list.filters = filters;
    list.n_filters = COUNT;
    describe_filter(&all, &words);
    assert_true(words.size < MOST);
    buffer_append_byte(&words, 0);
    assert_non_null(strstr((const char *)words.data, " more)"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_rows),    TEST(test_long_keys),         TEST(test_what_cannot_be_described),
        TEST(test_filters), TEST(test_ranges_in_filters), TEST(test_a_filter_of_many),
    };
    return cmocka_run_group_tests_name("bigtable_describe", tests, NULL, NULL);
}
