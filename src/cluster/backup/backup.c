/* Which backups there are: see backup.h. */
#include "cluster/backup/backup_private.h"

#include "base/check.h"
#include "base/metrics.h"

#include <stdio.h>
#include <stdlib.h>

#define BACKUPS_MAGIC 0x6261636bu

/* One allocation, with its strings behind it. */
struct known_backup {
    const char *name;
    const char *source_table;
    bytes extra;
    bool is_ready;
    bool is_leaving; /* is being deleted: cannot be held any more */
    unsigned holds;
    uint64_t size_bytes;
    int64_t start_us;
    int64_t end_us;
};

static struct known_backup *entry_create(const char *name, const char *source_table, bytes extra)
{
    size_t name_size = strlen(name) + 1, source_size = strlen(source_table) + 1;
    struct known_backup *entry = malloc(sizeof *entry + name_size + source_size + extra.size);
    if (entry == NULL)
        return NULL;
    char *strings = (char *)(entry + 1);
    memcpy(strings, name, name_size);
    memcpy(strings + name_size, source_table, source_size);
    if (extra.size > 0)
        memcpy(strings + name_size + source_size, extra.data, extra.size);
    *entry =
        (struct known_backup){.name = strings,
                              .source_table = strings + name_size,
                              .extra = bytes_make(strings + name_size + source_size, extra.size)};
    return entry;
}

static void make_ready(struct known_backup *entry, const struct manifest *manifest)
{
    DCHECK(!entry->is_ready);
    entry->size_bytes = manifest_size_bytes(manifest);
    entry->start_us = manifest->start_us;
    entry->end_us = manifest->end_us;
    entry->is_ready = true;
}

/* --- the array; with `lock` held --- */

