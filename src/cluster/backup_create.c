/* Making a backup of a table: see backup.h.
 *
 * The cursor pins what it will read: tables that compactions replace meanwhile stay on the disk
 * until it is done, and so would a write buffer stay in memory, which is why it is flushed first.
 * Reads for the cursor leave the block cache alone. */
#include "cluster/backup_private.h"

#include <stdlib.h>

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
    struct store_cursor *cursor;

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

/* With admin held no schema changes and no tablet splits; a DropRowRange is one batch, which the
 * cursor sees or does not see. What was written before has a version up to the clock's present. */
static status fix_instant(struct export *e)
{
    if (e->table->is_deleted)
        return status_make(STATUS_NOT_FOUND, "Not found: %s", table_name(e->table));
    TRY(list_split_keys(e));
    struct store_cursor_options options = {
        .reach = STORE_ANYWHERE, .is_long = true, .rules = &table_description(e->table)->rules};
    TRY(store_cursor_create(e->tablets[0]->keyspace, &options, &e->cursor));
    e->manifest.table = table_record_of(e->table);
    e->manifest.newest_us = cluster_version_us(e->backups->cluster);
    return status_ok();
}

static status take_instant(struct export *e)
{
    struct cluster *cluster = e->backups->cluster;
    struct tablet *any = table_route(e->table, bytes_of(""));
    struct keyspace *keyspace = any->keyspace;
    tablet_release(any);
    TRY(keyspace_flush(keyspace));
    e->work->bytes_total = keyspace_size(keyspace, bytes_of(""), bytes_of(""));
    pthread_mutex_lock(&cluster->admin);
    status s = fix_instant(e);
    pthread_mutex_unlock(&cluster->admin);
    return s;
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
    TRY(keyspace_verify(e->tablets[0]->keyspace, &pacer));
    TRY(backup_write_rows(&target, e->cursor, &e->manifest));
    e->manifest.start_us = info.start_us;
    e->manifest.end_us = clock_wall_us(clock);
    e->manifest.extra = info.extra;
    return backup_finish_directory(e->backups, e->directory, &e->manifest);
}

static void clean_up(struct export *e)
{
    store_cursor_destroy(e->cursor);
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
