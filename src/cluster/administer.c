/* Creating, changing, listing tables. (Deleting them is deletions.c's.)
 *
 * Each change is one commit of catalog records, then the change in memory. What comes before the
 * commit, a keyspace taken from the preallocated ones, is undone by forgetting it. */
#include "base/check.h"
#include "base/limits.h"
#include "cluster/index.h"
#include "cluster/shared_table.h"
#include "cluster/stream/settings.h"
#include "cluster/stream/stream_upkeep.h"
#include "cluster/stream/table_stream.h"

#include <stdlib.h>

status cluster_write_change(struct cluster *cluster, enum commit_kind kind,
                            struct store_batch *batch, const struct catalog_change *change)
{
    TRY(disk_reserve_admit(&cluster->home->reserve));
    return commit_write(cluster->home->commits, kind, batch, change);
}

status cluster_write_catalog(struct cluster *cluster, struct catalog_txn *txn)
{
    return cluster_write_change(cluster, COMMIT_CATALOG, catalog_txn_batch(txn), NULL);
}

status cluster_write_removal(struct cluster *cluster, struct catalog_txn *txn)
{
    return commit_write(cluster->home->commits, COMMIT_CATALOG, catalog_txn_batch(txn), NULL);
}

struct keyspace *cluster_catalog(struct cluster *cluster)
{
    return cluster->catalog;
}

status cluster_not_found(bytes name)
{
    return status_make(STATUS_NOT_FOUND, "Not found: %.*s", (int)name.size,
                       (const char *)name.data);
}

status cluster_table(struct cluster *cluster, bytes name, struct table **out)
{
    *out = index_find(cluster, name);
    return *out == NULL ? cluster_not_found(name) : status_ok();
}

status cluster_table_of_id(struct cluster *cluster, uint64_t id, struct table **out)
{
    *out = index_find_id(cluster, id);
    return *out == NULL
               ? status_make(STATUS_NOT_FOUND, "Not found: table %llu", (unsigned long long)id)
               : status_ok();
}

struct store_batch *cluster_batch_with(struct catalog_txn *txn)
{
    return txn != NULL ? catalog_txn_batch(txn) : store_batch_create();
}

void cluster_batch_done(struct store_batch *batch, const struct catalog_txn *txn)
{
    if (txn == NULL)
        store_batch_destroy(batch);
}

/* --- create --- */

/* What the names of all tables and views of the instance share; of what is in no instance, its name
 * up to the last slash. */
static bytes instance_prefix(const char *name)
{
    static const char within[] = "/instances/";
    const char *instance = strstr(name, within);
    const char *slash =
        instance == NULL ? strrchr(name, '/') : strchr(instance + strlen(within), '/');
    return bytes_make(name, slash == NULL ? 0 : (size_t)(slash + 1 - name));
}

status cluster_check_is_new(struct cluster *cluster, const char *name)
{
    DCHECK(name[0] != 0);
    DCHECK(check_is_held(&cluster->admin));
    struct table *standing = index_find(cluster, bytes_of(name));
    if (standing != NULL) {
        table_release(standing);
        return status_make(STATUS_ALREADY_EXISTS, "Table already exists: %s", name);
    }
    if (index_count(cluster, instance_prefix(name)) >= LIMIT_TABLES_AN_INSTANCE)
        return status_make(STATUS_RESOURCE_EXHAUSTED, "An instance has at most %d tables",
                           LIMIT_TABLES_AN_INSTANCE);
    return status_ok();
}

/* A new table's keyspaces, by the numbers of their shards; NULL where it has no rows. */
struct new_spaces {
    struct keyspace **keyspaces;
    struct keyspace *records; /* a view's */
};

static unsigned shard_of_tablet(const struct table_spec *spec, size_t tablet)
{
    return spec->shards == NULL ? 0 : spec->shards[tablet];
}

static status append_tablets(struct cluster *cluster, const struct table_spec *spec,
                             const struct new_spaces *spaces, struct table *table)
{
    DCHECK(check_is_held(&cluster->admin) && table->tablet_count == 0);
    const bytes none = bytes_make(NULL, 0);
    for (size_t i = 0; i <= spec->split_count; i++) {
        bytes start = i == 0 ? none : spec->split_keys[i - 1];
        bytes end = i == spec->split_count ? none : spec->split_keys[i];
        unsigned shard = shard_of_tablet(spec, i);
        DCHECK(end.size == 0 || bytes_compare(start, end) < 0);
        struct tablet *tablet;
        TRY(tablet_create(cluster->next_id++, cluster->shards[shard], spaces->keyspaces[shard],
                          start, end, &tablet));
        status s = table_append_tablet(table, tablet);
        if (!status_is_ok(s)) {
            tablet_release(tablet);
            return s;
        }
    }
    return status_ok();
}

