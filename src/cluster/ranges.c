/* Requests on ranges of a table's rows: DropRowRange, SampleRowKeys. */
#include "cluster/cluster_private.h"
#include "row/row_key.h"
#include "tablet/key_bounds.h"

#include <stdlib.h>

/* --- dropping rows --- */

/* A commit that deletes a range of rows in both key spaces of a keyspace. */
struct drop {
    struct commit commit;
    const struct key_bounds *records;
    const struct key_bounds *spilled;
};

static void add_to_batch(struct commit *commit, struct store_batch *batch)
{
    struct drop *drop = LIST_ENTRY(&commit->link, struct drop, commit.link);
    store_batch_delete_range(batch, commit->keyspace, buffer_bytes(&drop->records->lower),
                             buffer_bytes(&drop->records->upper));
    store_batch_delete_range(batch, commit->keyspace, buffer_bytes(&drop->spilled->lower),
                             buffer_bytes(&drop->spilled->upper));
}

/* With every row lock held nobody is between a read and the write that follows from it, and what
 * was submitted before is ahead of us in the queue: the drop falls wholly before or after any other
 * change. */
status cluster_delete_keys(struct cluster *cluster, struct table *table, struct keyspace *keyspace,
                           const struct key_bounds *records, const struct key_bounds *spilled)
{
    struct drop drop = {.commit = {.kind = COMMIT_DROP,
                                   .table = table,
                                   .keyspace = keyspace,
                                   .extend = add_to_batch,
                                   .frees_space = true},
                        .records = records,
                        .spilled = spilled};
    row_locks_acquire_all(cluster->locks);
    refill_note_drop(cluster, keyspace, buffer_bytes(&records->lower),
                     buffer_bytes(&records->upper));
    refill_note_drop(cluster, keyspace, buffer_bytes(&spilled->lower),
                     buffer_bytes(&spilled->upper));
    status s = commit_and_wait(cluster->commits, &drop.commit);
    row_locks_release_all(cluster->locks, commit_applied(cluster->commits));
    return s;
}

static status drop_range(struct table *table, bytes from, bytes to)
{
    struct cluster *cluster = table->cluster;
    struct tablet *tablet = table_route(table, from);
    struct key_bounds records, spilled;
    bool is_bounded = record_bounds(from, to, &records);
    is_bounded = spill_bounds(from, to, &spilled) && is_bounded;
    status s = is_bounded
                   ? cluster_delete_keys(cluster, table, tablet->keyspace, &records, &spilled)
                   : status_out_of_memory();
    if (status_is_ok(s))
        damages_end_deleted(cluster->damages, tablet->keyspace, &records, &spilled);
    key_bounds_free(&records);
    key_bounds_free(&spilled);
    tablet_release(tablet);
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
