/* See salvage.h. What is put right is one batch; until it is written, and the store has been told
 * that the loss is accepted, a start that ends finds the same loss again. */
#include "cluster/salvage.h"

#include "cluster/catalog.h"

#include <inttypes.h>
#include <stdlib.h>

enum { CATALOG_MEMORY = 1 << 30 };

struct salvaged_table {
    struct salvaged_table *next;
    uint64_t id;
    const char *name;
    uint64_t keyspace_id; /* 0: no tablet is there */
    uint64_t tablet_id;   /* of the first */
    bytes end;            /* of the last so far */
    bool is_broken;
};

struct salvage {
    struct cluster *cluster;
    struct arena *arena;
    struct store_batch *batch;
    struct salvaged_table *tables; /* by id, as the catalog has them */
    struct salvaged_table **last;
    struct salvaged_table *at; /* tablets come in the same order */
    uint64_t *named;           /* ids of keyspaces that records name, and of the catalog */
    size_t named_count;
    size_t named_capacity;
    uint64_t next_id;
};

/* --- what there is --- */

static status name_keyspace(struct salvage *salvage, uint64_t id)
{
    if (salvage->named_count == salvage->named_capacity) {
        size_t capacity = 2 * salvage->named_capacity + 64;
        uint64_t *more = realloc(salvage->named, capacity * sizeof *more);
        if (more == NULL)
            return status_out_of_memory();
        salvage->named = more;
        salvage->named_capacity = capacity;
    }
    salvage->named[salvage->named_count++] = id;
    return status_ok();
}

static bool is_named(const struct salvage *salvage, uint64_t id)
{
    for (size_t i = 0; i < salvage->named_count; i++)
        if (salvage->named[i] == id)
            return true;
    return false;
}

static bool is_there(const struct salvage *salvage, uint64_t keyspace_id)
{
    return store_keyspace_find(salvage->cluster->store, keyspace_id) != NULL;
}

static void note_id(struct salvage *salvage, uint64_t id)
{
    if (salvage->next_id <= id)
        salvage->next_id = id + 1;
}

static status find_next_id(void *context, uint64_t next_id)
{
    struct salvage *salvage = context;
    salvage->next_id = next_id;
    return status_ok();
}

static status find_table(void *context, const struct table_record *record)
{
    struct salvage *salvage = context;
    struct salvaged_table *table = arena_zalloc(salvage->arena, sizeof *table);
    if (table == NULL)
        return status_out_of_memory();
    table->id = record->id;
    table->name = arena_string(salvage->arena, bytes_of(record->name));
    if (table->name == NULL)
        return status_out_of_memory();
    note_id(salvage, record->id);
    *salvage->last = table;
    salvage->last = &table->next;
    return status_ok();
}

static struct salvaged_table *table_of(struct salvage *salvage, uint64_t id)
{
    if (salvage->at == NULL)
        salvage->at = salvage->tables;
    while (salvage->at != NULL && salvage->at->id < id && salvage->at->next != NULL)
        salvage->at = salvage->at->next;
    return salvage->at != NULL && salvage->at->id == id ? salvage->at : NULL;
}

/* Whether the tablet begins where the table's last one ended. */
static bool continues(const struct salvaged_table *table, bytes start)
{
    if (table->keyspace_id == 0)
        return start.size == 0;
    return table->end.size > 0 && bytes_equal(table->end, start);
}

static status find_tablet(void *context, const struct tablet_record *record)
{
    struct salvage *salvage = context;
    struct salvaged_table *table = table_of(salvage, record->table_id);
    note_id(salvage, record->id);
    if (table == NULL) {
        catalog_delete_tablets(salvage->batch, salvage->cluster->catalog, record->table_id);
        return status_ok();
    }
    table->is_broken |= !continues(table, record->start);
    if (table->keyspace_id == 0) {
        table->keyspace_id = record->keyspace_id;
        table->tablet_id = record->id;
    }
    table->end = arena_copy(salvage->arena, record->end);
    return table->end.data == NULL ? status_out_of_memory() : status_ok();
}

status salvage_is_empty(struct keyspace *keyspace, bool *is_empty)
{
    const struct store_cursor_options options = {.reach = STORE_ANYWHERE};
    struct store_cursor *cursor;
    *is_empty = false;
    TRY(store_cursor_create(keyspace, &options, &cursor));
    store_cursor_first(cursor);
    status s = store_cursor_status(cursor);
    *is_empty = status_is_ok(s) && !store_cursor_valid(cursor);
    store_cursor_destroy(cursor);
    return s;
}

static status find_spare(void *context, uint64_t id)
{
    struct salvage *salvage = context;
    struct keyspace *keyspace = store_keyspace_find(salvage->cluster->store, id);
    bool is_empty = false;
    if (keyspace != NULL)
        status_ignore(salvage_is_empty(keyspace, &is_empty)); /* then it is not known to be */
    if (is_empty)
        return name_keyspace(salvage, id);
    catalog_delete_spare(salvage->batch, salvage->cluster->catalog, id);
    return status_ok();
}

static status find_unclaimed(void *context, uint64_t id, int64_t found_us)
{
    (void)found_us;
    return name_keyspace(context, id);
}

static status read_catalog(struct salvage *salvage)
{
    const struct catalog_visitor visitor = {.context = salvage,
                                            .next_id = find_next_id,
                                            .table = find_table,
                                            .tablet = find_tablet,
                                            .spare = find_spare,
                                            .unclaimed = find_unclaimed};
    TRY(name_keyspace(salvage, CATALOG_KEYSPACE_ID));
    return catalog_read(salvage->cluster->catalog, &visitor);
}

