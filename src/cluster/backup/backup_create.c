/* Making a backup of a table: see backup.h.
 *
 * Cursors at one instant, each over records or overflow cells of one keyspace, pin what they will
 * read: tables that compactions replace meanwhile stay on the disk until all is written, and so
 * would write buffers stay in memory, which is why these are flushed first. Reads for the cursors
 * leave the block cache alone. What was dropped before the instant (row/drops.h) is left out; from
 * then on the table's drops are held, so that folds keep what is dropped later. */
#include "base/check.h"
#include "cluster/backup/backup_private.h"
#include "tablet/key_bounds.h"

#include <stdlib.h>

/* What was dropped of a space's rows at the instant, and the rules with these. */
struct instant_drops {
    struct row_drops *drops;
    struct row_rules rules;
};

struct export
{
    struct backups *backups;
    struct backup_work *work;
    struct table *table;
    const char *directory;
    struct arena *arena;

    /* The instant. */
    struct tablet **tablets;
    size_t tablet_count;
    struct instant_drops *drops; /* of each of the table's spaces, in their order */
    size_t drops_count;
    struct store_snapshot **snapshots; /* of each shard, while the cursors are made */
    struct rows_source *sources;       /* what is to be written, in this order */
    size_t source_count;

    struct manifest manifest;
};

/* --- the instant --- */

static status list_split_keys(struct export *e)
{
    TRY(table_tablets(e->table, &e->tablets, &e->tablet_count));
    bytes *keys = arena_alloc(e->arena, e->tablet_count * sizeof *keys);
    if (keys == NULL)
        return status_out_of_memory();
    for (size_t i = 1; i < e->tablet_count; i++)
        keys[i - 1] = e->tablets[i]->start;
    e->manifest.split_keys = keys;
    e->manifest.split_count = e->tablet_count - 1;
    return status_ok();
}

/* Nothing is dropped meanwhile, and no drop forgotten: that takes `admin`, too. */
static status hold_drops(struct export *e)
{
    const struct table *table = e->table;
    e->drops = arena_zalloc(e->arena, table->space_count * sizeof *e->drops);
    if (e->drops == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < table->space_count; i++) {
        struct instant_drops *at = &e->drops[i];
        row_drops_hold(table->spaces[i].drops);
        e->drops_count++;
        TRY(row_drops_copy(table->spaces[i].drops, &at->drops));
        at->rules = *table_rules(table, table->spaces[i].keyspace);
        at->rules.drops = at->drops;
    }
    return status_ok();
}

static const struct instant_drops *drops_of(const struct export *e, const struct keyspace *keyspace)
{
    size_t at = 0;
    while (e->table->spaces[at].keyspace != keyspace)
        at++;
    return &e->drops[at];
}

/* A cursor over a part of the table's records, or of its overflow cells. */
static status add_cursor(struct export *e, const struct table_space *space,
                         const struct key_bounds *bounds)
{
    const struct instant_drops *drops = drops_of(e, space->keyspace);
    const struct store_cursor_options options = {.snapshot = e->snapshots[space->shard->number],
                                                 .lower = buffer_bytes(&bounds->lower),
                                                 .upper = buffer_bytes(&bounds->upper),
                                                 .read_tier = STORE_READ_ANY,
                                                 .bypasses_cache = true,
                                                 .rules = &drops->rules};
    size_t size = (e->source_count + 1) * sizeof *e->sources;
    struct rows_source *sources = realloc(e->sources, size);
    if (sources == NULL)
        return status_out_of_memory();
    e->sources = sources;
    struct rows_source *source = &sources[e->source_count];
    source->drops = drops->drops;
    TRY(store_cursor_create(space->keyspace, &options, &source->cursor));
    e->source_count++;
    return status_ok();
}

static status add_records(void *context, const struct table_part *part)
{
    struct key_bounds bounds;
    status s = record_bounds(part->from, part->to, &bounds)
                   ? add_cursor(context, &part->space, &bounds)
                   : status_out_of_memory();
    key_bounds_free(&bounds);
    return s;
}

static status add_overflow(void *context, const struct table_part *part)
{
    struct key_bounds bounds;
    status s = overflow_bounds(part->from, part->to, &bounds)
                   ? add_cursor(context, &part->space, &bounds)
                   : status_out_of_memory();
    key_bounds_free(&bounds);
    return s;
}

/* Cursors in the order of their keys: a restored table has one keyspace. */
static status add_cursors(struct export *e)
{
    const bytes all = bytes_make(NULL, 0);
    TRY(table_visit_parts(e->table, all, all, add_records, e));
    return table_visit_parts(e->table, all, all, add_overflow, e);
}

