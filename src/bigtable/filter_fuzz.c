/* Fuzzer: any filter on any small row, by laws that hold for all of them.
 *
 *  1. Results are cells of the row, in order, with their value or without.
 *  2. Passing everything before a filter or after it changes nothing; nor does blocking beside it.
 *  3. A filter beside itself gives each cell twice; a limit and an offset are the parts of a whole;
 *     a condition tells whether something came out.
 *  4. Nor does leaving values in the store, from where they come one at a time.
 *  5. Reading no more than a filter's scope changes nothing in what comes out, and no cell comes
 *     out of a row whose key the filter rejects.
 *
 * Input: choices (base/testing/fuzzing.h): the filter, as the fields of a
 * google.bigtable.v2.RowFilter, and the row. */
#include "base/testing/fuzzing.h"
#include "base/varint.h"
#include "bigtable/filter_message.h"
#include "google/bigtable/v2/data.pb-c.h"
#include "wire/proto.h"

/* Deeper than is allowed. The arena is so small that filters which multiply cells soon fail. */
enum { DEEPEST = 22, MOST_CHILDREN = 4, MOST_CELLS = 16, MOST_BYTES = 6, ARENA_LIMIT = 4 << 20 };

/* --- any filter, in wire bytes --- */

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

static void put_tag(struct buffer *out, unsigned field, enum wire_type type)
{
    buffer_append_varint(out, field << 3 | type);
}

static void put_number(struct buffer *out, unsigned field, int64_t number)
{
    put_tag(out, field, WIRE_VARINT);
    buffer_append_varint(out, (uint64_t)number);
}

static void put_bytes(struct buffer *out, unsigned field, bytes b)
{
    put_tag(out, field, WIRE_BYTES);
    buffer_append_varint(out, b.size);
    buffer_append_bytes(out, b);
}

static void put_message(struct buffer *out, unsigned field, struct buffer *message)
{
    put_bytes(out, field, buffer_bytes(message));
    buffer_free(message);
}

static void put_some_bytes(struct choices *choices, struct buffer *out, unsigned field)
{
    put_bytes(out, field, choose_bytes(choices, MOST_BYTES));
}

/* Puts a text that matches now and then. */
static void put_text(struct choices *choices, struct buffer *out, unsigned field)
{
    static const char *const texts[] = {"", "f", "g", "a", "b", "f|g", "[^a]", ".*", "row"};
    unsigned kind = choose(choices, 1 + sizeof texts / sizeof *texts);
    if (kind == 0)
        put_some_bytes(choices, out, field);
    else
        put_bytes(out, field, bytes_of(texts[kind - 1]));
}

/* Small, negative, or as large as it goes. */
static int32_t choose_count(struct choices *choices)
{
    int8_t count = (int8_t)choose_byte(choices);
    return count == INT8_MAX ? INT32_MAX : count;
}

static int64_t choose_time(struct choices *choices)
{
    return 500 * (int64_t)(int8_t)choose_byte(choices);
}

/* A oneof of `field` and the next, for each end. */
static void choose_bounds(struct choices *choices, struct buffer *out, unsigned field)
{
    for (unsigned end = 0; end < 2; end++, field += 2) {
        unsigned kind = choose(choices, 3);
        if (kind > 0)
            put_some_bytes(choices, out, field + kind - 1);
    }
}

static void choose_filter(struct choices *choices, int depth, struct buffer *out);

static void choose_children(struct choices *choices, int depth, struct buffer *out)
{
    unsigned count = choose(choices, MOST_CHILDREN + 1);
    for (unsigned i = 0; i < count; i++) {
        struct buffer child = {0};
        choose_filter(choices, depth + 1, &child);
        put_message(out, 1, &child);
    }
}

static void choose_branches(struct choices *choices, int depth, struct buffer *out)
{
    for (unsigned field = 1; field <= 3; field++) {
        struct buffer child = {0};
        if (choose_bool(choices))
            continue;
        choose_filter(choices, depth + 1, &child);
        put_message(out, field, &child);
    }
}

