/* See entity_walk.h. */
#include "datastore/admin/entity_walk.h"

#include "base/limits.h"

enum { ROWS_A_TURN = 1000, READER_BYTES = 64 << 20 };

#define MOMENT_US (DS_HISTORY_US / 2)

static void choose_moment(struct ds_walk *walk)
{
    struct ds_open_database *open = walk->open;
    int64_t now_us = cluster_version_us(walk->datastore->cluster);
    if (walk->snapshot.table != NULL && now_us - walk->snapshot.at_us < MOMENT_US)
        return;
    walk->snapshot =
        (struct ds_snapshot){.table = open->table,
                             .database = {open->project, open->id},
                             .at_us = ds_sequencer_read_timestamp(&open->sequencer, now_us)};
}

/* `next`: behind the last row; empty if there are no more. */
static status visit_rows(struct ds_walk *walk, struct buffer *next)
{
    struct ds_row_found row;
    bool found = true;
    buffer_clear(next);
    for (size_t i = 0; i < ROWS_A_TURN; i++) {
        TRY(ds_rows_next(walk->reader, &row, &found));
        if (!found)
            break;
        buffer_clear(next);
        buffer_append_bytes(next, row.key);
        buffer_append_byte(next, 0);
        arena_reset(walk->arena);
        TRY(walk->visit(walk, &row));
    }
    if (!found)
        buffer_clear(next);
    return next->failed ? status_out_of_memory() : status_ok();
}

static status run_turn(struct ds_walk *walk, struct arena *arena, struct buffer *next)
{
    const uint8_t to[] = {(uint8_t)(walk->rows + 1)};
    choose_moment(walk);
    TRY(ds_rows_open(&walk->snapshot, DS_FORWARDS, buffer_bytes(next), bytes_make(to, sizeof to),
                     arena, &walk->reader));
    status s = visit_rows(walk, next);
    ds_rows_close(walk->reader);
    walk->reader = NULL;
    return s;
}

static status walk_all(struct ds_walk *walk, struct arena *arena, struct buffer *next)
{
    buffer_append_byte(next, (uint8_t)walk->rows);
    while (next->size > 0) {
        arena_reset(arena);
        TRY(run_turn(walk, arena, next));
        TRY(ds_background_rest(walk->background));
    }
    return next->failed ? status_out_of_memory() : status_ok();
}

status ds_walk_run(struct ds_walk *walk)
{
    struct arena *arena = arena_create(READER_BYTES);
    struct buffer next = {0};
    walk->arena = arena_create(LIMIT_ARENA_DATASTORE_BYTES); /* as the commit that wrote it */
    walk->snapshot.table = NULL;
    status s = arena == NULL || walk->arena == NULL ? status_out_of_memory()
                                                    : walk_all(walk, arena, &next);
    buffer_free(&next);
    arena_destroy(walk->arena);
    arena_destroy(arena);
    return s;
}

status ds_walk_key(const struct ds_database *database, bytes row_key, struct arena *arena,
                   Ds__Key **out)
{
    struct ds_row row;
    bytes kept = arena_copy(arena, row_key); /* what the key points to */
    if (kept.data == NULL)
        return status_out_of_memory();
    if (!ds_row_parse(kept, NULL, &row))
        return ds_damaged("a row key");
    return ds_row_entity(&row, database->project, database->id, arena, out);
}
