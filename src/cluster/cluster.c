/* Opening and closing a cluster.
 *
 * Opening reads the catalog and makes the tables that it names; then drops the keyspaces that it
 * does not name, which a crash left behind: made for nobody, or of a table whose deletion was
 * recorded. Nothing else needs repair, since every change of the catalog is one batch; unless the
 * log, or the catalog itself, has lost something (salvage.h, lost_records.h). */
#include "base/check.h"
#include "base/limits.h"
#include "cluster/care.h"
#include "cluster/deletions.h"
#include "cluster/identity_record.h"
#include "cluster/index.h"
#include "cluster/lost_records.h"
#include "cluster/mend.h"
#include "cluster/salvage.h"

#include <stdlib.h>

/* --- reading the catalog --- */

/* `tables` is in the order of ids meanwhile, that of the catalog. */
struct loading {
    struct cluster *cluster;
    size_t at; /* the table whose tablets are being read */
};

static status load_table(void *context, const struct table_record *record)
{
    struct cluster *cluster = ((struct loading *)context)->cluster;
    struct table *table;
    TRY(index_make_room(cluster));
    TRY(table_create(cluster, record, &table));
    cluster->tables[cluster->table_count++] = table;
    return status_ok();
}

static struct table *table_being_loaded(struct loading *loading, uint64_t id)
{
    struct cluster *cluster = loading->cluster;
    while (loading->at < cluster->table_count && cluster->tables[loading->at]->id < id)
        loading->at++;
    bool is_there = loading->at < cluster->table_count && cluster->tables[loading->at]->id == id;
    return is_there ? cluster->tables[loading->at] : NULL;
}

/* Whether the tablet begins where the table's last one ended. */
static bool continues(const struct table *table, bytes start)
{
    if (table->tablet_count == 0)
        return start.size == 0;
    bytes end = table->tablets[table->tablet_count - 1]->end;
    return end.size > 0 && bytes_equal(end, start);
}

static status load_tablet(void *context, const struct tablet_record *record)
{
    struct loading *loading = context;
    struct table *table = table_being_loaded(loading, record->table_id);
    if (table == NULL)
        return status_make(STATUS_DATA_LOSS, "tablet %llu has no table",
                           (unsigned long long)record->id);
    if (!continues(table, record->start))
        return status_make(STATUS_DATA_LOSS, "tablet %llu of %s leaves a hole or overlaps",
                           (unsigned long long)record->id, table->name);
    struct keyspace *keyspace = store_keyspace_find(loading->cluster->store, record->keyspace_id);
    if (keyspace == NULL)
        return status_make(STATUS_DATA_LOSS, "tablet %llu of %s has no keyspace",
                           (unsigned long long)record->id, table->name);
    struct tablet *tablet;
    TRY(tablet_create(record->id, keyspace, record->start, record->end, &tablet));
    status s = table_append_tablet(table, tablet);
    if (!status_is_ok(s))
        tablet_release(tablet);
    return s;
}

static status load_spare(void *context, uint64_t id)
{
    struct cluster *cluster = ((struct loading *)context)->cluster;
    if (store_keyspace_find(cluster->store, id) == NULL)
        return status_make(STATUS_DATA_LOSS, "a spare keyspace is missing");
    return cluster_remember_spare(cluster, id);
}

static status load_damage(void *context, const struct damage_record *record)
{
    return damages_remember(((struct loading *)context)->cluster->damages, record);
}

static status load_unclaimed(void *context, uint64_t id, int64_t found_us)
{
    struct cluster *cluster = ((struct loading *)context)->cluster;
    (void)found_us;
    if (store_keyspace_find(cluster->store, id) == NULL)
        return status_ok(); /* it was dropped, and a crash came before that was noted */
    size_t size = (cluster->unclaimed_count + 1) * sizeof *cluster->unclaimed;
    uint64_t *unclaimed = realloc(cluster->unclaimed, size);
    if (unclaimed == NULL)
        return status_out_of_memory();
    cluster->unclaimed = unclaimed;
    unclaimed[cluster->unclaimed_count++] = id;
    return status_ok();
}

static status load_next_id(void *context, uint64_t next_id)
{
    struct cluster *cluster = ((struct loading *)context)->cluster;
    cluster->next_id = next_id;
    return status_ok();
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(struct table *const *)a)->name, (*(struct table *const *)b)->name);
}

