/* Tests of filters: what they refuse, what they let through, what they ask to be read.
 *
 * Each builds its message with the few helpers below; cells are written
 * "family:qualifier@time=value" and lists of them separated by spaces, so that a test reads like an
 * example. */
#include "bigtable/filter_message.h"

#include "base/testing/testing.h"
#include "google/bigtable/v2/data.pb-c.h"

#include <stdio.h>
#include <string.h>

enum { ARENA_LIMIT = 64 << 20, TEXT_SIZE = 2048 };

struct fixture {
    struct arena *arena;
    struct schema *schema; /* families a, b, c */
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    const struct family families[] = {{.id = 1, .name = bytes_of("a")},
                                      {.id = 2, .name = bytes_of("b")},
                                      {.id = 3, .name = bytes_of("c")}};
    fixture->arena = arena_create(ARENA_LIMIT);
    assert_ok(schema_create(GRANULARITY_MILLIS, families, 3, 4, &fixture->schema));
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    schema_destroy(fixture->schema);
    arena_destroy(fixture->arena);
    free(fixture);
    return 0;
}

/* --- messages --- */

static Bt__RowFilter *new_filter(struct fixture *fixture, Bt__RowFilter__FilterCase kind)
{
    Bt__RowFilter *filter = arena_alloc(fixture->arena, sizeof *filter);
    *filter = (Bt__RowFilter)BT__ROW_FILTER__INIT;
    filter->filter_case = kind;
    return filter;
}

static ProtobufCBinaryData data_of(const char *string)
{
    union {
        const char *given;
        uint8_t *wanted;
    } pointer = {.given = string};
    return (ProtobufCBinaryData){.len = strlen(string), .data = pointer.wanted};
}

static Bt__RowFilter *pass(struct fixture *fixture)
{
    Bt__RowFilter *filter = new_filter(fixture, BT__ROW_FILTER__FILTER_PASS_ALL_FILTER);
    filter->pass_all_filter = true;
    return filter;
}

static Bt__RowFilter *block(struct fixture *fixture)
{
    Bt__RowFilter *filter = new_filter(fixture, BT__ROW_FILTER__FILTER_BLOCK_ALL_FILTER);
    filter->block_all_filter = true;
    return filter;
}

static Bt__RowFilter *sink(struct fixture *fixture)
{
    Bt__RowFilter *filter = new_filter(fixture, BT__ROW_FILTER__FILTER_SINK);
    filter->sink = true;
    return filter;
}

static Bt__RowFilter *strip(struct fixture *fixture)
{
    Bt__RowFilter *filter = new_filter(fixture, BT__ROW_FILTER__FILTER_STRIP_VALUE_TRANSFORMER);
    filter->strip_value_transformer = true;
    return filter;
}

static Bt__RowFilter *family(struct fixture *fixture, const char *regex)
{
    Bt__RowFilter *filter = new_filter(fixture, BT__ROW_FILTER__FILTER_FAMILY_NAME_REGEX_FILTER);
    filter->family_name_regex_filter = regex;
    return filter;
}

static Bt__RowFilter *qualifier(struct fixture *fixture, const char *regex)
{
    Bt__RowFilter *filter =
        new_filter(fixture, BT__ROW_FILTER__FILTER_COLUMN_QUALIFIER_REGEX_FILTER);
    filter->column_qualifier_regex_filter = data_of(regex);
    return filter;
}

static Bt__RowFilter *row_key(struct fixture *fixture, const char *regex)
{
    Bt__RowFilter *filter = new_filter(fixture, BT__ROW_FILTER__FILTER_ROW_KEY_REGEX_FILTER);
    filter->row_key_regex_filter = data_of(regex);
    return filter;
}

static Bt__RowFilter *value(struct fixture *fixture, const char *regex)
{
    Bt__RowFilter *filter = new_filter(fixture, BT__ROW_FILTER__FILTER_VALUE_REGEX_FILTER);
    filter->value_regex_filter = data_of(regex);
    return filter;
}

static Bt__RowFilter *label(struct fixture *fixture, const char *text)
{
    Bt__RowFilter *filter = new_filter(fixture, BT__ROW_FILTER__FILTER_APPLY_LABEL_TRANSFORMER);
    filter->apply_label_transformer = text;
    return filter;
}

static Bt__RowFilter *column_limit(struct fixture *fixture, int32_t count)
{
    Bt__RowFilter *filter =
        new_filter(fixture, BT__ROW_FILTER__FILTER_CELLS_PER_COLUMN_LIMIT_FILTER);
    filter->cells_per_column_limit_filter = count;
    return filter;
}

static Bt__RowFilter *row_limit(struct fixture *fixture, int32_t count)
{
    Bt__RowFilter *filter = new_filter(fixture, BT__ROW_FILTER__FILTER_CELLS_PER_ROW_LIMIT_FILTER);
    filter->cells_per_row_limit_filter = count;
    return filter;
}

