/* DropRowRange: a record of what is dropped (row/drops.h), in place of every row.
 *
 * It takes no row lock and waits for no writer: the commit thread puts it between two batches, and
 * what follows from a read of before is refused and decided again. `admin` is held, so that it is
 * before or after the instant of a backup.
 *
 * In a table with a change stream it takes every row lock, until the drop is in the queue: whoever
 * changes a row after it is to know that, and what the row had (stream/telling.h). The stream is
 * told later (stream/tell_dropped.h), and of one drop at a time.
 *
 * Where rows of the keyspace are out of service (damage.h) they are deleted instead, with every row
 * lock held: what is damaged is brought back once its keys are gone from the store.
 *
 * Space comes back later: what is recorded gives it back by the pass over drops (drop_pass.h), what
 * is deleted by that of garbage collection (gc_pass.h); both are asked for at once. */
#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/foreign_rows.h"
#include "cluster/gc_pass.h"
#include "cluster/live_size.h"
#include "cluster/stream/tell_dropped.h"
#include "row/row_key.h"
#include "tablet/drop_records.h"
#include "tablet/key_bounds.h"

#include <stdlib.h>

/* --- deleting rows --- */

/* What is dropped in one keyspace: in each of its key spaces a range. */
struct drop_part {
    struct shard *shard;
    struct keyspace *keyspace;
    struct key_bounds records;
    struct key_bounds overflow;
    bool is_deleted; /* something of the keyspace is damaged: its rows are deleted */
    /* Of one that is recorded: what goes into the list once it is, and the record's value. */
    struct row_drop *drop;
    struct buffer value;
};

/* Ranges of rows that are deleted together. */
struct drop_parts {
    struct drop_part *items;
    size_t count;
    uint64_t given_version; /* by another cluster; 0: the queue gives one */
};

/* A commit that deletes those of a shard. */
struct drop {
    struct commit commit;
    const struct shard *shard;
    const struct drop_parts *parts;
};

static bool are_in(const struct drop_parts *parts, const struct shard *shard)
{
    for (size_t i = 0; i < parts->count; i++)
        if (parts->items[i].shard == shard)
            return true;
    return false;
}

static void delete_bounds(struct store_batch *batch, struct keyspace *keyspace,
                          const struct key_bounds *bounds)
{
    DCHECK(bytes_compare(buffer_bytes(&bounds->lower), buffer_bytes(&bounds->upper)) <= 0);
    store_batch_delete_range(batch, keyspace, buffer_bytes(&bounds->lower),
                             buffer_bytes(&bounds->upper));
}

static void add_to_batch(struct commit *commit, struct store_batch *batch)
{
    struct drop *drop = LIST_ENTRY(&commit->link, struct drop, commit.link);
    DCHECK(row_locks_are_all_held(drop->shard->locks));
    for (size_t i = 0; i < drop->parts->count; i++) {
        const struct drop_part *part = &drop->parts->items[i];
        if (part->shard != drop->shard)
            continue;
        delete_bounds(batch, part->keyspace, &part->records);
        delete_bounds(batch, part->keyspace, &part->overflow);
    }
}

static void note_drop(const struct drop_part *part)
{
    refill_note_drop(part->shard, part->keyspace, buffer_bytes(&part->records.lower),
                     buffer_bytes(&part->records.upper));
    refill_note_drop(part->shard, part->keyspace, buffer_bytes(&part->overflow.lower),
                     buffer_bytes(&part->overflow.upper));
}

static status delete_in(struct shard *shard, struct table *table, const struct drop_parts *parts)
{
    DCHECK(row_locks_are_all_held(shard->locks) && are_in(parts, shard));
    struct drop drop = {.commit = {.kind = COMMIT_DROP,
                                   .table = table,
                                   .extend = add_to_batch,
                                   .frees_space = true},
                        .shard = shard,
                        .parts = parts};
    return commit_and_wait(shard->commits, &drop.commit);
}

/* From the first shard to the last, so that of two drops none waits for the other's. */
static void lock_shards(struct cluster *cluster, const struct drop_parts *parts)
{
    for (size_t i = 0; i < cluster->shard_count; i++)
        if (are_in(parts, cluster->shards[i]))
            row_locks_acquire_all(cluster->shards[i]->locks);
}

static void unlock_shards(struct cluster *cluster, const struct drop_parts *parts)
{
    for (size_t i = 0; i < cluster->shard_count; i++) {
        struct shard *shard = cluster->shards[i];
        if (are_in(parts, shard))
            row_locks_release_all(shard->locks, commit_applied(shard->commits));
    }
}

