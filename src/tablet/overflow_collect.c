/* Collecting what a row with overflow cells has too many of: see overflow.h.
 *
 * Record and overflow cells are walked side by side, column by column, newest cells first. In a
 * column what the rule condemns is a tail: an older cell has more newer ones, and is older.
 *
 * Where deletions are recorded (overflow_condemn) both sides go by the same tombstone, which a
 * commit makes known; without overflow cells there is no cursor, and one side alone. */
#include "base/check.h"
#include "row/row_key.h"
#include "tablet/overflow.h"
#include "tablet/overflow_private.h"

enum {
    COLLECT_KEYS =
        4096, /* of overflow cells that one call looks at, and then its column to the end */
};

struct collection {
    bytes row_key;
    const struct row_rules *rules;
    int64_t now_us;
    struct overflow_place *place;
    size_t keys_left;
    /* the record */
    struct fragment_reader reader;
    bool has_hot;
    struct entry hot;
    /* the overflow cells */
    struct store_cursor *cursor; /* NULL: there are none */
    bool has_cold;
    struct entry cold;
    struct buffer scratch; /* of its key */
    struct buffer seek_key;
    /* the column it is in */
    uint32_t family; /* 0: none yet */
    struct buffer qualifier;
    const struct gc_rule *gc;
    int32_t newer;
    bool is_cut; /* the record's part of the tail is noted; if that is recorded, all of it */
    /* what is to be written */
    bool is_recorded;
    struct overflow_run run; /* unless it is recorded */
    struct fragment_writer cuts;
    struct buffer cut_qualifiers[2]; /* of the last two cuts that are recorded */
    unsigned cut_count;
};

/* --- the two sides --- */

static bool is_in_column(const struct collection *c, const struct entry *cell)
{
    return cell->family == c->family && bytes_equal(cell->qualifier, buffer_bytes(&c->qualifier));
}

static void next_hot(struct collection *c)
{
    c->has_hot = fragment_reader_next_place(&c->reader, &c->hot);
}

/* The cell under the cursor; those that are folded to nothing already are passed over. */
static status read_cold(struct collection *c)
{
    c->has_cold = false;
    if (c->cursor == NULL)
        return status_ok();
    for (; store_cursor_valid(c->cursor); store_cursor_next(c->cursor)) {
        struct overflow_key key;
        if (!overflow_key_parse(store_cursor_key(c->cursor), &c->scratch, &key))
            return c->scratch.failed ? status_out_of_memory()
                                     : status_make(STATUS_DATA_LOSS,
                                                   "The key of an overflow cell does not parse");
        if (!overflow_cell_read(&key, store_cursor_value(c->cursor), &c->cold, &c->has_cold))
            return status_make(STATUS_DATA_LOSS, "An overflow cell does not parse");
        if (c->has_cold)
            return status_ok();
    }
    return store_cursor_status(c->cursor);
}

static status next_cold(struct collection *c)
{
    c->keys_left -= c->keys_left > 0;
    store_cursor_next(c->cursor);
    return read_cold(c);
}

static status seek_cold(struct collection *c)
{
    if (c->seek_key.failed)
        return status_out_of_memory();
    if (c->cursor != NULL)
        store_cursor_seek(c->cursor, buffer_bytes(&c->seek_key));
    return read_cold(c);
}

/* To where the last call stopped; the record's entries before that were looked at, too. */
static status start(struct collection *c, bytes record)
{
    const struct overflow_place *place = c->place;
    bytes qualifier = buffer_bytes(&place->qualifier);
    buffer_clear(&c->seek_key);
    if (place->family == 0)
        overflow_row_prefix(&c->seek_key, c->row_key);
    else
        overflow_column_prefix(&c->seek_key, c->row_key, place->family, qualifier);
    TRY(seek_cold(c));
    if (!fragment_reader_start(&c->reader, record))
        return status_make(STATUS_DATA_LOSS, "The row's record does not parse");
    next_hot(c);
    while (c->has_hot &&
           (c->hot.family < place->family ||
            (c->hot.family == place->family && bytes_compare(c->hot.qualifier, qualifier) < 0)))
        next_hot(c);
    return status_ok();
}

/* --- columns --- */

