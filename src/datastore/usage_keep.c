/* See usage_keep.h. */
#include "datastore/usage_keep.h"

#include "cluster/usage_store.h"
#include "datastore/database.h"
#include "datastore/usage.h"

static status restore(struct ds_open_database *open, struct arena *arena)
{
    struct usage_record record;
    TRY(usage_get(open->table, USAGE_DATASTORE, arena, &record));
    ds_index_marks_decode(ds_usage_marks(open->usage), record.value);
    return status_ok();
}

void ds_usage_restore(struct ds_open_database *open)
{
    struct arena *arena = open->usage == NULL ? NULL : arena_create(USAGE_MOST_BYTES);
    if (arena == NULL)
        return;
    status_ignore(restore(open, arena)); /* then it is known from now on */
    arena_destroy(arena);
}

/* Marks that cannot be kept now are kept after the next change. */
void ds_usage_keep(struct ds_open_database *open)
{
    struct buffer record = {0};
    if (open->usage == NULL || !ds_index_marks_take_change(ds_usage_marks(open->usage)))
        return;
    ds_index_marks_encode(ds_usage_marks(open->usage), &record);
    if (!record.failed)
        status_ignore(usage_put(open->table, USAGE_DATASTORE, buffer_bytes(&record)));
    buffer_free(&record);
}
