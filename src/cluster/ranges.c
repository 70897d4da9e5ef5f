/* Requests on ranges of a table's rows: DropRowRange, SampleRowKeys. */
#include "cluster/cluster_private.h"
#include "row/row_key.h"
#include "tablet/key_bounds.h"

#include <stdlib.h>

/* --- dropping rows --- */

/* What is deleted in one keyspace: in each of its key spaces a range. */
struct drop_part {
    struct keyspace *keyspace;
    struct key_bounds records;
    struct key_bounds spilled;
};

/* A commit that deletes a range of rows. */
struct drop {
    struct commit commit;
    const struct drop_part *parts;
    size_t count;
};

static void delete_bounds(struct store_batch *batch, struct keyspace *keyspace,
                          const struct key_bounds *bounds)
{
    store_batch_delete_range(batch, keyspace, buffer_bytes(&bounds->lower),
                             buffer_bytes(&bounds->upper));
}

static void add_to_batch(struct commit *commit, struct store_batch *batch)
{
    struct drop *drop = LIST_ENTRY(&commit->link, struct drop, commit.link);
    for (size_t i = 0; i < drop->count; i++) {
        delete_bounds(batch, drop->parts[i].keyspace, &drop->parts[i].records);
        delete_bounds(batch, drop->parts[i].keyspace, &drop->parts[i].spilled);
    }
}

static void note_drop(struct shard *shard, const struct drop_part *part)
{
    refill_note_drop(shard, part->keyspace, buffer_bytes(&part->records.lower),
                     buffer_bytes(&part->records.upper));
    refill_note_drop(shard, part->keyspace, buffer_bytes(&part->spilled.lower),
                     buffer_bytes(&part->spilled.upper));
}

/* With every row lock held nobody is between a read and the write that follows from it, and what
 * was submitted before is ahead of us in the queue: the drop falls wholly before or after any other
 * change. */
static status delete_parts(struct shard *shard, struct table *table, const struct drop_part *parts,
                           size_t count)
{
    struct drop drop = {.commit = {.kind = COMMIT_DROP,
                                   .table = table,
                                   .extend = add_to_batch,
                                   .frees_space = true},
                        .parts = parts,
                        .count = count};
    row_locks_acquire_all(shard->locks);
    for (size_t i = 0; i < count; i++)
        note_drop(shard, &parts[i]);
    status s = commit_and_wait(shard->commits, &drop.commit);
    row_locks_release_all(shard->locks, commit_applied(shard->commits));
    return s;
}

status shard_delete_keys(struct shard *shard, struct table *table, struct keyspace *keyspace,
                         const struct key_bounds *records, const struct key_bounds *spilled)
{
    const struct drop_part part = {.keyspace = keyspace, .records = *records, .spilled = *spilled};
    return delete_parts(shard, table, &part, 1);
}

/* Of a table's rows. */
struct drop_parts {
    struct drop_part *items;
    size_t count;
};

static status add_part(void *context, const struct table_part *part)
{
    struct drop_parts *parts = context;
    struct drop_part *items = realloc(parts->items, (parts->count + 1) * sizeof *items);
    if (items == NULL)
        return status_out_of_memory();
    parts->items = items;
    struct drop_part *item = &items[parts->count++];
    *item = (struct drop_part){.keyspace = part->space.keyspace};
    bool is_bounded = record_bounds(part->from, part->to, &item->records);
    is_bounded = spill_bounds(part->from, part->to, &item->spilled) && is_bounded;
    return is_bounded ? status_ok() : status_out_of_memory();
}

static void free_parts(struct drop_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        key_bounds_free(&parts->items[i].records);
        key_bounds_free(&parts->items[i].spilled);
    }
    free(parts->items);
}

static status drop_range(struct table *table, bytes from, bytes to)
{
    struct shard *shard = table->cluster->home;
    struct drop_parts parts = {0};
    status s = table_visit_parts(table, from, to, add_part, &parts);
    if (status_is_ok(s))
        s = delete_parts(shard, table, parts.items, parts.count);
    for (size_t i = 0; status_is_ok(s) && i < parts.count; i++)
        damages_end_deleted(shard->damages, parts.items[i].keyspace, &parts.items[i].records,
                            &parts.items[i].spilled);
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
    maintenance_reclaim(table->cluster->maintenance, table, prefix);
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