static status check_tables_are_whole(const struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->table_count; i++) {
        const struct table *table = cluster->tables[i];
        if (table->tablet_count == 0 || table->tablets[table->tablet_count - 1]->end.size > 0)
            return status_make(STATUS_DATA_LOSS, "the last tablet of %s is missing", table->name);
    }
    return status_ok();
}

/* Without it nobody knows which tables there are, so nothing may be served, or dropped. */
static status read_catalog(struct cluster *cluster, const struct catalog_visitor *visitor)
{
    status s = catalog_read(cluster->catalog, visitor);
    return s.code == STATUS_DATA_LOSS ? lost_records_explain(cluster->catalog, s) : s;
}

static status load_catalog(struct cluster *cluster)
{
    struct loading loading = {.cluster = cluster};
    struct catalog_visitor visitor = {.context = &loading,
                                      .table = load_table,
                                      .tablet = load_tablet,
                                      .spare = load_spare,
                                      .unclaimed = load_unclaimed,
                                      .next_id = load_next_id,
                                      .damage = load_damage};
    TRY(read_catalog(cluster, &visitor));
    return check_tables_are_whole(cluster);
}

/* From the order of ids to that of the index, and without those that are deleted. */
static status sort_tables(struct cluster *cluster)
{
    TRY(deletions_load(cluster));
    if (cluster->table_count > 0)
        qsort(cluster->tables, cluster->table_count, sizeof(*cluster->tables), compare_names);
    return status_ok();
}

/* --- what a crash left behind --- */

