/* See scan.h. */
#include "views/scan.h"

#include "base/limits.h"
#include "base/vector.h"
#include "cluster/rows.h"
#include "wire/proto.h"

#include <string.h>

struct view_scan {
    struct sql_scan base;
    struct view_scan_spec spec; /* without `sql`, which may be gone */
    struct scan *scan;
    struct filter *filter;
    struct arena *arena; /* of the row's cells */
    struct cell_list cells;
    size_t may_read; /* bytes of a value for which, and its copy, the budget has given room */
    bool keeps_row;  /* what is given out is a copy */
};

/* --- columns --- */

static status need_qualifiers(const struct sql_family_need *need, struct arena *arena,
                              struct string_set *out)
{
    static const ProtobufCBinaryData everything = {0};
    ProtobufCBinaryData *qualifiers;
    if (need->needs_all)
        return string_set_make(NULL, 0, &everything, 1, arena, out);
    qualifiers = arena_alloc(arena, need->qualifier_count * sizeof *qualifiers);
    if (qualifiers == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < need->qualifier_count; i++)
        qualifiers[i] = proto_data(need->qualifiers[i]);
    return string_set_make(qualifiers, need->qualifier_count, NULL, 0, arena, out);
}

static status need_columns(const struct sql_scan_spec *spec, struct arena *arena,
                           struct columns *out)
{
    struct family_columns *families = arena_alloc(arena, spec->family_count * sizeof *families);
    if (families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < spec->family_count; i++) {
        families[i].family = spec->families[i].family;
        TRY(need_qualifiers(&spec->families[i], arena, &families[i].qualifiers));
    }
    *out = (struct columns){.families = families, .count = spec->family_count};
    return status_ok();
}

static status make_scope(const struct sql_scan_spec *spec, const struct schema *schema,
                         struct arena *arena, struct read_scope *out)
{
    struct columns *columns = arena_alloc(arena, sizeof *columns);
    if (columns == NULL)
        return status_out_of_memory();
    TRY(need_columns(spec, arena, columns));
    *out = (struct read_scope){.cells_per_column = spec->cells_per_column,
                               .cells_per_row = INT32_MAX,
                               .wants_values = true,
                               .wants_presence = true};
    return columns_restrict(columns, schema, arena, out);
}

/* --- times --- */

static status add_filter(struct vector *filters, struct arena *arena, struct filter_spec filter)
{
    struct filter_spec *kept = arena_alloc(arena, sizeof *kept);
    if (kept == NULL)
        return status_out_of_memory();
    *kept = filter;
    return vector_add(filters, arena, &kept, sizeof kept);
}

static bool asks_for_times(const struct sql_scan_spec *spec)
{
    return spec->from_us > 0 || spec->to_us != INT64_MAX;
}

static status add_times(struct vector *chain, struct arena *arena, const struct sql_scan_spec *spec)
{
    return add_filter(chain, arena,
                      (struct filter_spec){.kind = FILTER_TIMESTAMP_RANGE,
                                           .start_us = spec->from_us > 0 ? spec->from_us : 0,
                                           .end_us = spec->to_us == INT64_MAX ? 0 : spec->to_us});
}

/* Joins filters; a single one is itself. */
static struct filter_spec join(enum filter_kind kind, const struct vector *filters)
{
    const struct filter_spec *const *children = filters->items;
    if (filters->count == 1)
        return *children[0];
    return (struct filter_spec){.kind = kind, .children = children, .child_count = filters->count};
}

static status column_filter(struct arena *arena, bytes family, const bytes *qualifier,
                            struct vector *filters)
{
    struct filter_spec filter = {.kind = FILTER_COLUMN_RANGE, .family = family};
    if (qualifier != NULL)
        filter.range = (struct byte_range){
            .has_start = true, .start = *qualifier, .has_end = true, .end = *qualifier};
    return add_filter(filters, arena, filter);
}

/* The columns that are needed; and the row's first cell, since a row counts whatever is in it. */
static status add_columns(struct vector *chain, struct arena *arena,
                          const struct sql_scan_spec *spec)
{
    struct vector parts = {0};
    TRY(add_filter(&parts, arena, (struct filter_spec){.kind = FILTER_ROW_LIMIT, .count = 1}));
    for (size_t i = 0; i < spec->family_count; i++) {
        const struct sql_family_need *need = &spec->families[i];
        if (need->needs_all)
            TRY(column_filter(arena, need->family, NULL, &parts));
        for (size_t k = 0; k < need->qualifier_count && !need->needs_all; k++)
            TRY(column_filter(arena, need->family, &need->qualifiers[k], &parts));
    }
    return add_filter(chain, arena, join(FILTER_INTERLEAVE, &parts));
}

static status add_newest(struct vector *chain, struct arena *arena,
                         const struct sql_scan_spec *spec)
{
    if (spec->cells_per_column == INT32_MAX)
        return status_ok();
    return add_filter(
        chain, arena,
        (struct filter_spec){.kind = FILTER_COLUMN_LIMIT, .count = spec->cells_per_column});
}

