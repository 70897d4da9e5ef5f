/* Requests on ranges of a table's rows: DropRowRange, SampleRowKeys. */
#include "cluster/ranges.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "row/row_key.h"
#include "tablet/key_bounds.h"

#include <stdlib.h>

/* --- dropping rows --- */

/* What is deleted in one keyspace: in each of its key spaces a range. */
struct drop_part {
    struct shard *shard;
    struct keyspace *keyspace;
    struct key_bounds records;
    struct key_bounds overflow;
};

/* Ranges of rows that are deleted together. */
struct drop_parts {
    struct drop_part *items;
    size_t count;
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

/* Locks the shards from the first to the last, so that two drops do not wait for each other. */
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

/* With every row lock held no update is between its read and its write, and what was submitted
 * before is ahead of us in the queue: the drop falls wholly before or after any other change. Of
 * several shards each has a commit of its own; what fails may have dropped some. */
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

static status add_part(void *context, const struct table_part *part)
{
    DCHECK(part->space.shard != NULL && part->space.keyspace != NULL);
    struct drop_parts *parts = context;
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

static void free_parts(struct drop_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        key_bounds_free(&parts->items[i].records);
        key_bounds_free(&parts->items[i].overflow);
    }
    free(parts->items);
}

static status drop_range(struct table *table, bytes from, bytes to)
{
    struct drop_parts parts = {0};
    status s = table_visit_parts(table, from, to, add_part, &parts);
    if (status_is_ok(s))
        s = delete_parts(table->cluster, table, &parts);
    for (size_t i = 0; status_is_ok(s) && i < parts.count; i++) {
        struct drop_part *part = &parts.items[i];
        damages_end_deleted(part->shard->damages, part->keyspace, &part->records, &part->overflow);
    }
    free_parts(&parts);
    return s;
}

status table_drop_rows(struct table *table, bytes prefix)
{
    struct buffer end = {0};
    key_after_prefix(&end, prefix); /* stays empty, no bound, if there is no key after */
    status s = end.failed ? status_out_of_memory() : drop_range(table, prefix, buffer_bytes(&end));
    buffer_free(&end);
    TRY(s);
    reclaim_prefix(table, prefix);
    return status_ok();
}

/* --- sampling --- */

status table_sample(struct table *table,
                    bool (*visit)(void *context, bytes end, uint64_t offset_bytes), void *context)
{
    struct tablet **tablets;
    size_t count;
    uint64_t offset = 0;
    bool go_on = true;
    TRY(table_tablets(table, &tablets, &count));
    for (size_t i = 0; i < count; i++) {
        if (go_on) {
            offset += tablet_size(tablets[i]);
            go_on = visit(context, tablets[i]->end, offset);
        }
        tablet_release(tablets[i]);
    }
    free(tablets);
    return status_ok();
}

/* Of the tablet's rows those in the range. */
static uint64_t size_within(const struct tablet *tablet, bytes from, bytes to)
{
    if (bytes_compare(from, tablet->start) < 0)
        from = tablet->start;
    if (to.size == 0 || (tablet->end.size > 0 && bytes_compare(tablet->end, to) < 0))
        to = tablet->end;
    bool is_empty = to.size > 0 && bytes_compare(from, to) >= 0;
    return is_empty ? 0 : rows_size(tablet->keyspace, from, to);
}

status table_range_size(struct table *table, bytes from, bytes to, uint64_t *out)
{
    struct tablet **tablets;
    size_t count;
    *out = 0;
    TRY(table_tablets(table, &tablets, &count));
    for (size_t i = 0; i < count; i++) {
        *out += size_within(tablets[i], from, to);
        tablet_release(tablets[i]);
    }
    free(tablets);
    return status_ok();
}