/* A new table's commit. */
struct creation {
    struct catalog_change change;
    const struct taken_files *files; /* NULL: there are none */
};

static void describe_files(const struct catalog_change *change, struct event_writer *writer)
{
    const struct taken_files *taken = ((const struct creation *)(const void *)change)->files;
    event_files_taken_in(writer, taken->keyspace, taken->files, taken->count);
}

/* No caller finds the table before its commit is acknowledged, so its writes come after that. */
static status commit_new_table(struct table *table, const struct taken_files *files,
                               struct store_batch *batch)
{
    DCHECK(table->tablet_count > 0 && table->tablets[table->tablet_count - 1]->end.size == 0);
    const struct creation creation = {.change = {.describe = files == NULL ? NULL : describe_files,
                                                 .tables = &table,
                                                 .table_count = 1,
                                                 .fresh = table->tablets,
                                                 .fresh_count = table->tablet_count,
                                                 .schema = table_schema(table)},
                                      .files = files};
    return cluster_write_change(table->cluster, COMMIT_CREATE_TABLE, batch, &creation.change);
}

static status adopt_damage(struct cluster *cluster, struct keyspace *keyspace,
                           const struct taken_files *files, struct store_batch *batch)
{
    if (files == NULL || files->damage_count == 0)
        return status_ok();
    return damages_adopt(cluster->home->damages, keyspace, files->damages, files->damage_count,
                         batch);
}

/* Not in reserve any more. */
static void record_taken(struct cluster *cluster, const struct table *table,
                         const struct keyspace *keyspace, struct store_batch *batch)
{
    if (keyspace != NULL)
        catalog_delete_preallocated(batch, cluster->catalog, keyspace_id(keyspace));
    if (table->view.shard == cluster->home)
        catalog_delete_preallocated(batch, cluster->catalog, keyspace_id(table->view.records));
}

/* Records the table in the home shard, with what the home has of it. */
static status record_new_table(struct cluster *cluster, struct table *table,
                               struct keyspace *keyspace, struct taken_files *files,
                               struct store_batch *batch)
{
    DCHECK(cluster->next_id > table->id);
    struct table_record record = table_record_of(table);
    TRY(catalog_put_table(batch, cluster->catalog, &record));
    for (size_t i = 0; i < table->tablet_count; i++) {
        struct tablet_record tablet = tablet_record_of(table, table->tablets[i]);
        TRY(catalog_put_tablet(batch, cluster->catalog, &tablet));
    }
    TRY(adopt_damage(cluster, keyspace, files, batch));
    record_taken(cluster, table, keyspace, batch);
    TRY(catalog_put_next_id(batch, cluster->catalog, cluster->next_id));
    return commit_new_table(table, files, batch);
}

static status fill_new_table(struct cluster *cluster, const struct table_spec *spec,
                             const struct new_spaces *spaces, struct taken_files *files,
                             struct table *table)
{
    TRY(append_tablets(cluster, spec, spaces, table));
    struct store_batch *batch = cluster_batch_with(spec->txn);
    if (batch == NULL)
        return status_out_of_memory();
    status s = record_new_table(cluster, table, spaces->keyspaces[0], files, batch);
    cluster_batch_done(batch, spec->txn);
    return s;
}

/* With admin held. `*out` has the index's reference alone; on failure it is NULL, or a table that
 * no caller has seen. */
static status create_in(struct cluster *cluster, const struct table_spec *spec,
                        const struct new_spaces *spaces, struct taken_files *files,
                        struct table **out)
{
    DCHECK(check_is_held(&cluster->admin));
    *out = NULL;
    struct table_record record = {.id = cluster->next_id++,
                                  .name = spec->name,
                                  .generation = 1,
                                  .schema = spec->schema,
                                  .deletion_protection = spec->deletion_protection,
                                  .extra = spec->extra,
                                  .records_deletions = spec->records_deletions};
    record.uid = shared_table_uid_to_keep(cluster, spec, record.id);
    if (spaces->records != NULL)
        record.view = (struct view_record){.source_id = spec->view_source->id,
                                           .records_id = keyspace_id(spaces->records),
                                           .shard = shard_of_tablet(spec, 0)};
    TRY(table_stream_change(cluster, spec->stream_retention_us, &record.stream));
    TRY(table_create(cluster, &record, out));
    TRY(fill_new_table(cluster, spec, spaces, files, *out));
    index_add(cluster, *out);
    if (files != NULL && files->damage_count > 0)
        damages_tell_adopted(cluster->home->damages, spaces->keyspaces[0]);
    return status_ok();
}