static int compare_ids(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static size_t tablets_in_all(const struct cluster *cluster)
{
    size_t count = 0;
    for (size_t i = 0; i < cluster->table_count; i++)
        count += cluster->tables[i]->tablet_count;
    return count;
}

static size_t users_tables(const struct cluster *cluster)
{
    size_t count = 0;
    for (size_t i = 0; i < cluster->table_count; i++)
        count += index_is_users(cluster->tables[i]);
    return count;
}

/* The ids of the keyspaces in use, sorted, with repetitions; to be freed. NULL without memory. */
static uint64_t *ids_in_use(const struct cluster *cluster, size_t *count)
{
    uint64_t *ids =
        malloc((2 + cluster->spare_count + cluster->unclaimed_count + tablets_in_all(cluster)) *
               sizeof(*ids));
    if (ids == NULL)
        return NULL;
    size_t n = 0;
    ids[n++] = CATALOG_KEYSPACE_ID;
    if (cluster->log_keyspace != 0)
        ids[n++] = cluster->log_keyspace;
    for (size_t i = 0; i < cluster->spare_count; i++)
        ids[n++] = cluster->spares[i];
    for (size_t i = 0; i < cluster->unclaimed_count; i++)
        ids[n++] = cluster->unclaimed[i];
    for (size_t i = 0; i < cluster->table_count; i++)
        for (size_t j = 0; j < cluster->tables[i]->tablet_count; j++)
            ids[n++] = keyspace_id(cluster->tables[i]->tablets[j]->keyspace);
    qsort(ids, n, sizeof(*ids), compare_ids);
    *count = n;
    return ids;
}

/* The index moves on only past keyspaces that stay. */
static status drop_unnamed(struct cluster *cluster, const uint64_t *ids, size_t count)
{
    struct keyspace *keyspace;
    for (size_t i = 0; (keyspace = store_keyspace_at(cluster->store, i)) != NULL;) {
        uint64_t id = keyspace_id(keyspace);
        if (cluster->next_id <= id)
            cluster->next_id = id + 1;
        if (bsearch(&id, ids, count, sizeof(*ids), compare_ids) != NULL) {
            i++;
            continue;
        }
        log_info(cluster->options.log, "dropping a keyspace that no table has any more",
                 LOG_INT("keyspace", id));
        TRY(store_keyspace_drop(cluster->store, keyspace));
    }
    return status_ok();
}

static status drop_orphans(struct cluster *cluster)
{
    size_t count;
    uint64_t *ids = ids_in_use(cluster, &count);
    if (ids == NULL)
        return status_out_of_memory();
    status s = drop_unnamed(cluster, ids, count);
    free(ids);
    return s;
}

/* --- open --- */

/* Of the reasons that the store may have, it is that one: it is fenced, or its disk is full, or
 * nobody may change what may not be true (cluster_seal_old_data). */
static void note_store(struct condition *condition, status s)
{
    if (s.code == STATUS_FAILED_PRECONDITION)
        condition_enter(condition, REASON_old_data, "%s", status_message(s));
    if (s.code == STATUS_UNAVAILABLE)
        condition_enter(condition, REASON_fenced, "%s: the server must be started anew",
                        status_message(s));
    else
        condition_leave(condition, REASON_fenced);
    if (s.code == STATUS_RESOURCE_EXHAUSTED)
        condition_enter(condition, REASON_disk_full, "writes are refused: %s", status_message(s));
    else
        condition_leave(condition, REASON_disk_full);
}

static void note_records(struct condition *condition, bool records)
{
    if (records)
        condition_leave(condition, REASON_log_unrecorded);
    else
        condition_enter(condition, REASON_log_unrecorded,
                        "the file SYNCED cannot be written; the log says why");
}

static void look_at_store(struct cluster *cluster)
{
    pthread_mutex_lock(&cluster->looking);
    status s = store_health(cluster->store);
    note_store(cluster->condition, s);
    note_records(cluster->condition, store_records_log_end(cluster->store));
    status_free(s);
    pthread_mutex_unlock(&cluster->looking);
}

/* The store may say so before it is open. */
static void report_trouble(void *context, enum status_code code, const char *what)
{
    struct cluster *cluster = context;
    (void)code;
    (void)what;
    if (cluster->store != NULL)
        look_at_store(cluster);
}

/* Old data without a catalog is no new store: nobody knows who may read what. */
static status check_catalog(struct store *store)
{
    const char *words = store_old_data(store);
    if (words == NULL || store_keyspace_find(store, CATALOG_KEYSPACE_ID) != NULL)
        return status_ok();
    return status_make(STATUS_DATA_LOSS, "nothing of the catalog is left: %s", words);
}

static status open_store(struct cluster *cluster)
{
    const struct cluster_options *options = &cluster->options;
    struct store_options store_options = {.directory = options->data_directory,
                                          .fold = &row_fold,
                                          .log = options->log,
                                          .cache_bytes = options->cache_bytes,
                                          .write_buffer_bytes = options->write_buffer_bytes,
                                          .open_files = options->open_files,
                                          .background_threads = options->background_threads,
                                          .salvage = options->salvage,
                                          .accepts_old_data = options->accepts_old_data,
                                          .on_trouble = report_trouble,
                                          .trouble_context = cluster,
                                          .holds_compactions =
                                              !options->salvage && !options->accepts_lost_records,
                                          .on_damage = damages_see,
                                          .damage_context = cluster->damages,
                                          .fine_keyspace = CATALOG_KEYSPACE_ID,
                                          .metrics = options->metrics,
                                          .on_large_work = options->on_large_work,
                                          .large_value_bytes = options->large_value_bytes,
                                          .large_work_context = options->large_work_context};
    TRY(store_open(&store_options, &cluster->store));
    if (store_old_data(cluster->store) != NULL)
        cluster->options.archive.place = NULL;
    TRY(check_catalog(cluster->store));
    if (store_keyspace_find(cluster->store, CATALOG_KEYSPACE_ID) == NULL)
        TRY(store_keyspaces_create(cluster->store, CATALOG_KEYSPACE_ID, 1));
    cluster->catalog = store_keyspace_find(cluster->store, CATALOG_KEYSPACE_ID);
    keyspace_set_name(cluster->catalog, "the catalog");
    cluster->place = (struct data_directory){.path = options->data_directory,
                                             .store = cluster->store,
                                             .clock = options->clock,
                                             .condition = cluster->condition};
    data_directory_note(&cluster->place);
    return status_ok();
}

static status admit_writes(void *context)
{
    struct cluster *cluster = context;
    TRY(data_directory_admit(&cluster->place));
    return disk_reserve_admit(&cluster->reserve);
}

/* The log first: it is asked for memory before others count on the commit. */
static status gather_observers(struct cluster *cluster)
{
    const struct cluster_options *options = &cluster->options;
    enum { OUR_OWN = 2 };
    struct commit_observer *observers = cluster->observers =
        calloc(OUR_OWN + options->observer_count, sizeof *observers);
    if (observers == NULL)
        return status_out_of_memory();
    size_t count = 0;
    if (cluster->log != NULL)
        observers[count++] = change_log_observer(cluster->log);
    observers[count++] = care_observer(cluster->care);
    for (size_t i = 0; i < options->observer_count; i++)
        observers[count++] = options->observers[i];
    cluster->observer_count = count;
    return status_ok();
}

static status start_commits(struct cluster *cluster)
{
    uint64_t queue_bytes = cluster->options.commit_queue_bytes;
    TRY(gather_observers(cluster));
    struct commit_options options = {
        .store = cluster->store,
        .catalog = cluster->catalog,
        .clock = cluster->options.clock,
        .durability = cluster->options.durability,
        .queue_limit_bytes = queue_bytes == 0 ? LIMIT_COMMIT_QUEUE_BYTES : queue_bytes,
        .stall_limit_us = (int64_t)LIMIT_COMMIT_STALL_SECONDS * 1000000,
        .admit = admit_writes,
        .admit_context = cluster,
        .route = table_route_write,
        .tombstones_from = cluster->options.tombstones_from,
        .observers = cluster->observers,
        .observer_count = cluster->observer_count,
        .has_change_log = cluster->log != NULL,
        .metrics = cluster->options.metrics};
    TRY(row_locks_create(&cluster->locks));
    return commit_queue_create(&options, &cluster->commits);
}

static status open_tokens(struct cluster *cluster)
{
    struct tokens_options options = {.store = cluster->store,
                                     .catalog = cluster->catalog,
                                     .clock = cluster->options.clock,
                                     .metrics = cluster->options.metrics};
    return tokens_open(&options, &cluster->tokens);
}

static status open_parts(struct cluster *cluster)
{
    const struct cluster_options *options = &cluster->options;
    TRY(condition_create(options->log, options->clock, options->metrics, &cluster->condition));
    cluster->reserve.condition = cluster->condition;
    TRY(damages_create(cluster, &cluster->damages));
    TRY(open_store(cluster));
    TRY(lost_records_give_up(cluster));
    TRY(salvage_catalog(cluster));
    TRY(load_catalog(cluster));
    damages_close(cluster->damages);
    TRY(store_begin_compactions(cluster->store));
    salvage_tell(cluster);
    TRY(event_log_look(cluster));
    TRY(drop_orphans(cluster));
    TRY(event_log_open(cluster));
    TRY(sort_tables(cluster));
    TRY(damages_load(cluster->damages));
    TRY(open_tokens(cluster));
    TRY(care_create(cluster, &cluster->care));
    TRY(mender_create(cluster, &cluster->mender));
    TRY(start_commits(cluster));
    TRY(event_log_start(cluster));
    identity_record_settle(cluster->store, cluster->catalog, cluster->options.log);
    TRY(heat_create(cluster, &cluster->heat));
    TRY(maintenance_start(cluster, &cluster->maintenance));
    TRY(scrub_start(cluster, &cluster->scrub));
    metrics_add(cluster->options.metrics, METRIC_tables, (int64_t)users_tables(cluster));
    metrics_add(cluster->options.metrics, METRIC_tablets, (int64_t)tablets_in_all(cluster));
    return status_ok();
}

static struct cluster *new_cluster(const struct cluster_options *options)
{
    struct cluster *cluster = calloc(1, sizeof *cluster);
    if (cluster == NULL)
        return NULL;
    cluster->magic = CLUSTER_MAGIC;
    cluster->options = *options;
    cluster->next_id = CATALOG_KEYSPACE_ID + 1;
    atomic_init(&cluster->usage_is_to_sweep, true); /* what a crash has left */
    cluster->reserve = (struct disk_reserve){.directory = options->data_directory,
                                             .reserve_bytes = options->disk_reserve_bytes,
                                             .clock = options->clock,
                                             .metrics = options->metrics};
    pthread_rwlock_init(&cluster->index_lock, NULL);
    pthread_mutex_init(&cluster->admin, NULL);
    pthread_mutex_init(&cluster->doomed_lock, NULL);
    pthread_mutex_init(&cluster->looking, NULL);
    pthread_mutex_init(&cluster->traffic.lock, NULL);
    return cluster;
}

status cluster_open(const struct cluster_options *options, struct cluster **out)
{
    *out = NULL;
    struct cluster *cluster = new_cluster(options);
    if (cluster == NULL)
        return status_out_of_memory();
    status s = open_parts(cluster);
    if (!status_is_ok(s)) {
        cluster_close(cluster);
        return s;
    }
    log_info(options->log, "data directory open", LOG_STR("directory", options->data_directory),
             LOG_INT("tables", users_tables(cluster)), LOG_INT("tablets", tablets_in_all(cluster)),
             LOG_INT("deleted_tables", cluster->kept_count));
    *out = cluster;
    return status_ok();
}

/* --- close --- */

static void release_all(struct table **tables, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CHECK(atomic_load(&tables[i]->references) == 1);
        table_release(tables[i]);
    }
    free(tables);
}

