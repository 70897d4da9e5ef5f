/* Gives back the space of rows that were dropped, by compaction, as a job of maintenance.
 *
 * By compaction, which keeps what was written since. Whole files must not be deleted here: a
 * compaction may have put new rows into them.
 *
 * A table has one job, and a list of prefixes that wait for it; one that another covers that has
 * not begun is given back with that. A piece is PIECE_BYTES of a prefix, by the sizes that the
 * store estimates of its files, since there are no rows left to count by. (RocksDB makes a piece
 * longer where a file that has the range delete spans more.) Nothing depends on it being done. */
#include "cluster/reclaim.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/midpoint.h"
#include "row/row_key.h"
#include "tablet/key_bounds.h"

#include <stdlib.h>

enum { PIECE_BYTES = 64 << 20, MOST_PREFIXES = 1000 /* of a table, that wait */ };

struct dropped_prefix {
    struct link link;
    size_t size;
    uint8_t data[];
};

static bytes bytes_of_prefix(const struct dropped_prefix *prefix)
{
    return bytes_make(prefix->data, prefix->size);
}

/* --- pieces --- */

/* Of the rows from `next` up to `to`, those that come first: in one keyspace, and not too many. */
static status find_piece(struct table *table, bytes to, struct table_space *space,
                         struct buffer *end)
{
    bytes from = buffer_bytes(&table->reclaim.next);
    uint64_t most = table->cluster->options.reclaim_bytes;
    TRY(table_find_part(table, from, space, end));
    if (!key_ends_before(buffer_bytes(end), to)) {
        buffer_clear(end);
        buffer_append_bytes(end, to);
    }
    return end->failed ? status_out_of_memory()
                       : rows_piece_end(space->keyspace, from, most != 0 ? most : PIECE_BYTES, end);
}

/* The next of the rows up to `to`; `*is_over` when they are all done. */
static status compact_piece(struct table *table, bytes to, bool *is_over)
{
    struct table_reclaim *reclaim = &table->reclaim;
    struct buffer end = {0};
    struct table_space space;
    status s = find_piece(table, to, &space, &end);
    if (status_is_ok(s))
        s = rows_compact(space.keyspace, buffer_bytes(&reclaim->next), buffer_bytes(&end));
    *is_over = bytes_equal(buffer_bytes(&end), to);
    buffer_clear(&reclaim->next);
    buffer_append_bytes(&reclaim->next, buffer_bytes(&end));
    if (status_is_ok(s) && reclaim->next.failed)
        s = status_out_of_memory();
    buffer_free(&end);
    return s;
}

static status go_on(struct table *table, bool *is_over)
{
    struct buffer end = {0};
    key_after_prefix(&end, bytes_of_prefix(table->reclaim.current));
    status s = end.failed || table->reclaim.next.failed
                   ? status_out_of_memory()
                   : compact_piece(table, buffer_bytes(&end), is_over);
    buffer_free(&end);
    return s;
}

/* --- prefixes --- */

static struct dropped_prefix *take_next(struct table_reclaim *reclaim)
{
    pthread_mutex_lock(&reclaim->lock);
    struct link *link = list_take(&reclaim->prefixes);
    DCHECK((link == NULL) == (reclaim->count == 0));
    reclaim->count -= link != NULL;
    pthread_mutex_unlock(&reclaim->lock);
    return link == NULL ? NULL : LIST_ENTRY(link, struct dropped_prefix, link);
}

/* Whether there is a prefix to go on with. */
static bool begin_prefix(struct table_reclaim *reclaim)
{
    if (reclaim->current != NULL)
        return true;
    reclaim->current = take_next(reclaim);
    if (reclaim->current == NULL)
        return false;
    buffer_clear(&reclaim->next);
    buffer_append_bytes(&reclaim->next, bytes_of_prefix(reclaim->current));
    return true;
}

static void end_prefix(struct table_reclaim *reclaim)
{
    free(reclaim->current);
    reclaim->current = NULL;
}

static bool is_anything_left(struct table_reclaim *reclaim)
{
    pthread_mutex_lock(&reclaim->lock);
    bool is_left = reclaim->current != NULL || reclaim->count > 0;
    pthread_mutex_unlock(&reclaim->lock);
    return is_left;
}

static bool run(struct pool_job *job)
{
    struct table *table = LIST_ENTRY(job, struct table, reclaim.job);
    struct table_reclaim *reclaim = &table->reclaim;
    bool is_over = true;
    if (table->is_dropped || !begin_prefix(reclaim))
        return false;
    status s = go_on(table, &is_over);
    if (is_over || !status_is_ok(s))
        end_prefix(reclaim);
    maintenance_tell_failure(table, s, "space of dropped rows is kept for now");
    return is_anything_left(reclaim);
}

static void ended(struct pool_job *job)
{
    table_release(LIST_ENTRY(job, struct table, reclaim.job));
}

/* --- requests --- */

static struct dropped_prefix *new_prefix(bytes prefix)
{
    struct dropped_prefix *dropped = malloc(sizeof *dropped + prefix.size);
    if (dropped == NULL)
        return NULL;
    dropped->size = prefix.size;
    if (prefix.size > 0)
        memcpy(dropped->data, prefix.data, prefix.size);
    return dropped;
}

/* Whether what waits gives it back already. With the lock held. */
static bool is_covered(const struct table_reclaim *reclaim, bytes prefix)
{
    DCHECK(check_is_held(&reclaim->lock));
    for (struct link *at = reclaim->prefixes.first; at != NULL; at = at->next)
        if (bytes_start_with(prefix, bytes_of_prefix(LIST_ENTRY(at, struct dropped_prefix, link))))
            return true;
    return false;
}

/* Whether it waits now, and did not before. */
static bool add(struct table_reclaim *reclaim, struct dropped_prefix *dropped)
{
    pthread_mutex_lock(&reclaim->lock);
    bool is_new = reclaim->count < MOST_PREFIXES && !is_covered(reclaim, bytes_of_prefix(dropped));
    if (is_new) {
        list_append(&reclaim->prefixes, &dropped->link);
        reclaim->count++;
    }
    pthread_mutex_unlock(&reclaim->lock);
    return is_new;
}

void reclaim_prefix(struct table *table, bytes prefix)
{
    struct dropped_prefix *dropped = new_prefix(prefix);
    if (dropped == NULL)
        return;
    if (!add(&table->reclaim, dropped))
        free(dropped);
    maintenance_submit(table->cluster->maintenance, table, &table->reclaim.job);
}

/* --- life --- */

void reclaim_init(struct table *table)
{
    table->reclaim.job = (struct pool_job){
        .kind = MAINTENANCE_DROPPED_ROWS, .owner = table, .run = run, .ended = ended};
    pthread_mutex_init(&table->reclaim.lock, NULL);
}

void reclaim_free(struct table *table)
{
    struct dropped_prefix *dropped;
    while ((dropped = take_next(&table->reclaim)) != NULL)
        free(dropped);
    free(table->reclaim.current);
    buffer_free(&table->reclaim.next);
    pthread_mutex_destroy(&table->reclaim.lock);
}
