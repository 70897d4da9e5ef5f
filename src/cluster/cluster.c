/* Opening and closing a cluster.
 *
 * Opening reads the catalog and makes the tables that it names; then drops the keyspaces that it
 * does not name, which a crash left behind: made for a table that was never recorded, or of one
 * whose deletion was recorded. Nothing else needs repair, since every change of the catalog is one
 * batch; unless the log, or the catalog itself, has lost something (salvage.h, lost_records.h). */
#include "base/check.h"
#include "cluster/deletions.h"
#include "cluster/identity_record.h"
#include "cluster/index.h"
#include "cluster/lost_records.h"
#include "cluster/origin/origin_feed.h"
#include "cluster/row_jobs.h"
#include "cluster/salvage.h"
#include "cluster/shard_directories.h"
#include "cluster/stream/stream_upkeep.h"
#include "cluster/view/view_table.h"
#include "stream/log.h"
#include "tablet/drop_records.h"

#include <stdlib.h>

/* --- reading the catalog --- */

/* `tables` is in the order of ids meanwhile, that of the catalog. */
struct loading {
    struct cluster *cluster;
    struct shard *shard; /* whose keyspace is being read */
    size_t at;           /* the table whose tablets are being read */
    size_t former_at;    /* the same of former ones */
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

/* Moves `*at`, which rises with the ids that are asked for. NULL: there is none. */
static struct table *table_being_loaded(const struct cluster *cluster, size_t *at, uint64_t id)
{
    while (*at < cluster->table_count && cluster->tables[*at]->id < id)
        ++*at;
    bool is_there = *at < cluster->table_count && cluster->tables[*at]->id == id;
    return is_there ? cluster->tables[*at] : NULL;
}

/* Whether the tablet begins where the table's last one ended. */
static bool continues(const struct table *table, bytes start)
{
    if (table->tablet_count == 0)
        return start.size == 0;
    bytes end = table->tablets[table->tablet_count - 1]->end;
    return end.size > 0 && bytes_equal(end, start);
}

/* NULL: there is none. */
static struct shard *shard_numbered(const struct cluster *cluster, unsigned number)
{
    DCHECK(number >= cluster->shard_count || cluster->shards[number]->number == number);
    return number < cluster->shard_count ? cluster->shards[number] : NULL;
}

static status load_tablet(void *context, const struct tablet_record *record)
{
    struct loading *loading = context;
    struct table *table = table_being_loaded(loading->cluster, &loading->at, record->table_id);
    if (table == NULL)
        return status_make(STATUS_DATA_LOSS, "tablet %llu has no table",
                           (unsigned long long)record->id);
    if (!continues(table, record->start))
        return status_make(STATUS_DATA_LOSS, "tablet %llu of %s leaves a hole or overlaps",
                           (unsigned long long)record->id, table->name);
    struct shard *shard = shard_numbered(loading->cluster, record->shard);
    struct keyspace *keyspace =
        shard == NULL ? NULL : store_keyspace_find(shard->store, record->keyspace_id);
    if (keyspace == NULL)
        return status_make(STATUS_DATA_LOSS, "tablet %llu of %s has no %s",
                           (unsigned long long)record->id, table->name,
                           shard == NULL ? "shard" : "keyspace");
    struct tablet *tablet;
    TRY(tablet_create(record->id, shard, keyspace, record->start, record->end, &tablet));
    status s = table_append_tablet(table, tablet);
    if (!status_is_ok(s))
        tablet_release(tablet);
    return s;
}

static status load_former(void *context, const struct former_tablet_record *record)
{
    struct loading *loading = context;
    struct table *table =
        table_being_loaded(loading->cluster, &loading->former_at, record->table_id);
    /* A table that was given up has left these. */
    return table == NULL ? status_ok() : lineage_remember(&table->lineage, record);
}

static status load_preallocated(void *context, uint64_t id)
{
    struct shard *shard = ((struct loading *)context)->shard;
    if (store_keyspace_find(shard->store, id) == NULL)
        return status_make(STATUS_DATA_LOSS, "a spare keyspace is missing");
    return shard_remember_preallocated(shard, id);
}

static status load_damage(void *context, const struct damage_record *record)
{
    return damages_remember(((struct loading *)context)->shard->damages, record);
}

static status load_unclaimed(void *context, uint64_t id, int64_t found_us)
{
    struct shard *shard = ((struct loading *)context)->shard;
    (void)found_us;
    if (store_keyspace_find(shard->store, id) == NULL)
        return status_ok(); /* it was dropped, and a crash came before that was noted */
    size_t size = (shard->unclaimed_count + 1) * sizeof *shard->unclaimed;
    uint64_t *unclaimed = realloc(shard->unclaimed, size);
    if (unclaimed == NULL)
        return status_out_of_memory();
    shard->unclaimed = unclaimed;
    unclaimed[shard->unclaimed_count++] = id;
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
    DCHECK(cluster->table_count <= cluster->table_capacity);
    for (size_t i = 0; i < cluster->table_count; i++) {
        const struct table *table = cluster->tables[i];
        if (table->tablet_count == 0 || table->tablets[table->tablet_count - 1]->end.size > 0)
            return status_make(STATUS_DATA_LOSS, "the last tablet of %s is missing", table->name);
    }
    return status_ok();
}

/* Without the catalog it is not known which tables there are: nothing may be served, or dropped. */
static status read_catalog(struct cluster *cluster, const struct catalog_visitor *visitor)
{
    status s = catalog_read(cluster->catalog, visitor);
    return s.code == STATUS_DATA_LOSS ? lost_records_explain(cluster->catalog, s) : s;
}

static status load_catalog(struct cluster *cluster)
{
    struct loading loading = {.cluster = cluster, .shard = cluster->home};
    struct catalog_visitor visitor = {.context = &loading,
                                      .table = load_table,
                                      .tablet = load_tablet,
                                      .former = load_former,
                                      .preallocated = load_preallocated,
                                      .unclaimed = load_unclaimed,
                                      .next_id = load_next_id,
                                      .damage = load_damage};
    TRY(read_catalog(cluster, &visitor));
    return check_tables_are_whole(cluster);
}

static status load_drops_of(const struct table *table)
{
    for (size_t i = 0; i < table->space_count; i++) {
        const struct table_space *space = &table->spaces[i];
        TRY(drop_records_load(space->shard->system, keyspace_id(space->keyspace), space->drops));
        TRY(telling_load(space->telling, space->shard->system, space->drops));
    }
    return status_ok();
}

/* Of deleted tables, too, which may come back. */
static status load_drops(struct cluster *cluster)
{
    status s = status_ok();
    for (size_t i = 0; i < cluster->table_count && status_is_ok(s); i++)
        s = load_drops_of(cluster->tables[i]);
    return s.code == STATUS_DATA_LOSS ? lost_records_explain(cluster->catalog, s) : s;
}

/* Loads what the other shards keep of themselves, each in its own store. */
static status load_others(struct cluster *cluster)
{
    for (size_t i = 1; i < cluster->shard_count; i++) {
        struct loading loading = {.cluster = cluster, .shard = cluster->shards[i]};
        const struct catalog_visitor visitor = {.context = &loading,
                                                .preallocated = load_preallocated,
                                                .unclaimed = load_unclaimed,
                                                .damage = load_damage};
        TRY(catalog_read(loading.shard->system, &visitor));
    }
    return status_ok();
}

/* Sorts tables from the order of ids to that of the index, without deleted ones. */
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
        count += index_is_users(cluster->tables[i]) && !table_is_view(cluster->tables[i]);
    return count;
}