static void release_tables(struct cluster *cluster)
{
    release_all(cluster->tables, cluster->table_count);
    release_all(cluster->kept, cluster->kept_count);
    struct link *link;
    while ((link = list_take(&cluster->undropped)) != NULL)
        table_destroy(LIST_ENTRY(link, struct table, doomed));
}

/* The reverse of opening, from wherever that stopped. */
void cluster_close(struct cluster *cluster)
{
    CHECK_MAGIC(cluster, CLUSTER_MAGIC);
    scrub_stop(cluster->scrub);
    mender_stop(cluster->mender); /* before maintenance, which it may leave a table to */
    maintenance_stop(cluster->maintenance);
    cluster->maintenance = NULL;
    if (cluster->heat != NULL && cluster->commits != NULL)
        heat_stop(cluster);
    heat_destroy(cluster->heat);
    care_stop(cluster->care);
    archiver_destroy(cluster->archiver);
    if (cluster->commits != NULL)
        commit_queue_destroy(cluster->commits);
    cluster->commits = NULL;
    free(cluster->observers);
    change_log_close(cluster->log);
    buffer_free(&cluster->archive_path);
    care_destroy(cluster->care);
    mender_destroy(cluster->mender);
    tokens_close(cluster->tokens);
    cluster_drop_doomed(cluster);
    if (cluster->locks != NULL)
        row_locks_destroy(cluster->locks);
    if (cluster->store != NULL)
        store_close(cluster->store);
    damages_destroy(cluster->damages);
    release_tables(cluster); /* last: folds in the background look at their schemas */
    free(cluster->spares);
    free(cluster->unclaimed);
    free(cluster->lost_records);
    condition_destroy(cluster->condition);
    pthread_mutex_destroy(&cluster->traffic.lock);
    pthread_mutex_destroy(&cluster->looking);
    pthread_mutex_destroy(&cluster->doomed_lock);
    pthread_mutex_destroy(&cluster->admin);
    pthread_rwlock_destroy(&cluster->index_lock);
    cluster->magic = 0;
    free(cluster);
}

