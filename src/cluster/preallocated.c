/* Preallocated keyspaces: see shard_add_preallocated.
 *
 * RocksDB writes its options, those of all keyspaces, at each making of one, so making one among a
 * thousand takes a tenth of a second, and making sixteen takes little more. A preallocated one is
 * named by a record of its own until a table takes it, so that the next start can tell it from what
 * a crash left behind. */
#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/salvage.h"

#include <stdlib.h>

static bool has_room(struct shard *shard, size_t more)
{
    size_t wanted = shard->preallocated_count + more;
    if (wanted <= shard->preallocated_capacity)
        return true;
    uint64_t *preallocated = realloc(shard->preallocated, wanted * sizeof(*preallocated));
    if (preallocated == NULL)
        return false;
    shard->preallocated = preallocated;
    shard->preallocated_capacity = wanted;
    return true;
}

struct made {
    struct catalog_change change;
    uint64_t first_id;
    size_t count;
};

static void describe_made(const struct catalog_change *change, struct event_writer *writer)
{
    const struct made *made = (const struct made *)(const void *)change;
    event_keyspaces_made(writer, KEYSPACE_ROWS, made->first_id, made->count);
}

/* A start begins above the ids of all keyspaces of all shards, so the catalog need not have heard
 * of another shard's. */
static status put_next_id(struct shard *shard, struct store_batch *batch, uint64_t next_id)
{
    bool is_home = shard == shard->cluster->home;
    return is_home ? catalog_put_next_id(batch, shard->system, next_id) : status_ok();
}

static status record_preallocated(struct shard *shard, uint64_t first_id, size_t count)
{
    DCHECK(check_is_held(&shard->cluster->admin));
    const struct made made = {
        .change = {.describe = describe_made}, .first_id = first_id, .count = count};
    struct store_batch *batch = store_batch_create();
    if (batch == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        catalog_put_preallocated(batch, shard->system, first_id + i);
    status s = put_next_id(shard, batch, first_id + count);
    if (status_is_ok(s))
        s = disk_reserve_admit(&shard->reserve);
    if (status_is_ok(s))
        s = commit_write(shard->commits, COMMIT_CATALOG, batch, &made.change);
    store_batch_destroy(batch);
    return s;
}

/* If the record fails, the keyspaces stay behind without a name until the next start drops them. */
status shard_add_preallocated(struct shard *shard, size_t count)
{
    DCHECK(check_is_held(&shard->cluster->admin) && count > 0);
    if (!has_room(shard, count))
        return status_out_of_memory();
    uint64_t first_id = shard->cluster->next_id;
    shard->cluster->next_id += count;
    TRY(store_keyspaces_create(shard->store, first_id, count));
    TRY(record_preallocated(shard, first_id, count));
    for (size_t i = 0; i < count; i++)
        shard->preallocated[shard->preallocated_count++] = first_id + i;
    return status_ok();
}

status shard_remember_preallocated(struct shard *shard, uint64_t id)
{
    DCHECK(store_keyspace_find(shard->store, id) != NULL);
    if (!has_room(shard, 1))
        return status_out_of_memory();
    shard->preallocated[shard->preallocated_count++] = id;
    return status_ok();
}

/* A tenth of what there is, so that n tables cost about ten writes of options for n = 1,000. */
static size_t preallocated_to_add(struct shard *shard)
{
    DCHECK(check_is_held(&shard->cluster->admin));
    enum { FEWEST = 4, MOST = 64 };
    size_t tenth = shard->cluster->table_count / 10;
    if (tenth < FEWEST)
        return FEWEST;
    return tenth > MOST ? MOST : tenth;
}

/* A keyspace that has rows is not handed out: they would become the new table's. It is not
 * preallocated any more until a start looks again, and salvage.h may know whose it is. */
static bool is_fit(struct shard *shard, struct keyspace *keyspace)
{
    bool is_empty;
    status s = salvage_is_empty(keyspace, &is_empty);
    if (!is_empty)
        log_error(shard->cluster->options.log, "a spare keyspace is not empty, and is left alone",
                  LOG_INT("keyspace", keyspace_id(keyspace)), LOG_STR("cause", status_message(s)));
    status_free(s);
    return is_empty;
}

/* Neither a table's nor among the preallocated ones any more; for DCHECKs. */
static bool is_nobodys(const struct shard *shard, const struct keyspace *keyspace)
{
    const struct cluster *cluster = shard->cluster;
    for (size_t i = 0; i < shard->preallocated_count; i++)
        if (shard->preallocated[i] == keyspace_id(keyspace))
            return false;
    for (size_t i = 0; i < cluster->table_count; i++) {
        const struct table *table = cluster->tables[i];
        for (size_t j = 0; j < table->space_count; j++)
            if (table->spaces[j].keyspace == keyspace)
                return false;
        if (table->view.records == keyspace)
            return false;
    }
    return true;
}

status shard_take_preallocated(struct shard *shard, struct keyspace **out)
{
    DCHECK(check_is_held(&shard->cluster->admin));
    do {
        if (shard->preallocated_count == 0)
            TRY(shard_add_preallocated(shard, preallocated_to_add(shard)));
        *out = store_keyspace_find(shard->store, shard->preallocated[--shard->preallocated_count]);
    } while (!is_fit(shard, *out));
    DCHECK(is_nobodys(shard, *out));
    return status_ok();
}

status shard_forget_preallocated(struct shard *shard, struct keyspace *keyspace)
{
    DCHECK(shard != shard->cluster->home);
    struct store_batch *batch = store_batch_create();
    if (batch == NULL)
        return status_out_of_memory();
    catalog_delete_preallocated(batch, shard->system, keyspace_id(keyspace));
    status s = commit_write(shard->commits, COMMIT_CATALOG, batch, NULL);
    store_batch_destroy(batch);
    return s;
}
