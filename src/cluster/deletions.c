/* See deletions.h. Each change is one commit of catalog records; at its place the table's writes
 * end or begin, and then it leaves the index, or comes there. */
#include "cluster/deletions.h"

#include "base/check.h"
#include "base/limits.h"
#include "cluster/index.h"
#include "cluster/view/view_table.h"
#include "tablet/drop_records.h"
#include "tablet/key_bounds.h"

#include <stdlib.h>

/* --- the list of those that are kept; with admin held --- */

static status make_room(struct cluster *cluster, size_t more)
{
    DCHECK(check_is_locked(&cluster->admin) || cluster->maintenance == NULL);
    size_t wanted = cluster->kept_count + more;
    if (wanted <= cluster->kept_capacity)
        return status_ok();
    size_t capacity = wanted + wanted / 2;
    struct table **kept = realloc(cluster->kept, capacity * sizeof(*kept));
    if (kept == NULL)
        return status_out_of_memory();
    cluster->kept = kept;
    cluster->kept_capacity = capacity;
    return status_ok();
}

/* The oldest come first; for DCHECKs. */
static bool ages_fall(const struct cluster *cluster)
{
    for (size_t i = 1; i < cluster->kept_count; i++)
        if (cluster->kept[i - 1]->deleted_us > cluster->kept[i]->deleted_us)
            return false;
    return true;
}

static void note_change(struct cluster *cluster)
{
    cluster->kept_sized_us = 0;
    metrics_set(cluster->options.metrics, METRIC_deleted_tables, (int64_t)cluster->kept_count);
}

static void add_kept(struct cluster *cluster, struct table *table)
{
    DCHECK(cluster->kept_count < cluster->kept_capacity && table->is_deleted);
    cluster->kept[cluster->kept_count++] = table;
    note_change(cluster);
}

/* The reference goes to the caller. */
static void remove_kept(struct cluster *cluster, const struct table *table)
{
    DCHECK(check_is_held(&cluster->admin) && table->is_deleted);
    size_t at = 0;
    while (at < cluster->kept_count && cluster->kept[at] != table)
        at++;
    CHECK(at < cluster->kept_count);
    cluster->kept_count--;
    memmove(cluster->kept + at, cluster->kept + at + 1,
            (cluster->kept_count - at) * sizeof(*cluster->kept));
    note_change(cluster);
}

static int compare_ages(const void *a, const void *b)
{
    int64_t left = (*(struct table *const *)a)->deleted_us;
    int64_t right = (*(struct table *const *)b)->deleted_us;
    return left < right ? -1 : left > right;
}

status deletions_load(struct cluster *cluster)
{
    size_t stand = 0;
    for (size_t i = 0; i < cluster->table_count; i++)
        stand += !cluster->tables[i]->is_deleted;
    TRY(make_room(cluster, cluster->table_count - stand));
    size_t count = cluster->table_count;
    cluster->table_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (cluster->tables[i]->is_deleted)
            add_kept(cluster, cluster->tables[i]);
        else
            cluster->tables[cluster->table_count++] = cluster->tables[i];
    }
    if (cluster->kept_count > 0)
        qsort(cluster->kept, cluster->kept_count, sizeof(*cluster->kept), compare_ages);
    DCHECK(ages_fall(cluster));
    return status_ok();
}

/* --- out of the index --- */

static status check_protection(const struct table *table)
{
    if (table_record_of(table).deletion_protection)
        return status_make(STATUS_FAILED_PRECONDITION, "table \"%s\" is protected from deletion",
                           table->name);
    return status_ok();
}

/* Its readers are to know that it is gone, and not to wait for changes: so whoever has a stream
 * switches it off first, as in production, and a table that is brought back has none. */
static status check_stream(const struct table *table)
{
    if (!table_has_stream(table))
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "Table '%s' has a change stream, which must be disabled before the table is "
                       "deleted",
                       table->name);
}

/* Services say so in their words: here it is that no view is without its source. */
static status check_views(const struct table *table)
{
    if (!table_is_viewed(table))
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "Table '%s' is read by a materialized view, which must be deleted first",
                       table->name);
}

