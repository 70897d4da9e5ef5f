/* Rows written as the files of a backup, or of one that is staged: see backup.h. */
#include "cluster/backup/backup_private.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECE = 256 << 10 /* bytes of rows between looks at the pace */ };

struct writing {
    const struct rows_target *target;
    struct pace pace;
    struct buffer path;
    struct buffer left;          /* of a value of which something was dropped */
    struct table_writer *writer; /* of the last file; NULL: it is finished */
    uint64_t finished_bytes;
    uint64_t unpaced_bytes;
    struct backup_file *files; /* by malloc */
    size_t file_count;
    size_t file_capacity;
};

static bool has_room_for_file(struct writing *w)
{
    if (w->file_count < w->file_capacity)
        return true;
    size_t capacity = w->file_capacity == 0 ? 16 : 2 * w->file_capacity;
    struct backup_file *files = realloc(w->files, capacity * sizeof *files);
    if (files == NULL)
        return false;
    w->files = files;
    w->file_capacity = capacity;
    return true;
}

static status begin_file(struct writing *w)
{
    const struct rows_target *target = w->target;
    char name[32];
    snprintf(name, sizeof name, "%06zu.sst", w->file_count + 1);
    const char *kept = arena_string(target->arena, bytes_of(name));
    TRY(disk_reserve_admit(target->reserve));
    if (kept == NULL || !has_room_for_file(w) ||
        path_join(&w->path, target->directory, name) == NULL)
        return status_out_of_memory();
    TRY(table_writer_create(target->backups->cluster->home->store, (const char *)w->path.data,
                            &w->writer));
    w->files[w->file_count++] = (struct backup_file){.name = kept};
    return status_ok();
}

/* Ends the file and reads it again: what its checksum vouches for is what the disk gives back. */
static status finish_file(struct writing *w)
{
    const struct rows_target *target = w->target;
    struct backup_file *file = &w->files[w->file_count - 1];
    struct pace pace = pace_start(target->backups, target->work, false);
    struct store_pacer pacer = {.go_on = pace_go_on, .context = &pace};
    status s = table_writer_finish(w->writer);
    table_writer_destroy(w->writer);
    w->writer = NULL;
    TRY(s);
    TRY(files_sum(target->backups->files, (const char *)w->path.data, &pacer, &file->sum));
    w->finished_bytes += file->sum.size;
    target->work->bytes_done = w->finished_bytes;
    return status_ok();
}

static status keep_pace(struct writing *w, size_t bytes)
{
    w->unpaced_bytes += bytes;
    if (w->unpaced_bytes < PIECE)
        return status_ok();
    bool go_on = pace_go_on(&w->pace, w->unpaced_bytes);
    w->unpaced_bytes = 0;
    w->target->work->bytes_done =
        w->finished_bytes + (w->writer == NULL ? 0 : table_writer_size(w->writer));
    return go_on ? status_ok() : status_make(STATUS_CANCELLED, "cancelled");
}

static status add_entry(struct writing *w, bytes key, bytes value)
{
    if (w->writer == NULL)
        TRY(begin_file(w));
    TRY(table_writer_add(w->writer, key, value));
    TRY(keep_pace(w, key.size + value.size));
    return table_writer_size(w->writer) < BACKUP_FILE_SIZE ? status_ok() : finish_file(w);
}

/* A backup has no drops: it is without what they cover. */
static status add_current(struct writing *w, const struct rows_source *source)
{
    bytes key = store_cursor_key(source->cursor), value = store_cursor_value(source->cursor);
    bool is_left;
    TRY(row_leave_out_dropped(source->drops, key, &value, &w->left, &is_left));
    return is_left ? add_entry(w, key, value) : keep_pace(w, key.size + value.size);
}

static status write_some(struct writing *w, const struct rows_source *source)
{
    struct store_cursor *cursor = source->cursor;
    for (store_cursor_first(cursor); store_cursor_valid(cursor); store_cursor_next(cursor))
        TRY(add_current(w, source));
    return store_cursor_status(cursor);
}

/* Folds go by no rules but the drops: of another store nobody has set any. */
static status write_range(struct writing *w, struct keyspace *keyspace, struct row_drops *drops,
                          const struct rows_range *range)
{
    const struct row_rules rules = {.drops = drops};
    const struct store_cursor_options options = {.read_tier = STORE_READ_ANY,
                                                 .bypasses_cache = true,
                                                 .lower = range->from,
                                                 .upper = range->to,
                                                 .rules = &rules};
    struct rows_source source = {.drops = drops};
    TRY(store_cursor_create(keyspace, &options, &source.cursor));
    status s = write_some(w, &source);
    store_cursor_destroy(source.cursor);
    return s;
}

static status name_files(const struct writing *w, struct manifest *manifest)
{
    size_t size = w->file_count * sizeof *manifest->files;
    manifest->files = arena_alloc(w->target->arena, size);
    if (manifest->files == NULL)
        return status_out_of_memory();
    if (size > 0)
        memcpy(manifest->files, w->files, size);
    manifest->file_count = w->file_count;
    return status_ok();
}

static struct writing begin(const struct rows_target *target)
{
    return (struct writing){.target = target,
                            .pace = pace_start(target->backups, target->work, false)};
}

/* `s`: what came of it. */
static status end(struct writing *w, status s, struct manifest *manifest)
{
    if (status_is_ok(s) && w->writer != NULL)
        s = finish_file(w);
    if (status_is_ok(s))
        s = name_files(w, manifest);
    table_writer_destroy(w->writer);
    buffer_free(&w->path);
    buffer_free(&w->left);
    free(w->files);
    return s;
}

status backup_write_rows(const struct rows_target *target, const struct rows_source *sources,
                         size_t count, struct manifest *manifest)
{
    struct writing w = begin(target);
    status s = status_ok();
    for (size_t i = 0; i < count && status_is_ok(s); i++)
        s = write_some(&w, &sources[i]);
    return end(&w, s, manifest);
}

status backup_write_ranges(const struct rows_target *target, struct keyspace *keyspace,
                           struct row_drops *drops, const struct rows_range *ranges, size_t count,
                           struct manifest *manifest)
{
    struct writing w = begin(target);
    status s = status_ok();
    for (size_t i = 0; i < count && status_is_ok(s); i++)
        s = write_range(&w, keyspace, drops, &ranges[i]);
    return end(&w, s, manifest);
}
