/* See idle_compaction.h. */
#include "cluster/idle_compaction.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/ranges.h"
#include "row/row_key.h"

#include <stdlib.h>

enum {
    QUIET_LOOKS = 3,             /* in a row, between which next to nothing was written */
    QUIET_BYTES = 16 << 10,      /* next to nothing */
    LEAST_BYTES = 4 << 20,       /* what is less is not worth a compaction */
    LARGEST_TABLE = 512 << 20,   /* some seconds of compaction */
    MOST_WRITTEN_FOR_A_BYTE = 4, /* by a compaction, for each byte that was written before */
    MOST_READ_FOR_A_BYTE = 16,   /* the same, where readers would go through more */
    WASTE_FOR_A_BYTE = 2,        /* takes readers as long as to compact a byte of the table */
    LEAST_WASTE = 4 << 20,       /* what is less is not worth a look */
    PIECES = 2,                  /* from so many operands on a row is in pieces */
    ROWS_LOOKED_AT = 256,
};

/* --- whether it has come to rest --- */

static uint64_t bytes_written_to(struct tablet *const *tablets, size_t count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += atomic_load_explicit(&tablets[i]->bytes_written, memory_order_relaxed);
    return bytes;
}

/* `now`: bytes written to its tablets, which count from 0 after a split or a merge. */
static bool has_come_to_rest(struct table_idleness *idleness, uint64_t now)
{
    uint64_t written = now >= idleness->written ? now - idleness->written : now;
    idleness->written = now;
    atomic_fetch_add(&idleness->uncompacted, written);
    idleness->quiet_looks = written > QUIET_BYTES ? 0 : idleness->quiet_looks + 1;
    atomic_store(&idleness->is_at_rest, idleness->quiet_looks >= QUIET_LOOKS);
    return idleness->quiet_looks == QUIET_LOOKS;
}

/* --- whether it is worth it --- */

static bool is_small_enough(const struct table *table, uint64_t uncompacted)
{
    uint64_t size = 0;
    for (size_t i = 0; i < table->space_count; i++)
        size += keyspace_size(table->spaces[i].keyspace, bytes_of(""), bytes_of(""));
    return size <= LARGEST_TABLE && size / MOST_WRITTEN_FOR_A_BYTE <= uncompacted;
}

/* The rows that were asked for last are most of them those that were written. */
struct census {
    size_t rows;
    size_t in_pieces;
};

static status look_at_row(struct keyspace *keyspace, bytes record_key, struct census *census)
{
    struct store_value value = {0};
    enum store_presence presence;
    status s = store_get(keyspace, NULL, record_key, STORE_READ_ANY, &value, &presence);
    if (status_is_ok(s) && presence == STORE_FOUND) {
        census->rows++;
        census->in_pieces += value.folded.count >= PIECES;
    }
    store_value_release(&value);
    return s;
}

static status look_at_tablet(struct tablet *tablet, struct census *census)
{
    DCHECK(census->in_pieces <= census->rows);
    struct buffer row_key = {0}, record_key = {0};
    status s = status_ok();
    for (unsigned i = 0; status_is_ok(s) && census->rows < ROWS_LOOKED_AT &&
                         key_sample_at(&tablet->asked_for, i, &row_key);
         i++) {
        buffer_clear(&record_key);
        row_record_key(&record_key, buffer_bytes(&row_key));
        s = record_key.failed ? status_out_of_memory()
                              : look_at_row(tablet->keyspace, buffer_bytes(&record_key), census);
    }
    buffer_free(&row_key);
    buffer_free(&record_key);
    return s;
}

/* Whether half of the rows are, of those that were asked for last. */
static status find_pieces(struct tablet *const *tablets, size_t count, bool *found)
{
    struct census census = {0};
    for (size_t i = 0; i < count; i++)
        TRY(look_at_tablet(tablets[i], &census));
    *found = census.in_pieces > 0 && 2 * census.in_pieces >= census.rows;
    return status_ok();
}

/* --- one table --- */

static uint64_t waste_of(const struct table *table)
{
    uint64_t waste = 0;
    for (size_t i = 0; i < table->space_count; i++)
        waste += keyspace_waste(table->spaces[i].keyspace);
    return waste;
}

/* What is written, and what readers go through in vain, counts for the next time from here on. */
static status compact(struct table *table)
{
    struct table_idleness *idleness = &table->idleness;
    status s = status_ok();
    atomic_store(&idleness->uncompacted, 0);
    for (size_t i = 0; i < table->space_count && status_is_ok(s); i++)
        s = keyspace_compact(table->spaces[i].keyspace, bytes_of(""), bytes_of(""));
    atomic_store(&idleness->waste, waste_of(table));
    atomic_store(&idleness->was_compacted, true);
    if (status_is_ok(s))
        metrics_add(table->cluster->options.metrics, METRIC_tables_settled_total, 1);
    return s;
}

