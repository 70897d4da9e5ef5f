/* Restoring a table from a backup: see backup.h.
 *
 * Versions only order the changes of a table. Where those of a backup lie above the present, by a
 * clock that was ahead of ours, they are lowered, all by the same amount, so that they end where
 * the present begins: what is written next counts for more, and no other table notices.
 *
 * Files are copied into <data directory>/restore/<id>, then linked into a new keyspace, which no
 * record names until the table's are written. Whatever a crash leaves goes at the next start: the
 * copies in backups_open, the keyspace in cluster_open. */
#include "cluster/backup/backup_private.h"

#include <stdio.h>
#include <stdlib.h>

/* Our own clock is put forward by so much instead: files are not rewritten for what two machines'
 * clocks commonly differ by. */
static const int64_t most_ahead_us = INT64_C(60) * 1000000;

/* The greatest time of any clock: versions have room up to the year 2112. */
static const int64_t most_us = INT64_C(1) << (64 - VERSION_LOW_BITS);

static bool always_go_on(void *context, uint64_t bytes)
{
    (void)context, (void)bytes;
    return true;
}

static uint64_t take_id(struct cluster *cluster)
{
    pthread_mutex_lock(&cluster->admin);
    uint64_t id = cluster->next_id++;
    pthread_mutex_unlock(&cluster->admin);
    return id;
}

/* --- versions above the present --- */

struct lowering {
    struct staged_backup *staged;
    struct pace pace;
    struct table_writer *writer;
    struct buffer value;
};

static status lower_entry(void *context, bytes key, bytes value)
{
    struct lowering *lowering = context;
    struct buffer *copy = &lowering->value;
    buffer_clear(copy);
    buffer_append_bytes(copy, value);
    if (copy->failed)
        return status_out_of_memory();
    TRY(fragment_lower_versions(copy->data, copy->size, version_at(lowering->staged->lowered_us)));
    if (!pace_go_on(&lowering->pace, key.size + value.size))
        return status_make(STATUS_CANCELLED, "cancelled");
    return table_writer_add(lowering->writer, key, buffer_bytes(copy));
}

static status lower_table(struct lowering *lowering, const char *from, const char *to)
{
    struct store *store = lowering->staged->backups->cluster->home->store;
    TRY(disk_reserve_admit(&lowering->staged->backups->cluster->home->reserve));
    TRY(table_writer_create(store, to, &lowering->writer));
    status s = table_read(store, from, lower_entry, lowering);
    if (status_is_ok(s))
        s = table_writer_finish(lowering->writer);
    table_writer_destroy(lowering->writer);
    return s;
}

/* Puts a file with a new name in the place of one. */
static status lower_file(struct lowering *lowering, size_t index)
{
    struct staged_backup *staged = lowering->staged;
    struct backup_file *file = &staged->manifest.files[index];
    const char *directory = (const char *)staged->directory.data;
    struct buffer from = {0}, to = {0};
    char name[32];
    snprintf(name, sizeof name, "%06zu.sst", staged->manifest.file_count + index + 1);
    status s = status_out_of_memory();
    const char *kept = arena_string(staged->arena, bytes_of(name));
    if (kept != NULL && path_join(&from, directory, file->name) != NULL &&
        path_join(&to, directory, kept) != NULL)
        s = lower_table(lowering, (const char *)from.data, (const char *)to.data);
    if (status_is_ok(s))
        s = files_remove(staged->backups->files, (const char *)from.data);
    buffer_free(&from);
    buffer_free(&to);
    file->name = kept;
    return s;
}

static status lower_versions(struct staged_backup *staged, struct backup_work *work)
{
    struct lowering lowering = {.staged = staged, .pace = pace_start(staged->backups, work, false)};
    status s = status_ok();
    for (size_t i = 0; i < staged->manifest.file_count && status_is_ok(s); i++)
        s = lower_file(&lowering, i);
    buffer_free(&lowering.value);
    if (s.code != STATUS_OUT_OF_RANGE)
        return s;
    status_free(s);
    return status_make(STATUS_FAILED_PRECONDITION,
                       "the backup's rows were written over a longer time than has passed since "
                       "1970 by this server's clock: is it right?");
}