/* --- what others may ask --- */

const char *cluster_old_data(struct cluster *cluster)
{
    return store_old_data(cluster->store);
}

status cluster_check_true(struct cluster *cluster)
{
    const char *words = store_old_data(cluster->store);
    return words == NULL
               ? status_ok()
               : status_make(STATUS_FAILED_PRECONDITION, "no backup is made or deleted: %s", words);
}

void cluster_seal_old_data(struct cluster *cluster)
{
    const char *words = store_old_data(cluster->store);
    if (words != NULL)
        store_seal(cluster->store, words);
}

struct pool *cluster_pool(struct cluster *cluster)
{
    return cluster->options.pool;
}

struct clock *cluster_clock(struct cluster *cluster)
{
    return cluster->options.clock;
}

int64_t cluster_wall_us(struct cluster *cluster)
{
    return clock_wall_us(cluster->options.clock);
}

int64_t cluster_version_us(struct cluster *cluster)
{
    return commit_version_us(cluster->commits);
}

struct condition *cluster_condition(struct cluster *cluster)
{
    store_look_for_room(cluster->store);
    look_at_store(cluster);
    data_directory_look(&cluster->place);
    disk_reserve_look(&cluster->reserve);
    clock_watch_note_lead(cluster);
    if (cluster->archiver != NULL)
        archiver_look(cluster->archiver);
    return cluster->condition;
}

double cluster_write_load(struct cluster *cluster)
{
    return commit_queue_load(cluster->commits);
}

static void measure_cache(struct metrics *metrics, const struct store_statistics *statistics)
{
    metrics_set(metrics, METRIC_store_cache_bytes, (int64_t)statistics->cache_used_bytes);
    metrics_set(metrics, METRIC_store_cache_capacity_bytes,
                (int64_t)statistics->cache_capacity_bytes);
    metrics_set(metrics, METRIC_store_cache_hits_total, (int64_t)statistics->cache_hits);
    metrics_set(metrics, METRIC_store_cache_misses_total, (int64_t)statistics->cache_misses);
}

