/* Overflow cells that are lost: what the record has at their places, and what another store has
 * that has the row as it was. See overflow.h. */
#include "row/combine.h"
#include "row/row_key.h"
#include "tablet/overflow.h"
#include "tablet/overflow_reader.h"

static status bad_record(void)
{
    return status_make(STATUS_DATA_LOSS, "The row's record does not parse");
}

/* --- what the record has --- */

struct cutting {
    const struct lost_overflow *lost;
    uint64_t newest_mark; /* no overflow cell is newer */
    struct buffer key;
    struct fragment_writer rest;
    bool has_cut;
};

static bool is_newer_than_overflow(const struct cutting *cutting, const struct entry *cell)
{
    return cell->kind == ENTRY_CELL && cell->version >= cutting->newest_mark;
}

static bool is_lost(const struct lost_overflow *lost, bytes key)
{
    return bytes_compare(key, lost->from) >= 0 && bytes_compare(key, lost->to) < 0;
}

static bool is_place_lost(struct cutting *cutting, const struct entry *cell)
{
    buffer_clear(&cutting->key);
    overflow_cell_key(&cutting->key, cutting->lost->row_key, cell->family, cell->qualifier,
                      cell->timestamp_us);
    return !cutting->key.failed && is_lost(cutting->lost, buffer_bytes(&cutting->key));
}

static void take_or_cut(struct cutting *cutting, const struct entry *entry)
{
    if (entry->kind == ENTRY_OVERFLOW_MARK)
        cutting->newest_mark = entry->version;
    bool is_cut = entry_is_cell(entry->kind) && !is_newer_than_overflow(cutting, entry) &&
                  is_place_lost(cutting, entry);
    if (is_cut)
        cutting->has_cut = true;
    else
        fragment_writer_add(&cutting->rest, entry);
}

status overflow_cut_lost(const struct lost_overflow *lost, bytes record, struct buffer *rest,
                         bool *has_cut)
{
    struct cutting cutting = {.lost = lost};
    struct fragment_reader reader;
    struct entry entry;
    *has_cut = false;
    if (!fragment_reader_start(&reader, record))
        return bad_record();
    fragment_writer_start(&cutting.rest, rest, reader.base_version);
    while (fragment_reader_next(&reader, &entry))
        take_or_cut(&cutting, &entry);
    fragment_writer_finish(&cutting.rest);
    *has_cut = cutting.has_cut;
    bool failed = cutting.key.failed || rest->failed;
    buffer_free(&cutting.key);
    if (reader.is_bad)
        return bad_record();
    return failed ? status_out_of_memory() : status_ok();
}

/* --- what another store has --- */

/* The former record's tombstones, as far as the overflow cells have come. */
struct former {
    struct fragment_reader reader;
    struct entry next;
    bool has_next;
    struct combiner combiner;
};

static bool ignore(void *context, const struct entry *entry)
{
    (void)context, (void)entry;
    return true;
}

static bool former_start(struct former *former, bytes record)
{
    combiner_start(&former->combiner, ignore, NULL);
    bool parses = fragment_reader_start(&former->reader, record);
    former->has_next = parses && fragment_reader_next(&former->reader, &former->next);
    return parses;
}

/* The mark is not for the combiner, which would ignore what follows. */
static bool take_until(struct former *former, const struct entry *cell)
{
    bool ok = true;
    while (ok && former->has_next && entry_compare(&former->next, cell) <= 0) {
        bool is_tombstone =
            !entry_is_cell(former->next.kind) && former->next.kind != ENTRY_OVERFLOW_MARK;
        ok = !is_tombstone || combiner_add(&former->combiner, &former->next);
        former->has_next = fragment_reader_next(&former->reader, &former->next);
    }
    return ok;
}

static status is_covered(struct former *former, const struct entry *cell, bool *covered)
{
    uint64_t version = 0;
    if (!take_until(former, cell) || !combiner_tombstone_over(&former->combiner, cell, &version))
        return status_out_of_memory();
    *covered = cell->version < version;
    return former->reader.is_bad ? bad_record() : status_ok();
}

