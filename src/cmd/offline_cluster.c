/* See offline_cluster.h. */
#include "cmd/offline_cluster.h"

#include "base/limits.h"

enum {
    CACHE_BYTES = 64 << 20,
    WRITE_BUFFER_BYTES = 64 << 20,
    OPEN_FILES = 256,
    BACKGROUND_THREADS = 2,
    POOL_THREADS = 2,
};

status offline_cluster_open(const char *directory, const char *name, struct clock *clock,
                            const struct log *log, bool accepts_old_data,
                            struct offline_cluster *out)
{
    TRY(pool_create(POOL_THREADS, LIMIT_POOL_QUEUE, name, &out->pool));
    const struct cluster_options options = {.data_directory = directory,
                                            .salvage = accepts_old_data,
                                            .accepts_old_data = accepts_old_data,
                                            .log = log,
                                            .clock = clock,
                                            .pool = out->pool,
                                            .durability = STORE_SYNCED,
                                            .cache_bytes = CACHE_BYTES,
                                            .write_buffer_bytes = WRITE_BUFFER_BYTES,
                                            .open_files = OPEN_FILES,
                                            .background_threads = BACKGROUND_THREADS,
                                            .spill_bytes = UINT64_MAX,
                                            .gc_interval_us = INT64_MAX / 2,
                                            .merge_after_us = INT64_MAX / 2,
                                            .undelete_window_us = INT64_MAX / 2};
    status s = cluster_open(&options, &out->cluster);
    if (!status_is_ok(s))
        pool_destroy(out->pool);
    return s;
}

void offline_cluster_close(const struct offline_cluster *offline)
{
    cluster_close(offline->cluster);
    pool_destroy(offline->pool);
}
