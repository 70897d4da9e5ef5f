/* Making a backup of a table: see backup.h.
 *
 * The cursor pins what it will read: tables that compactions replace meanwhile stay on the disk
 * until it is done, and so would a write buffer stay in memory, which is why it is flushed first.
 * Reads for the cursor leave the block cache alone. */
#include "cluster/backup_private.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECE = 256 << 10 /* bytes of rows between looks at the pace */ };

struct export
{
    struct backups *backups;
    struct backup_work *work;
    struct table *table;
    const char *directory;
    struct arena *arena;
    struct pace pace;
    struct buffer path;

    /* The instant. */
    struct tablet **tablets;
    size_t tablet_count;
    struct store_cursor *cursor;

    struct table_writer *writer; /* of the last file of the manifest; NULL: it is finished */
    uint64_t finished_bytes;
    uint64_t unpaced_bytes;
    struct manifest manifest;
    size_t file_capacity;
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

/* --- files --- */

static bool has_room_for_file(struct export *e)
{
    if (e->manifest.file_count < e->file_capacity)
        return true;
    size_t capacity = e->file_capacity == 0 ? 16 : 2 * e->file_capacity;
    struct backup_file *files = realloc(e->manifest.files, capacity * sizeof *files);
    if (files == NULL)
        return false;
    e->manifest.files = files;
    e->file_capacity = capacity;
    return true;
}

static status begin_file(struct export *e)
{
    char name[32];
    snprintf(name, sizeof name, "%06zu.sst", e->manifest.file_count + 1);
    const char *kept = arena_string(e->arena, bytes_of(name));
    TRY(disk_reserve_admit(&e->backups->reserve));
    if (kept == NULL || !has_room_for_file(e) || path_join(&e->path, e->directory, name) == NULL)
        return status_out_of_memory();
    TRY(table_writer_create(e->backups->cluster->store, (const char *)e->path.data, &e->writer));
    e->manifest.files[e->manifest.file_count++] = (struct backup_file){.name = kept};
    return status_ok();
}

/* Ends the file and reads it again: what its checksum vouches for is what the disk gives back. */
static status finish_file(struct export *e)
{
    struct backup_file *file = &e->manifest.files[e->manifest.file_count - 1];
    struct pace pace = pace_start(e->backups, e->work, false);
    struct store_pacer pacer = {.go_on = pace_go_on, .context = &pace};
    status s = table_writer_finish(e->writer);
    table_writer_destroy(e->writer);
    e->writer = NULL;
    TRY(s);
    TRY(files_sum(e->backups->files, (const char *)e->path.data, &pacer, &file->sum));
    e->finished_bytes += file->sum.size;
    e->work->bytes_done = e->finished_bytes;
    return status_ok();
}

static status keep_pace(struct export *e, size_t bytes)
{
    e->unpaced_bytes += bytes;
    if (e->unpaced_bytes < PIECE)
        return status_ok();
    bool go_on = pace_go_on(&e->pace, e->unpaced_bytes);
    e->unpaced_bytes = 0;
    e->work->bytes_done = e->finished_bytes + table_writer_size(e->writer);
    return go_on ? status_ok() : status_make(STATUS_CANCELLED, "cancelled");
}

static status add_entry(struct export *e, bytes key, bytes value)
{
    if (e->writer == NULL)
        TRY(begin_file(e));
    TRY(table_writer_add(e->writer, key, value));
    TRY(keep_pace(e, key.size + value.size));
    return table_writer_size(e->writer) < BACKUP_FILE_SIZE ? status_ok() : finish_file(e);
}

static status write_rows(struct export *e)
{
    for (store_cursor_first(e->cursor); store_cursor_valid(e->cursor); store_cursor_next(e->cursor))
        TRY(add_entry(e, store_cursor_key(e->cursor), store_cursor_value(e->cursor)));
    TRY(store_cursor_status(e->cursor));
    return e->writer == NULL ? status_ok() : finish_file(e);
}

/* --- all of it --- */

static status export_table(struct export *e, const char *name)
{
    struct clock *clock = cluster_clock(e->backups->cluster);
    struct store_pacer pacer = {.go_on = pace_go_on, .context = &e->pace};
    struct backup_info info;
    TRY(backup_describe(e->backups, name, e->arena, &info));
    TRY(backup_begin_directory(e->backups, e->directory));
    TRY(take_instant(e));
    e->pace = pace_start(e->backups, e->work, false);
    TRY(keyspace_verify(e->tablets[0]->keyspace, &pacer));
    TRY(write_rows(e));
    e->manifest.start_us = info.start_us;
    e->manifest.end_us = clock_wall_us(clock);
    e->manifest.extra = info.extra;
    return backup_finish_directory(e->backups, e->directory, &e->manifest);
}

static void clean_up(struct export *e)
{
    table_writer_destroy(e->writer);
    store_cursor_destroy(e->cursor);
    for (size_t i = 0; i < e->tablet_count; i++)
        tablet_release(e->tablets[i]);
    free(e->tablets);
    free(e->manifest.files);
    arena_destroy(e->arena);
    buffer_free(&e->path);
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