/* How many names come before this one. */
static size_t place_of(const struct backups *backups, const char *name)
{
    DCHECK(check_is_held(&backups->lock));
    size_t low = 0, high = backups->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(backups->entries[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct known_backup *find(const struct backups *backups, const char *name)
{
    DCHECK(check_is_held(&backups->lock));
    size_t at = place_of(backups, name);
    bool is_there = at < backups->count && strcmp(backups->entries[at]->name, name) == 0;
    return is_there ? backups->entries[at] : NULL;
}

static bool make_room(struct backups *backups)
{
    if (backups->count < backups->capacity)
        return true;
    size_t capacity = backups->capacity == 0 ? 16 : 2 * backups->capacity;
    struct known_backup **entries = realloc(backups->entries, capacity * sizeof(*entries));
    if (entries == NULL)
        return false;
    backups->entries = entries;
    backups->capacity = capacity;
    return true;
}

static status add(struct backups *backups, struct known_backup *entry)
{
    if (entry == NULL || !make_room(backups))
        return status_out_of_memory();
    size_t at = place_of(backups, entry->name);
    DCHECK(at == backups->count || strcmp(backups->entries[at]->name, entry->name) > 0);
    struct known_backup **place = backups->entries + at;
    memmove(place + 1, place, (backups->count - at) * sizeof(*place));
    *place = entry;
    backups->count++;
    return status_ok();
}

static void drop(struct backups *backups, const char *name)
{
    size_t at = place_of(backups, name);
    struct known_backup **place = backups->entries + at;
    CHECK(at < backups->count && strcmp((*place)->name, name) == 0);
    DCHECK((*place)->holds == 0);
    free(*place);
    memmove(place, place + 1, (backups->count - at - 1) * sizeof(*place));
    backups->count--;
}

static status not_found(const char *name)
{
    return status_make(STATUS_NOT_FOUND, "Not found: %s", name);
}

/* The backup if it is there and whole. With the lock held. */
static status find_ready(const struct backups *backups, const char *name, struct known_backup **out)
{
    DCHECK(check_is_held(&backups->lock));
    *out = find(backups, name);
    if (*out == NULL)
        return not_found(name);
    if (!(*out)->is_ready)
        return status_make(STATUS_FAILED_PRECONDITION, "Backup is being created: %s", name);
    return status_ok();
}

static status check_ready(struct backups *backups, const char *name)
{
    struct known_backup *entry;
    pthread_mutex_lock(&backups->lock);
    status s = find_ready(backups, name, &entry);
    pthread_mutex_unlock(&backups->lock);
    return s;
}

/* --- asking --- */

static status copy_info(const struct known_backup *entry, struct arena *arena,
                        struct backup_info *out)
{
    *out = (struct backup_info){.name = arena_string(arena, bytes_of(entry->name)),
                                .source_table = arena_string(arena, bytes_of(entry->source_table)),
                                .is_ready = entry->is_ready,
                                .size_bytes = entry->size_bytes,
                                .start_us = entry->start_us,
                                .end_us = entry->end_us,
                                .extra = arena_copy(arena, entry->extra)};
    bool is_whole = out->name != NULL && out->source_table != NULL && out->extra.data != NULL;
    return is_whole ? status_ok() : status_out_of_memory();
}

status backup_describe(struct backups *backups, const char *name, struct arena *arena,
                       struct backup_info *out)
{
    pthread_mutex_lock(&backups->lock);
    const struct known_backup *entry = find(backups, name);
    status s = entry == NULL ? not_found(name) : copy_info(entry, arena, out);
    pthread_mutex_unlock(&backups->lock);
    return s;
}

/* With the lock held. */
static status list(const struct backups *backups, bytes prefix, struct arena *arena,
                   struct backup_info **out, size_t *count)
{
    DCHECK(check_is_held(&backups->lock));
    size_t first = place_of(backups, (const char *)prefix.data), end = first;
    while (end < backups->count && bytes_start_with(bytes_of(backups->entries[end]->name), prefix))
        end++;
    *out = arena_alloc(arena, (end - first) * sizeof(**out));
    if (*out == NULL)
        return status_out_of_memory();
    for (*count = 0; *count < end - first; ++*count)
        TRY(copy_info(backups->entries[first + *count], arena, *out + *count));
    return status_ok();
}

status backups_list(struct backups *backups, const char *prefix, struct arena *arena,
                    struct backup_info **out, size_t *count)
{
    *count = 0;
    pthread_mutex_lock(&backups->lock);
    status s = list(backups, bytes_of(prefix), arena, out, count);
    pthread_mutex_unlock(&backups->lock);
    return s;
}

bool backups_have_any(struct backups *backups, const char *prefix)
{
    pthread_mutex_lock(&backups->lock);
    size_t first = place_of(backups, prefix);
    bool has = first < backups->count &&
               strncmp(backups->entries[first]->name, prefix, strlen(prefix)) == 0;
    pthread_mutex_unlock(&backups->lock);
    return has;
}

void backups_measure(struct backups *backups)
{
    int64_t count = 0, size_bytes = 0, newest_us = 0;
    pthread_mutex_lock(&backups->lock);
    for (size_t i = 0; i < backups->count; i++) {
        const struct known_backup *entry = backups->entries[i];
        if (!entry->is_ready)
            continue;
        count++;
        size_bytes += (int64_t)entry->size_bytes;
        newest_us = entry->start_us > newest_us ? entry->start_us : newest_us;
    }
    pthread_mutex_unlock(&backups->lock);
    metrics_set(backups->metrics, METRIC_backups, count);
    metrics_set(backups->metrics, METRIC_backup_bytes, size_bytes);
    metrics_set(backups->metrics, METRIC_backup_newest_timestamp_seconds, newest_us / 1000000);
}

/* --- names that are taken --- */

status backups_path(const struct backups *backups, const char *name, struct buffer *path)
{
    struct buffer directory = {0};
    status s = backup_directory_name(name, &directory);
    if (status_is_ok(s) &&
        path_join(path, backups->directory, (const char *)directory.data) == NULL)
        s = status_out_of_memory();
    buffer_free(&directory);
    return s;
}

status backup_reserve(struct backups *backups, const char *name, const char *source_table,
                      bytes extra)
{
    struct buffer directory = {0};
    TRY(cluster_check_true(backups->cluster));
    status s = backup_directory_name(name, &directory);
    buffer_free(&directory);
    TRY(s);
    struct known_backup *entry = entry_create(name, source_table, extra);
    if (entry == NULL)
        return status_out_of_memory();
    entry->start_us = clock_wall_us(cluster_clock(backups->cluster));
    pthread_mutex_lock(&backups->lock);
    s = find(backups, name) != NULL
            ? status_make(STATUS_ALREADY_EXISTS, "Backup already exists: %s", name)
            : add(backups, entry);
    pthread_mutex_unlock(&backups->lock);
    if (!status_is_ok(s))
        free(entry);
    return s;
}

void backup_give_up(struct backups *backups, const char *name)
{
    pthread_mutex_lock(&backups->lock);
    drop(backups, name);
    pthread_mutex_unlock(&backups->lock);
}

void backups_publish(struct backups *backups, const char *name, const struct manifest *manifest)
{
    pthread_mutex_lock(&backups->lock);
    make_ready(find(backups, name), manifest);
    pthread_mutex_unlock(&backups->lock);
    metrics_add(backups->metrics, METRIC_backups_made_total, 1);
    log_info(backups->log, "backup made", LOG_STR("backup", name),
             LOG_STR("table", manifest->table.name),
             LOG_INT("bytes", manifest_size_bytes(manifest)),
             LOG_INT("milliseconds", (manifest->end_us - manifest->start_us) / 1000));
}

/* --- changing what stands --- */

static status rewrite_manifest(struct backups *backups, const char *directory, bytes extra,
                               struct arena *arena)
{
    struct manifest manifest;
    status s = manifest_read(backups->files, directory, arena, &manifest);
    manifest.extra = extra;
    if (status_is_ok(s))
        s = manifest_write(backups->files, directory, &manifest);
    manifest_free(&manifest);
    return s;
}

/* With `editing` held, so that the entry stays. */
static status set_extra(struct backups *backups, const char *name, bytes extra, struct buffer *path,
                        struct arena *arena)
{
    DCHECK(check_is_held(&backups->editing));
    struct backup_info info;
    TRY(check_ready(backups, name));
    TRY(backups_path(backups, name, path));
    TRY(backup_describe(backups, name, arena, &info));
    struct known_backup *fresh = entry_create(name, info.source_table, extra);
    if (fresh == NULL)
        return status_out_of_memory();
    status s = rewrite_manifest(backups, (const char *)path->data, extra, arena);
    if (!status_is_ok(s)) {
        free(fresh);
        return s;
    }
    fresh->is_ready = true;
    fresh->size_bytes = info.size_bytes;
    fresh->start_us = info.start_us;
    fresh->end_us = info.end_us;
    pthread_mutex_lock(&backups->lock);
    size_t at = place_of(backups, name);
    DCHECK(strcmp(backups->entries[at]->name, name) == 0);
    fresh->holds = backups->entries[at]->holds;
    free(backups->entries[at]);
    backups->entries[at] = fresh;
    pthread_mutex_unlock(&backups->lock);
    return status_ok();
}

status backup_set_extra(struct backups *backups, const char *name, bytes extra)
{
    struct buffer path = {0};
    struct arena *arena = arena_create(BACKUP_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    pthread_mutex_lock(&backups->editing);
    status s = set_extra(backups, name, extra, &path, arena);
    pthread_mutex_unlock(&backups->editing);
    arena_destroy(arena);
    buffer_free(&path);
    return s;
}

/* From here on no reader of the backup begins. With the lock held. */
static status start_leaving(struct backups *backups, const char *name)
{
    struct known_backup *entry;
    TRY(find_ready(backups, name, &entry));
    if (entry->holds > 0)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "Backup is being copied or restored, and cannot be deleted: %s", name);
    DCHECK(!entry->is_leaving);
    entry->is_leaving = true;
    return status_ok();
}

static void stay(struct backups *backups, const char *name)
{
    pthread_mutex_lock(&backups->lock);
    find(backups, name)->is_leaving = false;
    pthread_mutex_unlock(&backups->lock);
}

static status delete (struct backups *backups, const char *name, struct buffer *path)
{
    TRY(backups_path(backups, name, path));
    pthread_mutex_lock(&backups->lock);
    status s = start_leaving(backups, name);
    pthread_mutex_unlock(&backups->lock);
    TRY(s);
    s = backup_remove_directory(backups->files, (const char *)path->data);
    if (!status_is_ok(s)) {
        stay(backups, name);
        return s;
    }
    backup_give_up(backups, name);
    log_info(backups->log, "backup deleted", LOG_STR("backup", name));
    return status_ok();
}

status backup_delete(struct backups *backups, const char *name)
{
    struct buffer path = {0};
    TRY(cluster_check_true(backups->cluster));
    pthread_mutex_lock(&backups->editing);
    status s = delete (backups, name, &path);
    pthread_mutex_unlock(&backups->editing);
    buffer_free(&path);
    return s;
}

/* --- holding what is read --- */

static status hold(const struct backups *backups, const char *name)
{
    DCHECK(check_is_held(&backups->lock));
    struct known_backup *entry;
    TRY(find_ready(backups, name, &entry));
    if (entry->is_leaving)
        return not_found(name);
    entry->holds++;
    return status_ok();
}

status backup_hold(struct backups *backups, const char *name)
{
    pthread_mutex_lock(&backups->lock);
    status s = hold(backups, name);
    pthread_mutex_unlock(&backups->lock);
    return s;
}

void backup_let_go(struct backups *backups, const char *name)
{
    pthread_mutex_lock(&backups->lock);
    struct known_backup *entry = find(backups, name);
    CHECK(entry != NULL && entry->holds > 0);
    entry->holds--;
    pthread_mutex_unlock(&backups->lock);
}

/* --- open: what the directory has --- */

struct opening {
    struct backups *backups;
    struct arena *arena;
    struct buffer path;
    struct buffer name;
};

static void log_left_alone(const struct opening *opening, status why)
{
    log_error(opening->backups->log, "a backup cannot be used",
              LOG_STR("directory", (const char *)opening->path.data),
              LOG_STR("cause", status_message(why)));
    status_free(why);
}

static status add_found(struct opening *opening, const struct manifest *manifest)
{
    struct known_backup *entry =
        entry_create((const char *)opening->name.data, manifest->table.name, manifest->extra);
    pthread_mutex_lock(&opening->backups->lock);
    status s = add(opening->backups, entry);
    pthread_mutex_unlock(&opening->backups->lock);
    if (status_is_ok(s))
        make_ready(entry, manifest);
    else
        free(entry);
    return s;
}

static status open_backup(struct opening *opening)
{
    struct files *files = opening->backups->files;
    const char *directory = (const char *)opening->path.data;
    struct manifest manifest;
    status s = manifest_read(files, directory, opening->arena, &manifest);
    bool is_whole = status_is_ok(s);
    if (is_whole)
        s = add_found(opening, &manifest);
    manifest_free(&manifest);
    if (s.code == STATUS_NOT_FOUND) { /* it has no manifest */
        status_free(s);
        log_info(opening->backups->log, "removing an unfinished backup",
                 LOG_STR("directory", directory));
        s = backup_remove_directory(files, directory);
    }
    if (is_whole || status_is_ok(s))
        return s;
    log_left_alone(opening, s);
    return status_ok();
}

static status open_found(void *context, const char *name)
{
    struct opening *opening = context;
    buffer_clear(&opening->name);
    if (!backup_name_of_directory(name, &opening->name))
        return status_ok(); /* not ours */
    arena_reset(opening->arena);
    if (path_join(&opening->path, opening->backups->directory, name) == NULL)
        return status_out_of_memory();
    return open_backup(opening);
}

static status clear_staged(void *context, const char *name)
{
    struct opening *opening = context;
    if (path_join(&opening->path, opening->backups->staging, name) == NULL)
        return status_out_of_memory();
    return backup_remove_directory(opening->backups->files, (const char *)opening->path.data);
}

static status open_all(struct opening *opening)
{
    struct backups *backups = opening->backups;
    TRY(files_make_directory(backups->files, backups->directory));
    TRY(files_lock_directory(backups->files, backups->directory, &backups->files_lock));
    TRY(files_make_directory(backups->files, backups->staging));
    TRY(files_list(backups->files, backups->staging, clear_staged, opening));
    return files_list(backups->files, backups->directory, open_found, opening);
}

static struct backups *new_backups(const struct backups_options *options)
{
    struct backups *backups = calloc(1, sizeof *backups);
    struct buffer staging = {0};
    const char *data = options->cluster->options.data_directory;
    if (backups == NULL || path_join(&staging, data, "restore") == NULL) {
        free(backups);
        return NULL;
    }
    *backups = (struct backups){.magic = BACKUPS_MAGIC,
                                .cluster = options->cluster,
                                .files = files_of_store(options->cluster->home->store),
                                .log = options->log,
                                .metrics = options->metrics,
                                .bytes_per_second = options->bytes_per_second,
                                .directory = strdup(options->directory),
                                .staging = (char *)staging.data};
    backups->reserve =
        (struct disk_reserve){.directory = backups->directory,
                              .reserve_bytes = options->cluster->options.disk_reserve_bytes,
                              .clock = options->cluster->options.clock};
    pthread_mutex_init(&backups->editing, NULL);
    pthread_mutex_init(&backups->lock, NULL);
    return backups;
}

status backups_open(const struct backups_options *options, struct backups **out)
{
    *out = NULL;
    struct opening opening = {.backups = new_backups(options),
                              .arena = arena_create(BACKUP_MEMORY)};
    bool has_memory =
        opening.backups != NULL && opening.backups->directory != NULL && opening.arena != NULL;
    status s = has_memory ? open_all(&opening) : status_out_of_memory();
    arena_destroy(opening.arena);
    buffer_free(&opening.path);
    buffer_free(&opening.name);
    if (status_is_ok(s))
        *out = opening.backups;
    else
        backups_close(opening.backups);
    return s;
}

void backups_close(struct backups *backups)
{
    if (backups == NULL)
        return;
    CHECK_MAGIC(backups, BACKUPS_MAGIC);
    for (size_t i = 0; i < backups->count; i++)
        free(backups->entries[i]);
    free(backups->entries);
    files_unlock_directory(backups->files, backups->files_lock);
    pthread_mutex_destroy(&backups->editing);
    pthread_mutex_destroy(&backups->lock);
    free(backups->directory);
    free(backups->staging);
    backups->magic = 0;
    free(backups);
}