static status take_views(struct export *e)
{
    const struct cluster *cluster = e->backups->cluster;
    for (size_t i = 0; i < cluster->shard_count; i++) {
        e->snapshots[i] = store_snapshot_create(cluster->shards[i]->store);
        if (e->snapshots[i] == NULL)
            return status_out_of_memory();
    }
    return status_ok();
}

/* The snapshots go at once: while there is one, nothing that is written over leaves the store. */
static status make_cursors(struct export *e)
{
    const struct cluster *cluster = e->backups->cluster;
    e->snapshots = calloc(cluster->shard_count, sizeof(*e->snapshots));
    if (e->snapshots == NULL)
        return status_out_of_memory();
    status s = take_views(e);
    if (status_is_ok(s))
        s = add_cursors(e);
    for (size_t i = 0; i < cluster->shard_count; i++)
        store_snapshot_release(e->snapshots[i]);
    free(e->snapshots);
    return s;
}

/* With admin held no schema changes, no tablet splits, and no rows are dropped. What was written
 * before has a version up to the present of the clock of all shards. */
static status fix_instant(struct export *e)
{
    DCHECK(check_is_held(&e->backups->cluster->admin));
    if (e->table->is_deleted)
        return status_make(STATUS_NOT_FOUND, "Not found: %s", table_name(e->table));
    TRY(list_split_keys(e));
    TRY(hold_drops(e));
    TRY(make_cursors(e));
    e->manifest.table = table_record_of(e->table);
    e->manifest.newest_us = cluster_version_us(e->backups->cluster);
    return status_ok();
}

static status flush(struct export *e)
{
    const bytes all = bytes_make(NULL, 0);
    e->work->bytes_total = 0;
    for (size_t i = 0; i < e->table->space_count; i++) {
        TRY(keyspace_flush(e->table->spaces[i].keyspace));
        e->work->bytes_total += keyspace_size(e->table->spaces[i].keyspace, all, all);
    }
    return status_ok();
}

static status take_instant(struct export *e)
{
    struct cluster *cluster = e->backups->cluster;
    TRY(flush(e));
    pthread_mutex_lock(&cluster->admin);
    status s = fix_instant(e);
    pthread_mutex_unlock(&cluster->admin);
    return s;
}

static status verify(const struct export *e, const struct store_pacer *pacer)
{
    for (size_t i = 0; i < e->table->space_count; i++)
        TRY(keyspace_verify(e->table->spaces[i].keyspace, pacer));
    return status_ok();
}

/* --- all of it --- */

static status export_table(struct export *e, const char *name)
{
    struct clock *clock = cluster_clock(e->backups->cluster);
    struct pace pace = pace_start(e->backups, e->work, false);
    struct store_pacer pacer = {.go_on = pace_go_on, .context = &pace};
    const struct rows_target target = {.backups = e->backups,
                                       .directory = e->directory,
                                       .reserve = &e->backups->reserve,
                                       .work = e->work,
                                       .arena = e->arena};
    struct backup_info info;
    TRY(backup_describe(e->backups, name, e->arena, &info));
    TRY(backup_begin_directory(e->backups, e->directory));
    TRY(take_instant(e));
    TRY(verify(e, &pacer));
    TRY(backup_write_rows(&target, e->sources, e->source_count, &e->manifest));
    e->manifest.start_us = info.start_us;
    e->manifest.end_us = clock_wall_us(clock);
    e->manifest.extra = info.extra;
    return backup_finish_directory(e->backups, e->directory, &e->manifest);
}

static void clean_up(struct export *e)
{
    for (size_t i = 0; i < e->source_count; i++)
        store_cursor_destroy(e->sources[i].cursor);
    free(e->sources);
    for (size_t i = 0; i < e->drops_count; i++) {
        row_drops_let_go(e->table->spaces[i].drops);
        row_drops_destroy(e->drops[i].drops);
    }
    for (size_t i = 0; i < e->tablet_count; i++)
        tablet_release(e->tablets[i]);
    free(e->tablets);
    arena_destroy(e->arena);
}

status backup_create(struct backups *backups, const char *name, struct table *table,
                     struct backup_work *work)
{
    struct export e = {.backups = backups, .work = work, .table = table};
    struct buffer directory = {0};
    status s = backups_path(backups, name, &directory);
    e.directory = (const char *)directory.data;
    e.arena = arena_create(BACKUP_MEMORY);
    if (status_is_ok(s))
        s = e.arena == NULL ? status_out_of_memory() : export_table(&e, name);
    if (status_is_ok(s))
        backups_publish(backups, name, &e.manifest);
    else
        s = backup_abandon(backups, name, s);
    clean_up(&e);
    buffer_free(&directory);
    return s;
}