/* A keyspace of another shard is not preallocated until the catalog names it: if that fails, no
 * record names it, and the next start drops it. */
static status take_space(struct cluster *cluster, unsigned number, struct keyspace **out)
{
    struct shard *shard = cluster->shards[number];
    TRY(shard_take_preallocated(shard, out));
    return shard == cluster->home ? status_ok() : shard_forget_preallocated(shard, *out);
}

static status take_spaces(struct cluster *cluster, const struct table_spec *spec,
                          struct new_spaces *spaces)
{
    DCHECK(check_is_held(&cluster->admin));
    for (size_t i = 0; i <= spec->split_count; i++) {
        unsigned number = shard_of_tablet(spec, i);
        CHECK(number < cluster->shard_count);
        if (spaces->keyspaces[number] == NULL)
            TRY(take_space(cluster, number, &spaces->keyspaces[number]));
    }
    if (spec->view_source == NULL)
        return status_ok();
    return take_space(cluster, shard_of_tablet(spec, 0), &spaces->records);
}

/* The list has room: the keyspace was just taken out, and admin is still held. */
static void give_back(struct shard *home, const struct keyspace *keyspace)
{
    DCHECK(keyspace == NULL || home->preallocated_count < home->preallocated_capacity);
    if (keyspace != NULL)
        home->preallocated[home->preallocated_count++] = keyspace_id(keyspace);
}

static void give_back_spaces(struct cluster *cluster, const struct table_spec *spec,
                             const struct new_spaces *spaces)
{
    give_back(cluster->home, spaces->keyspaces[0]);
    if (shard_of_tablet(spec, 0) == cluster->home->number)
        give_back(cluster->home, spaces->records);
}

/* With admin held. */
static status create_with(struct cluster *cluster, const struct table_spec *spec,
                          struct new_spaces *spaces, struct table **out)
{
    *out = NULL;
    TRY(cluster_check_is_new(cluster, spec->name));
    TRY(index_make_room(cluster));
    status s = take_spaces(cluster, spec, spaces);
    if (status_is_ok(s))
        s = create_in(cluster, spec, spaces, NULL, out);
    if (!status_is_ok(s)) {
        give_back_spaces(cluster, spec, spaces);
        if (*out != NULL)
            table_destroy(*out);
    }
    return s;
}

static status create(struct cluster *cluster, const struct table_spec *spec, struct table **out)
{
    struct new_spaces spaces = {.keyspaces =
                                    calloc(cluster->shard_count, sizeof(*spaces.keyspaces))};
    status s = spaces.keyspaces == NULL ? status_out_of_memory()
                                        : create_with(cluster, spec, &spaces, out);
    free(spaces.keyspaces);
    return s;
}

/* Shards in turn, so that a table of several tablets lies in several, and tables of one in each of
 * them. NULL without memory. */
static unsigned *shards_in_turn(struct cluster *cluster, size_t tablets)
{
    unsigned *shards = malloc(tablets * sizeof *shards);
    DCHECK(check_is_held(&cluster->admin));
    for (size_t i = 0; shards != NULL && i < tablets; i++)
        shards[i] = (unsigned)((cluster->next_shard + i) % cluster->shard_count);
    cluster->next_shard++;
    return shards;
}

static status create_spread(struct cluster *cluster, const struct table_spec *spec,
                            struct table **out)
{
    struct table_spec spread = *spec;
    unsigned *shards = shards_in_turn(cluster, spec->split_count + 1);
    *out = NULL;
    if (shards == NULL)
        return status_out_of_memory();
    spread.shards = shards;
    status s = create(cluster, &spread, out);
    free(shards);
    return s;
}

static status create_empty(struct cluster *cluster, const struct table_spec *spec,
                           struct table **out)
{
    bool is_spread = cluster->options.spreads_tablets && spec->shards == NULL;
    return is_spread ? create_spread(cluster, spec, out) : create(cluster, spec, out);
}

/* With admin held. On failure the keyspace goes, too; with a table, in the way of a deleted one's,
 * since folds may look at its rules. */