static status check_clock(struct staged_backup *staged)
{
    int64_t newest_us = staged->manifest.newest_us;
    int64_t now_us = cluster_version_us(staged->backups->cluster);
    if (newest_us < 0 || newest_us >= most_us)
        return status_make(STATUS_DATA_LOSS, "the backup's manifest has a time that cannot be");
    staged->lowered_us = newest_us > now_us + most_ahead_us ? newest_us - now_us : 0;
    return status_ok();
}

/* --- staging --- */

status staged_backup_create(struct backups *backups, struct staged_backup **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    (*out)->backups = backups;
    (*out)->arena = arena_create(BACKUP_MEMORY);
    return (*out)->arena == NULL ? status_out_of_memory() : status_ok();
}

status staged_backup_begin(struct staged_backup *staged)
{
    struct backups *backups = staged->backups;
    char id[32];
    staged->keyspace_id = take_id(backups->cluster);
    snprintf(id, sizeof id, "%llu", (unsigned long long)staged->keyspace_id);
    TRY(check_clock(staged));
    if (path_join(&staged->directory, backups->staging, id) == NULL)
        return status_out_of_memory();
    return files_make_directory(backups->files, (const char *)staged->directory.data);
}

status staged_backup_finish(struct staged_backup *staged, struct backup_work *work)
{
    return staged->lowered_us > 0 ? lower_versions(staged, work) : status_ok();
}

static status stage(struct staged_backup *staged, const char *from, struct backup_work *work)
{
    struct backups *backups = staged->backups;
    TRY(manifest_read(backups->files, from, staged->arena, &staged->manifest));
    TRY(staged_backup_begin(staged));
    TRY(backup_copy_files(backups, &staged->manifest, from, (const char *)staged->directory.data,
                          &backups->cluster->home->reserve, work));
    return staged_backup_finish(staged, work);
}

status backup_stage(struct backups *backups, const char *name, struct backup_work *work,
                    struct staged_backup **out)
{
    struct buffer from = {0};
    status s = staged_backup_create(backups, out);
    if (status_is_ok(s))
        s = backups_path(backups, name, &from);
    if (status_is_ok(s))
        s = stage(*out, (const char *)from.data, work);
    buffer_free(&from);
    if (status_is_ok(s))
        return s;
    staged_backup_destroy(*out);
    *out = NULL;
    if (s.code == STATUS_NOT_FOUND) {
        status_free(s);
        return status_make(STATUS_NOT_FOUND, "Not found: %s", name);
    }
    return s;
}

void staged_backup_destroy(struct staged_backup *staged)
{
    if (staged == NULL)
        return;
    if (staged->directory.size > 0) {
        const char *directory = (const char *)staged->directory.data;
        status s = backup_remove_directory(staged->backups->files, directory);
        if (!status_is_ok(s) && s.code != STATUS_NOT_FOUND)
            log_warn(staged->backups->log, "copies stay until the next start",
                     LOG_STR("directory", directory), LOG_STR("cause", status_message(s)));
        status_free(s);
    }
    manifest_free(&staged->manifest);
    arena_destroy(staged->arena);
    buffer_free(&staged->directory);
    free(staged);
}

struct table_info staged_backup_source(const struct staged_backup *staged)
{
    const struct table_record *table = &staged->manifest.table;
    return (struct table_info){.name = table->name,
                               .schema = table->schema,
                               .deletion_protection = table->deletion_protection,
                               .extra = table->extra,
                               .generation = table->generation};
}

/* --- making it a table --- */

