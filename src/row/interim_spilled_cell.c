/* Spilled cells, one by one, and how a record's cells become spilled: see resolve.h. */
#include "row/interim_combine.h"
#include "row/resolve.h"

void spilled_cell_write(struct buffer *out, enum entry_kind kind, uint64_t version, uint64_t after,
                        bytes value)
{
    struct fragment_writer writer;
    fragment_writer_start(&writer, out, version);
    if (after > 0)
        fragment_writer_add(&writer,
                            &(struct entry){.kind = ENTRY_ROW_TOMBSTONE, .version = after});
    fragment_writer_add(&writer, &(struct entry){.kind = kind, .version = version, .value = value});
    fragment_writer_finish(&writer);
}

bool spilled_cell_read(const struct spill_key *key, bytes value, struct entry *cell, bool *found)
{
    struct fragment_reader reader;
    *found = false;
    if (!fragment_reader_start(&reader, value))
        return false;
    while (!*found && fragment_reader_next(&reader, cell))
        *found = entry_is_cell(cell->kind);
    cell->family = key->family;
    cell->qualifier = key->qualifier;
    cell->timestamp_us = key->timestamp_us;
    return !reader.is_bad;
}

/* --- spilling a record --- */

struct spilling {
    struct combiner combiner;
    status (*visit)(void *context, const struct entry *cell, bytes operand);
    void *context;
    struct buffer operand;
    uint64_t newest;
    status failure;
};

/* A cell of the record is newer than the tombstones that the record still has for its place, and
 * what is spilled there already may be older: the operand takes the tombstone along, so that an
 * aggregate does not add up across it. */
static void spill_entry(struct combiner *combiner, const struct entry *entry)
{
    struct spilling *spilling = (struct spilling *)combiner;
    if (!entry_is_cell(entry->kind) || !status_is_ok(spilling->failure))
        return;
    uint64_t after = combine_covering(combiner, entry->timestamp_us);
    buffer_clear(&spilling->operand);
    spilled_cell_write(&spilling->operand, entry->kind, entry->version, after, entry->value);
    if (spilling->operand.failed)
        combiner->is_failed = true;
    else
        spilling->failure =
            spilling->visit(spilling->context, entry, buffer_bytes(&spilling->operand));
    if (entry->version > spilling->newest)
        spilling->newest = entry->version;
}

static status spill_all(struct spilling *spilling, bytes record)
{
    struct fragment_reader reader;
    struct entry entry;
    if (!fragment_reader_start(&reader, record))
        return status_make(STATUS_DATA_LOSS, "The record does not parse");
    while (fragment_reader_next(&reader, &entry))
        combine_add(&spilling->combiner, &entry);
    combine_finish(&spilling->combiner);
    TRY(spilling->failure);
    if (spilling->combiner.is_failed)
        return status_out_of_memory();
    if (reader.is_bad || spilling->combiner.is_bad)
        return status_make(STATUS_DATA_LOSS, "The record does not parse");
    return status_ok();
}

status row_spill_cells(bytes record,
                       status (*visit)(void *context, const struct entry *cell, bytes operand),
                       void *context, uint64_t *newest)
{
    struct spilling spilling = {.combiner = {.emit = spill_entry},
                                .visit = visit,
                                .context = context,
                                .failure = status_ok()};
    status s = spill_all(&spilling, record);
    *newest = spilling.newest;
    buffer_free(&spilling.operand);
    return s;
}

void row_spill_mark(struct buffer *out, uint64_t version, uint64_t moved, uint64_t purged,
                    bool has_spilled)
{
    struct fragment_writer writer;
    fragment_writer_start(&writer, out, version);
    fragment_writer_add(&writer, &(struct entry){.kind = ENTRY_SPILL_MARK,
                                                 .has_spilled = has_spilled,
                                                 .version = version,
                                                 .moved = moved,
                                                 .purged = purged});
    fragment_writer_finish(&writer);
}
