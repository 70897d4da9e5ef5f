/* The context of all services: see services.h. */
#include "bigtable/services.h"
#include "bigtable/cluster_jobs.h"

#include "base/metrics.h"
#include "bigtable/backup_failures.h"
#include "bigtable/backup_jobs.h"
#include "bigtable/backup_scheduler.h"
#include "bigtable/data_call.h"
#include "bigtable/default_instance.h"
#include "bigtable/materialized.h"
#include "bigtable/names.h"
#include "bigtable/plan_cache.h"
#include "bigtable/served_by.h"
#include "bigtable/view_jobs.h"
#include "os/thread.h"
#include "wire/request_room.h"

#include <stdlib.h>
#include <unistd.h>

enum { QUERY_QUEUE = 1024 }; /* that may wait for a thread */

static status make_timings(struct bigtable *bigtable)
{
    for (size_t i = 0; i < BIGTABLE_READY_TIMINGS; i++) {
        char text[DATA_CALL_TIMING_SIZE];
        const struct grpc_field field = {.name = "server-timing",
                                         .value = data_call_timing(data_call_ready_us[i], text)};
        bigtable->timings[i] = grpc_headers_create(&field, 1);
        if (bigtable->timings[i] == NULL)
            return status_out_of_memory();
    }
    return status_ok();
}

void bigtable_kinds(struct bigtable *bigtable, struct operation_kind out[BIGTABLE_KINDS])
{
    static const struct operation_kind *const kinds[BIGTABLE_KINDS] = {
        &create_backup_kind, &copy_backup_kind, &restore_table_kind, &create_view_kind,
        &create_cluster_kind};
    for (size_t i = 0; i < BIGTABLE_KINDS; i++) {
        out[i] = *kinds[i];
        out[i].context = bigtable;
    }
}

/* Requests that name an app profile are counted by it from the moment on that it is there. Those of
 * one that has been deleted, too: its count would go back. */
static void profile_changed(void *context, const char *name, const struct resource *resource)
{
    struct bigtable *bigtable = context;
    status s = status_ok();
    if (resource != NULL)
        s = metrics_add_profile(bigtable->metrics, bytes_of(name_id(name)));
    if (!status_is_ok(s))
        log_warn(control_log(bigtable->control), "requests are not counted by the app profile",
                 LOG_STR("name", name), LOG_STR("cause", status_message(s)));
    status_free(s);
}

static void count_profiles(struct bigtable *bigtable)
{
    bigtable->profile_watcher = (struct control_watcher){
        .kind = RESOURCE_APP_PROFILE, .context = bigtable, .changed = profile_changed};
    control_watch(bigtable->control, &bigtable->profile_watcher);
}

static status keep_views(struct bigtable *bigtable)
{
    const struct views_options options = {.cluster = bigtable->cluster,
                                          .control = bigtable->control,
                                          .metrics = bigtable->metrics,
                                          .log = control_log(bigtable->control),
                                          .define = materialized_define_for_engine,
                                          .context = bigtable};
    TRY(views_start(&options, &bigtable->views));
    bigtable_look(bigtable);
    return status_ok();
}

/* One thread for each processor is as much as helps, the query's own among them. */
static unsigned helpers_of(unsigned threads)
{
    unsigned processors = thread_processors();
    return (processors < threads ? processors : threads) - 1;
}

status bigtable_init(struct bigtable *bigtable, const struct bigtable_options *options)
{
    *bigtable = (struct bigtable){.cluster = options->cluster,
                                  .control = options->control,
                                  .metrics = options->metrics,
                                  .backups = options->backups,
                                  .backups_expire = options->backups_expire,
                                  .stream_readers = {.lock = PTHREAD_MUTEX_INITIALIZER},
                                  .query_memory = options->query_memory,
                                  .query_threads = options->query_threads,
                                  .query_helpers = helpers_of(options->query_threads),
                                  .values = options->values,
                                  .zone_id = options->zone_id,
                                  .auto_create = options->auto_create,
                                  .peers = options->peers,
                                  .gc_on_read = options->gc_on_read,
                                  .hold_views = options->hold_views};
    const struct query_room_options room = {.query_memory = options->query_memory,
                                            .threads = options->query_threads,
                                            .max_message = options->max_message,
                                            .values = options->values};
    bigtable->largest_cell = options->max_message;
    query_room_init(&bigtable->query_room, &room);
    TRY(make_timings(bigtable));
    TRY(backup_failures_create(options->metrics, &bigtable->backup_failures));
    TRY(served_by_create(bigtable->control, bigtable->zone_id, &bigtable->served_by));
    TRY(adopt_tables(bigtable));
    count_profiles(bigtable);
    TRY(keep_views(bigtable));
    bigtable->plans = plan_cache_create();
    if (bigtable->plans == NULL)
        return status_out_of_memory();
    return pool_create(options->query_threads, QUERY_QUEUE, "query", &bigtable->queries);
}

void bigtable_look(struct bigtable *bigtable)
{
    if (bigtable->hold_views != NULL)
        views_hold(bigtable->views, access(bigtable->hold_views, F_OK) == 0);
}

status bigtable_start(struct bigtable *bigtable)
{
    return backup_scheduler_start(bigtable, &bigtable->backup_scheduler);
}

void bigtable_stop(struct bigtable *bigtable)
{
    backup_scheduler_stop(bigtable->backup_scheduler);
    bigtable->backup_scheduler = NULL;
    views_stop(bigtable->views);
    pool_destroy(bigtable->queries);
    bigtable->queries = NULL;
    plan_cache_destroy(bigtable->plans);
    bigtable->plans = NULL;
    query_room_destroy(&bigtable->query_room);
}

void bigtable_free(struct bigtable *bigtable)
{
    views_free(bigtable->views);
    bigtable->views = NULL;
    backup_failures_destroy(bigtable->backup_failures);
    bigtable->backup_failures = NULL;
    served_by_destroy(bigtable->served_by);
    bigtable->served_by = NULL;
    for (size_t i = 0; i < BIGTABLE_READY_TIMINGS; i++) {
        grpc_headers_destroy(bigtable->timings[i]);
        bigtable->timings[i] = NULL;
    }
}