/* Those of the table, and of a view's records; how many. */
static size_t ids_of_table(const struct table *table, const struct shard *shard, uint64_t *ids)
{
    size_t n = 0;
    for (size_t i = 0; i < table->space_count; i++)
        if (table->spaces[i].shard == shard)
            ids[n++] = keyspace_id(table->spaces[i].keyspace);
    if (table->view.shard == shard)
        ids[n++] = keyspace_id(table->view.records);
    return n;
}

/* The ids of the keyspaces of the shard that are in use, sorted, with repetitions; to be freed.
 * NULL without memory. */
static uint64_t *ids_in_use(const struct shard *shard, size_t *count)
{
    const struct cluster *cluster = shard->cluster;
    size_t most = 2 + shard->preallocated_count + shard->unclaimed_count + tablets_in_all(cluster) +
                  cluster->table_count;
    uint64_t *ids = malloc(most * sizeof(*ids));
    if (ids == NULL)
        return NULL;
    size_t n = 0;
    ids[n++] = CATALOG_KEYSPACE_ID;
    if (shard->log_keyspace != 0)
        ids[n++] = shard->log_keyspace;
    for (size_t i = 0; i < shard->preallocated_count; i++)
        ids[n++] = shard->preallocated[i];
    for (size_t i = 0; i < shard->unclaimed_count; i++)
        ids[n++] = shard->unclaimed[i];
    for (size_t i = 0; i < cluster->table_count; i++)
        n += ids_of_table(cluster->tables[i], shard, ids + n);
    qsort(ids, n, sizeof(*ids), compare_ids);
    *count = n;
    return ids;
}