/* Cells of the times, the newest of each column; of them the columns that are needed, and the
 * row's first, since a row counts whatever is in it. */
static status make_filter(const struct sql_scan_spec *spec, struct arena *arena,
                          struct filter **out)
{
    struct vector chain = {0};
    TRY(add_times(&chain, arena, spec));
    TRY(add_newest(&chain, arena, spec));
    TRY(add_columns(&chain, arena, spec));
    const struct filter_spec all = join(FILTER_CHAIN, &chain);
    return filter_compile(&all, arena, out);
}

/* --- room for what is read --- */

/* The size of what the store reads at once without being asked for: blocks of small values. */
enum { SMALL_READ = 4 << 20 };

/* A block, and what the store makes of that (see scan.h). */
static status make_room(struct view_scan *scan, size_t size)
{
    if (size <= scan->may_read)
        return status_ok();
    if (!budget_take(scan->spec.budget, VIEW_SCAN_COPIES * (size - scan->may_read)))
        return status_out_of_memory();
    scan->may_read = size;
    return status_ok();
}

static void give_room_back(struct view_scan *scan)
{
    budget_give_back(scan->spec.budget, VIEW_SCAN_COPIES * scan->may_read);
    scan->may_read = 0;
}

static bool must_not_wait(const struct view_scan *scan)
{
    return scan->spec.must_not_wait != NULL && *scan->spec.must_not_wait;
}

/* ROW_NOT_CACHED: more is to be read at once than there is room for, `*wants` bytes. */
static status read_bounded(struct view_scan *scan, struct scan_row *read, enum row_outcome *outcome,
                           size_t *wants)
{
    size_t most = scan->may_read > SMALL_READ ? scan->may_read : SMALL_READ;
    struct store_read_bound bound = {.most = scan->spec.budget == NULL ? SIZE_MAX : most};
    enum store_read_tier tier = must_not_wait(scan) ? STORE_READ_CACHED : STORE_READ_ANY;
    bound = store_bound_reads(bound);
    status s = scan_next(scan->scan, tier, read, outcome);
    bound = store_bound_reads(bound);
    *wants = bound.refused;
    return s;
}

/* --- rows --- */

static bool is_same_cell(const struct cell *a, const struct cell *b)
{
    return a->family == b->family && a->timestamp_us == b->timestamp_us &&
           bytes_equal(a->qualifier, b->qualifier);
}

static status copy_bytes(struct arena *arena, bytes *value)
{
    size_t size = value->size;
    *value = arena_copy(arena, *value);
    return size == 0 || value->data != NULL ? status_ok() : status_out_of_memory();
}

static status load_into(struct view_scan *scan, const struct cell *cell, uint8_t *to)
{
    enum row_outcome outcome;
    bytes value;
    status s = scan_load_value(scan->scan, cell, STORE_READ_ANY, &value, &outcome);
    if (status_is_ok(s))
        memcpy(to, value.data, value.size);
    scan_release_value(scan->scan);
    return s;
}

/* Loads a value that was left in the store, when there is room for it. */
static status load_value(struct view_scan *scan, struct cell *cell)
{
    size_t size = cell->value.size;
    TRY(make_room(scan, size));
    uint8_t *to = arena_alloc(scan->arena, size);
    if (to == NULL)
        return status_out_of_memory();
    TRY(load_into(scan, cell, to));
    cell->value = bytes_make(to, size);
    return status_ok();
}

static status take_cell(struct view_scan *scan, struct cell cell, bool copies)
{
    if (copies)
        TRY(copy_bytes(scan->arena, &cell.qualifier));
    if (cell_is_deferred(&cell))
        TRY(load_value(scan, &cell));
    else if (copies)
        TRY(copy_bytes(scan->arena, &cell.value));
    return cell_list_add(&scan->cells, &cell) ? status_ok() : status_out_of_memory();
}

/* Without the copy of the first cell, if it was needed, too. */
static status take_cells(struct view_scan *scan, const struct cell_list *cells, bool copies)
{
    arena_reset(scan->arena);
    scan->cells = (struct cell_list){.arena = scan->arena};
    for (size_t i = 0; i < cells->count; i++)
        if (i == 0 || !is_same_cell(&cells->items[i - 1], &cells->items[i]))
            TRY(take_cell(scan, cells->items[i], copies));
    return status_ok();
}

static bool has_copy(const struct cell_list *cells)
{
    return cells->count > 1 && is_same_cell(&cells->items[0], &cells->items[1]);
}

/* The row as it was read, or what is to stay of it. */
static status give(struct view_scan *scan, const struct scan_row *read, struct sql_scan_row *row)
{
    *row = (struct sql_scan_row){read->key, read->cells};
    if (!scan->keeps_row && !has_copy(read->cells) && !read->has_deferred)
        return status_ok();
    bool copies = scan->keeps_row || read->has_deferred;
    row->cells = &scan->cells;
    TRY(take_cells(scan, read->cells, copies));
    if (copies)
        TRY(copy_bytes(scan->arena, &row->key));
    if (read->has_deferred) { /* nothing of it is in the store's memory any more */
        scan_pause(scan->scan);
        give_room_back(scan);
    }
    return status_ok();
}

