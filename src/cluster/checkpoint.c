/* See checkpoint.h.
 *
 * With `admin` held no keyspace is made and then named by a record, in either order of which a
 * checkpoint could have the one without the other. With the commit thread held no batch is half in
 * the log. A keyspace that is dropped meanwhile is named by no record; a start drops it again. */
#include "cluster/checkpoint.h"

#include "cluster/cluster_private.h"
#include "store/files.h"

/* Logs of more than this are flushed before: each backup would copy them again, while later backups
 * already have the tables that a flush makes of them. */
enum { MOST_LOG_BYTES = 32 << 20 };

static status fix_instant(struct cluster *cluster, struct checkpoint_facts *facts,
                          struct store_checkpoint **out)
{
    pthread_mutex_lock(&cluster->admin);
    commit_hold(cluster->home->commits, &facts->sequence);
    facts->wall_us = clock_wall_us(cluster->options.clock);
    facts->archive_stream = event_log_stream(cluster->home);
    status s = store_checkpoint_begin(cluster->home->store, out);
    commit_release(cluster->home->commits);
    pthread_mutex_unlock(&cluster->admin);
    return s;
}

status cluster_remove_checkpoint(struct cluster *cluster, const char *directory)
{
    return files_remove_flat_directory(files_of_store(cluster->home->store), directory);
}

status cluster_checkpoint(struct cluster *cluster, const char *directory,
                          struct checkpoint_facts *out)
{
    struct store_checkpoint *checkpoint;
    if (cluster->shard_count > 1)
        return status_make(STATUS_FAILED_PRECONDITION, "several shards have no checkpoint");
    TRY(cluster_check_true(cluster));
    TRY(store_identity(cluster->home->store, out->identity));
    TRY(cluster_remove_checkpoint(cluster, directory));
    TRY(disk_reserve_admit(&cluster->home->reserve));
    TRY(store_checkpoint_prepare(cluster->home->store, MOST_LOG_BYTES));
    TRY(fix_instant(cluster, out, &checkpoint));
    status s = store_checkpoint_write(checkpoint, directory);
    store_checkpoint_end(checkpoint);
    if (!status_is_ok(s))
        status_ignore(cluster_remove_checkpoint(cluster, directory));
    return s;
}

status cluster_identity(struct cluster *cluster, char out[STORE_IDENTITY_SIZE])
{
    return store_identity(cluster->home->store, out);
}
