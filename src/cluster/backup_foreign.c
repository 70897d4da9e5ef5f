/* See backup_foreign.h. */
#include "cluster/backup_foreign.h"

#include "cluster/backup_private.h"

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

/* A long cursor could pass over damage without a word, so all is looked at before. */
static status copy_rows(const struct foreign_table *source, struct staged_backup *staged,
                        struct backup_work *work)
{
    const struct store_cursor_options options = {.reach = STORE_ANYWHERE, .is_long = true};
    const struct rows_target target = {.backups = staged->backups,
                                       .directory = (const char *)staged->directory.data,
                                       .reserve = &staged->backups->cluster->reserve,
                                       .work = work,
                                       .arena = staged->arena};
    struct pace pace = pace_start(staged->backups, work, false);
    const struct store_pacer pacer = {.go_on = pace_go_on, .context = &pace};
    struct store_cursor *cursor;
    work->bytes_total = keyspace_size(source->keyspace, bytes_of(""), bytes_of(""));
    TRY(keyspace_verify(source->keyspace, &pacer));
    TRY(store_cursor_create(source->keyspace, &options, &cursor));
    status s = backup_write_rows(&target, cursor, &staged->manifest);
    store_cursor_destroy(cursor);
    return s;
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