static Bt__RowFilter *row_offset(struct fixture *fixture, int32_t count)
{
    Bt__RowFilter *filter = new_filter(fixture, BT__ROW_FILTER__FILTER_CELLS_PER_ROW_OFFSET_FILTER);
    filter->cells_per_row_offset_filter = count;
    return filter;
}

static Bt__RowFilter *sample(struct fixture *fixture, double probability)
{
    Bt__RowFilter *filter = new_filter(fixture, BT__ROW_FILTER__FILTER_ROW_SAMPLE_FILTER);
    filter->row_sample_filter = probability;
    return filter;
}

static Bt__RowFilter *mask(struct fixture *fixture, const char *bits)
{
    Bt__RowFilter *filter = new_filter(fixture, BT__ROW_FILTER__FILTER_VALUE_BITMASK_FILTER);
    filter->value_bitmask_filter = arena_alloc(fixture->arena, sizeof(Bt__ValueBitmask));
    *filter->value_bitmask_filter = (Bt__ValueBitmask)BT__VALUE_BITMASK__INIT;
    filter->value_bitmask_filter->mask = data_of(bits);
    return filter;
}

static Bt__RowFilter *times(struct fixture *fixture, int64_t start, int64_t end)
{
    Bt__RowFilter *filter = new_filter(fixture, BT__ROW_FILTER__FILTER_TIMESTAMP_RANGE_FILTER);
    filter->timestamp_range_filter = arena_alloc(fixture->arena, sizeof(Bt__TimestampRange));
    *filter->timestamp_range_filter = (Bt__TimestampRange)BT__TIMESTAMP_RANGE__INIT;
    filter->timestamp_range_filter->start_timestamp_micros = start;
    filter->timestamp_range_filter->end_timestamp_micros = end;
    return filter;
}

/* Qualifiers from `start` (closed) to `end` (open); NULL: no bound. */
static Bt__RowFilter *columns(struct fixture *fixture, const char *name, const char *start,
                              const char *end)
{
    Bt__RowFilter *filter = new_filter(fixture, BT__ROW_FILTER__FILTER_COLUMN_RANGE_FILTER);
    Bt__ColumnRange *range = arena_alloc(fixture->arena, sizeof *range);
    *range = (Bt__ColumnRange)BT__COLUMN_RANGE__INIT;
    range->family_name = name;
    if (start != NULL) {
        range->start_qualifier_case = BT__COLUMN_RANGE__START_QUALIFIER_START_QUALIFIER_CLOSED;
        range->start_qualifier_closed = data_of(start);
    }
    if (end != NULL) {
        range->end_qualifier_case = BT__COLUMN_RANGE__END_QUALIFIER_END_QUALIFIER_OPEN;
        range->end_qualifier_open = data_of(end);
    }
    filter->column_range_filter = range;
    return filter;
}

static Bt__RowFilter **array_of(struct fixture *fixture, Bt__RowFilter *const *filters,
                                size_t count)
{
    Bt__RowFilter **copy = arena_alloc(fixture->arena, count * sizeof(*copy));
    memcpy(copy, filters, count * sizeof(*copy));
    return copy;
}

static Bt__RowFilter *chain_of(struct fixture *fixture, Bt__RowFilter *const *filters, size_t count)
{
    Bt__RowFilter *filter = new_filter(fixture, BT__ROW_FILTER__FILTER_CHAIN);
    filter->chain = arena_alloc(fixture->arena, sizeof *filter->chain);
    *filter->chain = (Bt__RowFilter__Chain)BT__ROW_FILTER__CHAIN__INIT;
    filter->chain->n_filters = count;
    filter->chain->filters = array_of(fixture, filters, count);
    return filter;
}

static Bt__RowFilter *interleave_of(struct fixture *fixture, Bt__RowFilter *const *filters,
                                    size_t count)
{
    Bt__RowFilter *filter = new_filter(fixture, BT__ROW_FILTER__FILTER_INTERLEAVE);
    filter->interleave = arena_alloc(fixture->arena, sizeof *filter->interleave);
    *filter->interleave = (Bt__RowFilter__Interleave)BT__ROW_FILTER__INTERLEAVE__INIT;
    filter->interleave->n_filters = count;
    filter->interleave->filters = array_of(fixture, filters, count);
    return filter;
}

#define FILTERS(...)                                                                               \
    ((Bt__RowFilter *const[]){__VA_ARGS__}),                                                       \
        sizeof((Bt__RowFilter *const[]){__VA_ARGS__}) / sizeof(Bt__RowFilter *)
#define CHAIN(fixture, ...)      chain_of(fixture, FILTERS(__VA_ARGS__))
#define INTERLEAVE(fixture, ...) interleave_of(fixture, FILTERS(__VA_ARGS__))

