/* What all services share: see services.h. */
#include "bigtable/services.h"

#include "base/check.h"
#include "base/metrics.h"
#include "bigtable/backup_care.h"
#include "bigtable/backup_jobs.h"
#include "bigtable/data_call.h"
#include "bigtable/default_instance.h"
#include "bigtable/names.h"
#include "google/bigtable/v2/response_params.pb-c.h"
#include "wire/proto.h"

enum { QUERY_QUEUE = 1024 }; /* that may wait for a thread */

static void encode_response_params(struct buffer *out)
{
    Bt__ResponseParams params = BT__RESPONSE_PARAMS__INIT;
    params.has_zone_id_case = BT__RESPONSE_PARAMS__HAS_ZONE_ID_ZONE_ID;
    params.zone_id = BIGTABLE_ZONE_ID;
    params.has_cluster_id_case = BT__RESPONSE_PARAMS__HAS_CLUSTER_ID_CLUSTER_ID;
    params.cluster_id = BIGTABLE_CLUSTER_ID;
    proto_encode(&params.base, out);
}

static struct metadata *make_answer_headers(bytes params, unsigned ms)
{
    char text[DATA_CALL_TIMING_SIZE];
    const struct grpc_field fields[] = {
        {.name = "x-goog-ext-425905942-bin", .value = params},
        {.name = "server-timing", .value = data_call_timing(ms, text)},
    };
    return grpc_headers_create(fields, ms < BIGTABLE_READY_MS ? 2 : 1);
}

static status make_all_answer_headers(struct bigtable *bigtable)
{
    struct buffer params = {0};
    encode_response_params(&params);
    bool is_made = !params.failed;
    for (unsigned ms = 0; is_made && ms <= BIGTABLE_READY_MS; ms++) {
        bigtable->answer_headers[ms] = make_answer_headers(buffer_bytes(&params), ms);
        is_made = bigtable->answer_headers[ms] != NULL;
    }
    buffer_free(&params);
    return is_made ? status_ok() : status_out_of_memory();
}

/* All kinds at once: what was running may be of any. */
static status start_operations(struct bigtable *bigtable, const struct operation_kind *more,
                               size_t count)
{
    static const struct operation_kind *const kinds[BIGTABLE_KINDS] = {
        &create_backup_kind, &copy_backup_kind, &restore_table_kind};
    for (size_t i = 0; i < BIGTABLE_KINDS; i++) {
        bigtable->kinds[i] = *kinds[i];
        bigtable->kinds[i].context = bigtable;
    }
    CHECK(count <= MORE_KINDS_MOST);
    for (size_t i = 0; i < count; i++)
        bigtable->kinds[BIGTABLE_KINDS + i] = more[i];
    return operations_start(bigtable->control, bigtable->kinds, BIGTABLE_KINDS + count);
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

status bigtable_init(struct bigtable *bigtable, const struct bigtable_options *options)
{
    *bigtable = (struct bigtable){.cluster = options->cluster,
                                  .metrics = options->metrics,
                                  .backups = options->backups,
                                  .backups_expire = options->backups_expire,
                                  .query_memory = options->query_memory,
                                  .auto_create = options->auto_create,
                                  .gc_on_read = options->gc_on_read};
    TRY(make_all_answer_headers(bigtable));
    TRY(control_open(options->cluster, options->log, &bigtable->control));
    TRY(adopt_tables(bigtable));
    count_profiles(bigtable);
    return pool_create(options->query_threads, QUERY_QUEUE, "query", &bigtable->queries);
}

status bigtable_start(struct bigtable *bigtable, const struct operation_kind *more, size_t count)
{
    TRY(start_operations(bigtable, more, count));
    return backup_care_start(bigtable, &bigtable->backup_care);
}

void bigtable_free(struct bigtable *bigtable)
{
    backup_care_stop(bigtable->backup_care);
    bigtable->backup_care = NULL;
    pool_destroy(bigtable->queries);
    bigtable->queries = NULL;
    control_close(bigtable->control);
    bigtable->control = NULL;
    for (unsigned ms = 0; ms <= BIGTABLE_READY_MS; ms++) {
        grpc_headers_destroy(bigtable->answer_headers[ms]);
        bigtable->answer_headers[ms] = NULL;
    }
}
