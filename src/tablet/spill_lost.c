/* What the record has at the places of spilled cells that are lost: see spill.h. */
#include "row/row_key.h"
#include "tablet/spill.h"

struct cutting {
    bytes row_key;
    bytes from; /* keys of spilled cells that are lost */
    bytes to;
    uint64_t newest_mark; /* no spilled cell is newer */
    struct buffer key;
    struct entry last; /* that was cut */
    struct fragment_writer cuts;
};

static bool is_newer_than_spilled(const struct cutting *cutting, const struct entry *cell)
{
    return cell->kind == ENTRY_CELL && cell->version >= cutting->newest_mark;
}

static bool is_place_lost(struct cutting *cutting, const struct entry *cell)
{
    buffer_clear(&cutting->key);
    spill_cell_key(&cutting->key, cutting->row_key, cell->family, cell->qualifier,
                   cell->timestamp_us);
    bytes key = buffer_bytes(&cutting->key);
    return !cutting->key.failed && bytes_compare(key, cutting->from) >= 0 &&
           bytes_compare(key, cutting->to) < 0;
}

/* The cells of a column come newest first, its tombstones would have to come oldest first. */
static bool is_column_cut(const struct cutting *cutting, const struct entry *cell)
{
    return cutting->last.family == cell->family &&
           bytes_equal(cutting->last.qualifier, cell->qualifier);
}

static void look_at_cell(struct cutting *cutting, const struct entry *cell)
{
    if (is_newer_than_spilled(cutting, cell) || is_column_cut(cutting, cell) ||
        !is_place_lost(cutting, cell))
        return;
    const struct entry cut = {.kind = ENTRY_COLUMN_TOMBSTONE,
                              .family = cell->family,
                              .qualifier = cell->qualifier,
                              .timestamp_us = cell->timestamp_us,
                              .end_us = cell->timestamp_us + 1};
    fragment_writer_add(&cutting->cuts, &cut);
    cutting->last = cut;
}

status spill_cut_lost(bytes row_key, bytes record, bytes from, bytes to, struct buffer *cuts)
{
    struct cutting cutting = {.row_key = row_key, .from = from, .to = to};
    struct fragment_reader reader;
    struct entry entry;
    bool is_bad = !fragment_reader_start(&reader, record);
    fragment_writer_start(&cutting.cuts, cuts, 0);
    while (!is_bad && fragment_reader_next(&reader, &entry)) {
        if (entry.kind == ENTRY_SPILL_MARK)
            cutting.newest_mark = entry.version;
        else if (entry_is_cell(entry.kind))
            look_at_cell(&cutting, &entry);
    }
    is_bad = is_bad || reader.is_bad;
    fragment_writer_finish(&cutting.cuts);
    bool failed = cutting.key.failed || cuts->failed;
    buffer_free(&cutting.key);
    if (is_bad)
        return status_make(STATUS_DATA_LOSS, "The row's record does not parse");
    return failed ? status_out_of_memory() : status_ok();
}
