/* See salvage.h. What is put right is one batch; until it is written, and the store has been told
 * that the loss is accepted, a start that ends finds the same loss again. */
#include "cluster/salvage.h"

#include "base/check.h"
#include "cluster/catalog.h"
#include "cluster/heat/heat_keyspace.h"
#include "cluster/lost_records.h"
#include "row/row_key.h"
#include "stream/segment_records.h"

#include <inttypes.h>
#include <stdlib.h>

enum { CATALOG_MEMORY = 1 << 30, LOST_CEILINGS_AHEAD_US = 60 * 1000 * 1000 };
#define IDS_SKIPPED (UINT64_C(1) << 32) /* more than any server gives */

struct salvaged_table {
    struct salvaged_table *next;
    uint64_t id;
    const char *name;
    uint64_t keyspace_id; /* 0: no tablet is there */
    uint64_t records_id;  /* of a view: the keyspace of its records; else 0 */
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
    struct salvaged_table *at;      /* tablets come in the same order */
    struct salvaged_table *kept_at; /* and so does what deleted tables had */
    uint64_t *named;                /* ids of keyspaces that records name, and of the catalog */
    size_t named_count;
    size_t named_capacity;
    uint64_t next_id;
    bool has_next_id;
    bool has_lost_records; /* the catalog's own */
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
    return store_keyspace_find(salvage->cluster->home->store, keyspace_id) != NULL;
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
    salvage->has_next_id = true;
    return status_ok();
}

static status find_table(void *context, const struct table_record *record)
{
    struct salvage *salvage = context;
    struct salvaged_table *table = arena_zalloc(salvage->arena, sizeof *table);
    if (table == NULL)
        return status_out_of_memory();
    table->id = record->id;
    table->records_id = record->view.records_id;
    table->name = arena_string(salvage->arena, bytes_of(record->name));
    if (table->name == NULL)
        return status_out_of_memory();
    note_id(salvage, record->id);
    note_id(salvage, record->view.records_id);
    *salvage->last = table;
    salvage->last = &table->next;
    return status_ok();
}