static status check_may_go(const struct table *table)
{
    TRY(check_protection(table));
    return check_stream(table);
}

/* The index's reference goes to the caller. */
static void leave_index(struct cluster *cluster, struct table *table)
{
    DCHECK(check_is_held(&cluster->admin) && !table->is_deleted);
    table->is_deleted = true;
    metrics_add(cluster->options.metrics, METRIC_tablets, -(int64_t)table_tablet_count(table));
    log_info(cluster->options.log, "table deleted", LOG_STR("table", table->name));
    index_remove(cluster, table);
}

/* --- for good --- */

/* What the catalog has of those that lie in its own store. */
static void record_end_of_drops(struct cluster *cluster, const struct table *table,
                                struct store_batch *batch)
{
    for (size_t i = 0; i < table->space_count; i++) {
        const struct table_space *space = &table->spaces[i];
        if (space->shard != cluster->home)
            continue;
        if (row_drops_count(space->drops) > 0)
            drop_records_delete(batch, cluster->catalog, keyspace_id(space->keyspace));
        if (telling_has_any(space->telling))
            tellings_delete(batch, cluster->catalog, keyspace_id(space->keyspace));
    }
}

static void record_ends(struct cluster *cluster, struct table *const *tables, size_t count,
                        struct store_batch *batch)
{
    for (size_t i = 0; i < count; i++) {
        catalog_delete_table(batch, cluster->catalog, tables[i]->id);
        catalog_delete_tablets(batch, cluster->catalog, tables[i]->id);
        catalog_delete_kept(batch, cluster->catalog, tables[i]->id);
        record_end_of_drops(cluster, tables[i], batch);
    }
}

/* Of tables of which rows are in the shard. */
struct admission {
    struct catalog_change change;
    const struct shard *shard;
    bool may_write;
};

static void admit(const struct catalog_change *change)
{
    const struct admission *admission = (const struct admission *)(const void *)change;
    for (size_t i = 0; i < change->table_count; i++)
        table_let_write(change->tables[i], admission->shard, admission->may_write);
}

static bool is_any_in(const struct catalog_change *change, const struct shard *shard)
{
    for (size_t i = 0; i < change->table_count; i++)
        if (table_is_in(change->tables[i], shard))
            return true;
    return false;
}

/* A commit after which the tables take writes, or none. */
static status commit_admission(struct cluster *cluster, enum commit_kind kind, bool may_write,
                               struct table *const *tables, size_t count, struct store_batch *batch)
{
    DCHECK(check_is_held(&cluster->admin));
    struct admission admission = {
        .change = {.apply = admit, .tables = tables, .table_count = count},
        .shard = cluster->home,
        .may_write = may_write};
    TRY(commit_write(cluster->home->commits, kind, batch, &admission.change));
    for (size_t i = 1; i < cluster->shard_count; i++) {
        admission.shard = cluster->shards[i];
        if (is_any_in(&admission.change, admission.shard))
            shard_apply(cluster->shards[i], kind, &admission.change);
    }
    return status_ok();
}

static void drop(struct cluster *cluster, struct table *table)
{
    DCHECK(check_is_held(&cluster->admin) && !table->is_dropped);
    if (table->is_deleted)
        remove_kept(cluster, table);
    else
        leave_index(cluster, table);
    table->is_dropped = true;
    atomic_store(&cluster->usage_is_to_sweep, true);
    table_release(table);
}

/* With admin held; of tables that stand, or are kept. */
static status drop_all(struct cluster *cluster, struct table *const *tables, size_t count,
                       struct catalog_txn *txn)
{
    const enum commit_kind kind = count > 0 ? COMMIT_END_TABLES : COMMIT_CATALOG;
    struct store_batch *batch = cluster_batch_with(txn);
    if (batch == NULL)
        return status_out_of_memory();
    record_ends(cluster, tables, count, batch);
    status s = commit_admission(cluster, kind, false, tables, count, batch);
    cluster_batch_done(batch, txn);
    TRY(s);
    for (size_t i = 0; i < count; i++)
        drop(cluster, tables[i]);
    return status_ok();
}