static status create_from(struct cluster *cluster, const struct table_spec *spec,
                          struct keyspace *keyspace, struct taken_files *files, struct table **out)
{
    *out = NULL;
    status s = cluster_check_is_new(cluster, spec->name);
    if (status_is_ok(s))
        s = index_make_room(cluster);
    if (status_is_ok(s))
        s = create_in(cluster, spec, &(struct new_spaces){.keyspaces = &keyspace}, files, out);
    if (!status_is_ok(s))
        damages_forget_keyspace(cluster->home->damages, keyspace_id(keyspace));
    if (!status_is_ok(s) && *out != NULL) {
        (*out)->is_dropped = true;
        table_release(*out);
    } else if (!status_is_ok(s)) { /* what cannot be dropped now is dropped at the next start */
        status_ignore(store_keyspace_drop(cluster->home->store, keyspace));
    }
    return s;
}

/* With admin held. */
static status create_and_tell(struct cluster *cluster, const struct table_spec *spec,
                              struct keyspace *keyspace, struct taken_files *files,
                              struct table **out)
{
    struct table *table;
    *out = NULL;
    TRY(keyspace == NULL ? create_empty(cluster, spec, &table)
                         : create_from(cluster, spec, keyspace, files, &table));
    table_retain(table);
    metrics_add(cluster->options.metrics, METRIC_tablets, (int64_t)spec->split_count + 1);
    log_info(cluster->options.log, "table created", LOG_STR("table", spec->name),
             LOG_INT("tablets", spec->split_count + 1));
    *out = table;
    return status_ok();
}

static status create_table(struct cluster *cluster, const struct table_spec *spec,
                           struct keyspace *keyspace, struct taken_files *files, struct table **out)
{
    pthread_mutex_lock(&cluster->admin);
    status s = create_and_tell(cluster, spec, keyspace, files, out);
    pthread_mutex_unlock(&cluster->admin);
    return s;
}

status cluster_create_locked(struct cluster *cluster, const struct table_spec *spec,
                             struct table **out)
{
    return create_and_tell(cluster, spec, NULL, NULL, out);
}

status cluster_create_table(struct cluster *cluster, const struct table_spec *spec,
                            struct table **out)
{
    return create_table(cluster, spec, NULL, NULL, out);
}

status cluster_create_table_from(struct cluster *cluster, const struct table_spec *spec,
                                 struct keyspace *keyspace, struct taken_files *files,
                                 struct table **out)
{
    return create_table(cluster, spec, keyspace, files, out);
}

/* --- change --- */

/* The first id from that one on that this cluster may give: among peers those of the one that leads
 * are its own (shared_table.h, 2). */
static status next_family_id(struct cluster *cluster, uint32_t from, uint32_t *out)
{
    uint64_t ids = atomic_load(&cluster->family_ids);
    uint32_t first = (uint32_t)(ids >> 32), end = (uint32_t)ids;
    *out = from > first ? from : first;
    if (ids == 0 || *out < end)
        return status_ok();
    return status_make(STATUS_RESOURCE_EXHAUSTED,
                       "The table has had as many column families as the server that leads may "
                       "make of one: it takes another leader, or another epoch");
}

/* New families have id 0 until now, except those of a table that was claimed, which get back the
 * ids that they had (refill.c), and of a peer's, which have the same ids here (shared_table.c). */
static status make_schema(struct cluster *cluster, const struct table_info *now,
                          const struct table_change *change, struct arena *arena,
                          struct schema **out)
{
    uint32_t next_id = now->schema->next_family_id;
    if (change->next_family_id > next_id)
        next_id = change->next_family_id;
    struct family *families = arena_alloc(arena, change->family_count * sizeof *families);
    if (families == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < change->family_count; i++)
        if (change->families[i].id >= next_id)
            next_id = change->families[i].id + 1;
    for (size_t i = 0; i < change->family_count; i++) {
        families[i] = change->families[i];
        if (families[i].id == 0) {
            TRY(next_family_id(cluster, next_id, &families[i].id));
            next_id = families[i].id + 1;
        }
        DCHECK(families[i].id < next_id);
    }
    return schema_create(now->schema->granularity, families, change->family_count, next_id, out);
}

/* A changed table's commit. */
struct revision {
    struct catalog_change change;
    struct description *description;
};

static void publish(const struct catalog_change *change)
{
    DCHECK(change->table_count == 1);
    const struct revision *revision = (const struct revision *)(const void *)change;
    table_publish(change->tables[0], revision->description);
    table_stream_wake(change->tables[0]->tablets, change->tables[0]->tablet_count);
}