/* The index moves on only past keyspaces that stay. */
static status drop_unnamed(struct shard *shard, const uint64_t *ids, size_t count)
{
    DCHECK(count > 0);
    struct cluster *cluster = shard->cluster;
    struct keyspace *keyspace;
    for (size_t i = 0; (keyspace = store_keyspace_at(shard->store, i)) != NULL;) {
        uint64_t id = keyspace_id(keyspace);
        if (cluster->next_id <= id)
            cluster->next_id = id + 1;
        if (bsearch(&id, ids, count, sizeof(*ids), compare_ids) != NULL ||
            stream_log_has_keyspace(shard->streams, id)) {
            i++;
            continue;
        }
        log_info(cluster->options.log, "dropping a keyspace that no table has any more",
                 LOG_INT("keyspace", id));
        TRY(store_keyspace_drop(shard->store, keyspace));
    }
    return status_ok();
}

static status drop_orphans(struct shard *shard)
{
    size_t count;
    uint64_t *ids = ids_in_use(shard, &count);
    if (ids == NULL)
        return status_out_of_memory();
    status s = drop_unnamed(shard, ids, count);
    free(ids);
    return s;
}

/* Drops the orphans of all shards, before any of them gives an id. */
static status drop_all_orphans(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->shard_count; i++)
        TRY(drop_orphans(cluster->shards[i]));
    return status_ok();
}

/* --- open --- */

/* Refuses, with several shards, options that need one store so far. */
static status check_options(const struct cluster_options *options)
{
    bool is_repair = options->salvage || options->accepts_old_data || options->accepts_lost_records;
    if (options->shards > 1 && options->archive.place != NULL)
        return status_make(STATUS_FAILED_PRECONDITION, "several shards cannot be archived");
    if (options->shards > 1 && is_repair)
        return status_make(STATUS_FAILED_PRECONDITION, "several shards cannot be salvaged");
    return status_ok();
}

/* The home first, whose store makes the data directory. */
static status open_shards(struct cluster *cluster)
{
    DCHECK(cluster->shard_count == 0);
    unsigned count = cluster->options.shards > 1 ? cluster->options.shards : 1;
    TRY(shard_directories_prepare(cluster->options.data_directory, count));
    cluster->shards = calloc(count, sizeof(*cluster->shards));
    if (cluster->shards == NULL)
        return status_out_of_memory();
    for (unsigned i = 0; i < count; i++) {
        TRY(shard_create(cluster, i, &cluster->shards[i]));
        cluster->shard_count++;
        TRY(shard_open_store(cluster->shards[i]));
    }
    cluster->home = cluster->shards[0];
    cluster->catalog = cluster->home->system;
    return status_ok();
}

/* Closes damaged ranges, after which the stores may compact. */
static status let_compact(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->shard_count; i++) {
        damages_close(cluster->shards[i]->damages);
        TRY(store_begin_compactions(cluster->shards[i]->store));
    }
    return status_ok();
}

