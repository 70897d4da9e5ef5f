/* Restoring a table from a backup: see backup.h.
 *
 * Files are copied into <data directory>/restore/<id>, then linked into a new keyspace, which no
 * record names until the table's are written. Whatever a crash leaves goes at the next start: the
 * copies in backups_open, the keyspace in cluster_open. */
#include "cluster/backup_private.h"

#include <stdio.h>
#include <stdlib.h>

/* A backup whose clock was further ahead of ours would take the times of all later writes with it.
 */
static const int64_t most_ahead_us = INT64_C(366) * 24 * 3600 * 1000000;

struct staged_backup {
    struct backups *backups;
    struct arena *arena;
    struct manifest manifest;
    struct buffer directory;
    uint64_t keyspace_id;
};

static uint64_t take_id(struct cluster *cluster)
{
    pthread_mutex_lock(&cluster->admin);
    uint64_t id = cluster->next_id++;
    pthread_mutex_unlock(&cluster->admin);
    return id;
}

static status check_clock(const struct staged_backup *staged)
{
    int64_t now_us = clock_wall_us(cluster_clock(staged->backups->cluster));
    if (staged->manifest.newest_us >= 0 && staged->manifest.newest_us <= now_us + most_ahead_us)
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "the backup was made by a clock that is far ahead of this one");
}

static status stage(struct staged_backup *staged, const char *from, struct backup_work *work)
{
    struct backups *backups = staged->backups;
    char id[32];
    staged->keyspace_id = take_id(backups->cluster);
    snprintf(id, sizeof id, "%llu", (unsigned long long)staged->keyspace_id);
    TRY(manifest_read(backups->files, from, staged->arena, &staged->manifest));
    TRY(check_clock(staged));
    if (path_join(&staged->directory, backups->staging, id) == NULL)
        return status_out_of_memory();
    const char *directory = (const char *)staged->directory.data;
    TRY(files_make_directory(backups->files, directory));
    return backup_copy_files(backups, &staged->manifest, from, directory,
                             &backups->cluster->reserve, work);
}

status backup_stage(struct backups *backups, const char *name, struct backup_work *work,
                    struct staged_backup **out)
{
    *out = NULL;
    struct buffer from = {0};
    struct staged_backup *staged = calloc(1, sizeof *staged);
    if (staged == NULL)
        return status_out_of_memory();
    staged->backups = backups;
    staged->arena = arena_create(BACKUP_MEMORY);
    status s = staged->arena == NULL ? status_out_of_memory() : backups_path(backups, name, &from);
    if (status_is_ok(s))
        s = stage(staged, (const char *)from.data, work);
    buffer_free(&from);
    if (status_is_ok(s))
        *out = staged;
    else
        staged_backup_destroy(staged);
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

/* Versions in the backup have at most this time, and any counter. */
static uint64_t versions_up_to(int64_t time_us)
{
    return ((uint64_t)time_us + 1) << VERSION_COUNTER_BITS;
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
                               .also = spec->also};
    const char **paths;
    struct keyspace *keyspace;
    *out = NULL;
    TRY(list_paths(staged, &paths));
    TRY(commit_raise_version(cluster->commits, versions_up_to(manifest->newest_us)));
    TRY(store_keyspace_import(cluster->store, staged->keyspace_id, paths, manifest->file_count,
                              &keyspace));
    TRY(cluster_create_table_from(cluster, &table, keyspace, out));
    log_info(staged->backups->log, "table restored", LOG_STR("table", spec->table),
             LOG_STR("source", manifest->table.name));
    return status_ok();
}