static Bt__RowFilter *condition(struct fixture *fixture, Bt__RowFilter *predicate,
                                Bt__RowFilter *then, Bt__RowFilter *otherwise)
{
    Bt__RowFilter *filter = new_filter(fixture, BT__ROW_FILTER__FILTER_CONDITION);
    filter->condition = arena_alloc(fixture->arena, sizeof *filter->condition);
    *filter->condition = (Bt__RowFilter__Condition)BT__ROW_FILTER__CONDITION__INIT;
    filter->condition->predicate_filter = predicate;
    filter->condition->true_filter = then;
    filter->condition->false_filter = otherwise;
    return filter;
}

/* --- cells --- */

static void add_cell(struct fixture *fixture, const char *text, size_t length,
                     struct cell_list *list)
{
    char name[16], column[32], content[32] = "";
    char copy[128];
    long long time;
    assert_true(length < sizeof copy);
    memcpy(copy, text, length);
    copy[length] = '\0';
    assert_true(sscanf(copy, "%15[^:]:%31[^@]@%lld=%31s", name, column, &time, content) >= 3);
    struct cell cell = {.family = schema_family_named(fixture->schema, bytes_of(name)),
                        .qualifier = arena_copy(fixture->arena, bytes_of(column)),
                        .timestamp_us = time,
                        .value = arena_copy(fixture->arena, bytes_of(content))};
    assert_non_null(cell.family);
    assert_true(cell_list_add(list, &cell));
}

static struct cell_list cells_of(struct fixture *fixture, const char *text)
{
    struct cell_list list = {.arena = fixture->arena};
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        add_cell(fixture, text, length, &list);
        text += length + (text[length] == ' ');
    }
    return list;
}

static void write_cells(const struct cell_list *list, char text[TEXT_SIZE])
{
    size_t at = 0;
    text[0] = '\0';
    for (size_t i = 0; i < list->count; i++) {
        const struct cell *cell = &list->items[i];
        at += (size_t)snprintf(text + at, TEXT_SIZE - at, "%s%.*s:%.*s@%lld=%.*s", i > 0 ? " " : "",
                               (int)cell->family->name.size, (const char *)cell->family->name.data,
                               (int)cell->qualifier.size, (const char *)cell->qualifier.data,
                               (long long)cell->timestamp_us, (int)cell->value.size,
                               (const char *)cell->value.data);
        for (const struct label *l = cell->labels; l != NULL; l = l->next)
            at += (size_t)snprintf(text + at, TEXT_SIZE - at, "#%.*s", (int)l->text.size,
                                   (const char *)l->text.data);
    }
}

/* Values as a store gives them: each is gone when the next is asked for. */
struct test_source {
    struct value_source source;
    const struct cell_list *whole;
    uint8_t *value;
    size_t gets;
    size_t fails_at; /* the get that does; 0: none */
};

static status get_value(struct value_source *source, const struct cell *cell, bytes *value)
{
    struct test_source *left = (struct test_source *)source;
    assert_true(cell_is_deferred(cell));
    free(left->value);
    left->value = NULL;
    if (++left->gets == left->fails_at)
        return status_make(STATUS_ABORTED, "gone");
    for (size_t i = 0; i < left->whole->count && left->value == NULL; i++) {
        const struct cell *at = &left->whole->items[i];
        if (at->family != cell->family || at->timestamp_us != cell->timestamp_us ||
            !bytes_equal(at->qualifier, cell->qualifier))
            continue;
        left->value = malloc(at->value.size);
        assert_non_null(left->value);
        memcpy(left->value, at->value.data, at->value.size);
        *value = bytes_make(left->value, at->value.size);
    }
    assert_non_null(left->value);
    return status_ok();
}

static struct cell_list without_values(struct fixture *fixture, const struct cell_list *whole)
{
    struct cell_list list = {.arena = fixture->arena};
    for (size_t i = 0; i < whole->count; i++) {
        struct cell cell = whole->items[i];
        cell.value.data = NULL;
        assert_true(cell_list_add(&list, &cell));
    }
    return list;
}

static void fill_in(struct test_source *left, struct cell_list *cells)
{
    for (size_t i = 0; i < cells->count; i++) {
        struct cell *cell = &cells->items[i];
        bytes value;
        if (!cell_is_deferred(cell))
            continue;
        assert_ok(left->source.get(&left->source, cell, &value));
        cell->value = arena_copy(cells->arena, value);
    }
}

/* The same comes of a row whose values were left in the store. */
static void check_left(struct fixture *fixture, const struct filter *filter, const char *key,
                       const struct cell_list *in, uint64_t random, const char *expected)
{
    struct test_source left = {.source.get = get_value, .whole = in};
    struct cell_list list = without_values(fixture, in);
    struct cell_list out = {.arena = fixture->arena};
    char text[TEXT_SIZE];
    assert_ok(filter_apply(filter, bytes_of(key), &list, random, &left.source, &out));
    fill_in(&left, &out);
    write_cells(&out, text);
    assert_string_equal(text, expected);
    free(left.value);
}