static status load_damages(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->shard_count; i++)
        TRY(damages_load(cluster->shards[i]->damages));
    return status_ok();
}

static status start_shards(struct cluster *cluster)
{
    DCHECK(cluster->rows == NULL);
    enum { THREADS = 2, QUEUE_LIMIT = 4096 /* updates that wait for a thread */ };
    TRY(pool_create(THREADS, QUEUE_LIMIT, "rows", &cluster->rows));
    for (size_t i = 0; i < cluster->shard_count; i++)
        TRY(shard_start(cluster->shards[i]));
    if (cluster->shard_count > 1)
        TRY(cluster_raise_version(cluster, version_at(cluster_version_us(cluster))));
    return event_log_start(cluster->home);
}

static status start_scrubs(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->shard_count; i++)
        TRY(shard_start_scrub(cluster->shards[i]));
    return status_ok();
}

static status open_catalog(struct cluster *cluster)
{
    TRY(lost_records_give_up(cluster));
    TRY(salvage_catalog(cluster));
    TRY(load_catalog(cluster));
    TRY(load_others(cluster));
    TRY(load_drops(cluster));
    TRY(origins_load(cluster)); /* before anything is folded by tables' rules */
    TRY(let_compact(cluster));
    salvage_tell(cluster);
    TRY(event_log_look(cluster->home));
    TRY(stream_logs_open(cluster));
    TRY(drop_all_orphans(cluster));
    TRY(event_log_open(cluster->home));
    TRY(sort_tables(cluster));
    return load_damages(cluster);
}

static status open_parts(struct cluster *cluster)
{
    const struct cluster_options *options = &cluster->options;
    TRY(check_options(options));
    TRY(condition_create(options->log, options->clock, options->metrics, &cluster->condition));
    TRY(open_shards(cluster));
    TRY(open_catalog(cluster));
    TRY(start_shards(cluster));
    TRY(origin_feeds_resume(cluster));
    TRY(stream_logs_resume(cluster));
    TRY(views_sweep(cluster));
    identity_record_update(cluster->home->store, cluster->catalog, cluster->options.log);
    TRY(heat_create(cluster, &cluster->heat));
    TRY(maintenance_start(cluster, &cluster->maintenance));
    TRY(start_scrubs(cluster));
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
    atomic_init(&cluster->number, options->number);
    cluster->next_id = CATALOG_KEYSPACE_ID + 1;
    atomic_init(&cluster->usage_is_to_sweep, true); /* what a crash has left */
    pthread_rwlock_init(&cluster->index_lock, NULL);
    pthread_mutex_init(&cluster->admin, NULL);
    pthread_mutex_init(&cluster->dropped_lock, NULL);
    pthread_mutex_init(&cluster->traffic.lock, NULL);
    pthread_mutex_init(&cluster->origins.lock, NULL);
    atomic_init(&cluster->tombstones_from, options->tombstones_from);
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
        table_destroy(LIST_ENTRY(link, struct table, dropped));
}

static void stop_shards(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->shard_count; i++)
        row_jobs_stop(cluster->shards[i]->row_jobs);
    pool_destroy(cluster->rows);
    for (size_t i = 0; i < cluster->shard_count; i++)
        shard_stop(cluster->shards[i]);
}

/* Stores may not be open, or not have begun to take commits. */
static void stop(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->shard_count; i++)
        shard_rest(cluster->shards[i]); /* before maintenance, which it may leave a table to */
    maintenance_stop(cluster->maintenance);
    cluster->maintenance = NULL;
    if (cluster->heat != NULL)
        heat_stop(cluster);
    heat_destroy(cluster->heat);
    stop_shards(cluster);
    cluster_reclaim_dropped(cluster);
    for (size_t i = 0; i < cluster->shard_count; i++)
        shard_close_store(cluster->shards[i]);
}

