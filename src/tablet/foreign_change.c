/* See foreign_change.h. */
#include "tablet/foreign_change.h"

#include "base/check.h"
#include "row/resolve.h"
#include "row/row_key.h"
#include "tablet/overflow.h"

void foreign_change_free(struct foreign_change *change)
{
    buffer_free(&change->record);
    deferred_batch_free(&change->overflows);
}

void foreign_change_write(const struct foreign_change *change, struct keyspace *keyspace,
                          bytes record_key, struct store_batch *batch)
{
    DCHECK(fragment_is_sound(buffer_bytes(&change->record)));
    bytes record = buffer_bytes(&change->record);
    deferred_batch_replay(&change->overflows, keyspace, batch);
    if (fragment_is_empty(record))
        store_batch_delete(batch, keyspace, record_key);
    else
        store_batch_put(batch, keyspace, record_key, record);
}

/* --- parts of fragments --- */

static status bad_change(void)
{
    return status_make(STATUS_DATA_LOSS, "a row's record, or a change of it, does not parse");
}

/* Whether the record has the add, which was delivered before. */
static bool has_add(bytes record, const struct entry *add)
{
    struct fragment_reader reader;
    struct entry entry;
    if (record.size == 0 || !fragment_reader_start(&reader, record))
        return false;
    while (fragment_reader_next(&reader, &entry))
        if (entry.kind == add->kind && entry.version == add->version &&
            entry_compare(&entry, add) == 0)
            return true;
    return false;
}

static bool is_tombstone(bytes record, const struct entry *entry)
{
    (void)record;
    return entry->kind != ENTRY_OVERFLOW_MARK && !entry_is_cell(entry->kind);
}

/* A cell, except an add that the record has: as an overflow cell it would count once more. */
static bool is_new_cell(bytes record, const struct entry *entry)
{
    return entry_is_cell(entry->kind) && !(entry_is_add(entry->kind) && has_add(record, entry));
}

/* Writes the entries of the fragment that are wanted. */
static status write_part(bytes fragment, bool (*wants)(bytes record, const struct entry *entry),
                         bytes record, struct buffer *out)
{
    struct fragment_reader reader;
    struct fragment_writer writer;
    struct entry entry;
    if (!fragment_reader_start(&reader, fragment))
        return bad_change();
    fragment_writer_start(&writer, out, reader.base_version);
    while (fragment_reader_next(&reader, &entry))
        if (wants(record, &entry))
            fragment_writer_add(&writer, &entry);
    fragment_writer_finish(&writer);
    if (reader.is_bad)
        return bad_change();
    return out->failed ? status_out_of_memory() : status_ok();
}

static void write_nothing(struct buffer *out)
{
    struct fragment_writer writer;
    fragment_writer_start(&writer, out, 0);
    fragment_writer_finish(&writer);
}

static void write_big_cells(const struct packed_change *change, uint64_t version,
                            struct buffer *out)
{
    struct fragment_writer writer;
    fragment_writer_start(&writer, out, version);
    for (size_t i = 0; i < change->big_count; i++) {
        const struct big_cell *big = &change->big[i];
        const struct entry cell = {.kind = ENTRY_CELL,
                                   .family = big->family,
                                   .qualifier = big->qualifier,
                                   .timestamp_us = big->timestamp_us,
                                   .version = version,
                                   .value = big->value};
        fragment_writer_add(&writer, &cell);
    }
    fragment_writer_finish(&writer);
}

/* The record's mark with overflow cells from now on, if not before: as new as the newest of them
 * may be. */
static void write_mark(bytes record, uint64_t version, struct buffer *out)
{
    struct fragment_reader reader;
    struct entry mark;
    bool has_mark = fragment_reader_start(&reader, record) &&
                    fragment_reader_next(&reader, &mark) && mark.kind == ENTRY_OVERFLOW_MARK;
    if (!has_mark)
        mark = (struct entry){.version = 0};
    if (mark.version < version)
        mark.version = version;
    row_overflow_mark(out, mark.version, mark.moved, mark.purged, true);
}

/* --- what the row comes to --- */

static status fold_record(const struct row_rules *rules, bytes row_key,
                          const struct store_history *of, struct buffer *out)
{
    struct buffer key = {0};
    struct store_history history = *of;
    bytes same = bytes_make(NULL, 0);
    row_record_key(&key, row_key);
    history.key = buffer_bytes(&key);
    bool ok = !key.failed && row_fold.whole(rules, &history, out, &same);
    if (ok && same.size > 0)
        buffer_append_bytes(out, same);
    buffer_free(&key);
    return ok && !out->failed ? status_ok() : status_out_of_memory();
}