/* `*at` moves on: ids rise. */
static struct salvaged_table *table_of(const struct salvage *salvage, struct salvaged_table **at,
                                       uint64_t id)
{
    DCHECK(*at == NULL || salvage->tables != NULL);
    if (*at == NULL)
        *at = salvage->tables;
    while (*at != NULL && (*at)->id < id && (*at)->next != NULL)
        *at = (*at)->next;
    return *at != NULL && (*at)->id == id ? *at : NULL;
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
    struct salvaged_table *table = table_of(salvage, &salvage->at, record->table_id);
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

static status look_for_any(struct keyspace *keyspace, const struct store_cursor_options *options,
                           bool *is_empty)
{
    struct store_cursor *cursor;
    *is_empty = false;
    TRY(store_cursor_create(keyspace, options, &cursor));
    store_cursor_first(cursor);
    status s = store_cursor_status(cursor);
    *is_empty = status_is_ok(s) && !store_cursor_valid(cursor);
    store_cursor_destroy(cursor);
    return s;
}

status salvage_is_empty(struct keyspace *keyspace, bool *is_empty)
{
    const struct store_cursor_options options = {.read_tier = STORE_READ_ANY};
    return look_for_any(keyspace, &options, is_empty);
}

static status find_preallocated(void *context, uint64_t id)
{
    struct salvage *salvage = context;
    struct keyspace *keyspace = store_keyspace_find(salvage->cluster->home->store, id);
    bool is_empty = false;
    if (keyspace != NULL)
        status_ignore(salvage_is_empty(keyspace, &is_empty)); /* then it is not known to be */
    if (is_empty)
        return name_keyspace(salvage, id);
    catalog_delete_preallocated(salvage->batch, salvage->cluster->catalog, id);
    return status_ok();
}

/* After lost records all are: that says nothing. */
static status find_unclaimed(void *context, uint64_t id, int64_t found_us)
{
    struct salvage *salvage = context;
    (void)found_us;
    return salvage->has_lost_records ? status_ok() : name_keyspace(salvage, id);
}

static status find_kept(void *context, uint64_t table_id)
{
    struct salvage *salvage = context;
    note_id(salvage, table_id);
    if (table_of(salvage, &salvage->kept_at, table_id) == NULL)
        catalog_delete_kept(salvage->batch, salvage->cluster->catalog, table_id);
    return status_ok();
}

static status find_damage(void *context, const struct damage_record *record)
{
    note_id(context, record->keyspace_id);
    return status_ok();
}

static status find_segment(void *context, const struct stream_segment_record *record)
{
    note_id(context, record->keyspace);
    return name_keyspace(context, record->keyspace);
}

static status read_catalog(struct salvage *salvage)
{
    const struct catalog_visitor visitor = {.context = salvage,
                                            .next_id = find_next_id,
                                            .table = find_table,
                                            .tablet = find_tablet,
                                            .preallocated = find_preallocated,
                                            .damage = find_damage,
                                            .unclaimed = find_unclaimed,
                                            .kept = find_kept};
    TRY(name_keyspace(salvage, CATALOG_KEYSPACE_ID));
    TRY(stream_segments_visit(salvage->cluster->catalog, find_segment, salvage));
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
    bool is_lost = salvage->has_lost_records && table->keyspace_id == 0;
    tell_of(salvage,
            is_lost ? "a table is lost: of its records those that say where its rows are"
                    : "a table had been deleted, in what is lost",
            table);
    catalog_delete_table(salvage->batch, catalog, table->id);
    catalog_delete_tablets(salvage->batch, catalog, table->id);
    catalog_delete_kept(salvage->batch, catalog, table->id);
}

/* Serves a table of old data as empty: its table files are gone, or none was ever written. */
static status serve_empty(struct salvage *salvage, const struct salvaged_table *table)
{
    DCHECK(!is_there(salvage, table->keyspace_id));
    tell_of(salvage, "no file has rows of a table: it is empty now", table);
    return store_keyspaces_create(salvage->cluster->home->store, table->keyspace_id, 1);
}

static status join_tablets(struct salvage *salvage, const struct salvaged_table *table)
{
    DCHECK(table->tablet_id != 0 && table->keyspace_id != 0);
    struct keyspace *catalog = salvage->cluster->catalog;
    const struct tablet_record whole = {
        .table_id = table->id, .id = table->tablet_id, .keyspace_id = table->keyspace_id};
    tell_of(salvage, "a table's tablets were lost, and are one now", table);
    catalog_delete_tablets(salvage->batch, catalog, table->id);
    return catalog_put_tablet(salvage->batch, catalog, &whole);
}

/* It may lack what its source has, and have what that lacks: so it is made anew by who has its
 * definition. Its keyspaces are nobody's at the end of this start. */
static status remove_view(struct salvage *salvage, const struct salvaged_table *view)
{
    struct keyspace *catalog = salvage->cluster->catalog;
    tell_of(salvage, "a view is to be made anew", view);
    catalog_delete_table(salvage->batch, catalog, view->id);
    catalog_delete_tablets(salvage->batch, catalog, view->id);
    TRY(name_keyspace(salvage, view->records_id));
    return view->keyspace_id == 0 ? status_ok() : name_keyspace(salvage, view->keyspace_id);
}

static status restore_tables(struct salvage *salvage)
{
    for (const struct salvaged_table *each = salvage->tables; each != NULL; each = each->next) {
        if (each->records_id != 0) {
            TRY(remove_view(salvage, each));
            continue;
        }
        bool is_missing = each->keyspace_id != 0 && !is_there(salvage, each->keyspace_id);
        if (is_missing && store_old_data(salvage->cluster->home->store) != NULL) {
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

/* Its keyspace goes as one that no record names. */
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

/* The server's heat is of use to the server alone, which begins again without it. */
static bool is_heat(struct keyspace *keyspace)
{
    bool is_all = false;
    status_ignore(heat_keyspace_is_one(keyspace, &is_all)); /* then it is not known to be */
    return is_all;
}

/* What has rows, or cannot be read. If the record of the change log is among those that are lost,
 * its keyspace is one without rows, and so is that of a view's records; what is a log never has
 * any. */
static bool is_worth_keeping(struct keyspace *keyspace)
{
    static const uint8_t first = ROW_SPACE, end = OVERFLOW_SPACE + 1;
    const struct store_cursor_options options = {
        .read_tier = STORE_READ_ANY, .lower = bytes_make(&first, 1), .upper = bytes_make(&end, 1)};
    bool is_empty = keyspace_kind(keyspace) == KEYSPACE_LOG;
    if (!is_empty)
        status_ignore(look_for_any(keyspace, &options, &is_empty));
    return !is_empty && !is_heat(keyspace);
}

static void note_if_unclaimed(const struct salvage *salvage, struct keyspace *keyspace)
{
    struct cluster *cluster = salvage->cluster;
    uint64_t id = keyspace_id(keyspace);
    if (!is_named(salvage, id) && is_worth_keeping(keyspace))
        catalog_put_unclaimed(salvage->batch, cluster->catalog, id,
                              clock_wall_us(cluster->options.clock));
    else if (salvage->has_lost_records)
        catalog_delete_unclaimed(salvage->batch, cluster->catalog, id);
}

static void note_unclaimed(struct salvage *salvage)
{
    struct keyspace *keyspace;
    for (size_t i = 0; (keyspace = store_keyspace_at(salvage->cluster->home->store, i)) != NULL;
         i++) {
        note_id(salvage, keyspace_id(keyspace));
        note_if_unclaimed(salvage, keyspace);
    }
}

/* --- what the catalog itself has lost --- */

/* The last ones were less than that ahead of the clock, if it was right: each start that follows
 * another at once adds up to COMMIT_CEILING_SLACK_US to what they are ahead. */
static status raise_ceilings(struct salvage *salvage)
{
    struct cluster *cluster = salvage->cluster;
    int64_t least_us = clock_wall_us(cluster->options.clock) + LOST_CEILINGS_AHEAD_US;
    struct commit_ceilings ceilings;
    TRY(commit_read_ceilings(cluster->catalog, &ceilings));
    if (ceilings.version == 0)
        ceilings.version = version_at(least_us);
    if (ceilings.sequence == 0)
        ceilings.sequence = version_at(least_us);
    commit_put_ceilings(salvage->batch, cluster->catalog, &ceilings);
    return status_ok();
}

static status finish_lost_records(struct salvage *salvage)
{
    if (!salvage->has_lost_records)
        return status_ok();
    if (!salvage->has_next_id)
        salvage->next_id += IDS_SKIPPED;
    lost_records_end(salvage->batch, salvage->cluster->catalog);
    return raise_ceilings(salvage);
}

static status restore_catalog(struct salvage *salvage)
{
    struct cluster *cluster = salvage->cluster;
    TRY(read_catalog(salvage));
    TRY(restore_tables(salvage));
    TRY(end_change_log(salvage));
    note_unclaimed(salvage);
    TRY(finish_lost_records(salvage));
    TRY(catalog_put_next_id(salvage->batch, cluster->catalog, salvage->next_id));
    TRY(store_write(cluster->home->store, salvage->batch, STORE_SYNCED));
    return store_accept_loss(cluster->home->store);
}

static bool needs_it(struct cluster *cluster)
{
    return store_log_end(cluster->home->store).verdict == STORE_LOG_LOST ||
           store_old_data(cluster->home->store) != NULL || cluster->home->lost_records != NULL;
}

status salvage_catalog(struct cluster *cluster)
{
    struct salvage salvage = {.cluster = cluster,
                              .next_id = CATALOG_KEYSPACE_ID + 1,
                              .has_lost_records = cluster->home->lost_records != NULL};
    if (!needs_it(cluster))
        return status_ok();
    salvage.last = &salvage.tables;
    salvage.arena = arena_create(CATALOG_MEMORY);
    salvage.batch = store_batch_create();
    bool has_memory = salvage.arena != NULL && salvage.batch != NULL;
    status s = has_memory ? restore_catalog(&salvage) : status_out_of_memory();
    free(salvage.named);
    store_batch_destroy(salvage.batch);
    arena_destroy(salvage.arena);
    return s;
}

/* --- telling --- */

static void tell_unclaimed(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->home->unclaimed_count; i++)
        log_warn(cluster->options.log,
                 "a keyspace has rows but no table: what named it is lost, and it is kept",
                 LOG_INT("keyspace", cluster->home->unclaimed[i]));
}

static void append_part(struct buffer *out, const char *what, const char *words)
{
    buffer_append_format(out, "%s%s%s", out->size == 0 ? "" : "; ", what, words);
}

void salvage_tell(struct cluster *cluster)
{
    const struct store_log_end end = store_log_end(cluster->home->store);
    struct buffer words = {0};
    tell_unclaimed(cluster);
    if (cluster->home->unclaimed_count > 0)
        buffer_append_format(&words,
                             "%zu keyspaces have rows but no table, since a start with --salvage",
                             cluster->home->unclaimed_count);
    if (end.verdict == STORE_LOG_LOST)
        append_part(&words, "", end.words);
    if (cluster->home->lost_records != NULL)
        append_part(&words, "lost: ", cluster->home->lost_records);
    if (words.size > 0) {
        buffer_append_byte(&words, 0);
        condition_enter(cluster->home->condition, REASON_salvaged, "%s",
                        words.failed ? "something is lost: see the log" : (const char *)words.data);
    }
    buffer_free(&words);
}