/* --- what is put right --- */

static void tell_of(const struct salvage *salvage, const char *what,
                    const struct salvaged_table *table)
{
    log_warn(salvage->cluster->options.log, what, LOG_STR("table", table->name),
             LOG_INT("keyspace", table->keyspace_id));
}

static void remove_table(struct salvage *salvage, const struct salvaged_table *table)
{
    struct keyspace *catalog = salvage->cluster->catalog;
    tell_of(salvage, "a table had been deleted, in what is lost", table);
    catalog_delete_table(salvage->batch, catalog, table->id);
    catalog_delete_tablets(salvage->batch, catalog, table->id);
    catalog_delete_kept(salvage->batch, catalog, table->id);
}

/* Of old data: none of its tables is there, or none was ever written. */
static status serve_empty(struct salvage *salvage, const struct salvaged_table *table)
{
    tell_of(salvage, "no file has rows of a table: it is empty now", table);
    return store_keyspaces_create(salvage->cluster->store, table->keyspace_id, 1);
}

static status join_tablets(struct salvage *salvage, const struct salvaged_table *table)
{
    struct keyspace *catalog = salvage->cluster->catalog;
    const struct tablet_record whole = {
        .table_id = table->id, .id = table->tablet_id, .keyspace_id = table->keyspace_id};
    tell_of(salvage, "a table's tablets were lost, and are one now", table);
    catalog_delete_tablets(salvage->batch, catalog, table->id);
    return catalog_put_tablet(salvage->batch, catalog, &whole);
}

static status settle_tables(struct salvage *salvage)
{
    for (const struct salvaged_table *each = salvage->tables; each != NULL; each = each->next) {
        bool is_missing = each->keyspace_id != 0 && !is_there(salvage, each->keyspace_id);
        if (is_missing && store_old_data(salvage->cluster->store) != NULL) {
            TRY(serve_empty(salvage, each));
        } else if (each->keyspace_id == 0 || is_missing) {
            remove_table(salvage, each);
            continue;
        }
        TRY(name_keyspace(salvage, each->keyspace_id));
        if (each->is_broken || each->end.size > 0)
            TRY(join_tablets(salvage, each));
    }
    return status_ok();
}

/* Its keyspace goes as one that nobody names. */
static status end_change_log(struct salvage *salvage)
{
    struct keyspace *catalog = salvage->cluster->catalog;
    struct change_log_state state;
    bool exists;
    TRY(change_log_read(catalog, &state, &exists));
    if (!exists)
        return status_ok();
    change_log_end(salvage->batch, catalog);
    return name_keyspace(salvage, state.keyspace);
}

/* What is not empty, or cannot be read. */
static status keep_unnamed(struct salvage *salvage)
{
    struct cluster *cluster = salvage->cluster;
    struct keyspace *keyspace;
    for (size_t i = 0; (keyspace = store_keyspace_at(cluster->store, i)) != NULL; i++) {
        uint64_t id = keyspace_id(keyspace);
        bool is_empty = false;
        note_id(salvage, id);
        if (is_named(salvage, id))
            continue;
        status_ignore(salvage_is_empty(keyspace, &is_empty));
        if (!is_empty)
            catalog_put_unclaimed(salvage->batch, cluster->catalog, id,
                                  clock_wall_us(cluster->options.clock));
    }
    return status_ok();
}

static status settle(struct salvage *salvage)
{
    struct cluster *cluster = salvage->cluster;
    TRY(read_catalog(salvage));
    TRY(settle_tables(salvage));
    TRY(end_change_log(salvage));
    TRY(keep_unnamed(salvage));
    TRY(catalog_put_next_id(salvage->batch, cluster->catalog, salvage->next_id));
    TRY(store_write(cluster->store, salvage->batch, STORE_SYNCED));
    return store_accept_loss(cluster->store);
}

status salvage_catalog(struct cluster *cluster)
{
    struct salvage salvage = {.cluster = cluster, .next_id = CATALOG_KEYSPACE_ID + 1};
    if (store_log_end(cluster->store).verdict != STORE_LOG_LOST &&
        store_old_data(cluster->store) == NULL)
        return status_ok();
    salvage.last = &salvage.tables;
    salvage.arena = arena_create(CATALOG_MEMORY);
    salvage.batch = store_batch_create();
    bool has_memory = salvage.arena != NULL && salvage.batch != NULL;
    status s = has_memory ? settle(&salvage) : status_out_of_memory();
    free(salvage.named);
    store_batch_destroy(salvage.batch);
    arena_destroy(salvage.arena);
    return s;
}

/* --- telling --- */

static void tell_unclaimed(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->unclaimed_count; i++)
        log_warn(cluster->options.log,
                 "a keyspace has rows but no table: what named it is lost, and it is kept",
                 LOG_INT("keyspace", cluster->unclaimed[i]));
}

void salvage_tell(struct cluster *cluster)
{
    const struct store_log_end end = store_log_end(cluster->store);
    tell_unclaimed(cluster);
    if (end.verdict == STORE_LOG_LOST && cluster->unclaimed_count == 0)
        condition_enter(cluster->condition, REASON_salvaged, "lost: %s", end.words);
    else if (end.verdict == STORE_LOG_LOST)
        condition_enter(cluster->condition, REASON_salvaged,
                        "%zu keyspaces have rows but no table; lost: %s", cluster->unclaimed_count,
                        end.words);
    else if (cluster->unclaimed_count > 0)
        condition_enter(cluster->condition, REASON_salvaged,
                        "%zu keyspaces have rows but no table, since a start with --salvage",
                        cluster->unclaimed_count);
}