status deletions_drop(struct cluster *cluster, struct table *const *tables, size_t count,
                      struct catalog_txn *txn)
{
    return drop_all(cluster, tables, count, txn);
}

/* Adds those that are kept to those that stand, which index_find_all has found. */
static status find_kept_too(struct cluster *cluster, bytes prefix, struct table ***tables,
                            size_t *count)
{
    struct table **larger = realloc(*tables, (*count + cluster->kept_count) * sizeof(*larger) + 1);
    if (larger == NULL)
        return status_out_of_memory();
    *tables = larger;
    for (size_t i = 0; i < cluster->kept_count; i++) {
        struct table *table = cluster->kept[i];
        if (!bytes_start_with(bytes_of(table->name), prefix))
            continue;
        table_retain(table);
        larger[(*count)++] = table;
    }
    return status_ok();
}

/* Whether it is a view of one of these, and is none of them. */
static bool is_left_by(const struct table *view, struct table *const *tables, size_t count)
{
    bool is_left = false;
    for (size_t i = 0; i < count; i++) {
        if (tables[i] == view)
            return false;
        is_left |= view->view.source_id == tables[i]->id;
    }
    return is_left;
}

/* Adds the views that read these, and go with them. */
static status find_views_too(struct cluster *cluster, struct table ***tables, size_t *count)
{
    size_t sources = *count;
    for (size_t i = 0; i < cluster->table_count; i++) {
        struct table *view = cluster->tables[i];
        if (!table_is_view(view) || !is_left_by(view, *tables, sources))
            continue;
        struct table **larger = realloc(*tables, (*count + 1) * sizeof(*larger));
        if (larger == NULL)
            return status_out_of_memory();
        *tables = larger;
        table_retain(view);
        larger[(*count)++] = view;
    }
    return status_ok();
}

/* With admin held. */
static status delete_all(struct cluster *cluster, bytes prefix, struct catalog_txn *txn,
                         struct table ***tables, size_t *count)
{
    DCHECK(check_is_held(&cluster->admin));
    TRY(index_find_all(cluster, prefix, tables, count));
    for (size_t i = 0; i < *count; i++)
        TRY(check_may_go((*tables)[i]));
    TRY(find_views_too(cluster, tables, count));
    TRY(find_kept_too(cluster, prefix, tables, count));
    return drop_all(cluster, *tables, *count, txn);
}

status cluster_delete_tables(struct cluster *cluster, bytes prefix, struct catalog_txn *txn)
{
    struct table **tables;
    size_t count;
    pthread_mutex_lock(&cluster->admin);
    status s = delete_all(cluster, prefix, txn, &tables, &count);
    pthread_mutex_unlock(&cluster->admin);
    for (size_t i = 0; i < count; i++)
        table_release(tables[i]);
    free(tables);
    return s;
}

/* --- to be kept --- */

/* The present, but later than all other deletions: they are told apart by it. */
static int64_t deletion_time(struct cluster *cluster)
{
    DCHECK(check_is_held(&cluster->admin));
    int64_t now = cluster_wall_us(cluster);
    size_t count = cluster->kept_count;
    int64_t last = count == 0 ? 0 : cluster->kept[count - 1]->deleted_us;
    return now > last ? now : last + 1;
}

static status record_deletion(struct table *table, int64_t deleted_us, struct catalog_txn *txn)
{
    struct cluster *cluster = table->cluster;
    struct table_record record = table_record_of(table);
    struct store_batch *batch = cluster_batch_with(txn);
    if (batch == NULL)
        return status_out_of_memory();
    record.deleted_us = deleted_us;
    status s = catalog_put_table(batch, cluster->catalog, &record);
    if (status_is_ok(s))
        s = commit_admission(cluster, COMMIT_DELETE_TABLE, false, &table, 1, batch);
    cluster_batch_done(batch, txn);
    return s;
}

