/* Tests of what is made of a filter: which columns it asks for, and by what it chooses. */
#include "bigtable/request_usage.h"

#include "base/testing/testing.h"

/* --- filters --- */

static Bt__RowFilter family(const char *pattern)
{
    Bt__RowFilter filter = BT__ROW_FILTER__INIT;
    filter.filter_case = BT__ROW_FILTER__FILTER_FAMILY_NAME_REGEX_FILTER;
    filter.family_name_regex_filter = (char *)(uintptr_t)pattern;
    return filter;
}

static ProtobufCBinaryData data_of(const char *text)
{
    return (ProtobufCBinaryData){.len = strlen(text), .data = (uint8_t *)(uintptr_t)text};
}

static Bt__RowFilter qualifier(const char *pattern)
{
    Bt__RowFilter filter = BT__ROW_FILTER__INIT;
    filter.filter_case = BT__ROW_FILTER__FILTER_COLUMN_QUALIFIER_REGEX_FILTER;
    filter.column_qualifier_regex_filter = data_of(pattern);
    return filter;
}

static Bt__RowFilter value(const char *pattern)
{
    Bt__RowFilter filter = BT__ROW_FILTER__INIT;
    filter.filter_case = BT__ROW_FILTER__FILTER_VALUE_REGEX_FILTER;
    filter.value_regex_filter = data_of(pattern);
    return filter;
}

static Bt__RowFilter row_key(const char *pattern)
{
    Bt__RowFilter filter = BT__ROW_FILTER__INIT;
    filter.filter_case = BT__ROW_FILTER__FILTER_ROW_KEY_REGEX_FILTER;
    filter.row_key_regex_filter = data_of(pattern);
    return filter;
}

static Bt__RowFilter column(Bt__ColumnRange *range, const char *family_name, const char *name)
{
    Bt__RowFilter filter = BT__ROW_FILTER__INIT;
    bt__column_range__init(range);
    range->family_name = (char *)(uintptr_t)family_name;
    range->start_qualifier_case = BT__COLUMN_RANGE__START_QUALIFIER_START_QUALIFIER_CLOSED;
    range->start_qualifier_closed = data_of(name);
    range->end_qualifier_case = BT__COLUMN_RANGE__END_QUALIFIER_END_QUALIFIER_CLOSED;
    range->end_qualifier_closed = data_of(name);
    filter.filter_case = BT__ROW_FILTER__FILTER_COLUMN_RANGE_FILTER;
    filter.column_range_filter = range;
    return filter;
}

enum { PARTS_MOST = 40 };

struct pair {
    Bt__RowFilter__Chain chain;
    Bt__RowFilter__Interleave interleave;
    Bt__RowFilter *parts[PARTS_MOST];
};

static Bt__RowFilter chain(struct pair *pair, Bt__RowFilter *one, Bt__RowFilter *other)
{
    Bt__RowFilter filter = BT__ROW_FILTER__INIT;
    bt__row_filter__chain__init(&pair->chain);
    pair->parts[0] = one;
    pair->parts[1] = other;
    pair->chain.n_filters = 2;
    pair->chain.filters = pair->parts;
    filter.filter_case = BT__ROW_FILTER__FILTER_CHAIN;
    filter.chain = &pair->chain;
    return filter;
}

static Bt__RowFilter interleave(struct pair *pair, Bt__RowFilter *one, Bt__RowFilter *other)
{
    Bt__RowFilter filter = BT__ROW_FILTER__INIT;
    bt__row_filter__interleave__init(&pair->interleave);
    pair->parts[0] = one;
    pair->parts[1] = other;
    pair->interleave.n_filters = 2;
    pair->interleave.filters = pair->parts;
    filter.filter_case = BT__ROW_FILTER__FILTER_INTERLEAVE;
    filter.interleave = &pair->interleave;
    return filter;
}

/* --- what is made of them: f:q of columns, f: of families --- */