static void choose_sample(struct choices *choices, struct buffer *out)
{
    double probability = (choose_byte(choices) - 16) / 200.0;
    put_tag(out, BT__ROW_FILTER__FILTER_ROW_SAMPLE_FILTER, WIRE_FIXED64);
    buffer_append(out, &probability, sizeof probability);
}

static void choose_message(struct choices *choices, unsigned kind, int depth, struct buffer *out)
{
    switch (kind) {
    case BT__ROW_FILTER__FILTER_CHAIN:
    case BT__ROW_FILTER__FILTER_INTERLEAVE:
        choose_children(choices, depth, out);
        break;
    case BT__ROW_FILTER__FILTER_CONDITION:
        choose_branches(choices, depth, out);
        break;
    case BT__ROW_FILTER__FILTER_COLUMN_RANGE_FILTER:
        put_text(choices, out, 1);
        choose_bounds(choices, out, 2);
        break;
    case BT__ROW_FILTER__FILTER_VALUE_RANGE_FILTER:
        choose_bounds(choices, out, 1);
        break;
    case BT__ROW_FILTER__FILTER_TIMESTAMP_RANGE_FILTER:
        put_number(out, 1, choose_time(choices));
        put_number(out, 2, choose_time(choices));
        break;
    default:
        put_some_bytes(choices, out, 1);
    }
}

static void choose_filter(struct choices *choices, int depth, struct buffer *out)
{
    unsigned kind = choose(choices, BT__ROW_FILTER__FILTER_VALUE_BITMASK_FILTER + 1);
    struct buffer message = {0};
    switch (depth > DEEPEST ? BT__ROW_FILTER__FILTER__NOT_SET : kind) {
    case BT__ROW_FILTER__FILTER__NOT_SET:
        return;
    case BT__ROW_FILTER__FILTER_ROW_KEY_REGEX_FILTER:
    case BT__ROW_FILTER__FILTER_FAMILY_NAME_REGEX_FILTER:
    case BT__ROW_FILTER__FILTER_COLUMN_QUALIFIER_REGEX_FILTER:
    case BT__ROW_FILTER__FILTER_VALUE_REGEX_FILTER:
    case BT__ROW_FILTER__FILTER_APPLY_LABEL_TRANSFORMER:
        put_text(choices, out, kind);
        return;
    case BT__ROW_FILTER__FILTER_CELLS_PER_ROW_OFFSET_FILTER:
    case BT__ROW_FILTER__FILTER_CELLS_PER_ROW_LIMIT_FILTER:
    case BT__ROW_FILTER__FILTER_CELLS_PER_COLUMN_LIMIT_FILTER:
        put_number(out, kind, choose_count(choices));
        return;
    case BT__ROW_FILTER__FILTER_STRIP_VALUE_TRANSFORMER:
    case BT__ROW_FILTER__FILTER_SINK:
    case BT__ROW_FILTER__FILTER_PASS_ALL_FILTER:
    case BT__ROW_FILTER__FILTER_BLOCK_ALL_FILTER:
        put_number(out, kind, choose_byte(choices) != UINT8_MAX);
        return;
    case BT__ROW_FILTER__FILTER_ROW_SAMPLE_FILTER:
        choose_sample(choices, out);
        return;
    default:
        choose_message(choices, kind, depth, &message);
        put_message(out, kind, &message);
    }
}

/* --- trying filters on a row --- */

struct trial {
    struct arena *arena;
    struct schema *schema;
    struct buffer record;
    struct cell_list row; /* all of it */
    uint64_t coin;
};

static const bytes row_key = {.data = (const uint8_t *)"row", .size = 3};

