/* Overflowing: see resolve.h. */
#include "base/check.h"
#include "row/combine.h"
#include "row/resolve.h"

void overflow_cell_write(struct buffer *out, enum entry_kind kind, uint64_t version, uint64_t after,
                         bytes value)
{
    DCHECK(entry_is_cell(kind) && (after == 0 || after <= version));
    struct entry tombstone = {.kind = ENTRY_ROW_TOMBSTONE, .version = after};
    struct entry cell = {.kind = kind, .version = version, .value = value};
    struct fragment_writer writer;
    fragment_writer_start(&writer, out, version);
    if (after != 0)
        fragment_writer_add(&writer, &tombstone);
    fragment_writer_add(&writer, &cell);
    fragment_writer_finish(&writer);
}

bool overflow_cell_read(const struct overflow_key *key, bytes value, struct entry *cell,
                        bool *found)
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
    return entry_is_cell(cell->kind) && (reader.at == reader.end || fragment_has_apart(value));
}

struct overflow_writer {
    struct combiner combiner;
    status (*visit)(void *context, const struct entry *cell, bytes operand);
    void *context;
    struct buffer operand;
    uint64_t newest;
    status result;
};

/* A plain cell replaces an older one wherever that is. An aggregate adds to what its record has, so
 * its operand must say which tombstone came between. */
static bool overflow_entry(void *context, const struct entry *entry)
{
    struct overflow_writer *overflow_writer = context;
    uint64_t after = 0;
    if (!entry_is_cell(entry->kind))
        return true;
    if (entry->kind != ENTRY_CELL &&
        !combiner_tombstone_over(&overflow_writer->combiner, entry, &after))
        return false;
    buffer_clear(&overflow_writer->operand);
    overflow_cell_write(&overflow_writer->operand, entry->kind, entry->version, after,
                        entry->value);
    if (overflow_writer->operand.failed) {
        overflow_writer->result = status_out_of_memory();
        return false;
    }
    DCHECK(fragment_is_sound(buffer_bytes(&overflow_writer->operand)));
    if (entry->version > overflow_writer->newest)
        overflow_writer->newest = entry->version;
    overflow_writer->result = overflow_writer->visit(overflow_writer->context, entry,
                                                     buffer_bytes(&overflow_writer->operand));
    return status_is_ok(overflow_writer->result);
}

static status bad_record(void)
{
    return status_make(STATUS_DATA_LOSS, "the row's record does not parse");
}

/* What is apart in the record stays so. False when something failed; `visit` has left its word in
 * `result`. */
static bool overflow_all(struct overflow_writer *overflow_writer, struct fragment_reader *reader)
{
    DCHECK(overflow_writer->newest == 0);
    struct entry entry;
    while (fragment_reader_next(reader, &entry))
        if (!combiner_add_apart(&overflow_writer->combiner, &entry, 0))
            return false;
    return !reader->is_bad && combiner_finish(&overflow_writer->combiner);
}

status row_overflow_cells(bytes record,
                          status (*visit)(void *context, const struct entry *cell, bytes operand),
                          void *context, uint64_t *newest)
{
    struct overflow_writer overflow_writer = {.visit = visit, .context = context};
    struct fragment_reader reader;
    *newest = 0;
    if (!fragment_reader_start(&reader, record))
        return bad_record();
    combiner_start(&overflow_writer.combiner, overflow_entry, &overflow_writer);
    bool ok = overflow_all(&overflow_writer, &reader);
    combiner_free(&overflow_writer.combiner);
    buffer_free(&overflow_writer.operand);
    if (ok)
        *newest = overflow_writer.newest;
    else if (overflow_writer.combiner.out_of_memory)
        return status_out_of_memory();
    else if (status_is_ok(overflow_writer.result))
        return bad_record();
    return overflow_writer.result;
}

/* Whether cells of the column right before this one in time, and so all before, are condemned by
 * the number of newer cells, and not by their age alone, which any fold sees. */
static bool condemns_older(const struct gc_rule *gc, const struct entry *cell, int32_t newer,
                           int64_t now_us)
{
    DCHECK(newer > 0);
    return cell->timestamp_us > 0 && gc_condemns(gc, cell->timestamp_us - 1, newer, now_us) &&
           !gc_condemns(gc, cell->timestamp_us - 1, 0, now_us);
}

/* Where a walk over cells is: in which column, and how many of its cells it has passed. */
struct place {
    const struct family *family; /* NULL: of none that there is */
    struct entry column;
    int32_t newer;
};

/* Whether the cell is the first of another column, which the walk is in then. */
static bool enter_column(struct place *at, const struct schema *schema, const struct entry *cell)
{
    DCHECK(entry_is_cell(cell->kind));
    if (cell->family == at->column.family && bytes_equal(cell->qualifier, at->column.qualifier))
        return false;
    *at = (struct place){.family = schema_family(schema, cell->family), .column = *cell};
    return true;
}

status row_overflow_condemned(bytes record, const struct schema *schema, int64_t now_us,
                              status (*visit)(void *context, const struct entry *range),
                              void *context)
{
    struct fragment_reader reader;
    struct entry cell = {0};
    struct place at = {0};
    bool is_cut = false; /* the column's range was found */
    if (!fragment_reader_start(&reader, record))
        return bad_record();
    while (fragment_reader_next_place(&reader, &cell)) {
        if (enter_column(&at, schema, &cell))
            is_cut = false;
        at.newer++;
        if (is_cut || at.family == NULL || !condemns_older(at.family->gc, &cell, at.newer, now_us))
            continue;
        is_cut = true;
        struct entry range = {.kind = ENTRY_COLUMN_TOMBSTONE,
                              .family = cell.family,
                              .qualifier = cell.qualifier,
                              .end_us = cell.timestamp_us,
                              .version = UINT64_MAX};
        TRY(visit(context, &range));
    }
    return reader.is_bad ? bad_record() : status_ok();
}

status row_find_condemned(bytes record, const struct schema *schema, int64_t now_us, bool *found)
{
    struct fragment_reader reader;
    struct entry cell = {0};
    struct place at = {0};
    *found = false;
    if (!fragment_reader_start(&reader, record))
        return bad_record();
    while (!*found && fragment_reader_next_place(&reader, &cell)) {
        (void)enter_column(&at, schema, &cell);
        *found =
            at.family != NULL && gc_condemns(at.family->gc, cell.timestamp_us, at.newer++, now_us);
    }
    return reader.is_bad ? bad_record() : status_ok();
}

void row_overflow_mark(struct buffer *out, uint64_t version, uint64_t moved, uint64_t purged,
                       bool has_overflow)
{
    DCHECK(moved <= version && purged <= version);
    struct entry mark = {.kind = ENTRY_OVERFLOW_MARK,
                         .version = version,
                         .moved = moved,
                         .purged = purged,
                         .has_overflow = has_overflow};
    struct fragment_writer writer;
    fragment_writer_start(&writer, out, version);
    fragment_writer_add(&writer, &mark);
    fragment_writer_finish(&writer);
}