/* Without overflow cells versions decide, once the change and all that there is are one. */
static status add_to_record(const struct row_rules *rules, bytes row_key, bytes record,
                            bytes change, struct buffer *out)
{
    struct store_history history = {
        .has_base = record.size > 0, .base = record, .operands = &change, .operand_count = 1};
    return fold_record(rules, row_key, &history, out);
}

/* What a change and a row with overflow cells, or that gets some, are made of. */
struct overflow {
    struct buffer above; /* the record's tombstones */
    struct buffer cells; /* the change's */
    struct buffer big;   /* those that it leaves out */
    struct buffer tombstones;
    struct buffer mark;
    struct buffer counted; /* what of the cells counts, and all tombstones */
};

static void free_overflow(struct overflow *o)
{
    buffer_free(&o->above);
    buffer_free(&o->cells);
    buffer_free(&o->big);
    buffer_free(&o->tombstones);
    buffer_free(&o->mark);
    buffer_free(&o->counted);
}

static status take_apart(bytes record, const struct packed_change *change, uint64_t version,
                         struct overflow *o)
{
    bytes fragment = buffer_bytes(&change->fragment);
    if (record.size > 0)
        TRY(write_part(record, is_tombstone, record, &o->above));
    else
        write_nothing(&o->above);
    TRY(write_part(fragment, is_new_cell, record, &o->cells));
    TRY(write_part(fragment, is_tombstone, record, &o->tombstones));
    write_big_cells(change, version, &o->big);
    write_mark(record, version, &o->mark);
    bool failed = o->above.failed || o->big.failed || o->mark.failed;
    return failed ? status_out_of_memory() : status_ok();
}

/* Cells that are not covered become operands of overflow cells: these know by their versions which
 * counts, and an aggregate is told which tombstone came before. */
static status overflow_cells(bytes row_key, struct overflow *o, struct deferred_batch *out)
{
    const bytes parts[] = {buffer_bytes(&o->above), buffer_bytes(&o->cells), buffer_bytes(&o->big)};
    const struct store_history history = {.operands = parts, .operand_count = 3};
    uint64_t moved;
    if (!row_fold.part(NULL, &history, &o->counted) || o->counted.failed)
        return status_out_of_memory();
    return move_to_overflow(row_key, buffer_bytes(&o->counted), out, &moved);
}

static status add_to_overflow(struct keyspace *keyspace, bytes row_key, bytes record,
                              const struct packed_change *change, uint64_t version,
                              const struct row_rules *rules, struct foreign_change *out)
{
    struct overflow o = {0};
    status s = take_apart(record, change, version, &o);
    if (status_is_ok(s))
        s = overflow_purge_under(keyspace, row_key, buffer_bytes(&o.tombstones), &out->overflows);
    if (status_is_ok(s))
        s = overflow_cells(row_key, &o, &out->overflows);
    const bytes operands[] = {buffer_bytes(&o.tombstones), buffer_bytes(&o.mark)};
    const struct store_history history = {
        .has_base = record.size > 0, .base = record, .operands = operands, .operand_count = 2};
    if (status_is_ok(s))
        s = fold_record(rules, row_key, &history, &out->record);
    if (status_is_ok(s) && out->overflows.changes.failed)
        s = status_out_of_memory();
    free_overflow(&o);
    return s;
}

static status prepare(struct keyspace *keyspace, bytes row_key, bytes record,
                      const struct packed_change *change, const struct row_rules *rules,
                      struct foreign_change *out)
{
    bytes fragment = buffer_bytes(&change->fragment);
    struct fragment_reader reader;
    if (!fragment_reader_start(&reader, fragment))
        return bad_change();
    if (fragment_has_overflow(record) || change->big_count > 0)
        return add_to_overflow(keyspace, row_key, record, change, reader.base_version, rules, out);
    return add_to_record(rules, row_key, record, fragment, &out->record);
}

status foreign_change_prepare(struct keyspace *keyspace, bytes row_key,
                              const struct packed_change *change, const struct row_rules *rules,
                              struct foreign_change *out)
{
    DCHECK(row_key.size > 0);
    struct buffer key = {0};
    struct store_value record = {0};
    enum store_presence presence = STORE_ABSENT;
    *out = (struct foreign_change){0};
    row_record_key(&key, row_key);
    status s = key.failed ? status_out_of_memory()
                          : store_get(keyspace, NULL, buffer_bytes(&key), STORE_READ_ANY, &record,
                                      &presence);
    if (status_is_ok(s))
        s = prepare(keyspace, row_key, record.bytes, change, rules, out);
    store_value_release(&record);
    buffer_free(&key);
    if (!status_is_ok(s))
        foreign_change_free(out);
    return s;
}