/* With admin held. */
static status keep(struct cluster *cluster, struct table *table, struct catalog_txn *txn)
{
    DCHECK(check_is_held(&cluster->admin));
    int64_t deleted_us = deletion_time(cluster);
    TRY(make_room(cluster, 1));
    TRY(record_deletion(table, deleted_us, txn));
    leave_index(cluster, table);
    table->deleted_us = deleted_us;
    add_kept(cluster, table);
    DCHECK(ages_fall(cluster));
    maintenance_wake(cluster->maintenance); /* space may be short, or too many kept */
    return status_ok();
}

static status delete_table(struct cluster *cluster, struct table *table, struct catalog_txn *txn)
{
    TRY(check_may_go(table));
    TRY(check_views(table));
    if (cluster->options.undelete_window_us > 0 && !table_is_view(table))
        return keep(cluster, table, txn);
    return drop_all(cluster, &table, 1, txn);
}

status cluster_delete_table(struct cluster *cluster, bytes name, struct catalog_txn *txn)
{
    pthread_mutex_lock(&cluster->admin);
    struct table *table = index_find(cluster, name);
    status s = table == NULL ? cluster_not_found(name) : delete_table(cluster, table, txn);
    pthread_mutex_unlock(&cluster->admin);
    if (table != NULL)
        table_release(table);
    return s;
}

/* --- to stand again --- */

/* With admin held; the newest comes last. */
static struct table *find_kept(struct cluster *cluster, bytes name)
{
    DCHECK(check_is_held(&cluster->admin));
    for (size_t i = cluster->kept_count; i > 0; i--)
        if (bytes_equal(bytes_of(cluster->kept[i - 1]->name), name))
            return cluster->kept[i - 1];
    return NULL;
}

static status find_to_undelete(struct cluster *cluster, bytes name, struct table **out)
{
    struct table *standing = index_find(cluster, name);
    if (standing != NULL) {
        table_release(standing);
        return status_make(STATUS_ALREADY_EXISTS, "Table already exists: %.*s", (int)name.size,
                           (const char *)name.data);
    }
    *out = find_kept(cluster, name);
    if (*out == NULL)
        return status_make(STATUS_NOT_FOUND, "No deleted table is kept: %.*s", (int)name.size,
                           (const char *)name.data);
    table_retain(*out);
    return status_ok();
}

status cluster_deleted_table(struct cluster *cluster, bytes name, struct table **out)
{
    *out = NULL;
    pthread_mutex_lock(&cluster->admin);
    status s = find_to_undelete(cluster, name, out);
    pthread_mutex_unlock(&cluster->admin);
    return s;
}

/* A return takes no further space, and if space is short the table would soon be gone: so it is not
 * refused. */
static status record_return(struct table *table, struct catalog_txn *txn)
{
    struct cluster *cluster = table->cluster;
    struct table_record record = table_record_of(table);
    struct store_batch *batch = cluster_batch_with(txn);
    if (batch == NULL)
        return status_out_of_memory();
    record.deleted_us = 0;
    catalog_delete_kept(batch, cluster->catalog, table->id);
    status s = catalog_put_table(batch, cluster->catalog, &record);
    if (status_is_ok(s))
        s = commit_admission(cluster, COMMIT_UNDELETE_TABLE, true, &table, 1, batch);
    cluster_batch_done(batch, txn);
    return s;
}

/* With admin held. */
static status undelete(struct cluster *cluster, struct table *table, struct catalog_txn *txn)
{
    DCHECK(check_is_held(&cluster->admin));
    if (table->is_dropped)
        return cluster_not_found(bytes_of(table->name));
    TRY(cluster_check_is_new(cluster, table->name));
    TRY(index_make_room(cluster));
    TRY(record_return(table, txn));
    remove_kept(cluster, table);
    table->is_deleted = false;
    table->deleted_us = 0;
    index_add(cluster, table);
    metrics_add(cluster->options.metrics, METRIC_tablets, (int64_t)table_tablet_count(table));
    log_info(cluster->options.log, "table undeleted", LOG_STR("table", table->name));
    return status_ok();
}