static void assert_look(const Bt__RowFilter *filter, enum usage_scan_kind kind,
                        const char *expected)
{
    struct filter_look look;
    struct buffer text = {0};
    bytes name, column_name;
    bool has_qualifier;
    request_usage_look(filter, &look);
    assert_int_equal(look.kind, kind);
    assert_int_equal(look.is_plain, expected != NULL);
    bytes columns = buffer_bytes(&look.columns);
    while (usage_columns_next(&columns, &name, &has_qualifier, &column_name))
        buffer_append_format(&text, "%.*s:%.*s ", (int)name.size, (const char *)name.data,
                             (int)column_name.size,
                             has_qualifier ? (const char *)column_name.data : "");
    buffer_append_byte(&text, 0);
    if (expected != NULL)
        assert_string_equal((const char *)text.data, expected);
    buffer_free(&text);
    buffer_free(&look.columns);
}

static void names_are_columns(void **state)
{
    (void)state;
    Bt__RowFilter two = family("a|b"), one = qualifier("c"), pattern = family("a.*");
    assert_look(NULL, USAGE_ALL_ROWS, "");
    assert_look(&two, USAGE_ALL_ROWS, "a: b: ");
    assert_look(&one, USAGE_ALL_ROWS, ":c ");
    assert_look(&pattern, USAGE_ALL_ROWS, NULL);
}

static void a_family_goes_for_the_columns_behind_it(void **state)
{
    (void)state;
    struct pair one, other, both;
    Bt__ColumnRange range;
    Bt__RowFilter f = family("f"), names = qualifier("c|d"), g = family("g"), e = qualifier("e");
    Bt__RowFilter of_f = chain(&one, &f, &names), of_g = chain(&other, &g, &e);
    Bt__RowFilter all = interleave(&both, &of_f, &of_g);
    assert_look(&all, USAGE_ALL_ROWS, "f:c f:d g:e ");
    Bt__RowFilter ranged = column(&range, "z", "c3");
    all = interleave(&both, &of_f, &ranged);
    assert_look(&all, USAGE_ALL_ROWS, "f:c f:d z:c3 ");
}

static void what_rows_are_chosen_by_is_told(void **state)
{
    (void)state;
    struct pair pair;
    Bt__RowFilter f = family("f"), v = value("x"), key = row_key("\\C*x");
    Bt__RowFilter both = chain(&pair, &f, &v);
    assert_look(&both, USAGE_BY_VALUE, "f: ");
    assert_look(&key, USAGE_BY_KEY, "");
    both = chain(&pair, &key, &v);
    assert_look(&both, USAGE_BY_VALUE, "");
}

/* However deep, or large. */
static void an_unclear_filter_gives_no_set(void **state)
{
    (void)state;
    struct pair pairs[PARTS_MOST];
    Bt__RowFilter filters[PARTS_MOST + 1], limit = BT__ROW_FILTER__INIT;
    limit.filter_case = BT__ROW_FILTER__FILTER_CELLS_PER_ROW_LIMIT_FILTER;
    limit.cells_per_row_limit_filter = 1;
    assert_look(&limit, USAGE_ALL_ROWS, NULL);
    filters[0] = family("f");
    for (size_t i = 0; i < PARTS_MOST; i++)
        filters[i + 1] = chain(&pairs[i], &filters[i], &filters[i]);
    assert_look(&filters[PARTS_MOST], USAGE_ALL_ROWS, NULL);
    char *large = calloc(1, USAGE_COLUMNS_BYTES + 2);
    assert_non_null(large);
    memset(large, 'q', USAGE_COLUMNS_BYTES + 1);
    Bt__RowFilter name = qualifier(large);
    assert_look(&name, USAGE_ALL_ROWS, NULL);
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_columns),
        cmocka_unit_test(a_family_goes_for_the_columns_behind_it),
        cmocka_unit_test(what_rows_are_chosen_by_is_told),
        cmocka_unit_test(an_unclear_filter_gives_no_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