static void choose_row(struct choices *choices, struct trial *trial)
{
    struct row_change *change = row_change_create(trial->arena);
    struct packed_change packed;
    unsigned count = choose(choices, MOST_CELLS + 1);
    CHECK(change != NULL);
    for (unsigned i = 0; i < count; i++) {
        uint8_t place = choose_byte(choices);
        static const char qualifiers[] = "abc";
        bytes qualifier = bytes_make(&qualifiers[place & 3], place & 3 ? 1 : 0);
        row_change_set(change, 1 + (place >> 2 & 1), qualifier, 1000 * (place >> 3 & 3),
                       choose_bytes(choices, MOST_BYTES));
    }
    status s = row_change_pack(change, SIZE_MAX, &packed);
    CHECK(status_is_ok(s));
    trial->record = packed.fragment;
}

/* False without memory. */
static bool read_row(struct trial *trial, const struct read_scope *scope, struct cell_list *out)
{
    const struct resolve_request request = {.schema = trial->schema,
                                            .record = buffer_bytes(&trial->record),
                                            .scope = scope,
                                            .size_limit = UINT64_MAX};
    bool too_large;
    *out = (struct cell_list){.arena = trial->arena};
    status s = row_resolve(&request, out, &too_large);
    bool ok = status_is_ok(s);
    CHECK(ok || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    return ok;
}

/* NULL if the filter is refused, with words. Its results point into `wire`, too. */
static struct filter *compile(struct trial *trial, bytes wire)
{
    ProtobufCMessage *message;
    struct filter *filter = NULL;
    status s = proto_decode(&bt__row_filter__descriptor, wire, trial->arena, &message);
    if (status_is_ok(s))
        s = filter_message_compile((const Bt__RowFilter *)(const void *)message, trial->arena,
                                   &filter);
    CHECK(status_is_ok(s) == (filter != NULL));
    CHECK(status_is_ok(s) || s.code == STATUS_INVALID_ARGUMENT ||
          s.code == STATUS_RESOURCE_EXHAUSTED);
    CHECK(s.code != STATUS_INVALID_ARGUMENT || status_message(s)[0] != '\0');
    status_free(s);
    return filter;
}

static bool apply(struct trial *trial, const struct filter *filter, const struct cell_list *row,
                  struct cell_list *out)
{
    *out = (struct cell_list){.arena = trial->arena};
    status s = filter_apply(filter, row_key, row, trial->coin, NULL, out);
    bool ok = status_is_ok(s);
    CHECK(ok || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    return ok;
}

/* The row's values, each gone when the next is asked for. */
struct left_values {
    struct value_source source;
    const struct cell_list *row;
    struct buffer value;
};

static const struct cell *find_place(const struct cell_list *row, const struct cell *cell)
{
    for (size_t i = 0; i < row->count; i++)
        if (row->items[i].family == cell->family &&
            row->items[i].timestamp_us == cell->timestamp_us &&
            bytes_equal(row->items[i].qualifier, cell->qualifier))
            return &row->items[i];
    return NULL;
}

static status get_left(struct value_source *source, const struct cell *cell, bytes *value)
{
    struct left_values *left = (struct left_values *)source;
    const struct cell *found = find_place(left->row, cell);
    CHECK(found != NULL && cell_is_deferred(cell) && found->value.size == cell->value.size);
    buffer_free(&left->value);
    buffer_append_bytes(&left->value, found->value);
    CHECK(!left->value.failed);
    *value = buffer_bytes(&left->value);
    return status_ok();
}

/* Leaves values of at least so many bytes in the store: only their size stays. False without
 * memory. */
static bool leave_values(struct trial *trial, size_t least, struct cell_list *out)
{
    *out = (struct cell_list){.arena = trial->arena};
    for (size_t i = 0; i < trial->row.count; i++) {
        struct cell cell = trial->row.items[i];
        if (cell.value.size >= least)
            cell.value.data = NULL;
        if (!cell_list_add(out, &cell))
            return false;
    }
    return true;
}

static void give_values(const struct trial *trial, struct cell_list *cells)
{
    for (size_t i = 0; i < cells->count; i++)
        if (cell_is_deferred(&cells->items[i]))
            cells->items[i].value = find_place(&trial->row, &cells->items[i])->value;
}

/* Applies the filter to the row. False if it is refused, or asks for more than there is. */
static bool try_filter(struct trial *trial, bytes wire, struct cell_list *out)
{
    struct filter *filter = compile(trial, wire);
    bool ok = filter != NULL && apply(trial, filter, &trial->row, out);
    filter_destroy(filter);
    return ok;
}

/* The same for two filters as the children of a chain or an interleave, or the predicate and first
 * branch of a condition. */
static bool try_both(struct trial *trial, Bt__RowFilter__FilterCase kind, bytes first, bytes second,
                     struct cell_list *out)
{
    struct buffer children = {0}, wire = {0};
    put_bytes(&children, 1, first);
    put_bytes(&children, kind == BT__ROW_FILTER__FILTER_CONDITION ? 2 : 1, second);
    put_message(&wire, kind, &children);
    bytes copy = arena_copy(trial->arena, buffer_bytes(&wire));
    buffer_free(&wire);
    return copy.data != NULL && try_filter(trial, copy, out);
}

/* --- the laws --- */

static int compare_places(const struct cell *a, const struct cell *b)
{
    int order = bytes_compare(a->family->name, b->family->name);
    if (order == 0)
        order = bytes_compare(a->qualifier, b->qualifier);
    if (order == 0 && a->timestamp_us != b->timestamp_us)
        order = a->timestamp_us > b->timestamp_us ? -1 : 1;
    return order;
}

static void check_same_cell(const struct cell *a, const struct cell *b)
{
    const struct label *label = a->labels, *other = b->labels;
    CHECK(compare_places(a, b) == 0 && bytes_equal(a->value, b->value));
    for (; label != NULL; label = label->next, other = other->next)
        CHECK(other != NULL && bytes_equal(label->text, other->text));
    CHECK(other == NULL);
}

static void check_same(const struct cell_list *a, const struct cell_list *b)
{
    CHECK(a->count == b->count);
    for (size_t i = 0; i < a->count; i++)
        check_same_cell(&a->items[i], &b->items[i]);
}

static bool is_in_row(const struct cell_list *row, const struct cell *cell)
{
    for (size_t i = 0; i < row->count; i++)
        if (compare_places(&row->items[i], cell) == 0)
            return cell->value.size == 0 || bytes_equal(row->items[i].value, cell->value);
    return false;
}

static void check_cells(const struct trial *trial, const struct cell_list *cells)
{
    for (size_t i = 0; i < cells->count; i++) {
        CHECK(is_in_row(&trial->row, &cells->items[i]));
        CHECK(i == 0 || compare_places(&cells->items[i - 1], &cells->items[i]) <= 0);
    }
}

static void check_neutral(struct trial *trial, bytes filter, const struct cell_list *expected)
{
    struct buffer everything = {0}, nothing = {0};
    struct cell_list out;
    put_number(&everything, BT__ROW_FILTER__FILTER_PASS_ALL_FILTER, true);
    put_number(&nothing, BT__ROW_FILTER__FILTER_BLOCK_ALL_FILTER, true);
    if (try_both(trial, BT__ROW_FILTER__FILTER_CHAIN, filter, buffer_bytes(&everything), &out))
        check_same(expected, &out);
    if (try_both(trial, BT__ROW_FILTER__FILTER_CHAIN, buffer_bytes(&everything), filter, &out))
        check_same(expected, &out);
    if (try_both(trial, BT__ROW_FILTER__FILTER_INTERLEAVE, filter, buffer_bytes(&nothing), &out))
        check_same(expected, &out);
    buffer_free(&everything);
    buffer_free(&nothing);
}

static void check_twice(struct trial *trial, bytes filter, const struct cell_list *expected)
{
    struct cell_list out;
    if (!try_both(trial, BT__ROW_FILTER__FILTER_INTERLEAVE, filter, filter, &out))
        return;
    CHECK(out.count == 2 * expected->count);
    check_cells(trial, &out);
}

static void check_condition(struct trial *trial, bytes filter, const struct cell_list *expected)
{
    struct cell_list out;
    if (!try_both(trial, BT__ROW_FILTER__FILTER_CONDITION, filter, bytes_make("", 0), &out))
        return; /* a sink, too */
    const struct cell_list none = {0};
    check_same(&out, expected->count > 0 ? &trial->row : &none);
}

static void check_parts(struct trial *trial, bytes filter, int32_t part,
                        const struct cell_list *expected)
{
    struct buffer limit = {0}, offset = {0};
    struct cell_list first, rest;
    put_number(&limit, BT__ROW_FILTER__FILTER_CELLS_PER_ROW_LIMIT_FILTER, part);
    put_number(&offset, BT__ROW_FILTER__FILTER_CELLS_PER_ROW_OFFSET_FILTER, part);
    if (try_both(trial, BT__ROW_FILTER__FILTER_CHAIN, filter, buffer_bytes(&limit), &first) &&
        try_both(trial, BT__ROW_FILTER__FILTER_CHAIN, filter, buffer_bytes(&offset), &rest)) {
        CHECK(first.count + rest.count == expected->count);
        for (size_t i = 0; i < expected->count; i++)
            check_same_cell(&expected->items[i],
                            i < first.count ? &first.items[i] : &rest.items[i - first.count]);
    }
    buffer_free(&limit);
    buffer_free(&offset);
}

static void check_scope(struct trial *trial, const struct filter *filter,
                        const struct cell_list *expected)
{
    struct read_scope scope;
    struct cell_list read, out;
    status s = filter_scope(filter, trial->schema, trial->arena, &scope);
    if (status_is_ok(s) && read_row(trial, &scope, &read) && apply(trial, filter, &read, &out))
        check_same(expected, &out);
    CHECK(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
}

static void check_left(struct trial *trial, const struct filter *filter, int32_t part,
                       const struct cell_list *expected)
{
    struct left_values left = {.source.get = get_left, .row = &trial->row};
    struct cell_list row, out = {.arena = trial->arena};
    if (!leave_values(trial, 1 + (size_t)part % MOST_BYTES, &row))
        return;
    status s = filter_apply(filter, row_key, &row, trial->coin, &left.source, &out);
    CHECK(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    if (status_is_ok(s)) {
        give_values(trial, &out);
        check_same(expected, &out);
    }
    status_free(s);
    buffer_free(&left.value);
}

static void check_laws(struct trial *trial, bytes wire, const struct filter *filter, int32_t part)
{
    struct cell_list out;
    if (!apply(trial, filter, &trial->row, &out))
        return;
    check_cells(trial, &out);
    CHECK(out.count == 0 || !filter_rejects_key(filter, row_key));
    check_left(trial, filter, part, &out);
    check_scope(trial, filter, &out);
    check_neutral(trial, wire, &out);
    check_twice(trial, wire, &out);
    check_condition(trial, wire, &out);
    if (!filter_contains(filter, FILTER_SINK)) /* what a sink takes knows no limits */
        check_parts(trial, wire, part, &out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct family families[] = {{.id = 2, .name = bytes_of("f")},
                                      {.id = 1, .name = bytes_of("g")}};
    struct choices choices = choices_of(data, size);
    struct trial trial = {.arena = arena_create(ARENA_LIMIT)};
    struct buffer wire = {0};
    CHECK(trial.arena != NULL);
    status s = schema_create(GRANULARITY_MILLIS, families, 2, 3, &trial.schema);
    CHECK(status_is_ok(s));
    choose_filter(&choices, 1, &wire);
    choose_row(&choices, &trial);
    trial.coin = choose_number(&choices, sizeof trial.coin);
    int32_t part = 1 + choose(&choices, MOST_CELLS);
    CHECK(!wire.failed && read_row(&trial, NULL, &trial.row));
    struct filter *filter = compile(&trial, buffer_bytes(&wire));
    if (filter != NULL)
        check_laws(&trial, buffer_bytes(&wire), filter, part);
    filter_destroy(filter);
    buffer_free(&wire);
    buffer_free(&trial.record);
    schema_destroy(trial.schema);
    arena_destroy(trial.arena);
    return 0;
}