status cluster_undelete_table(struct cluster *cluster, struct table *table, struct catalog_txn *txn)
{
    pthread_mutex_lock(&cluster->admin);
    status s = undelete(cluster, table, txn);
    pthread_mutex_unlock(&cluster->admin);
    return s;
}

/* --- to be kept no longer --- */

/* How many of the oldest have had their time, or are too many. */
static size_t count_due(struct cluster *cluster)
{
    int64_t oldest = cluster_wall_us(cluster) - cluster->options.undelete_window_us;
    size_t count = cluster->kept_count;
    size_t due = count > LIMIT_DELETED_TABLES ? count - LIMIT_DELETED_TABLES : 0;
    while (due < count && cluster->kept[due]->deleted_us <= oldest)
        due++;
    return due;
}

static uint64_t size_of(const struct table *table)
{
    const bytes all = bytes_make(NULL, 0);
    uint64_t size = 0;
    for (size_t i = 0; i < table->space_count; i++)
        size += rows_size(table->spaces[i].keyspace, all, all);
    return size;
}

static uint64_t missing_space(struct cluster *cluster)
{
    uint64_t most = 0;
    for (size_t i = 0; i < cluster->shard_count; i++) {
        uint64_t missing = disk_reserve_missing(&cluster->shards[i]->reserve);
        most = missing > most ? missing : most;
    }
    return most;
}

/* How many more of the oldest give back the space that is missing. When some have just gone, what
 * they give back may not be seen yet. */
static size_t count_to_make_space(struct cluster *cluster, size_t due)
{
    const int64_t pause_us = 1000000;
    int64_t now_us = clock_steady_us(cluster->options.clock);
    if (cluster->kept_cut_us != 0 && now_us - cluster->kept_cut_us < pause_us)
        return 0;
    uint64_t missing = missing_space(cluster);
    size_t count = 0;
    for (; missing > 0 && due + count < cluster->kept_count; count++) {
        uint64_t size = size_of(cluster->kept[due + count]);
        missing -= size < missing ? size : missing;
    }
    if (count > 0)
        cluster->kept_cut_us = now_us;
    return count;
}

static void tell(struct cluster *cluster, const struct table *table, bool is_early)
{
    if (is_early)
        log_warn(cluster->options.log, "a deleted table is gone early, since space is short",
                 LOG_STR("table", table->name));
    else
        log_info(cluster->options.log, "a deleted table is gone for good",
                 LOG_STR("table", table->name));
}

/* The first `due` have had their time, the others have not. With admin held. */
static status drop_first(struct cluster *cluster, size_t due, size_t early)
{
    size_t count = due + early;
    DCHECK(check_is_held(&cluster->admin) && count <= cluster->kept_count);
    struct table **oldest = malloc(count * sizeof(*oldest));
    if (oldest == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        oldest[i] = cluster->kept[i];
        table_retain(oldest[i]);
    }
    status s = drop_all(cluster, oldest, count, NULL);
    for (size_t i = 0; i < count; i++) {
        if (status_is_ok(s))
            tell(cluster, oldest[i], i >= due);
        table_release(oldest[i]);
    }
    free(oldest);
    TRY(s);
    metrics_add(cluster->options.metrics, METRIC_deleted_tables_dropped_early_total,
                (int64_t)early);
    return status_ok();
}

static status drop_oldest(struct cluster *cluster)
{
    if (cluster->kept_count == 0)
        return status_ok();
    size_t due = count_due(cluster);
    size_t early = count_to_make_space(cluster, due);
    return due + early == 0 ? status_ok() : drop_first(cluster, due, early);
}

/* A thousand tables take some milliseconds: not each second. With admin held. */
static void measure(struct cluster *cluster)
{
    DCHECK(check_is_held(&cluster->admin));
    const int64_t every_us = INT64_C(60) * 1000000;
    int64_t now_us = clock_steady_us(cluster->options.clock);
    uint64_t bytes = 0;
    if (cluster->kept_sized_us != 0 && now_us - cluster->kept_sized_us < every_us)
        return;
    cluster->kept_sized_us = now_us;
    for (size_t i = 0; i < cluster->kept_count; i++)
        bytes += size_of(cluster->kept[i]);
    metrics_set(cluster->options.metrics, METRIC_deleted_tables_bytes, (int64_t)bytes);
}