static status commit_change(struct table *table, struct description *description,
                            struct store_batch *batch)
{
    const struct revision revision = {.change = {.apply = publish,
                                                 .tables = &table,
                                                 .table_count = 1,
                                                 .schema = description->schema},
                                      .description = description};
    return cluster_write_change(table->cluster, COMMIT_CHANGE_TABLE, batch, &revision.change);
}

/* The description is published if this succeeds. */
static status record_change(struct table *table, const struct table_record *record,
                            struct description *description, struct catalog_txn *txn)
{
    struct store_batch *batch = cluster_batch_with(txn);
    if (batch == NULL)
        return status_out_of_memory();
    status s = catalog_put_table(batch, table->cluster->catalog, record);
    if (status_is_ok(s))
        s = commit_change(table, description, batch);
    cluster_batch_done(batch, txn);
    return s;
}

/* With admin held. */
static status record_next(struct table *table, const struct table_record *record,
                          struct catalog_txn *txn)
{
    DCHECK(check_is_held(&table->cluster->admin));
    struct description *description;
    TRY(description_create(table->cluster, record, table, &description));
    status s = record_change(table, record, description, txn);
    if (!status_is_ok(s))
        description_destroy(description);
    return s;
}

status cluster_set_viewed(struct table *table, bool is_viewed)
{
    struct table_record record = table_record_of(table);
    if (record.is_viewed == is_viewed)
        return status_ok();
    if (is_viewed)
        TRY(stream_logs_begin(table->cluster));
    record.generation++;
    record.is_viewed = is_viewed;
    return record_next(table, &record, NULL);
}

/* With admin held. */
static status apply_change(struct table *table, const struct table_info *now,
                           const struct table_change *change, const struct schema *schema)
{
    DCHECK(check_is_held(&table->cluster->admin));
    struct cluster *cluster = table->cluster;
    struct table_record record = table_record_of(table);
    record.generation = now->generation + 1;
    record.schema = schema;
    record.deletion_protection = change->deletion_protection;
    record.extra = change->extra;
    TRY(table_stream_change(cluster, change->stream_retention_us, &record.stream));
    return record_next(table, &record, change->txn);
}

static status change_table(struct table *table, struct arena *arena,
                           status (*change)(void *context, const struct table_info *now,
                                            struct arena *arena, struct table_change *next),
                           void *context)
{
    DCHECK(check_is_held(&table->cluster->admin));
    struct table_info now;
    struct table_change next = {0};
    struct schema *schema;
    if (table->is_deleted)
        return cluster_not_found(bytes_of(table->name));
    TRY(table_describe(table, arena, &now));
    TRY(change(context, &now, arena, &next));
    TRY(make_schema(table->cluster, &now, &next, arena, &schema));
    status s = apply_change(table, &now, &next, schema);
    schema_destroy(schema);
    return s;
}

status table_change_schema(struct table *table, struct arena *arena,
                           status (*change)(void *context, const struct table_info *now,
                                            struct arena *arena, struct table_change *next),
                           void *context)
{
    pthread_mutex_lock(&table->cluster->admin);
    status s = change_table(table, arena, change, context);
    pthread_mutex_unlock(&table->cluster->admin);
    return s;
}

/* --- list --- */

/* Looks each name up again, so that no lock is held while `visit` runs. */
static status list_from(struct cluster *cluster, bytes prefix, struct buffer *name,
                        bool (*visit)(void *context, struct table *table), void *context)
{
    bool go_on = true;
    while (go_on && !name->failed) {
        struct table *table = cluster_table_from(cluster, buffer_bytes(name));
        if (table == NULL)
            break;
        buffer_clear(name);
        buffer_append(name, table->name, strlen(table->name) + 1);
        go_on = bytes_start_with(bytes_of(table->name), prefix) && visit(context, table);
        table_release(table);
    }
    return name->failed ? status_out_of_memory() : status_ok();
}

status cluster_list_tables(struct cluster *cluster, bytes prefix, bytes after,
                           bool (*visit)(void *context, struct table *table), void *context)
{
    struct buffer name = {0};
    if (bytes_compare(after, prefix) < 0) {
        buffer_append_bytes(&name, prefix);
    } else {
        buffer_append_bytes(&name, after);
        buffer_append_byte(&name, 0);
    }
    status s = list_from(cluster, prefix, &name, visit, context);
    buffer_free(&name);
    return s;
}
