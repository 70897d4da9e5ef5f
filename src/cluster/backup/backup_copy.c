/* Directories of backups: begun, finished, abandoned, copied, verified. */
#include "cluster/backup/backup_private.h"

#include <stdio.h>

/* --- beginning and ending --- */

/* What an earlier attempt left goes; what has a manifest stays, though it was not fit to be listed.
 */
static status clear_directory(struct backups *backups, const char *directory)
{
    struct manifest manifest;
    struct arena *arena = arena_create(BACKUP_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    status s = manifest_read(backups->files, directory, arena, &manifest);
    manifest_free(&manifest);
    arena_destroy(arena);
    bool is_clear = s.code == STATUS_NOT_FOUND;
    status_free(s);
    if (!is_clear)
        return status_make(STATUS_ALREADY_EXISTS, "a backup that cannot be used is in the way: %s",
                           directory);
    return backup_remove_directory(backups->files, directory);
}

status backup_begin_directory(struct backups *backups, const char *directory)
{
    TRY(files_make_directory(backups->files, directory));
    TRY(clear_directory(backups, directory));
    return files_make_directory(backups->files, directory);
}

status backup_finish_directory(struct backups *backups, const char *directory,
                               const struct manifest *manifest)
{
    TRY(files_sync_directory(backups->files, directory));
    return manifest_write(backups->files, directory, manifest);
}

/* A manifest that may have reached the disk goes first: what failed must not be there later. */
static status remove_attempt(struct backups *backups, const char *name)
{
    struct buffer path = {0};
    status s = backups_path(backups, name, &path);
    if (status_is_ok(s))
        s = backup_remove_directory(backups->files, (const char *)path.data);
    buffer_free(&path);
    return s;
}

status backup_abandon(struct backups *backups, const char *name, status why)
{
    if (why.code != STATUS_ALREADY_EXISTS) { /* else it is not ours */
        status s = remove_attempt(backups, name);
        if (!status_is_ok(s) && s.code != STATUS_NOT_FOUND)
            log_warn(backups->log, "an unfinished backup stays until the next start",
                     LOG_STR("backup", name), LOG_STR("cause", status_message(s)));
        status_free(s);
    }
    backup_give_up(backups, name);
    return why;
}

/* --- copying files --- */

static status check_sum(const char *path, const struct file_sum *expected,
                        const struct file_sum *actual)
{
    if (expected->size == actual->size && expected->crc32c == actual->crc32c)
        return status_ok();
    return status_make(STATUS_DATA_LOSS,
                       "%s is damaged: %llu bytes with checksum %08x, not %llu with %08x", path,
                       (unsigned long long)actual->size, actual->crc32c,
                       (unsigned long long)expected->size, expected->crc32c);
}

static status copy_file(struct backups *backups, const struct backup_file *file, const char *from,
                        const char *to, struct store_pacer *pacer)
{
    struct buffer source = {0}, copy = {0};
    struct file_sum sum;
    status s = status_out_of_memory();
    if (path_join(&source, from, file->name) != NULL && path_join(&copy, to, file->name) != NULL)
        s = files_copy(backups->files, (const char *)source.data, (const char *)copy.data, pacer,
                       &sum);
    if (status_is_ok(s))
        s = check_sum((const char *)source.data, &file->sum, &sum);
    buffer_free(&source);
    buffer_free(&copy);
    return s;
}

status backup_copy_files(struct backups *backups, const struct manifest *manifest, const char *from,
                         const char *to, struct disk_reserve *reserve, struct backup_work *work)
{
    struct pace pace = pace_start(backups, work, true);
    struct store_pacer pacer = {.go_on = pace_go_on, .context = &pace};
    work->bytes_total = manifest_size_bytes(manifest);
    for (size_t i = 0; i < manifest->file_count; i++) {
        TRY(disk_reserve_admit(reserve));
        TRY(copy_file(backups, &manifest->files[i], from, to, &pacer));
    }
    return status_ok();
}

/* --- copying a backup --- */

static status copy(struct backups *backups, const char *from, const char *to, const char *name,
                   struct arena *arena, struct manifest *manifest, struct backup_work *work)
{
    struct backup_info info;
    TRY(backup_describe(backups, name, arena, &info));
    TRY(manifest_read(backups->files, from, arena, manifest));
    TRY(backup_begin_directory(backups, to));
    TRY(backup_copy_files(backups, manifest, from, to, &backups->reserve, work));
    manifest->start_us = info.start_us;
    manifest->end_us = clock_wall_us(cluster_clock(backups->cluster));
    manifest->extra = info.extra;
    return backup_finish_directory(backups, to, manifest);
}

status backup_copy(struct backups *backups, const char *from, const char *name,
                   struct backup_work *work)
{
    struct buffer source = {0}, target = {0};
    struct manifest manifest = {0};
    struct arena *arena = arena_create(BACKUP_MEMORY);
    status s = arena == NULL ? status_out_of_memory() : backups_path(backups, from, &source);
    if (status_is_ok(s))
        s = backups_path(backups, name, &target);
    if (status_is_ok(s))
        s = copy(backups, (const char *)source.data, (const char *)target.data, name, arena,
                 &manifest, work);
    if (status_is_ok(s))
        backups_publish(backups, name, &manifest);
    else
        s = backup_abandon(backups, name, s);
    manifest_free(&manifest);
    arena_destroy(arena);
    buffer_free(&source);
    buffer_free(&target);
    return s;
}

/* --- verifying --- */

struct verification {
    struct files *files;
    const char *root;
    const struct backups_check *check;
    struct arena *arena;
    struct buffer name;
    struct buffer directory;
    struct buffer path;
};

static bool never_stop(void *context, uint64_t bytes)
{
    (void)context, (void)bytes;
    return true;
}

static status verify_files(struct verification *v, const struct manifest *manifest)
{
    const struct store_pacer pacer = {.go_on = never_stop};
    for (size_t i = 0; i < manifest->file_count; i++) {
        const struct backup_file *file = &manifest->files[i];
        struct file_sum sum;
        if (path_join(&v->path, (const char *)v->directory.data, file->name) == NULL)
            return status_out_of_memory();
        TRY(files_sum(v->files, (const char *)v->path.data, &pacer, &sum));
        TRY(check_sum((const char *)v->path.data, &file->sum, &sum));
    }
    return status_ok();
}

static void verify_backup(struct verification *v)
{
    struct manifest manifest;
    status s = manifest_read(v->files, (const char *)v->directory.data, v->arena, &manifest);
    bool has_manifest = s.code != STATUS_NOT_FOUND;
    if (status_is_ok(s))
        s = verify_files(v, &manifest);
    if (has_manifest)
        v->check->visit(v->check->context, (const char *)v->name.data,
                        manifest_size_bytes(&manifest), status_is_ok(s) ? NULL : status_message(s));
    manifest_free(&manifest);
    status_free(s);
}

static status verify_found(void *context, const char *name)
{
    struct verification *v = context;
    buffer_clear(&v->name);
    if (!backup_name_of_directory(name, &v->name))
        return status_ok();
    if (path_join(&v->directory, v->root, name) == NULL)
        return status_out_of_memory();
    arena_reset(v->arena);
    verify_backup(v);
    return status_ok();
}

status backups_verify(struct files *files, const char *directory, const struct backups_check *check)
{
    struct verification v = {
        .files = files, .root = directory, .check = check, .arena = arena_create(BACKUP_MEMORY)};
    status s =
        v.arena == NULL ? status_out_of_memory() : files_list(files, directory, verify_found, &v);
    arena_destroy(v.arena);
    buffer_free(&v.name);
    buffer_free(&v.directory);
    buffer_free(&v.path);
    return s;
}