/* The first cell does not count: it may be there for the row alone. */
static bool is_over_bound(const struct view_scan *scan, const struct cell_list *cells)
{
    uint64_t size = 0;
    for (size_t i = 1; i < cells->count; i++)
        size += cells->items[i].value.size;
    return scan->spec.most_row_bytes > 0 && size > scan->spec.most_row_bytes;
}

/* The next row, whatever its size; *outcome: FOUND, TOO_LARGE, END, or NOT_CACHED if it must be
 * waited for. */
static status read_next(struct view_scan *scan, struct scan_row *read, enum row_outcome *outcome)
{
    size_t wants;
    do {
        if (scan->spec.go_on != NULL)
            TRY(scan->spec.go_on(scan->spec.context));
        TRY(read_bounded(scan, read, outcome, &wants));
        scan->base.must_wait = *outcome == ROW_NOT_CACHED && must_not_wait(scan);
        if (scan->base.must_wait)
            return status_ok();
        if (*outcome == ROW_NOT_CACHED)
            TRY(make_room(scan, wants));
    } while (*outcome == ROW_ABSENT || *outcome == ROW_NOT_CACHED);
    if (*outcome == ROW_FOUND && is_over_bound(scan, read->cells))
        *outcome = ROW_TOO_LARGE;
    return status_ok();
}

static status next(struct sql_scan *base, struct sql_scan_row *row, bool *found)
{
    struct view_scan *scan = (struct view_scan *)(void *)base;
    struct scan_row read;
    enum row_outcome outcome;
    *found = false;
    give_room_back(scan);
    TRY(read_next(scan, &read, &outcome));
    while (outcome == ROW_TOO_LARGE) {
        TRY(scan->spec.too_large(scan->spec.context, read.key));
        TRY(read_next(scan, &read, &outcome));
    }
    if (outcome != ROW_FOUND)
        return status_ok();
    *found = true;
    return give(scan, &read, row);
}

static void rest(struct sql_scan *base)
{
    struct view_scan *scan = (struct view_scan *)(void *)base;
    scan_pause(scan->scan);
    give_room_back(scan);
    if (!scan->keeps_row)
        arena_reset(scan->arena);
}

static void destroy(struct sql_scan *base)
{
    struct view_scan *scan = (struct view_scan *)(void *)base;
    scan_destroy(scan->scan);
    give_room_back(scan);
    filter_destroy(scan->filter);
    arena_destroy(scan->arena);
}

/* Both kinds of ranges are sorted, without overlap. */
static status key_ranges(const struct sql_scan_spec *spec, struct arena *arena,
                         struct key_range **out)
{
    *out = arena_zalloc(arena, spec->range_count * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < spec->range_count; i++) {
        const struct sql_key_range *range = &spec->ranges[i];
        (*out)[i] = (struct key_range){
            .from = range->from, .to = range->to, .is_point = sql_key_range_is_point(range)};
    }
    return status_ok();
}

static status open_scan(struct view_scan *scan, const struct sql_scan_spec *sql,
                        struct arena *arena)
{
    struct table *table = scan->spec.table;
    const struct schema *schema = table_schema(table);
    struct key_range *ranges;
    struct read_scope scope;
    bool has_times = asks_for_times(sql);
    scan->arena = arena_create_within(scan->keeps_row ? 2 * LIMIT_ROW_BYTES : LIMIT_ROW_BYTES,
                                      scan->spec.budget);
    if (scan->arena == NULL)
        return status_out_of_memory();
    TRY(key_ranges(sql, arena, &ranges));
    TRY(has_times ? make_filter(sql, arena, &scan->filter)
                  : make_scope(sql, schema, arena, &scope));
    return scan_create(&(struct scan_spec){.table = table,
                                           .ranges = ranges,
                                           .range_count = sql->range_count,
                                           .reversed = sql->is_reversed,
                                           .schema = schema,
                                           .filter = scan->filter,
                                           .scope = has_times ? NULL : &scope,
                                           .is_background = scan->spec.is_background,
                                           .defers_values = scan->spec.defers_values,
                                           .loads_values = must_not_wait(scan),
                                           .arena = arena},
                       &scan->scan);
}

status view_scan_open(const struct view_scan_spec *spec, struct arena *arena, struct sql_scan **out)
{
    struct view_scan *opened = arena_zalloc(arena, sizeof *opened);
    if (opened == NULL)
        return status_out_of_memory();
    *opened = (struct view_scan){.base = {.next = next, .rest = rest, .destroy = destroy},
                                 .spec = *spec,
                                 .keeps_row = spec->sql->keeps_row};
    opened->spec.sql = NULL;
    status s = open_scan(opened, spec->sql, arena);
    if (!status_is_ok(s))
        destroy(&opened->base);
    else
        *out = &opened->base;
    return s;
}