void deletions_run(struct cluster *cluster)
{
    pthread_mutex_lock(&cluster->admin);
    status s = drop_oldest(cluster);
    measure(cluster);
    pthread_mutex_unlock(&cluster->admin);
    if (!status_is_ok(s))
        log_warn(cluster->options.log, "deleted tables are kept for now",
                 LOG_STR("cause", status_message(s)));
    status_free(s);
}

/* --- the end --- */

void cluster_free_table_deferred(struct cluster *cluster, struct table *table)
{
    if (!table->is_dropped) { /* the cluster is closing */
        table_destroy(table);
        return;
    }
    pthread_mutex_lock(&cluster->dropped_lock);
    list_append(&cluster->dropped, &table->dropped);
    pthread_mutex_unlock(&cluster->dropped_lock);
    maintenance_wake(cluster->maintenance);
}

/* Records of drops that another store keeps: of a keyspace that is gone they say nothing. */
static void forget_drops(const struct table_space *space, uint64_t id)
{
    struct shard *shard = space->shard;
    struct store_batch *batch;
    bool has_any = row_drops_count(space->drops) > 0 || telling_has_any(space->telling);
    if (shard == shard->cluster->home || !has_any || (batch = store_batch_create()) == NULL)
        return;
    drop_records_delete(batch, shard->system, id);
    tellings_delete(batch, shard->system, id);
    status_ignore(store_write(shard->store, batch, STORE_ASYNC));
    store_batch_destroy(batch);
}

/* False if it stays. */
static bool drop_keyspace(const struct table *table, struct shard *shard, struct keyspace *keyspace)
{
    uint64_t id = keyspace_id(keyspace);
    status s = store_keyspace_drop(shard->store, keyspace);
    bool is_gone = status_is_ok(s);
    if (is_gone) {
        event_log_note_drop(shard, id);
        damages_forget_keyspace(shard->damages, id);
    } else {
        log_warn(table->cluster->options.log,
                 "a deleted table's space is kept until the next start",
                 LOG_STR("table", table->name), LOG_STR("cause", status_message(s)));
    }
    status_free(s);
    return is_gone;
}

/* False if one stays. */
static bool drop_keyspaces(struct table *table)
{
    DCHECK(table->is_dropped && atomic_load(&table->references) == 0);
    bool all = true;
    for (size_t i = 0; i < table->space_count; i++) {
        const struct table_space *space = &table->spaces[i];
        uint64_t id = keyspace_id(space->keyspace);
        if (drop_keyspace(table, space->shard, space->keyspace))
            forget_drops(space, id);
        else
            all = false;
    }
    if (table->view.records != NULL)
        all = drop_keyspace(table, table->view.shard, table->view.records) && all;
    return all;
}

bool cluster_has_doomed(struct cluster *cluster)
{
    pthread_mutex_lock(&cluster->dropped_lock);
    bool has = !list_is_empty(&cluster->dropped);
    pthread_mutex_unlock(&cluster->dropped_lock);
    return has;
}

bool cluster_drop_next_doomed(struct cluster *cluster)
{
    pthread_mutex_lock(&cluster->dropped_lock);
    struct link *link = list_take(&cluster->dropped);
    pthread_mutex_unlock(&cluster->dropped_lock);
    if (link == NULL)
        return false;
    struct table *table = LIST_ENTRY(link, struct table, dropped);
    if (drop_keyspaces(table)) {
        table_destroy(table);
        return true;
    }
    pthread_mutex_lock(&cluster->dropped_lock);
    list_append(&cluster->undropped, &table->dropped);
    pthread_mutex_unlock(&cluster->dropped_lock);
    return true;
}

void cluster_reclaim_dropped(struct cluster *cluster)
{
    while (cluster_drop_next_doomed(cluster))
        ;
}