static status list_paths(const struct staged_backup *staged, const char ***out)
{
    const struct manifest *manifest = &staged->manifest;
    const char **paths = arena_alloc(staged->arena, manifest->file_count * sizeof *paths);
    struct buffer path = {0};
    for (size_t i = 0; paths != NULL && i < manifest->file_count; i++) {
        const char *joined =
            path_join(&path, (const char *)staged->directory.data, manifest->files[i].name);
        paths[i] = joined == NULL ? NULL : arena_string(staged->arena, bytes_of(joined));
        if (paths[i] == NULL)
            paths = NULL;
    }
    buffer_free(&path);
    *out = paths;
    return paths == NULL ? status_out_of_memory() : status_ok();
}

/* Versions of the staged rows are less than this: they have any counter. */
static uint64_t version_above(const struct staged_backup *staged)
{
    return version_at(staged->manifest.newest_us - staged->lowered_us + 1);
}

/* What is now in each file; where versions were lowered it is not what the manifest says. */
static status sum_files(const struct staged_backup *staged, const char *const *paths,
                        struct event_file **out)
{
    const struct manifest *manifest = &staged->manifest;
    const struct store_pacer unpaced = {.go_on = always_go_on};
    *out = arena_alloc(staged->arena, manifest->file_count * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < manifest->file_count; i++) {
        struct file_sum sum = manifest->files[i].sum;
        if (staged->lowered_us > 0)
            TRY(files_sum(staged->backups->files, paths[i], &unpaced, &sum));
        (*out)[i] = (struct event_file){.size = sum.size, .crc32c = sum.crc32c};
    }
    return status_ok();
}

static status import_files(const struct staged_backup *staged, const char *const *paths,
                           struct taken_files *taken, struct keyspace **keyspace)
{
    struct cluster *cluster = staged->backups->cluster;
    struct event_file *files;
    TRY(sum_files(staged, paths, &files));
    *taken = (struct taken_files){.keyspace = staged->keyspace_id,
                                  .files = files,
                                  .count = staged->manifest.file_count,
                                  .damages = staged->damages,
                                  .damage_count = staged->damage_count};
    TRY(event_log_keep_files(cluster->home, staged->keyspace_id, paths, taken->count));
    return store_keyspace_import(cluster->home->store, staged->keyspace_id, paths, taken->count,
                                 keyspace);
}

static status make_table(const struct staged_backup *staged, const char *const *paths,
                         const struct table_spec *spec, struct table **out)
{
    struct taken_files taken;
    struct keyspace *keyspace;
    TRY(import_files(staged, paths, &taken, &keyspace));
    return cluster_create_table_from(staged->backups->cluster, spec, keyspace, &taken, out);
}

static void tell_restored(const struct staged_backup *staged, const char *table)
{
    const struct log *log = staged->backups->log;
    const char *source = staged->manifest.table.name;
    if (staged->lowered_us == 0)
        log_info(log, "table restored", LOG_STR("table", table), LOG_STR("source", source));
    else
        log_warn(log, "table restored from a backup by a clock that was ahead",
                 LOG_STR("table", table), LOG_STR("source", source),
                 LOG_INT("ahead_seconds", staged->lowered_us / 1000000));
}

status staged_backup_restore(struct staged_backup *staged, const struct restore_spec *spec,
                             struct table **out)
{
    struct cluster *cluster = staged->backups->cluster;
    const struct manifest *manifest = &staged->manifest;
    struct table_spec table = {.name = spec->table,
                               .schema = manifest->schema,
                               .deletion_protection = spec->deletion_protection,
                               .extra = spec->extra,
                               .split_keys = manifest->split_keys,
                               .split_count = manifest->split_count,
                               .txn = spec->txn};
    const char **paths;
    *out = NULL;
    TRY(list_paths(staged, &paths));
    TRY(cluster_raise_version(cluster, version_above(staged)));
    event_log_begin_taking(cluster->home);
    status s = make_table(staged, paths, &table, out);
    event_log_end_taking(cluster->home);
    TRY(s);
    tell_restored(staged, spec->table);
    return status_ok();
}
