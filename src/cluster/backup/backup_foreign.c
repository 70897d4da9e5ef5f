/* See backup_foreign.h. */
#include "cluster/backup/backup_foreign.h"

#include "cluster/backup/backup_private.h"

#include <stdlib.h>

/* What is staged outlives the source: the record is written and read once more. */
static status copy_record(const struct foreign_table *source, struct staged_backup *staged)
{
    struct buffer record = {0};
    bytes copy = {0};
    status s = catalog_encode_table(source->record, &record);
    if (status_is_ok(s)) {
        copy = arena_copy(staged->arena, buffer_bytes(&record));
        s = copy.data == NULL ? status_out_of_memory() : status_ok();
    }
    buffer_free(&record);
    TRY(s);
    return catalog_decode_table(copy, staged->arena, &staged->manifest.table,
                                &staged->manifest.schema);
}

static status copy_split_keys(const struct foreign_table *source, struct staged_backup *staged)
{
    bytes *keys = arena_alloc(staged->arena, source->split_count * sizeof *keys);
    if (keys == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < source->split_count; i++) {
        keys[i] = arena_copy(staged->arena, source->split_keys[i]);
        if (keys[i].data == NULL)
            return status_out_of_memory();
    }
    staged->manifest.split_keys = keys;
    staged->manifest.split_count = source->split_count;
    return status_ok();
}

/* --- what it lacks --- */

static const char FROM_BACKUP[] = "in the backup that it was restored from, ";

/* Words without repetition: what a backup of a backup lacked is said once. */
static const char *words_of(struct arena *arena, const char *what)
{
    struct buffer words = {0};
    bool is_said = strncmp(what, FROM_BACKUP, strlen(FROM_BACKUP)) == 0;
    buffer_append_format(&words, "%s%s", is_said ? "" : FROM_BACKUP, what);
    const char *out = words.failed ? NULL : arena_string(arena, buffer_bytes(&words));
    buffer_free(&words);
    return out;
}

static status make_room(struct staged_backup *staged)
{
    if (staged->damage_count < staged->damage_capacity)
        return status_ok();
    size_t capacity = staged->damage_capacity == 0 ? 16 : 2 * staged->damage_capacity;
    struct damage_record *larger = arena_alloc(staged->arena, capacity * sizeof *larger);
    if (larger == NULL)
        return status_out_of_memory();
    if (staged->damage_count > 0)
        memcpy(larger, staged->damages, staged->damage_count * sizeof *larger);
    staged->damages = larger;
    staged->damage_capacity = capacity;
    return status_ok();
}

static bool is_less(bytes to, bytes other)
{
    return to.size > 0 && (other.size == 0 || bytes_compare(to, other) < 0);
}

/* A block is closed twice if it was damaged before, and still is. */
static bool widen(struct staged_backup *staged, const struct damage_record *record)
{
    for (size_t i = 0; i < staged->damage_count; i++) {
        struct damage_record *known = &staged->damages[i];
        if (known->file != record->file || known->block != record->block)
            continue;
        if (bytes_compare(record->from, known->from) < 0)
            known->from = record->from;
        if (is_less(known->to, record->to))
            known->to = record->to;
        return true;
    }
    return false;
}

static status note_closed(void *context, const struct store_damage *range)
{
    struct staged_backup *staged = context;
    struct damage_record record = {.keyspace_id = staged->keyspace_id,
                                   .file = range->file | DAMAGE_FOREIGN_FILE,
                                   .block = range->is_whole ? 0 : range->offset + 1,
                                   .from = arena_copy(staged->arena, range->from),
                                   .to = arena_copy(staged->arena, range->to),
                                   .what = words_of(staged->arena, range->what),
                                   .found_us = cluster_wall_us(staged->backups->cluster)};
    if ((range->from.size > 0 && record.from.data == NULL) ||
        (range->to.size > 0 && record.to.data == NULL) || record.what == NULL)
        return status_out_of_memory();
    if (widen(staged, &record))
        return status_ok();
    TRY(make_room(staged));
    staged->damages[staged->damage_count++] = record;
    return status_ok();
}

/* A long cursor could pass over damage without a word, so all is looked at before. */
static status find_damage(const struct foreign_table *source, struct staged_backup *staged,
                          struct backup_work *work)
{
    struct pace pace = pace_start(staged->backups, work, false);
    const struct store_pacer pacer = {.go_on = pace_go_on, .context = &pace};
    status s = keyspace_verify(source->keyspace, &pacer);
    if (s.code == STATUS_DATA_LOSS) {
        status_free(s);
        s = keyspace_look_for_damage(source->keyspace);
    }
    return status_is_ok(s) ? keyspace_list_closed(source->keyspace, note_closed, staged) : s;
}

/* --- rows --- */

static int compare_damages(const void *a, const void *b)
{
    const struct damage_record *first = a, *second = b;
    return bytes_compare(first->from, second->from);
}

/* Lists the ranges that lie between the closed ones. */
static struct rows_range *list_open(const struct staged_backup *staged, size_t *count)
{
    struct rows_range *open = arena_alloc(staged->arena, (staged->damage_count + 1) * sizeof *open);
    bytes from = bytes_make(NULL, 0);
    *count = 0;
    for (size_t i = 0; open != NULL && i < staged->damage_count; i++) {
        const struct damage_record *closed = &staged->damages[i];
        if (bytes_compare(from, closed->from) < 0)
            open[(*count)++] = (struct rows_range){.from = from, .to = closed->from};
        if (closed->to.size == 0)
            return open;
        if (bytes_compare(from, closed->to) < 0)
            from = closed->to;
    }
    if (open != NULL)
        open[(*count)++] = (struct rows_range){.from = from};
    return open;
}

static status copy_rows(const struct foreign_table *source, struct staged_backup *staged,
                        struct backup_work *work)
{
    const struct rows_target target = {.backups = staged->backups,
                                       .directory = (const char *)staged->directory.data,
                                       .reserve = &staged->backups->cluster->home->reserve,
                                       .work = work,
                                       .arena = staged->arena};
    size_t count;
    work->bytes_total = keyspace_size(source->keyspace, bytes_of(""), bytes_of(""));
    TRY(find_damage(source, staged, work));
    if (staged->damage_count > 0)
        qsort(staged->damages, staged->damage_count, sizeof *staged->damages, compare_damages);
    const struct rows_range *open = list_open(staged, &count);
    if (open == NULL)
        return status_out_of_memory();
    return backup_write_ranges(&target, source->keyspace, source->drops, open, count,
                               &staged->manifest);
}

static status stage(const struct foreign_table *source, struct staged_backup *staged,
                    struct backup_work *work)
{
    staged->manifest.newest_us = source->newest_us;
    TRY(copy_record(source, staged));
    TRY(copy_split_keys(source, staged));
    TRY(staged_backup_begin(staged));
    TRY(copy_rows(source, staged, work));
    return staged_backup_finish(staged, work);
}

status backup_stage_foreign(struct backups *backups, const struct foreign_table *source,
                            struct backup_work *work, struct staged_backup **out)
{
    status s = staged_backup_create(backups, out);
    if (status_is_ok(s))
        s = stage(source, *out, work);
    if (status_is_ok(s))
        return s;
    staged_backup_destroy(*out);
    *out = NULL;
    return s;
}