struct former_cells {
    const struct lost_overflow *lost;
    struct former former;
    struct store_cursor *cursor;
    struct buffer scratch;
    overflow_visit *visit;
    void *context;
};

static status visit_former(struct former_cells *cells)
{
    bytes key = store_cursor_key(cells->cursor), value = store_cursor_value(cells->cursor);
    struct overflow_key parsed;
    struct entry cell;
    bool found = false, covered = true;
    if (!overflow_key_parse(key, &cells->scratch, &parsed))
        return cells->scratch.failed
                   ? status_out_of_memory()
                   : status_make(STATUS_DATA_LOSS, "The key of an overflow cell does not parse");
    if (!overflow_cell_read(&parsed, value, &cell, &found))
        return status_make(STATUS_DATA_LOSS, "An overflow cell does not parse");
    if (found)
        TRY(is_covered(&cells->former, &cell, &covered));
    return covered ? status_ok() : cells->visit(cells->context, key, value);
}

static status visit_all(struct former_cells *cells)
{
    status s = status_ok();
    store_cursor_first(cells->cursor);
    for (; status_is_ok(s) && store_cursor_valid(cells->cursor); store_cursor_next(cells->cursor))
        s = visit_former(cells);
    return status_is_ok(s) ? store_cursor_status(cells->cursor) : s;
}

/* The row's, as far as they are lost. */
static status open_former(struct former_cells *cells, struct keyspace *keyspace)
{
    struct buffer lower = {0}, upper = {0};
    overflow_row_prefix(&lower, cells->lost->row_key);
    if (!lower.failed)
        key_after_prefix(&upper, buffer_bytes(&lower));
    bytes from = buffer_bytes(&lower), to = buffer_bytes(&upper);
    const struct store_cursor_options options = {
        .lower = bytes_compare(from, cells->lost->from) > 0 ? from : cells->lost->from,
        .upper = bytes_compare(to, cells->lost->to) < 0 ? to : cells->lost->to,
        .read_tier = STORE_READ_ANY,
        .bypasses_cache = true};
    status s = lower.failed || upper.failed
                   ? status_out_of_memory()
                   : store_cursor_create(keyspace, &options, &cells->cursor);
    buffer_free(&lower);
    buffer_free(&upper);
    return s;
}

status overflow_visit_former(const struct lost_overflow *lost, struct keyspace *former,
                             bytes record, overflow_visit *visit, void *context)
{
    struct former_cells cells = {.lost = lost, .visit = visit, .context = context};
    if (!fragment_has_overflow(record))
        return status_ok();
    if (!former_start(&cells.former, record))
        return bad_record();
    status s = open_former(&cells, former);
    if (status_is_ok(s))
        s = visit_all(&cells);
    store_cursor_destroy(cells.cursor);
    buffer_free(&cells.scratch);
    combiner_free(&cells.former.combiner);
    return s;
}

/* --- what the former record has --- */

struct moved_cells {
    const struct lost_overflow *lost;
    uint64_t moved;
    struct buffer key;
    overflow_visit *visit;
    void *context;
};

static status visit_moved(void *context, const struct entry *cell, bytes operand)
{
    struct moved_cells *cells = context;
    if (cell->version > cells->moved)
        return status_ok();
    buffer_clear(&cells->key);
    overflow_cell_key(&cells->key, cells->lost->row_key, cell->family, cell->qualifier,
                      cell->timestamp_us);
    if (cells->key.failed)
        return status_out_of_memory();
    bytes key = buffer_bytes(&cells->key);
    return is_lost(cells->lost, key) ? cells->visit(cells->context, key, operand) : status_ok();
}

status overflow_visit_moved(const struct lost_overflow *lost, bytes record, uint64_t moved,
                            overflow_visit *visit, void *context)
{
    struct moved_cells cells = {.lost = lost, .moved = moved, .visit = visit, .context = context};
    uint64_t newest;
    status s = row_overflow_cells(record, visit_moved, &cells, &newest);
    buffer_free(&cells.key);
    return s;
}