status cluster_await_files(struct cluster *cluster)
{
    CHECK_MAGIC(cluster, CLUSTER_MAGIC);
    status s = status_ok();
    for (size_t i = 0; i < cluster->shard_count; i++) {
        status one = data_directory_await_files(&cluster->shards[i]->place);
        if (status_is_ok(s))
            s = one;
        else
            status_free(one); /* the first is told; the log has all */
    }
    return s;
}

/* The reverse of opening, from wherever that stopped. */
void cluster_close(struct cluster *cluster)
{
    CHECK_MAGIC(cluster, CLUSTER_MAGIC);
    stop(cluster);
    release_tables(cluster); /* last: folds in the background look at their schemas */
    for (size_t i = 0; i < cluster->shard_count; i++)
        shard_destroy(cluster->shards[i]);
    free(cluster->shards);
    condition_destroy(cluster->condition);
    pthread_mutex_destroy(&cluster->traffic.lock);
    pthread_mutex_destroy(&cluster->origins.lock);
    pthread_mutex_destroy(&cluster->dropped_lock);
    pthread_mutex_destroy(&cluster->admin);
    pthread_rwlock_destroy(&cluster->index_lock);
    cluster->magic = 0;
    free(cluster);
}

/* --- what others may ask --- */

const char *cluster_old_data(struct cluster *cluster)
{
    return store_old_data(cluster->home->store);
}

status cluster_check_true(struct cluster *cluster)
{
    const char *words = store_old_data(cluster->home->store);
    return words == NULL
               ? status_ok()
               : status_make(STATUS_FAILED_PRECONDITION, "no backup is made or deleted: %s", words);
}

void cluster_seal_old_data(struct cluster *cluster)
{
    const char *words = store_old_data(cluster->home->store);
    if (words != NULL)
        store_seal(cluster->home->store, words);
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
    int64_t newest_us = 0;
    for (size_t i = 0; i < cluster->shard_count; i++) {
        int64_t us = commit_version_us(cluster->shards[i]->commits);
        newest_us = us > newest_us ? us : newest_us;
    }
    return newest_us;
}

status cluster_raise_version(struct cluster *cluster, uint64_t version)
{
    DCHECK(version != 0);
    for (size_t i = 0; i < cluster->shard_count; i++)
        TRY(commit_raise_version(cluster->shards[i]->commits, version));
    return status_ok();
}

struct condition *cluster_condition(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->shard_count; i++)
        shard_look(cluster->shards[i]);
    return cluster->condition;
}

void cluster_set_number(struct cluster *cluster, unsigned number)
{
    atomic_store(&cluster->number, number);
    for (size_t i = 0; i < cluster->shard_count; i++)
        commit_set_cluster(cluster->shards[i]->commits, number);
}

void cluster_set_family_ids(struct cluster *cluster, uint32_t from, uint32_t end)
{
    atomic_store(&cluster->family_ids, (uint64_t)from << 32 | end);
}

unsigned cluster_number(const struct cluster *cluster)
{
    return atomic_load(&cluster->number);
}

double cluster_write_load(struct cluster *cluster)
{
    double load = 0;
    for (size_t i = 0; i < cluster->shard_count; i++) {
        double of_shard = commit_queue_load(cluster->shards[i]->commits);
        load = of_shard > load ? of_shard : load;
    }
    return load;
}

void cluster_limit_cache(struct cluster *cluster, uint64_t bytes)
{
    DCHECK(cluster->magic == CLUSTER_MAGIC);
    shards_limit_cache(cluster, bytes);
}

uint64_t cluster_growth(struct cluster *cluster)
{
    DCHECK(cluster->magic == CLUSTER_MAGIC);
    return shards_growth(cluster);
}

void cluster_measure(struct cluster *cluster)
{
    DCHECK(cluster->magic == CLUSTER_MAGIC);
    shards_measure(cluster);
    metrics_set(cluster->options.metrics, METRIC_hot_tablets, (int64_t)heat_hot_count(cluster));
    metrics_set(cluster->options.metrics, METRIC_hot_ranges,
                (int64_t)heat_hot_range_count(cluster));
    traffic_measure(cluster);
    stream_upkeep_measure(cluster);
    maintenance_measure(cluster->maintenance, cluster->options.metrics);
}
