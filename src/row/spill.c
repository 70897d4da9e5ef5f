/* Spilling: see resolve.h. */
#include "row/combine.h"
#include "row/resolve.h"

void spilled_cell_write(struct buffer *out, enum entry_kind kind, uint64_t version, uint64_t after,
                        bytes value)
{
    struct entry tombstone = {.kind = ENTRY_ROW_TOMBSTONE, .version = after};
    struct entry cell = {.kind = kind, .version = version, .value = value};
    struct fragment_writer writer;
    fragment_writer_start(&writer, out, version);
    if (after != 0)
        fragment_writer_add(&writer, &tombstone);
    fragment_writer_add(&writer, &cell);
    fragment_writer_finish(&writer);
}

bool spilled_cell_read(const struct spill_key *key, bytes value, struct entry *cell, bool *found)
{
    struct fragment_reader reader;
    if (!fragment_reader_start(&reader, value))
        return false;
    *found = fragment_reader_next(&reader, cell);
    if (!*found)
        return !reader.is_bad;
    cell->family = key->family;
    cell->qualifier = key->qualifier;
    cell->timestamp_us = key->timestamp_us;
    return entry_is_cell(cell->kind) && reader.at == reader.end;
}

struct spiller {
    struct combiner combiner;
    status (*visit)(void *context, const struct entry *cell, bytes operand);
    void *context;
    struct buffer operand;
    uint64_t newest;
    status result;
};

/* A plain cell replaces an older one wherever that is. An aggregate adds to what its record has, so
 * its operand must say which tombstone came between. */
static bool spill_entry(void *context, const struct entry *entry)
{
    struct spiller *spiller = context;
    uint64_t after = 0;
    if (!entry_is_cell(entry->kind))
        return true;
    if (entry->kind != ENTRY_CELL && !combiner_tombstone_over(&spiller->combiner, entry, &after))
        return false;
    buffer_clear(&spiller->operand);
    spilled_cell_write(&spiller->operand, entry->kind, entry->version, after, entry->value);
    if (spiller->operand.failed)
        return false;
    if (entry->version > spiller->newest)
        spiller->newest = entry->version;
    spiller->result = spiller->visit(spiller->context, entry, buffer_bytes(&spiller->operand));
    return status_is_ok(spiller->result);
}

status row_spill_cells(bytes record,
                       status (*visit)(void *context, const struct entry *cell, bytes operand),
                       void *context, uint64_t *newest)
{
    struct spiller spiller = {.visit = visit, .context = context};
    struct fragment_reader reader;
    struct entry entry;
    bool ok = true;
    *newest = 0;
    if (!fragment_reader_start(&reader, record))
        return status_make(STATUS_DATA_LOSS, "the row's record does not parse");
    combiner_start(&spiller.combiner, spill_entry, &spiller);
    while (ok && fragment_reader_next(&reader, &entry))
        ok = combiner_add(&spiller.combiner, &entry);
    ok = ok && !reader.is_bad && combiner_finish(&spiller.combiner);
    combiner_free(&spiller.combiner);
    buffer_free(&spiller.operand);
    if (!status_is_ok(spiller.result))
        return spiller.result;
    if (reader.is_bad)
        return status_make(STATUS_DATA_LOSS, "the row's record does not parse");
    *newest = spiller.newest;
    return ok ? status_ok() : status_out_of_memory();
}

void row_spill_mark(struct buffer *out, uint64_t version, uint64_t moved, uint64_t purged,
                    bool has_spilled)
{
    struct entry mark = {.kind = ENTRY_SPILL_MARK,
                         .version = version,
                         .moved = moved,
                         .purged = purged,
                         .has_spilled = has_spilled};
    struct fragment_writer writer;
    fragment_writer_start(&writer, out, version);
    fragment_writer_add(&writer, &mark);
    fragment_writer_finish(&writer);
}