static status enter_column(struct collection *c, const struct entry *cell)
{
    const struct family *family = schema_family(c->rules->schema, cell->family);
    if (!c->is_recorded)
        TRY(overflow_run_end(&c->run, bytes_make(NULL, 0)));
    c->family = cell->family;
    buffer_clear(&c->qualifier);
    buffer_append_bytes(&c->qualifier, cell->qualifier);
    c->gc = family == NULL ? NULL : family->gc;
    c->newer = 0;
    c->is_cut = false;
    return c->qualifier.failed ? status_out_of_memory() : status_ok();
}

/* Notes that the next call begins with this cell's column. */
static status stop_before(struct collection *c, const struct entry *cell)
{
    DCHECK(cell->family != 0);
    c->place->is_over = false;
    c->place->family = cell->family;
    buffer_clear(&c->place->qualifier);
    buffer_append_bytes(&c->place->qualifier, cell->qualifier);
    return c->place->qualifier.failed ? status_out_of_memory() : status_ok();
}

/* The record's cells from here on in the column go by a tombstone. */
static void cut_hot(struct collection *c)
{
    DCHECK(c->has_hot && is_in_column(c, &c->hot));
    const struct entry cut = {.kind = ENTRY_COLUMN_TOMBSTONE,
                              .family = c->family,
                              .qualifier = c->hot.qualifier,
                              .end_us = schema_time_behind(c->rules->schema, c->hot.timestamp_us)};
    if (!c->is_cut)
        fragment_writer_add(&c->cuts, &cut);
    c->is_cut = true;
}

/* `seek_key`: behind the column's overflow cells. */
static status seek_behind_column(struct collection *c)
{
    struct buffer prefix = {0};
    overflow_column_prefix(&prefix, c->row_key, c->family, buffer_bytes(&c->qualifier));
    buffer_clear(&c->seek_key);
    if (!prefix.failed)
        key_after_prefix(&c->seek_key, buffer_bytes(&prefix));
    bool failed = prefix.failed || c->seek_key.failed;
    buffer_free(&prefix);
    return failed ? status_out_of_memory() : status_ok();
}

/* Notes that the overflow cell goes. Once there are many, all that follow in the column do so
 * without a look at each. */
static status cut_cold(struct collection *c)
{
    DCHECK(!c->is_recorded && c->has_cold);
    overflow_run_extend(&c->run, store_cursor_key(c->cursor));
    if (!overflow_run_is_long(&c->run))
        return next_cold(c);
    TRY(seek_behind_column(c));
    TRY(overflow_run_end(&c->run, buffer_bytes(&c->seek_key)));
    return seek_cold(c);
}

/* The column's cells from this time back go by one tombstone. The writer looks at the last one's
 * qualifier once more. */
static status cut_column(struct collection *c, int64_t newest_us)
{
    DCHECK(c->is_recorded && !c->is_cut);
    struct buffer *qualifier = &c->cut_qualifiers[c->cut_count++ % 2];
    buffer_clear(qualifier);
    buffer_append_bytes(qualifier, buffer_bytes(&c->qualifier));
    const struct entry cut = {.kind = ENTRY_COLUMN_TOMBSTONE,
                              .family = c->family,
                              .qualifier = buffer_bytes(qualifier),
                              .end_us = schema_time_behind(c->rules->schema, newest_us)};
    fragment_writer_add(&c->cuts, &cut);
    c->is_cut = true;
    return qualifier->failed ? status_out_of_memory() : status_ok();
}

/* The same as look_at_place, in a column that the place is in, where deletions are recorded. */
static status record_place(struct collection *c, const struct entry *cell, bool is_hot,
                           bool is_cold)
{
    bool goes = c->is_cut || gc_condemns(c->gc, cell->timestamp_us, c->newer++, c->now_us);
    if (goes && !c->is_cut)
        TRY(cut_column(c, cell->timestamp_us));
    if (is_hot)
        next_hot(c);
    if (is_cold && goes) {
        c->keys_left -= c->keys_left > 0;
        TRY(seek_behind_column(c));
        return seek_cold(c);
    }
    return is_cold ? next_cold(c) : status_ok();
}

/* Whether folds collect all that goes of the family: its rule counts no versions. */
static bool is_for_folds(const struct collection *c, uint32_t id)
{
    const struct family *family = schema_family(c->rules->schema, id);
    return !c->is_recorded && family != NULL && !gc_counts_versions(family->gc);
}

