/* See datastore.h. */
#include "datastore/datastore.h"

#include "base/limits.h"
#include "base/log.h"
#include "control/control.h"
#include "datastore/admin/transfers.h"
#include "datastore/background_jobs.h"
#include "datastore/commit/transaction.h"
#include "datastore/database.h"
#include "datastore/index/index_work.h"
#include "datastore/usage.h"

/* Without it reads of almost an hour ago may come too late, and are refused: no reason not to
 * start.
 */
static void keep_longer(struct datastore *datastore)
{
    status s = ds_databases_keep_longer(datastore);
    if (!status_is_ok(s))
        log_warn(control_log(datastore->control),
                 "databases of former versions keep their past no longer than an hour for now",
                 LOG_STR("cause", status_message(s)));
    status_free(s);
}

static status start_background(struct datastore *datastore, const struct datastore_options *options)
{
    const struct ds_background_options background = {.statistics_interval_us =
                                                         options->statistics_interval_us,
                                                     .ttl_interval_us = options->ttl_interval_us};
    return ds_background_start(datastore, &background, &datastore->background);
}

status datastore_init(struct datastore *datastore, const struct datastore_options *options)
{
    *datastore = (struct datastore){.cluster = options->cluster,
                                    .control = options->control,
                                    .metrics = options->metrics,
                                    .clock = cluster_clock(options->cluster),
                                    .export_directory = options->export_directory};
    pthread_mutex_init(&datastore->databases_lock, NULL);
    keep_longer(datastore);
    if (options->is_pessimistic)
        TRY(ds_range_locks_create(datastore->clock, datastore->metrics, options->threads * 3 / 4,
                                  &datastore->range_locks));
    if (options->counts_usage)
        TRY(ds_usage_create(datastore->clock, &datastore->usage));
    TRY(ds_transactions_create(datastore->clock, datastore->metrics, datastore->range_locks,
                               datastore->usage, options->transaction_bytes,
                               &datastore->transactions));
    TRY(pool_create(options->threads, LIMIT_POOL_QUEUE, "datastore", &datastore->pool));
    return start_background(datastore, options);
}

size_t datastore_kinds(struct datastore *datastore, struct operation_kind *out)
{
    const struct operation_kind kinds[] = {
        {DS_CREATE_INDEX, datastore, ds_create_index_run, ds_index_recover, ds_index_abandon,
         false},
        {DS_DELETE_INDEX, datastore, ds_delete_index_run, ds_index_recover, ds_index_abandon,
         false},
        {DS_EXPORT, datastore, ds_export_operation, ds_transfer_recover, NULL, false},
        {DS_IMPORT, datastore, ds_import_operation, ds_transfer_recover, NULL, false},
    };
    enum { COUNT = sizeof kinds / sizeof *kinds };
    static_assert(COUNT <= DATASTORE_KINDS_MOST, "the callers' arrays");
    memcpy(out, kinds, sizeof kinds);
    return COUNT;
}

void datastore_rest(struct datastore *datastore)
{
    ds_background_stop(datastore->background);
    datastore->background = NULL;
}

void datastore_free(struct datastore *datastore)
{
    if (datastore->cluster == NULL)
        return;
    datastore_rest(datastore);
    pool_destroy(datastore->pool);
    ds_transactions_destroy(datastore->transactions);
    ds_range_locks_destroy(datastore->range_locks);
    ds_usage_destroy(datastore->usage);
    ds_databases_close(datastore);
    pthread_mutex_destroy(&datastore->databases_lock);
    *datastore = (struct datastore){.cluster = NULL};
}