/* With every row lock held nobody is between a read and the write that follows from it, and what
 * was submitted before is ahead of us in the queue: the drop falls wholly before or after any other
 * change. Of several shards each has a commit of its own; what fails may have dropped some. */
static status delete_parts(struct cluster *cluster, struct table *table,
                           const struct drop_parts *parts)
{
    status s = status_ok();
    lock_shards(cluster, parts);
    for (size_t i = 0; i < parts->count; i++)
        note_drop(&parts->items[i]);
    for (size_t i = 0; i < cluster->shard_count && status_is_ok(s); i++)
        if (are_in(parts, cluster->shards[i]))
            s = delete_in(cluster->shards[i], table, parts);
    unlock_shards(cluster, parts);
    return s;
}

status shard_delete_keys(struct shard *shard, struct table *table, struct keyspace *keyspace,
                         const struct key_bounds *records, const struct key_bounds *overflow)
{
    struct drop_part part = {
        .shard = shard, .keyspace = keyspace, .records = *records, .overflow = *overflow};
    const struct drop_parts parts = {.items = &part, .count = 1};
    return delete_parts(shard->cluster, table, &parts);
}

static status add_item(struct drop_parts *parts, const struct table_part *part)
{
    DCHECK(part->space.shard != NULL && part->space.keyspace != NULL);
    struct drop_part *items = realloc(parts->items, (parts->count + 1) * sizeof *items);
    if (items == NULL)
        return status_out_of_memory();
    parts->items = items;
    struct drop_part *item = &items[parts->count++];
    *item = (struct drop_part){.shard = part->space.shard, .keyspace = part->space.keyspace};
    bool is_bounded = record_bounds(part->from, part->to, &item->records);
    is_bounded = overflow_bounds(part->from, part->to, &item->overflow) && is_bounded;
    return is_bounded ? status_ok() : status_out_of_memory();
}

/* Up to where the part ends: rows between lie in other keyspaces. */
static status widen(struct drop_part *item, const struct table_part *part)
{
    struct key_bounds records, overflow;
    bool is_bounded = record_bounds(part->from, part->to, &records);
    is_bounded = overflow_bounds(part->from, part->to, &overflow) && is_bounded;
    struct buffer ends[] = {item->records.upper, item->overflow.upper};
    item->records.upper = records.upper;
    item->overflow.upper = overflow.upper;
    records.upper = ends[0];
    overflow.upper = ends[1];
    key_bounds_free(&records);
    key_bounds_free(&overflow);
    return is_bounded ? status_ok() : status_out_of_memory();
}

static status add_part(void *context, const struct table_part *part)
{
    struct drop_parts *parts = context;
    for (size_t i = 0; i < parts->count; i++)
        if (parts->items[i].keyspace == part->space.keyspace)
            return widen(&parts->items[i], part);
    return add_item(parts, part);
}

static void free_parts(struct drop_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        key_bounds_free(&parts->items[i].records);
        key_bounds_free(&parts->items[i].overflow);
        row_drop_destroy(parts->items[i].drop);
        buffer_free(&parts->items[i].value);
    }
    free(parts->items);
}

/* --- recording --- */

/* A commit that records what is dropped of a shard. */
struct record_drop {
    struct catalog_change change; /* first: `apply` gets it */
    struct commit commit;
    struct shard *shard;
    const struct table *table;
    const struct drop_parts *parts;
    bool tells;        /* a change stream */
    bool commit_is_in; /* the queue */
};

static bool is_recorded(const struct drop_part *part, const struct shard *shard)
{
    return part->shard == shard && !part->is_deleted;
}

/* The record of how it is told comes first: a replay keeps the rows then (tablet/replay.c). */
static void put_record(const struct record_drop *record, struct drop_part *part,
                       struct store_batch *batch)
{
    const struct commit *commit = &record->commit;
    struct keyspace *system = record->shard->system;
    if (record->tells) {
        const struct telling_record telling = telling_first_record(
            table_telling(record->table, part->keyspace), commit->version, commit->sequence);
        telling_record_put(batch, system, &telling);
    }
    drop_record_put(batch, system, keyspace_id(part->keyspace), commit->version, commit->sequence,
                    &part->value);
}

static void put_records(struct commit *commit, struct store_batch *batch)
{
    const struct record_drop *record = LIST_ENTRY(&commit->link, struct record_drop, commit.link);
    for (size_t i = 0; i < record->parts->count; i++)
        if (is_recorded(&record->parts->items[i], record->shard))
            put_record(record, &record->parts->items[i], batch);
}