/* Passes what both sides have of the family. */
static status pass_family(struct collection *c, uint32_t id)
{
    TRY(overflow_run_end(&c->run, bytes_make(NULL, 0)));
    if (c->has_hot && c->hot.family == id) {
        fragment_reader_seek_family(&c->reader, id + 1);
        next_hot(c);
    }
    if (!c->has_cold || c->cold.family != id)
        return status_ok();
    buffer_clear(&c->seek_key);
    overflow_column_prefix(&c->seek_key, c->row_key, id + 1, bytes_make(NULL, 0));
    return seek_cold(c);
}

/* One place of the row: a cell of the record, an overflow cell, or both, which count as one. */
static status look_at_place(struct collection *c, bool is_hot, bool is_cold)
{
    DCHECK((is_hot && c->has_hot) || (is_cold && c->has_cold));
    const struct entry *cell = is_hot ? &c->hot : &c->cold;
    if (!is_in_column(c, cell))
        TRY(enter_column(c, cell));
    if (c->is_recorded)
        return record_place(c, cell, is_hot, is_cold);
    bool goes = gc_condemns(c->gc, cell->timestamp_us, c->newer++, c->now_us);
    if (is_hot && goes)
        cut_hot(c);
    if (is_hot)
        next_hot(c);
    if (!is_cold)
        return status_ok();
    if (goes)
        return cut_cold(c);
    TRY(overflow_run_end(&c->run, bytes_make(NULL, 0)));
    return next_cold(c);
}

static status walk(struct collection *c)
{
    while (c->has_hot || c->has_cold) {
        int order = !c->has_hot ? 1 : !c->has_cold ? -1 : entry_compare(&c->hot, &c->cold);
        const struct entry *cell = order <= 0 ? &c->hot : &c->cold;
        if (c->keys_left == 0 && !is_in_column(c, cell))
            return stop_before(c, cell);
        TRY(is_for_folds(c, cell->family) ? pass_family(c, cell->family)
                                          : look_at_place(c, order <= 0, order >= 0));
    }
    return c->reader.is_bad ? status_make(STATUS_DATA_LOSS, "The row's record does not parse")
                            : status_ok();
}

static void free_collection(struct collection *c)
{
    store_cursor_destroy(c->cursor);
    buffer_free(&c->scratch);
    buffer_free(&c->seek_key);
    buffer_free(&c->qualifier);
    buffer_free(&c->cut_qualifiers[0]);
    buffer_free(&c->cut_qualifiers[1]);
    overflow_run_free(&c->run);
}

/* Does it, and frees what it took. */
static status collect(struct collection *c, struct keyspace *keyspace, bytes record,
                      struct buffer *cuts)
{
    c->now_us = clock_wall_us(c->rules->clock);
    c->keys_left = COLLECT_KEYS;
    c->place->is_over = true;
    fragment_writer_start(&c->cuts, cuts, 0);
    status s = status_ok();
    if (!c->is_recorded || fragment_has_overflow(record))
        s = overflow_cursor_create(keyspace, c->row_key, c->place->bypasses_cache, &c->cursor);
    if (status_is_ok(s))
        s = start(c, record);
    if (status_is_ok(s))
        s = walk(c);
    if (status_is_ok(s) && !c->is_recorded)
        s = overflow_run_end(&c->run, bytes_make(NULL, 0));
    fragment_writer_finish(&c->cuts);
    if (status_is_ok(s) && cuts->failed)
        s = status_out_of_memory();
    free_collection(c);
    return s;
}

status overflow_collect(struct keyspace *keyspace, bytes row_key, bytes record,
                        const struct row_rules *rules, struct overflow_place *place,
                        struct deferred_batch *out, struct buffer *cuts)
{
    struct collection c = {.row_key = row_key, .rules = rules, .place = place, .run.out = out};
    return collect(&c, keyspace, record, cuts);
}

status overflow_condemn(struct keyspace *keyspace, bytes row_key, bytes record,
                        const struct row_rules *rules, struct overflow_place *place,
                        struct buffer *cuts)
{
    struct collection c = {.row_key = row_key, .rules = rules, .place = place, .is_recorded = true};
    return collect(&c, keyspace, record, cuts);
}
