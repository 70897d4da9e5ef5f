/* See mark_resolver.h. Rows are read in lots, and written when a lot is read: while a call brings
 * rows no other is waited for. */
#include "transfer/mark_resolver.h"

#include "client/row_reader.h"

enum {
    LOT = 256, /* rows */
    MEMORY_LIMIT = 1 << 30,
    WAIT_US = 500 * 1000,
    GIVE_UP_AFTER_US = 60 * 1000 * 1000,
};

/* Rows of the marks from `first` on, and their cells. */
struct lot {
    const struct mark_resolver *resolver;
    struct arena *arena;
    size_t first;
    size_t count;
    size_t at; /* rows before it have been read */
    struct move_cell *cells[LOT];
    size_t cell_counts[LOT];
};

/* --- reading --- */

static status copy_cells(const struct move_change *row, struct arena *arena, struct move_cell **out)
{
    struct move_cell *cells = *out = arena_alloc(arena, row->count * sizeof *cells);
    if (cells == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < row->count; i++) {
        cells[i] = row->cells[i];
        cells[i].family = arena_string(arena, bytes_of(row->cells[i].family));
        cells[i].qualifier = arena_copy(arena, row->cells[i].qualifier);
        cells[i].value = arena_copy(arena, row->cells[i].value);
        if (cells[i].family == NULL || cells[i].qualifier.data == NULL ||
            cells[i].value.data == NULL)
            return status_out_of_memory();
    }
    return status_ok();
}

static bytes key_at(const struct lot *lot, size_t index)
{
    return cell_marks_row_key(lot->resolver->marks, lot->first + index);
}

/* Rows come in the order of their keys, those that have nothing do not. */
static status keep_row(void *context, const struct move_change *row)
{
    struct lot *lot = context;
    while (lot->at < lot->count && bytes_compare(key_at(lot, lot->at), row->row_key) < 0)
        lot->at++;
    if (lot->at == lot->count || !bytes_equal(key_at(lot, lot->at), row->row_key))
        return status_make(STATUS_DATA_LOSS, "the source sends rows that were not asked for");
    lot->cell_counts[lot->at] = row->count;
    return copy_cells(row, lot->arena, &lot->cells[lot->at++]);
}

static status read_once(struct lot *lot)
{
    const struct mark_resolver *resolver = lot->resolver;
    ProtobufCBinaryData keys[LOT];
    Bt__RowSet rows = BT__ROW_SET__INIT;
    Bt__RowFilter filter = BT__ROW_FILTER__INIT;
    arena_reset(lot->arena);
    lot->at = 0;
    for (size_t i = 0; i < lot->count; i++) {
        keys[i] = proto_data(key_at(lot, i));
        lot->cell_counts[i] = 0;
    }
    rows.row_keys = keys;
    rows.n_row_keys = lot->count;
    filter.filter_case = BT__ROW_FILTER__FILTER_FAMILY_NAME_REGEX_FILTER;
    filter.family_name_regex_filter = resolver->aggregates;
    const struct row_reading reading = {.session = resolver->source,
                                        .table = resolver->table,
                                        .app_profile = client_session_app_profile(resolver->source),
                                        .rows = &rows,
                                        .filter = &filter,
                                        .context = lot,
                                        .on_row = keep_row};
    return rows_read(&reading);
}

static status read_lot(struct lot *lot)
{
    struct client_session *source = lot->resolver->source;
    struct clock *clock = loop_clock(client_session_loop(source));
    int64_t until_us = clock_steady_us(clock) + GIVE_UP_AFTER_US;
    for (;;) {
        status s = read_once(lot);
        if (status_is_ok(s) || !endpoint_failure_may_pass(s) || clock_steady_us(clock) >= until_us)
            return s;
        status_free(s);
        TRY(client_session_wait(source, WAIT_US));
    }
}

/* --- writing --- */

static status write_lot(const struct lot *lot)
{
    const struct mark_resolver *resolver = lot->resolver;
    for (size_t i = 0; i < lot->count; i++) {
        Bt__Mutation **mutations;
        size_t count;
        TRY(cell_marks_resolve(resolver->marks, lot->first + i, lot->cells[i], lot->cell_counts[i],
                               lot->arena, &mutations, &count));
        TRY(change_writer_add(resolver->target, key_at(lot, i), mutations, count));
    }
    return status_ok();
}

static status resolve_lots(struct lot *lot)
{
    size_t rows = cell_marks_rows(lot->resolver->marks);
    for (lot->first = 0; lot->first < rows; lot->first += LOT) {
        lot->count = rows - lot->first < LOT ? rows - lot->first : LOT;
        TRY(read_lot(lot));
        TRY(write_lot(lot));
    }
    return status_ok();
}

status marks_resolve(const struct mark_resolver *resolver)
{
    if (cell_marks_rows(resolver->marks) == 0)
        return status_ok();
    struct lot lot = {.resolver = resolver, .arena = arena_create(MEMORY_LIMIT)};
    if (lot.arena == NULL)
        return status_out_of_memory();
    cell_marks_sort(resolver->marks);
    status s = resolve_lots(&lot);
    arena_destroy(lot.arena);
    if (status_is_ok(s))
        cell_marks_clear(resolver->marks);
    return s;
}
