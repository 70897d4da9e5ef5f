/* Rows that may have lost large cells. Before these are given up the records of the rows lose what
 * they may have replaced, or it would be there again, as what they were (tablet/overflow.h). Rows
 * that are out of service themselves are passed over: a repair gives them up as a whole. */
#include "cluster/cluster_private.h"
#include "row/row_key.h"
#include "tablet/row_maintenance.h"

struct walk {
    const struct lost_cells *lost;
    lost_cells_visit *visit;
    void *context;
    struct buffer from; /* of records: what comes next */
    struct buffer to;   /* the first that is out of service behind that, or the end */
    struct buffer end;
};

/* The row's part of an S key, up to the first byte that is escaped or ends it, in an R key. */
static bool append_row(struct buffer *out, bytes key)
{
    size_t size = 1;
    while (size < key.size && key.data[size] != 0)
        size++;
    buffer_append_byte(out, ROW_SPACE);
    if (key.size > 1)
        buffer_append(out, key.data + 1, size - 1);
    return size < key.size;
}

/* Bounds the walk to no less than what the cells' rows have. */
static void bound(struct walk *walk)
{
    append_row(&walk->from, walk->lost->part.from);
    if (walk->lost->part.to.size == 0 || walk->lost->part.to.data[0] != OVERFLOW_SPACE)
        buffer_append_byte(&walk->end, ROW_SPACE + 1);
    else
        buffer_append_byte(&walk->end, append_row(&walk->end, walk->lost->part.to));
}

/* A table that was cut off under way fails at any key: the store reads it by what it remembers. */
static status advise(status s)
{
    if (s.code != STATUS_DATA_LOSS)
        return s;
    status told =
        status_make(STATUS_UNAVAILABLE, "%s: restart the server, then repair", status_message(s));
    status_free(s);
    return told;
}

static status visit_rows(const struct walk *walk, struct store_cursor *cursor)
{
    store_cursor_first(cursor);
    for (; store_cursor_valid(cursor); store_cursor_next(cursor))
        if (fragment_has_overflow(store_cursor_value(cursor)))
            TRY(walk->visit(walk->context, bytes_from(store_cursor_key(cursor), 1),
                            store_cursor_value(cursor)));
    return advise(store_cursor_status(cursor));
}

static status visit_piece(const struct walk *walk)
{
    const struct store_cursor_options options = {.lower = buffer_bytes(&walk->from),
                                                 .upper = buffer_bytes(&walk->to),
                                                 .read_tier = STORE_READ_ANY,
                                                 .bypasses_cache = true};
    struct store_cursor *cursor;
    TRY(store_cursor_create(walk->lost->keyspace, &options, &cursor));
    status s = visit_rows(walk, cursor);
    store_cursor_destroy(cursor);
    return s;
}

static bool has_failed(const struct walk *walk)
{
    return walk->from.failed || walk->to.failed || walk->end.failed;
}

static bool is_at_end(const struct walk *walk)
{
    return bytes_compare(buffer_bytes(&walk->from), buffer_bytes(&walk->end)) >= 0;
}

static status go_on(struct walk *walk)
{
    const struct lost_cells *lost = walk->lost;
    buffer_clear(&walk->to);
    buffer_append_bytes(&walk->to, buffer_bytes(&walk->end));
    damages_find_open(lost->shard->damages, keyspace_id(lost->keyspace), &walk->from, &walk->to);
    if (has_failed(walk))
        return status_out_of_memory();
    if (is_at_end(walk))
        return status_ok();
    TRY(visit_piece(walk));
    buffer_clear(&walk->from);
    buffer_append_bytes(&walk->from, buffer_bytes(&walk->to));
    return status_ok();
}

status lost_cells_each_row(const struct lost_cells *lost, lost_cells_visit *visit, void *context)
{
    struct walk walk = {.lost = lost, .visit = visit, .context = context};
    status s = status_ok();
    bound(&walk);
    while (status_is_ok(s) && (has_failed(&walk) || !is_at_end(&walk)))
        s = go_on(&walk);
    buffer_free(&walk.from);
    buffer_free(&walk.to);
    buffer_free(&walk.end);
    return s;
}

/* --- cutting --- */

status lost_cells_cut_row(const struct lost_cells *lost, bytes row_key)
{
    struct row_locks *locks = lost->shard->locks;
    const struct row_maintenance maintenance = {
        .keyspace = lost->keyspace,
        .row_key = row_key,
        .row_hash = row_lock_hash(keyspace_id(lost->keyspace), row_key),
        .locks = locks,
        .commits = lost->shard->commits};
    row_lock_wait(locks, maintenance.row_hash);
    status s = row_maintenance_cut_lost(&maintenance, lost->part.from, lost->part.to);
    row_lock_release(locks, maintenance.row_hash);
    return advise(s);
}

static status cut_row(void *context, bytes row_key, bytes record)
{
    const struct lost_cells *lost = context;
    (void)record;
    return lost_cells_cut_row(lost, row_key);
}

status lost_cells_cut(struct lost_cells *lost)
{
    return lost_cells_each_row(lost, cut_row, lost);
}