static const char standard_row[] = "a:x@3=one a:x@2=two a:y@5=one b:x@9=six c:z@1=end";

static void check_row(struct fixture *fixture, const Bt__RowFilter *message, const char *key,
                      uint64_t random, const char *expected)
{
    struct filter *filter;
    struct cell_list in = cells_of(fixture, standard_row);
    struct cell_list out = {.arena = fixture->arena};
    char text[TEXT_SIZE];
    assert_ok(filter_message_compile(message, fixture->arena, &filter));
    assert_ok(filter_apply(filter, bytes_of(key), &in, random, NULL, &out));
    write_cells(&out, text);
    assert_string_equal(text, expected);
    check_left(fixture, filter, key, &in, random, expected);
    if (filter_rejects_key(filter, bytes_of(key)))
        assert_int_equal(out.count, 0);
    filter_destroy(filter);
}

static void check(struct fixture *fixture, const Bt__RowFilter *message, const char *expected)
{
    check_row(fixture, message, "key", 0, expected);
}

static void check_refused(struct fixture *fixture, const Bt__RowFilter *message, const char *words)
{
    struct filter *filter;
    status s = filter_message_compile(message, fixture->arena, &filter);
    assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
    if (strstr(status_message(s), words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, status_message(s));
    assert_null(filter);
    status_free(s);
}

/* --- what passes --- */

static void test_no_filter_passes_all(void **state)
{
    check(*state, NULL, standard_row);
    check(*state, new_filter(*state, BT__ROW_FILTER__FILTER__NOT_SET), standard_row);
    check(*state, pass(*state), standard_row);
    check(*state, block(*state), "");
}

static void test_regexes_match_as_a_whole(void **state)
{
    check(*state, family(*state, "a|c"), "a:x@3=one a:x@2=two a:y@5=one c:z@1=end");
    check(*state, qualifier(*state, "x"), "a:x@3=one a:x@2=two b:x@9=six");
    check(*state, qualifier(*state, "xx?"), "a:x@3=one a:x@2=two b:x@9=six");
    check(*state, value(*state, "on"), "");
    check(*state, value(*state, "on\\C"), "a:x@3=one a:y@5=one");
    check(*state, value(*state, "s.x|end"), "b:x@9=six c:z@1=end");
}

static void test_regexes_are_bytes(void **state)
{
    struct fixture *fixture = *state;
    struct filter *filter;
    const struct family *a = schema_family_named(fixture->schema, bytes_of("a"));
    const struct cell cells[] = {{.family = a, .value = bytes_make("\xe2\x98\x83", 3)},
                                 {.family = a, .timestamp_us = -1, .value = bytes_make("\n\0", 2)}};
    struct cell_list in = {.arena = fixture->arena};
    struct cell_list out = {.arena = fixture->arena};
    assert_true(cell_list_add(&in, &cells[0]) && cell_list_add(&in, &cells[1]));
    const struct {
        const char *regex;
        size_t passing;
    } cases[] = {{"...", 1},          {"\\C\\C", 1},  {"..", 0},
                 {"\xe2\x98\x83", 1}, {"\\xe2.*", 1}, {"\\n\\x00", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(filter_message_compile(value(fixture, cases[i].regex), fixture->arena, &filter));
        assert_ok(filter_apply(filter, bytes_of("k"), &in, 0, NULL, &out));
        assert_int_equal(out.count, cases[i].passing);
        filter_destroy(filter);
    }
}

/* Where RE2 differs from its relatives, or from the short way that literals take. */
static void test_regexes_as_RE2_has_them(void **state)
{
    const char *const good[] = {"\\_", "{",  "a{,2}", "(?i)\\xe9", "\\Q(\\E",
                                "^*",  "()", "\\pN",  "[]a]"};
    const char *const bad[] = {"\\1",   "\\8",   "\\e",      "\\",      "a**",    "*",    "a{1001}",
                               "[b-a]", "(?=a)", "\\x{100}", "[[:word", "\\\xe9", "[\\b]"};
    struct fixture *fixture = *state;
    struct filter *filter;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_ok(filter_message_compile(value(fixture, good[i]), fixture->arena, &filter));
        filter_destroy(filter);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_refused(fixture, value(fixture, bad[i]), "Error in field 'value_regex_filter' : ");
}

static void test_key_regex(void **state)
{
    check_row(*state, row_key(*state, "k.y"), "key", 0, standard_row);
    check_row(*state, row_key(*state, "k.y"), "keys", 0, "");
    check_row(*state, row_key(*state, "user\\#1"), "user#1", 0, standard_row);
}

static void test_column_ranges(void **state)
{
    check(*state, columns(*state, "a", "x", "y"), "a:x@3=one a:x@2=two");
    check(*state, columns(*state, "a", "y", NULL), "a:y@5=one");
    check(*state, columns(*state, "a", NULL, NULL), "a:x@3=one a:x@2=two a:y@5=one");
    check(*state, columns(*state, "a", "x", "x"), "");
    check(*state, columns(*state, "unknown", NULL, NULL), "");
}

static void test_timestamp_ranges(void **state)
{
    check(*state, times(*state, 2, 5), "a:x@3=one a:x@2=two");
    check(*state, times(*state, 5, 0), "a:y@5=one b:x@9=six");
    check(*state, times(*state, 5, 5), "");
}

static void test_value_bitmask(void **state)
{
    check(*state, mask(*state, "one"), "a:x@3=one a:y@5=one");
    check(*state, mask(*state, "@@@"), "a:x@3=one a:x@2=two a:y@5=one b:x@9=six c:z@1=end");
    check(*state, mask(*state, "@@"), "");
}

static void test_limits_and_offset(void **state)
{
    check(*state, column_limit(*state, 1), "a:x@3=one a:y@5=one b:x@9=six c:z@1=end");
    check(*state, row_limit(*state, 2), "a:x@3=one a:x@2=two");
    check(*state, row_offset(*state, 3), "b:x@9=six c:z@1=end");
    check(*state, row_offset(*state, 9), "");
    check(*state, row_offset(*state, 0), standard_row);
}

static void test_chains_apply_in_order(void **state)
{
    check(*state, CHAIN(*state, row_limit(*state, 1), family(*state, "b")), "");
    check(*state, CHAIN(*state, family(*state, "b"), row_limit(*state, 1)), "b:x@9=six");
    check(*state, CHAIN(*state, value(*state, "one"), strip(*state)), "a:x@3= a:y@5=");
    check(*state, CHAIN(*state, strip(*state), value(*state, "one")), "");
}

static void test_interleaves_keep_duplicates(void **state)
{
    check(*state, INTERLEAVE(*state, qualifier(*state, "z"), family(*state, "c")),
          "c:z@1=end c:z@1=end");
    check(*state,
          CHAIN(*state, INTERLEAVE(*state, pass(*state), pass(*state)), column_limit(*state, 1),
                family(*state, "a")),
          "a:x@3=one a:y@5=one");
    check(*state,
          CHAIN(*state, INTERLEAVE(*state, pass(*state), pass(*state)), row_limit(*state, 3)),
          "a:x@3=one a:x@3=one a:x@2=two");
}

static void test_interleaves_sort(void **state)
{
    check(*state, INTERLEAVE(*state, family(*state, "c"), family(*state, "b"), family(*state, "a")),
          standard_row);
}

static void test_conditions(void **state)
{
    Bt__RowFilter *some = value(*state, "six");
    Bt__RowFilter *none = value(*state, "seven");
    check(*state, condition(*state, some, family(*state, "a"), family(*state, "b")),
          "a:x@3=one a:x@2=two a:y@5=one");
    check(*state, condition(*state, none, family(*state, "a"), family(*state, "b")), "b:x@9=six");
    check(*state, condition(*state, none, family(*state, "a"), NULL), "");
    check(*state, condition(*state, some, NULL, family(*state, "a")), "");
}

/* The example of RowFilter.sink in the API's description: what the sink takes keeps its label and
 * passes by the qualifier's filter. */
static void test_sink_bypasses_what_follows(void **state)
{
    check(*state,
          CHAIN(*state, family(*state, "a"),
                INTERLEAVE(*state, pass(*state), CHAIN(*state, label(*state, "foo"), sink(*state))),
                qualifier(*state, "y")),
          "a:x@3=one#foo a:x@2=two#foo a:y@5=one#foo a:y@5=one");
}

static void test_labels_in_order(void **state)
{
    check(*state, CHAIN(*state, family(*state, "c"), label(*state, "l-1")), "c:z@1=end#l-1");
    check(*state,
          CHAIN(*state, CHAIN(*state, family(*state, "c"), label(*state, "one")),
                label(*state, "two")),
          "c:z@1=end#one#two");
}

static void test_sample_goes_by_row(void **state)
{
    check_row(*state, sample(*state, 0.5), "key", UINT64_C(1) << 62, standard_row);
    check_row(*state, sample(*state, 0.5), "key", UINT64_C(3) << 62, "");
}

/* Interleaves in a chain double what they get; 40 of them would make 2^40 cells. */
static void test_exploding_interleaves_are_refused(void **state)
{
    struct fixture *fixture = *state;
    Bt__RowFilter *doubling[40];
    for (size_t i = 0; i < 40; i++)
        doubling[i] = INTERLEAVE(fixture, pass(fixture), pass(fixture));
    struct filter *filter;
    struct cell_list in = cells_of(fixture, standard_row);
    struct cell_list out = {.arena = fixture->arena};
    assert_ok(filter_message_compile(chain_of(fixture, doubling, 40), fixture->arena, &filter));
    assert_status(filter_apply(filter, bytes_of("k"), &in, 0, NULL, &out),
                  STATUS_RESOURCE_EXHAUSTED);
    filter_destroy(filter);
}

/* --- what is refused --- */

static void test_refusals(void **state)
{
    Bt__RowFilter *unset = pass(*state);
    unset->pass_all_filter = false;
    check_refused(*state, unset, "pass_all_filter must be true if set");
    unset = block(*state);
    unset->block_all_filter = false;
    check_refused(*state, unset, "block_all_filter must be true if set");
    unset = sink(*state);
    unset->sink = false;
    check_refused(*state, unset, "sink must be true if set");
    unset = strip(*state);
    unset->strip_value_transformer = false;
    check_refused(*state, unset, "strip_value_transformer must be true if set");
    check_refused(*state, CHAIN(*state, pass(*state)),
                  "Chain must contain at least two RowFilters");
    check_refused(*state, INTERLEAVE(*state, pass(*state)),
                  "Interleave must contain at least two RowFilters");
    check_refused(*state, row_limit(*state, 0),
                  "Error in field 'cells_per_row_limit_filter' : argument must be > 0");
    check_refused(*state, column_limit(*state, -1), "cells_per_column_limit_filter");
    check_refused(*state, row_offset(*state, -1), "cells_per_row_offset_filter");
    check_refused(*state, sample(*state, 1.0),
                  "row_sample_filter argument must be between 0.0 and 1.0");
    check_refused(*state, sample(*state, 0.0), "row_sample_filter");
    check_refused(*state, row_key(*state, ""),
                  "Error in field 'row_key_regex_filter' : argument must not be empty");
    check_refused(*state, family(*state, ""),
                  "Error in field 'family_name_regex_filter' : argument must not be empty");
    check_refused(*state, value(*state, "("), "Error in field 'value_regex_filter' : ");
    check_refused(*state, value(*state, "(x{1000}){1000}"), "value_regex_filter");
    check_refused(*state, family(*state, "a:b"), "family_name_regex_filter");
    check_refused(*state, times(*state, 5, 4), "timestamp_range_filter");
    check_refused(*state, columns(*state, "a", "y", "x"), "column_range_filter");
    check_refused(
        *state, columns(*state, "", NULL, NULL),
        "Error in field 'column_range_filter' : Invalid id for collection columnFamilies");
    check_refused(*state, condition(*state, NULL, pass(*state), NULL), "predicate_filter");
}

static void test_labels_refused(void **state)
{
    const char *const wrong[] = {"", "UPPER", "under_score", "sixteen-letters-"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        check_refused(*state, label(*state, wrong[i]),
                      "apply_label_transformer must match RE2([a-z0-9\\-]+), but found ");
    check_refused(*state, CHAIN(*state, label(*state, "a"), label(*state, "b")), "at most one");
}

static void test_sink_in_condition_refused(void **state)
{
    check_refused(*state, condition(*state, sink(*state), pass(*state), NULL),
                  "Error in field 'condition filter predicate' : sink cannot be nested in a "
                  "condition filter");
    check_refused(*state, condition(*state, pass(*state), sink(*state), NULL), "cannot be nested");
    check_refused(*state,
                  condition(*state, pass(*state), NULL, CHAIN(*state, pass(*state), sink(*state))),
                  "cannot be nested");
}

static void test_depth_and_size(void **state)
{
    struct fixture *fixture = *state;
    Bt__RowFilter *nested = pass(fixture);
    struct filter *filter;
    for (int i = 0; i < 20; i++)
        nested = CHAIN(fixture, pass(fixture), nested);
    assert_ok(filter_message_compile(nested, fixture->arena, &filter));
    filter_destroy(filter);
    check_refused(fixture, CHAIN(fixture, pass(fixture), nested), "nested deeper than 20");
    check_refused(fixture, INTERLEAVE(fixture, nested, pass(fixture)), "nested deeper than 20");
    check_refused(fixture, condition(fixture, pass(fixture), NULL, nested),
                  "nested deeper than 20");
    enum { REGEX_FIELD_BYTES = 4 }; /* its tag and its length */
    char *long_regex = arena_zalloc(fixture->arena, 20480 + 1);
    memset(long_regex, 'x', 20480 - REGEX_FIELD_BYTES);
    assert_ok(filter_message_compile(value(fixture, long_regex), fixture->arena, &filter));
    filter_destroy(filter);
    long_regex[20480 - REGEX_FIELD_BYTES] = 'x';
    check_refused(fixture, value(fixture, long_regex),
                  "Row filter exceeds maximum size of 20480 bytes");
}

/* --- what is asked to be read --- */

struct expected_scope {
    const char *families; /* which of a, b, c */
    int32_t cells_per_column;
    int32_t cells_per_row;
    bool wants_values;
};

static void check_scope(struct fixture *fixture, const Bt__RowFilter *message,
                        struct expected_scope expected)
{
    struct filter *filter;
    struct read_scope scope;
    assert_ok(filter_message_compile(message, fixture->arena, &filter));
    assert_ok(filter_scope(filter, fixture->schema, fixture->arena, &scope));
    for (size_t i = 0; i < fixture->schema->family_count; i++) {
        const char name = (char)fixture->schema->families[i].name.data[0];
        bool is_wanted = scope.families == NULL || scope.families[i].is_wanted;
        assert_int_equal(is_wanted, strchr(expected.families, name) != NULL);
    }
    assert_int_equal(scope.cells_per_column, expected.cells_per_column);
    assert_int_equal(scope.cells_per_row, expected.cells_per_row);
    assert_int_equal(scope.wants_values, expected.wants_values);
    filter_destroy(filter);
}

static void test_scopes(void **state)
{
    enum { ALL = INT32_MAX };
    struct fixture *f = *state;
    check_scope(f, pass(f), (struct expected_scope){"abc", ALL, ALL, true});
    check_scope(f, family(f, "b"), (struct expected_scope){"b", ALL, ALL, true});
    check_scope(f, columns(f, "c", "x", NULL), (struct expected_scope){"c", ALL, ALL, true});
    check_scope(f, CHAIN(f, family(f, "a|b"), family(f, "b|c"), column_limit(f, 2)),
                (struct expected_scope){"b", 2, ALL, true});
    check_scope(f, CHAIN(f, value(f, "x"), column_limit(f, 2)),
                (struct expected_scope){"abc", ALL, ALL, true});
    check_scope(f, CHAIN(f, row_limit(f, 1), family(f, "b")),
                (struct expected_scope){"abc", ALL, 1, true});
    check_scope(f, CHAIN(f, family(f, "b"), row_limit(f, 1)),
                (struct expected_scope){"b", ALL, ALL, true});
    check_scope(f, CHAIN(f, row_limit(f, 1), strip(f)),
                (struct expected_scope){"abc", ALL, 1, false});
    check_scope(f, CHAIN(f, value(f, "x"), strip(f)),
                (struct expected_scope){"abc", ALL, ALL, true});
    check_scope(f, INTERLEAVE(f, family(f, "a"), family(f, "c")),
                (struct expected_scope){"ac", ALL, ALL, true});
    check_scope(f, INTERLEAVE(f, family(f, "a"), pass(f)),
                (struct expected_scope){"abc", ALL, ALL, true});
    check_scope(f, CHAIN(f, family(f, "a"), INTERLEAVE(f, family(f, "a"), family(f, "c"))),
                (struct expected_scope){"a", ALL, ALL, true});
    check_scope(f, condition(f, family(f, "b"), family(f, "a"), NULL),
                (struct expected_scope){"ab", ALL, ALL, true});
    check_scope(f, CHAIN(f, sink(f), family(f, "a")),
                (struct expected_scope){"abc", ALL, ALL, true});
    check_scope(f, block(f), (struct expected_scope){"", ALL, ALL, true});
}

static void test_scope_of_a_literal_column(void **state)
{
    struct fixture *fixture = *state;
    struct filter *filter;
    struct read_scope scope;
    Bt__RowFilter *message = CHAIN(fixture, family(fixture, "a"), qualifier(fixture, "x\\-1"));
    assert_ok(filter_message_compile(message, fixture->arena, &filter));
    assert_ok(filter_scope(filter, fixture->schema, fixture->arena, &scope));
    assert_true(bytes_equal(scope.families[0].from, bytes_of("x-1")));
    assert_true(scope.families[0].has_to);
    assert_true(bytes_equal(scope.families[0].to, bytes_make("x-1\0", 4)));
    filter_destroy(filter);
}

static bool is_a_or_quoted(void *context, bytes family)
{
    (void)context;
    return bytes_equal(family, bytes_of("a")) || bytes_equal(family, bytes_of("a-b.c_1"));
}

/* Patterns that are no more than a family's name. */
static void test_names_of_families(void **state)
{
    static const struct {
        const char *pattern;
        bool is_fine;
    } cases[] = {
        {"a", true},      {"b", false},     {"a\\-b\\.c_1", true}, {"a-b\\.c_1", true},
        {"a\\-b", false}, {"b_1", false},   {"^b$", true},         {"b.c", true},
        {"b|c", true},    {"(b)", true},    {"\\Qb\\E", true},     {"b c", true},
        {"\\x62", true},  {"b\\.c", false}, {"\\C", true},         {"b*", true},
    };
    struct fixture *fixture = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Bt__RowFilter *message =
            new_filter(fixture, BT__ROW_FILTER__FILTER_FAMILY_NAME_REGEX_FILTER);
        union {
            const char *given;
            char *wanted;
        } pattern = {.given = cases[i].pattern};
        message->family_name_regex_filter = pattern.wanted;
        struct filter *filter;
        assert_ok(filter_message_compile(message, fixture->arena, &filter));
        if (filter_names_only(filter, is_a_or_quoted, NULL) != cases[i].is_fine)
            fail_msg("%s", cases[i].pattern);
        filter_destroy(filter);
    }
    assert_true(filter_names_only(NULL, is_a_or_quoted, NULL));
}

static void test_keys_rejected_early(void **state)
{
    struct fixture *f = *state;
    const struct {
        const Bt__RowFilter *message;
        bool rejects;
    } cases[] = {
        {row_key(f, "other"), true},
        {row_key(f, "key"), false},
        {CHAIN(f, pass(f), row_key(f, "other")), true},
        {INTERLEAVE(f, pass(f), row_key(f, "other")), false},
        {INTERLEAVE(f, block(f), row_key(f, "other")), true},
        {CHAIN(f, sink(f), row_key(f, "other")), false},
        {condition(f, row_key(f, "other"), pass(f), NULL), true},
        {condition(f, row_key(f, "other"), NULL, pass(f)), false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct filter *filter;
        assert_ok(filter_message_compile(cases[i].message, f->arena, &filter));
        assert_int_equal(filter_rejects_key(filter, bytes_of("key")), cases[i].rejects);
        filter_destroy(filter);
    }
}

/* --- values that were left in the store --- */

/* How many values the filter has got of the standard row when it is done, or fails. */
static size_t count_gets(struct fixture *fixture, const Bt__RowFilter *message, size_t fails_at,
                         enum status_code expected)
{
    struct filter *filter;
    struct cell_list whole = cells_of(fixture, standard_row);
    struct cell_list in = without_values(fixture, &whole);
    struct cell_list out = {.arena = fixture->arena};
    struct test_source left = {.source.get = get_value, .whole = &whole, .fails_at = fails_at};
    assert_ok(filter_message_compile(message, fixture->arena, &filter));
    status s = filter_apply(filter, bytes_of("key"), &in, 0, &left.source, &out);
    assert_int_equal(s.code, expected);
    status_free(s);
    filter_destroy(filter);
    free(left.value);
    return left.gets;
}

static void test_only_what_is_looked_at_is_got(void **state)
{
    struct fixture *f = *state;
    Bt__RowFilter *on_x = CHAIN(f, qualifier(f, "x"), value(f, "one"));
    assert_int_equal(count_gets(f, pass(f), 0, STATUS_OK), 0);
    assert_int_equal(count_gets(f, value(f, "one"), 0, STATUS_OK), 5);
    assert_int_equal(count_gets(f, on_x, 0, STATUS_OK), 3);
    assert_int_equal(count_gets(f, INTERLEAVE(f, on_x, value(f, "end")), 0, STATUS_OK), 8);
    assert_int_equal(count_gets(f, CHAIN(f, strip(f), value(f, "one")), 0, STATUS_OK), 0);
    assert_int_equal(
        count_gets(f, condition(f, value(f, "none"), value(f, "."), NULL), 0, STATUS_OK), 5);
}

/* Its size is known. */
static void test_a_mask_of_another_size_gets_no_value(void **state)
{
    assert_int_equal(count_gets(*state, mask(*state, "long"), 0, STATUS_OK), 0);
    assert_int_equal(count_gets(*state, mask(*state, "mno"), 0, STATUS_OK), 5);
}

static void test_a_value_that_cannot_be_had_fails_the_filter(void **state)
{
    struct fixture *f = *state;
    Bt__RowFilter *both = INTERLEAVE(f, value(f, "one"), pass(f));
    assert_int_equal(count_gets(f, value(f, "one"), 3, STATUS_ABORTED), 3);
    assert_int_equal(count_gets(f, both, 1, STATUS_ABORTED), 1);
    assert_int_equal(count_gets(f, condition(f, value(f, "x"), pass(f), NULL), 2, STATUS_ABORTED),
                     2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_no_filter_passes_all),
        TEST(test_regexes_match_as_a_whole),
        TEST(test_regexes_are_bytes),
        TEST(test_regexes_as_RE2_has_them),
        TEST(test_key_regex),
        TEST(test_column_ranges),
        TEST(test_timestamp_ranges),
        TEST(test_value_bitmask),
        TEST(test_limits_and_offset),
        TEST(test_chains_apply_in_order),
        TEST(test_interleaves_keep_duplicates),
        TEST(test_interleaves_sort),
        TEST(test_conditions),
        TEST(test_sink_bypasses_what_follows),
        TEST(test_labels_in_order),
        TEST(test_sample_goes_by_row),
        TEST(test_exploding_interleaves_are_refused),
        TEST(test_refusals),
        TEST(test_labels_refused),
        TEST(test_sink_in_condition_refused),
        TEST(test_depth_and_size),
        TEST(test_scopes),
        TEST(test_scope_of_a_literal_column),
        TEST(test_keys_rejected_early),
        TEST(test_names_of_families),
        TEST(test_only_what_is_looked_at_is_got),
        TEST(test_a_mask_of_another_size_gets_no_value),
        TEST(test_a_value_that_cannot_be_had_fails_the_filter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
