/* See offline_cluster.h. */
#include "server/offline_cluster.h"

#include "base/limits.h"
#include "row/fold.h"

enum {
    CACHE_BYTES = 64 << 20,
    WRITE_BUFFER_BYTES = 64 << 20,
    OPEN_FILES = 256,
    BACKGROUND_THREADS = 2,
    POOL_THREADS = 2,
};

static status open_with(struct cluster_options *options, const char *name,
                        struct offline_cluster *out)
{
    TRY(pool_create(POOL_THREADS, LIMIT_POOL_QUEUE, name, &out->pool));
    options->pool = out->pool;
    options->durability = STORE_SYNCED;
    options->cache_bytes = CACHE_BYTES;
    options->write_buffer_bytes = WRITE_BUFFER_BYTES;
    options->open_files = OPEN_FILES;
    options->background_threads = BACKGROUND_THREADS;
    options->overflow_bytes = UINT64_MAX;
    options->gc_interval_us = INT64_MAX / 2;
    options->merge_after_us = INT64_MAX / 2;
    options->undelete_window_us = INT64_MAX / 2;
    status s = cluster_open(options, &out->cluster);
    if (!status_is_ok(s))
        pool_destroy(out->pool);
    return s;
}

status offline_cluster_open(const char *directory, const char *name, struct clock *clock,
                            const struct log *log, bool accepts_old_data,
                            struct offline_cluster *out)
{
    struct cluster_options options = {.data_directory = directory,
                                      .salvage = accepts_old_data,
                                      .accepts_old_data = accepts_old_data,
                                      .log = log,
                                      .clock = clock};
    return open_with(&options, name, out);
}

status offline_cluster_put_right(const char *directory, const char *name, struct clock *clock,
                                 const struct log *log)
{
    struct cluster_options options = {
        .data_directory = directory, .accepts_lost_records = true, .log = log, .clock = clock};
    struct offline_cluster offline;
    TRY(open_with(&options, name, &offline));
    offline_cluster_close(&offline);
    return status_ok();
}

status offline_cluster_salvage(const char *directory, const char *name, struct clock *clock,
                               const struct log *log, struct offline_cluster *out)
{
    struct cluster_options options = {.data_directory = directory,
                                      .salvage = true,
                                      .accepts_lost_records = true,
                                      .log = log,
                                      .clock = clock};
    return open_with(&options, name, out);
}

void offline_cluster_close(const struct offline_cluster *offline)
{
    cluster_close(offline->cluster);
    pool_destroy(offline->pool);
}

struct store_options offline_store_options(const char *directory, const struct log *log)
{
    return (struct store_options){.directory = directory,
                                  .fold = &row_fold,
                                  .log = log,
                                  .cache_bytes = CACHE_BYTES,
                                  .write_buffer_bytes = WRITE_BUFFER_BYTES,
                                  .open_files = OPEN_FILES,
                                  .background_threads = BACKGROUND_THREADS};
}