static void measure_compactions(struct metrics *metrics, const struct store_statistics *statistics)
{
    metrics_set(metrics, METRIC_store_flushes_running, (int64_t)statistics->flushes_running);
    metrics_set(metrics, METRIC_store_flushes_total, (int64_t)statistics->flushes);
    metrics_set(metrics, METRIC_store_flushed_bytes_total, (int64_t)statistics->flushed_bytes);
    metrics_set(metrics, METRIC_store_compactions_running,
                (int64_t)statistics->compactions_running);
    metrics_set(metrics, METRIC_store_compactions_total, (int64_t)statistics->compactions);
    metrics_set(metrics, METRIC_store_compaction_seconds_total, (int64_t)statistics->compaction_us);
    metrics_set(metrics, METRIC_store_compaction_read_bytes_total,
                (int64_t)statistics->compaction_read_bytes);
    metrics_set(metrics, METRIC_store_compaction_written_bytes_total,
                (int64_t)statistics->compaction_written_bytes);
    metrics_set(metrics, METRIC_store_compaction_pending_bytes,
                (int64_t)statistics->compaction_pending_bytes);
    for (unsigned level = 0; level < STORE_LEVELS; level++)
        metrics_set(metrics, METRIC_store_level_files_0 + level,
                    (int64_t)statistics->level_files[level]);
}

/* Of the tables that there are: when one is deleted the sum falls, and a counter must not. */
static void raise_to(struct metrics *metrics, enum metric metric, uint64_t value)
{
    if ((int64_t)value > metrics_value(metrics, metric))
        metrics_set(metrics, metric, (int64_t)value);
}

static void measure_stalls(struct metrics *metrics, const struct store_statistics *statistics)
{
    metrics_set(metrics, METRIC_store_stalled, statistics->is_stalled);
    metrics_set(metrics, METRIC_store_stall_milliseconds_total,
                (int64_t)(statistics->stalls_us / 1000));
    metrics_set(metrics, METRIC_store_stalls_total_slowdown, (int64_t)statistics->slowdowns);
    metrics_set(metrics, METRIC_store_stalls_total_stop, (int64_t)statistics->stops);
    raise_to(metrics, METRIC_store_stall_causes_total_write_buffers, statistics->stalls_by_buffers);
    raise_to(metrics, METRIC_store_stall_causes_total_level0_files, statistics->stalls_by_level0);
    raise_to(metrics, METRIC_store_stall_causes_total_pending_compaction,
             statistics->stalls_by_pending);
}

static void measure_store(struct cluster *cluster)
{
    struct metrics *metrics = cluster->options.metrics;
    struct store_statistics statistics;
    store_statistics(cluster->store, &statistics);
    measure_cache(metrics, &statistics);
    measure_compactions(metrics, &statistics);
    measure_stalls(metrics, &statistics);
    metrics_set(metrics, METRIC_store_write_buffer_bytes,
                (int64_t)statistics.write_buffer_used_bytes);
    metrics_set(metrics, METRIC_store_table_bytes, (int64_t)statistics.table_bytes);
    metrics_set(metrics, METRIC_store_log_bytes, (int64_t)statistics.log_bytes);
    metrics_set(metrics, METRIC_store_written_bytes_total, (int64_t)statistics.bytes_written);
    metrics_set(metrics, METRIC_store_syncs_total, (int64_t)statistics.syncs);
}

void cluster_measure(struct cluster *cluster)
{
    struct metrics *metrics = cluster->options.metrics;
    measure_store(cluster);
    pool_measure(care_pool(cluster->care), metrics, POOL_GAUGES(rows));
    metrics_set(metrics, METRIC_commit_queue_percent,
                (int64_t)(100 * commit_queue_load(cluster->commits)));
    metrics_set(metrics, METRIC_clock_lead_seconds, commit_clock_lead_us(cluster->commits));
    metrics_set(metrics, METRIC_hot_tablets, (int64_t)heat_hot_count(cluster));
    metrics_set(metrics, METRIC_commit_milliseconds, commit_under_way_us(cluster->commits) / 1000);
    traffic_measure(cluster);
}