/* Before anything behind it in the queue is looked at. */
static void apply_drop(const struct catalog_change *change)
{
    const struct record_drop *record = (const struct record_drop *)(const void *)change;
    for (size_t i = 0; i < record->parts->count; i++) {
        struct drop_part *part = &record->parts->items[i];
        if (!is_recorded(part, record->shard))
            continue;
        row_drops_add(table_drops(record->table, part->keyspace), part->drop,
                      record->commit.version, record->commit.sequence);
        part->drop = NULL;
        if (record->tells)
            telling_begin(table_telling(record->table, part->keyspace), record->commit.version,
                          record->commit.sequence);
    }
}

/* --- telling of it: with admin held --- */

static void announce(const struct record_drop *record)
{
    DCHECK(row_locks_are_all_held(record->shard->locks));
    for (size_t i = 0; i < record->parts->count; i++) {
        const struct drop_part *part = &record->parts->items[i];
        if (is_recorded(part, record->shard))
            telling_announce(table_telling(record->table, part->keyspace),
                             table_drops(record->table, part->keyspace));
    }
}

static void withdraw(const struct record_drop *record)
{
    for (size_t i = 0; i < record->parts->count; i++) {
        const struct drop_part *part = &record->parts->items[i];
        if (is_recorded(part, record->shard))
            telling_withdraw(table_telling(record->table, part->keyspace),
                             table_drops(record->table, part->keyspace));
    }
}

/* The drop has its place: whoever gets a lock now waits for it before he reads. */
static void release_locks(void *context)
{
    struct record_drop *record = context;
    row_locks_release_all(record->shard->locks, record->commit.sequence);
    record->commit_is_in = true;
}

static status commit_and_tell(struct record_drop *record)
{
    row_locks_acquire_all(record->shard->locks);
    announce(record);
    status s =
        commit_and_wait_unlocked(record->shard->commits, &record->commit, release_locks, record);
    if (!record->commit_is_in)
        row_locks_release_all(record->shard->locks, commit_applied(record->shard->commits));
    if (!status_is_ok(s))
        withdraw(record);
    return s;
}

/* --- a shard --- */

/* Synced whatever the durability: what folds have thrown away for a drop must not be gone without
 * it. */
static status record_in(struct shard *shard, struct table *table, const struct drop_parts *parts)
{
    struct record_drop record = {
        .change = {.apply = apply_drop, .tables = &table, .table_count = 1},
        .shard = shard,
        .table = table,
        .parts = parts,
        .tells = table_has_stream(table)};
    record.commit = (struct commit){.kind = COMMIT_DROP_ROWS,
                                    .table = table,
                                    .given_version = parts->given_version,
                                    .extend = put_records,
                                    .catalog = &record.change,
                                    .frees_space = true,
                                    .is_synced = true};
    return record.tells ? commit_and_tell(&record)
                        : commit_and_wait(shard->commits, &record.commit);
}

static status reserve_telling(const struct table *table, const struct drop_part *part, bytes from,
                              bytes to)
{
    const struct table_stream *stream = &table_description(table)->stream;
    return stream->retention_us == 0
               ? status_ok()
               : telling_reserve(table_telling(table, part->keyspace), from, to, stream->life,
                                 table_drops(table, part->keyspace));
}

static status prepare_part(const struct table *table, struct drop_part *part)
{
    bytes from = damage_row(buffer_bytes(&part->records.lower));
    bytes to = damage_row(buffer_bytes(&part->records.upper));
    const struct row_drop_words words = {.bytes = live_rows_size(table, part->keyspace, from, to),
                                         .newest_table = keyspace_newest_table(part->keyspace),
                                         .from = from,
                                         .to = to};
    TRY(reserve_telling(table, part, from, to));
    TRY(row_drops_reserve(table_drops(table, part->keyspace)));
    TRY(drop_record_value(&words, &part->value));
    TRY(row_drop_create(from, to, &part->drop));
    row_drop_set_bytes(part->drop, words.bytes);
    row_drop_set_newest_table(part->drop, words.newest_table);
    return status_ok();
}

static bool are_recorded(const struct drop_parts *parts, const struct shard *shard)
{
    for (size_t i = 0; i < parts->count; i++)
        if (is_recorded(&parts->items[i], shard))
            return true;
    return false;
}

/* With admin held. Of several shards each has a commit of its own; what fails may have dropped
 * some. */
static status record_all(struct table *table, const struct drop_parts *parts)
{
    struct cluster *cluster = table->cluster;
    DCHECK(check_is_held(&cluster->admin));
    for (size_t i = 0; i < parts->count; i++)
        if (!parts->items[i].is_deleted)
            TRY(prepare_part(table, &parts->items[i]));
    for (size_t i = 0; i < cluster->shard_count; i++)
        if (are_recorded(parts, cluster->shards[i]))
            TRY(record_in(cluster->shards[i], table, parts));
    return status_ok();
}

