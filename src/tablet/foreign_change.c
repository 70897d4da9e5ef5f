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

/* What there is of the row: its record, and where its overflow cells are. */
struct row_place {
    struct keyspace *keyspace;
    bytes row_key;
    bytes record;
};

static bool is_same_add(const struct entry *entry, const struct entry *add)
{
    return entry->kind == add->kind && entry->version == add->version;
}

/* Whether the record has the add, which was delivered before. */
static bool record_has_add(bytes record, const struct entry *add)
{
    struct fragment_reader reader;
    struct entry entry;
    if (record.size == 0 || !fragment_reader_start(&reader, record))
        return false;
    while (fragment_reader_next(&reader, &entry))
        if (is_same_add(&entry, add) && entry_compare(&entry, add) == 0)
            return true;
    return false;
}

/* The same of its overflow cell: once it may become one with others, what came twice would count
 * twice. */
static status overflow_has_add(const struct row_place *place, const struct entry *add, bool *has)
{
    struct buffer key = {0};
    struct store_value value = {0};
    struct fragment_reader reader;
    struct entry entry;
    enum store_presence presence = STORE_ABSENT;
    overflow_cell_key(&key, place->row_key, add->family, add->qualifier, add->timestamp_us);
    status s = key.failed ? status_out_of_memory()
                          : store_get(place->keyspace, NULL, buffer_bytes(&key), STORE_READ_ANY,
                                      &value, &presence);
    bool is_there = status_is_ok(s) && presence == STORE_FOUND && value.bytes.size > 0 &&
                    fragment_reader_start(&reader, value.bytes);
    while (is_there && !*has && fragment_reader_next(&reader, &entry))
        *has = is_same_add(&entry, add);
    store_value_release(&value);
    buffer_free(&key);
    return s;
}

/* --- what is wanted of a fragment: each sets `*is_wanted` --- */

typedef status part_filter(const struct row_place *place, const struct entry *entry,
                           bool *is_wanted);

static status want_tombstone(const struct row_place *place, const struct entry *entry,
                             bool *is_wanted)
{
    (void)place;
    *is_wanted = entry->kind != ENTRY_OVERFLOW_MARK && !entry_is_cell(entry->kind);
    return status_ok();
}

/* A cell, except an add that the row has: as an overflow cell it would count once more. */
static status want_new_cell(const struct row_place *place, const struct entry *entry,
                            bool *is_wanted)
{
    bool has = false;
    *is_wanted = entry_is_cell(entry->kind);
    if (!*is_wanted || !entry_is_add(entry->kind))
        return status_ok();
    has = record_has_add(place->record, entry);
    status s = has ? status_ok() : overflow_has_add(place, entry, &has);
    *is_wanted = !has;
    return s;
}

/* Writes the entries of the fragment that are wanted. */
static status write_part(const struct row_place *place, bytes fragment, part_filter *want,
                         struct buffer *out)
{
    struct fragment_reader reader;
    struct fragment_writer writer;
    struct entry entry;
    bool is_wanted = false;
    status s = status_ok();
    if (!fragment_reader_start(&reader, fragment))
        return bad_change();
    fragment_writer_start(&writer, out, reader.base_version);
    while (status_is_ok(s) && fragment_reader_next(&reader, &entry)) {
        s = want(place, &entry, &is_wanted);
        if (status_is_ok(s) && is_wanted)
            fragment_writer_add(&writer, &entry);
    }
    fragment_writer_finish(&writer);
    if (status_is_ok(s) && reader.is_bad)
        s = bad_change();
    return status_is_ok(s) && out->failed ? status_out_of_memory() : s;
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

static status take_apart(const struct row_place *place, const struct packed_change *change,
                         uint64_t version, struct overflow *o)
{
    bytes fragment = buffer_bytes(&change->fragment);
    if (place->record.size > 0)
        TRY(write_part(place, place->record, want_tombstone, &o->above));
    else
        write_nothing(&o->above);
    TRY(write_part(place, fragment, want_new_cell, &o->cells));
    TRY(write_part(place, fragment, want_tombstone, &o->tombstones));
    write_big_cells(change, version, &o->big);
    write_mark(place->record, version, &o->mark);
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

static status add_to_overflow(const struct row_place *place, const struct packed_change *change,
                              uint64_t version, const struct row_rules *rules,
                              struct foreign_change *out)
{
    struct overflow o = {0};
    status s = take_apart(place, change, version, &o);
    if (status_is_ok(s))
        s = overflow_purge_under(place->keyspace, place->row_key, buffer_bytes(&o.tombstones),
                                 &out->overflows);
    if (status_is_ok(s))
        s = overflow_cells(place->row_key, &o, &out->overflows);
    const bytes operands[] = {buffer_bytes(&o.tombstones), buffer_bytes(&o.mark)};
    const struct store_history history = {.has_base = place->record.size > 0,
                                          .base = place->record,
                                          .operands = operands,
                                          .operand_count = 2};
    if (status_is_ok(s))
        s = fold_record(rules, place->row_key, &history, &out->record);
    if (status_is_ok(s) && out->overflows.changes.failed)
        s = status_out_of_memory();
    free_overflow(&o);
    return s;
}

static status prepare(const struct row_place *place, const struct packed_change *change,
                      const struct row_rules *rules, struct foreign_change *out)
{
    bytes fragment = buffer_bytes(&change->fragment);
    struct fragment_reader reader;
    if (!fragment_reader_start(&reader, fragment))
        return bad_change();
    if (fragment_has_overflow(place->record) || change->big_count > 0)
        return add_to_overflow(place, change, reader.base_version, rules, out);
    return add_to_record(rules, place->row_key, place->record, fragment, &out->record);
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
    const struct row_place place = {keyspace, row_key, record.bytes};
    if (status_is_ok(s))
        s = prepare(&place, change, rules, out);
    store_value_release(&record);
    buffer_free(&key);
    if (!status_is_ok(s))
        foreign_change_free(out);
    return s;
}
