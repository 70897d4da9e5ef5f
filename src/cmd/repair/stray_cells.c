/* See stray_cells.h.
 *
 * Only the large cells are walked, and of a row those up to the first that was not dropped: then
 * its record is looked up, and the walk goes on behind the row. */
#include "cmd/repair/stray_cells.h"

#include "row/fold.h"
#include "row/fragment.h"
#include "row/row_key.h"
#include "store/store.h"
#include "tablet/change_log.h"
#include "tablet/drop_records.h"

enum { ROWS_AT_ONCE = 1000 };

struct walk {
    struct keyspace *keyspace;
    struct keyspace *system;
    struct row_drops *drops;
    struct store_cursor *cursor;
    struct buffer prefix; /* of the cells of the row that is looked at */
    struct buffer row_key;
    struct buffer behind;  /* the row's cells */
    struct buffer scratch; /* for what a drop leaves of a cell */
    uint64_t rows;

    /* To remove them; NULL: they are counted. */
    struct store *store;
    struct store_batch *batch;
    uint64_t in_batch; /* rows */
};

status stray_cells_has_mark(struct keyspace *keyspace, bytes row_key, bool *has)
{
    struct buffer key = {0};
    struct store_value value = {0};
    enum store_presence presence = STORE_ABSENT;
    row_record_key(&key, row_key);
    status s = key.failed ? status_out_of_memory()
                          : store_get(keyspace, NULL, buffer_bytes(&key), STORE_READ_ANY, &value,
                                      &presence);
    *has = presence == STORE_FOUND && fragment_has_overflow(value.bytes);
    store_value_release(&value);
    buffer_free(&key);
    if (s.code != STATUS_DATA_LOSS)
        return s;
    status_free(s); /* the row's record is out of service, which is told elsewhere: nobody knows */
    *has = true;
    return status_ok();
}

/* --- one row --- */

static status is_dropped(struct walk *walk, bool *dropped)
{
    bytes value = store_cursor_value(walk->cursor);
    bool is_left;
    TRY(row_leave_out_dropped(walk->drops, store_cursor_key(walk->cursor), &value, &walk->scratch,
                              &is_left));
    *dropped = !is_left;
    return status_ok();
}

/* Names the row of the cell at the cursor. */
static status find_row(struct walk *walk)
{
    bytes key = store_cursor_key(walk->cursor);
    buffer_clear(&walk->prefix);
    buffer_clear(&walk->row_key);
    buffer_clear(&walk->behind);
    buffer_append_bytes(&walk->prefix, bytes_make(key.data, overflow_owner_size(key)));
    bool parses = walk->prefix.size > 0 &&
                  overflow_owner_row(buffer_bytes(&walk->prefix), &walk->row_key) &&
                  key_after_prefix(&walk->behind, buffer_bytes(&walk->prefix));
    if (walk->prefix.failed || walk->row_key.failed || walk->behind.failed)
        return status_out_of_memory();
    return parses ? status_ok()
                  : status_make(STATUS_DATA_LOSS, "an overflow cell's key does not parse");
}

static status write_batch(struct walk *walk)
{
    if (walk->in_batch == 0)
        return status_ok();
    change_log_end(walk->batch, walk->system);
    TRY(store_write(walk->store, walk->batch, STORE_SYNCED));
    store_batch_clear(walk->batch);
    walk->rows += walk->in_batch;
    walk->in_batch = 0;
    return status_ok();
}

static status note_stray(struct walk *walk)
{
    if (walk->store == NULL) {
        walk->rows++;
        return status_ok();
    }
    store_batch_delete_range(walk->batch, walk->keyspace, buffer_bytes(&walk->prefix),
                             buffer_bytes(&walk->behind));
    walk->in_batch++;
    return walk->in_batch == ROWS_AT_ONCE ? write_batch(walk) : status_ok();
}

/* The cell at the cursor was not dropped. */
static status look_at_row(struct walk *walk)
{
    bool has_mark;
    TRY(find_row(walk));
    TRY(stray_cells_has_mark(walk->keyspace, buffer_bytes(&walk->row_key), &has_mark));
    if (!has_mark)
        TRY(note_stray(walk));
    store_cursor_seek(walk->cursor, buffer_bytes(&walk->behind));
    return status_ok();
}

/* --- all rows --- */

static status look_at_cell(struct walk *walk)
{
    bool dropped;
    TRY(is_dropped(walk, &dropped));
    if (!dropped)
        return look_at_row(walk);
    store_cursor_next(walk->cursor);
    return status_ok();
}

static status walk_cells(struct walk *walk)
{
    const struct store_cursor_options options = {
        .read_tier = STORE_READ_ANY, .bypasses_cache = true, .lower = bytes_of("S")};
    TRY(store_cursor_create(walk->keyspace, &options, &walk->cursor));
    store_cursor_first(walk->cursor);
    while (store_cursor_valid(walk->cursor))
        TRY(look_at_cell(walk));
    TRY(store_cursor_status(walk->cursor));
    return write_batch(walk);
}

static status load_and_walk(struct walk *walk)
{
    TRY(row_drops_create(&walk->drops));
    TRY(drop_records_load(walk->system, keyspace_id(walk->keyspace), walk->drops));
    return walk_cells(walk);
}

static status run(struct walk *walk, uint64_t *rows)
{
    status s = load_and_walk(walk);
    *rows = walk->rows;
    store_cursor_destroy(walk->cursor);
    row_drops_destroy(walk->drops);
    buffer_free(&walk->prefix);
    buffer_free(&walk->row_key);
    buffer_free(&walk->behind);
    buffer_free(&walk->scratch);
    return s;
}

status stray_cells_count(struct keyspace *keyspace, struct keyspace *system, uint64_t *rows)
{
    struct walk walk = {.keyspace = keyspace, .system = system};
    return run(&walk, rows);
}

status stray_cells_remove(struct store *store, struct keyspace *keyspace, struct keyspace *system,
                          uint64_t *rows)
{
    struct walk walk = {
        .keyspace = keyspace, .system = system, .store = store, .batch = store_batch_create()};
    *rows = 0;
    if (walk.batch == NULL)
        return status_out_of_memory();
    status s = run(&walk, rows);
    store_batch_destroy(walk.batch);
    return s;
}