/* --- all of it --- */

static bool has_damage(const struct drop_part *part)
{
    return damages_has(part->shard->damages, keyspace_id(part->keyspace));
}

/* Until the oldest have been forgotten, if that does not take long. */
static void await_room(struct table *table, size_t drops)
{
    enum { PIECES = 64 };
    for (int i = 0; i < PIECES && !table_has_room(table, drops); i++)
        drop_pass_await_piece(table);
}

static status check_table(const struct table *table, size_t drops)
{
    if (table->is_deleted)
        return cluster_not_found(bytes_of(table->name));
    return table_has_room(table, drops)
               ? status_ok()
               : status_make(STATUS_UNAVAILABLE,
                             "%s has %zu dropped ranges of rows whose space is not given back yet: "
                             "try again later",
                             table->name, table_drop_count(table));
}

/* What is left of a stream that is off is nobody's any more. */
static status check_telling(struct table *table)
{
    for (size_t i = 0; i < table->space_count; i++)
        TRY(tell_dropped_write_off(table, &table->spaces[i]));
    return tell_dropped_is_under_way(table)
               ? status_make(STATUS_UNAVAILABLE, "A DropRowRange operation is already ongoing")
               : status_ok();
}

static status record_parts(struct table *table, const struct drop_parts *parts)
{
    pthread_mutex_lock(&table->cluster->admin);
    status s = check_table(table, parts->count);
    if (status_is_ok(s))
        s = check_telling(table);
    for (size_t i = 0; i < parts->count; i++)
        parts->items[i].is_deleted = has_damage(&parts->items[i]);
    if (status_is_ok(s))
        s = record_all(table, parts);
    pthread_mutex_unlock(&table->cluster->admin);
    return s;
}

static status delete_damaged(struct table *table, const struct drop_parts *parts, bool *deletes)
{
    *deletes = false;
    for (size_t i = 0; i < parts->count; i++) {
        struct drop_part *part = &parts->items[i];
        if (!part->is_deleted)
            continue;
        const struct drop_parts one = {.items = part, .count = 1};
        *deletes = true;
        TRY(delete_parts(table->cluster, table, &one));
        damages_end_deleted(part->shard->damages, part->keyspace, &part->records, &part->overflow);
    }
    return status_ok();
}

static status drop_range(struct table *table, bytes from, bytes to, uint64_t given_version,
                         bool *deletes)
{
    struct drop_parts parts = {.given_version = given_version};
    status s = table_visit_parts(table, from, to, add_part, &parts);
    if (status_is_ok(s)) {
        await_room(table, parts.count);
        s = record_parts(table, &parts);
    }
    if (status_is_ok(s))
        s = delete_damaged(table, &parts, deletes);
    free_parts(&parts);
    return s;
}

static status drop_rows(struct table *table, bytes from, bytes to, uint64_t given_version)
{
    bool deletes = false;
    TRY(drop_range(table, from, to, given_version, &deletes));
    if (deletes)
        gc_pass_hurry(table);
    drop_pass_ask(table);
    return status_ok();
}

status table_drop_rows(struct table *table, bytes prefix)
{
    struct buffer end = {0};
    key_after_prefix(&end, prefix); /* stays empty, no bound, if there is no key after */
    status s =
        end.failed ? status_out_of_memory() : drop_rows(table, prefix, buffer_bytes(&end), 0);
    buffer_free(&end);
    return s;
}

status foreign_rows_drop(struct table *table, bytes from, bytes to, uint64_t version)
{
    DCHECK(version != 0);
    return drop_rows(table, from, to, version);
}

/* --- deleting all of a table's rows --- */

/* With whatever of them was damaged, which has gone then, too. */
static status delete_all_parts(struct table *table, const struct drop_parts *parts)
{
    TRY(delete_parts(table->cluster, table, parts));
    for (size_t i = 0; i < parts->count; i++) {
        const struct drop_part *part = &parts->items[i];
        damages_end_deleted(part->shard->damages, part->keyspace, &part->records, &part->overflow);
    }
    return status_ok();
}

status table_clear(struct table *table)
{
    const bytes all = bytes_of("");
    struct drop_parts parts = {0};
    status s = table_visit_parts(table, all, all, add_part, &parts);
    if (status_is_ok(s))
        s = delete_all_parts(table, &parts);
    free_parts(&parts);
    if (status_is_ok(s))
        gc_pass_hurry(table);
    return s;
}