static status settle_tablets(struct table *table, struct tablet *const *tablets, size_t count)
{
    struct table_idleness *idleness = &table->idleness;
    uint64_t uncompacted = atomic_load(&idleness->uncompacted);
    bool found = false;
    if (uncompacted < LEAST_BYTES || !is_small_enough(table, uncompacted))
        return status_ok();
    TRY(find_pieces(tablets, count, &found));
    if (!found)
        return status_ok();
    return compact(table);
}

static void release_tablets(struct tablet **tablets, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tablet_release(tablets[i]);
    free(tablets);
}

static status settle_table(struct table *table)
{
    struct tablet **tablets;
    size_t count;
    TRY(table_tablets(table, &tablets, &count));
    status s = settle_tablets(table, tablets, count);
    release_tablets(tablets, count);
    return s;
}

/* --- whether its readers pay for it --- */

static bool costs_readers(struct table *table)
{
    struct table_idleness *idleness = &table->idleness;
    uint64_t waste = waste_of(table) - atomic_load(&idleness->waste);
    if (waste < LEAST_WASTE)
        return false;
    uint64_t size = table_stored_bytes(table);
    bool may_write = !atomic_load(&idleness->was_compacted) ||
                     size / MOST_READ_FOR_A_BYTE <= atomic_load(&idleness->uncompacted);
    return may_write && size <= LARGEST_TABLE && waste / WASTE_FOR_A_BYTE >= size;
}

/* It may have waited long: if somebody writes again to a table at rest, that is looked at when it
 * rests again. */
static status put_together(struct table *table)
{
    if (table->is_dropped)
        return status_ok();
    if (costs_readers(table))
        return compact(table);
    return atomic_load(&table->idleness.is_at_rest) ? settle_table(table) : status_ok();
}

static bool compact_idle(struct pool_job *job)
{
    struct table *table = LIST_ENTRY(job, struct table, idleness.job);
    maintenance_tell_failure(table, put_together(table), "a table stays in pieces for now");
    return false;
}

static void end_settling(struct pool_job *job)
{
    table_release(LIST_ENTRY(job, struct table, idleness.job));
}

void settling_init(struct table *table)
{
    table->idleness.job = (struct pool_job){.kind = MAINTENANCE_IDLE_COMPACTION,
                                            .owner = table,
                                            .run = compact_idle,
                                            .ended = end_settling};
}

/* --- all tables --- */

static status look(struct table *table)
{
    struct table_idleness *idleness = &table->idleness;
    struct tablet **tablets;
    size_t count;
    TRY(table_tablets(table, &tablets, &count));
    uint64_t written = bytes_written_to(tablets, count);
    release_tablets(tablets, count);
    bool rests =
        has_come_to_rest(idleness, written) && atomic_load(&idleness->uncompacted) >= LEAST_BYTES;
    if (rests || costs_readers(table))
        maintenance_submit(table->cluster->maintenance, table, &idleness->job);
    return status_ok();
}

static bool visit(void *context, struct table *table)
{
    struct cluster *cluster = context;
    status_ignore(look(table)); /* without memory: the next look will do */
    return !maintenance_is_stopping(cluster->maintenance);
}

static bool is_anything_new_in(struct shard *shard)
{
    struct shard_idleness *idleness = &shard->idleness;
    uint64_t applied = commit_applied(shard->commits);
    uint64_t waste = store_waste(shard->store);
    DCHECK(applied >= idleness->applied_version && waste >= idleness->waste);
    bool is_read = waste != idleness->waste;
    idleness->quiet_looks = applied != idleness->applied_version ? 0 : idleness->quiet_looks + 1;
    idleness->applied_version = applied;
    idleness->waste = waste;
    return is_read || idleness->quiet_looks <= QUIET_LOOKS;
}

/* Whether something was written so short a time ago that a table may be coming to rest, or was
 * read that is in pieces. */
static bool is_anything_new(struct cluster *cluster)
{
    bool is_new = false;
    for (size_t i = 0; i < cluster->shard_count; i++)
        is_new = is_anything_new_in(cluster->shards[i]) || is_new;
    return is_new;
}

void idle_compaction_run(struct cluster *cluster)
{
    const bytes all = bytes_make(NULL, 0);
    if (is_anything_new(cluster))
        status_ignore(cluster_list_tables(cluster, all, all, visit, cluster));
}
