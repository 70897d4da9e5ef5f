/* View rows as changes of the view's table: see piece.h. */
#include "views/piece.h"

#include "cluster/rows.h"

void view_emitter_init(struct view_emitter *emitter, struct view_piece *piece,
                       struct arena *scratch)
{
    const struct view_program *program = piece->upkeep->program;
    *emitter = (struct view_emitter){.piece = piece, .scratch = scratch};
    emitter->is_whole = !view_program_has_timestamp(program) &&
                        view_program_most_row_bytes(program) < rows_big_value(piece->upkeep->table);
}

status view_emit_begin(struct view_emitter *emitter, const struct view_place *place)
{
    if (emitter->change != NULL && bytes_equal(emitter->key, place->key))
        return status_ok();
    bytes key = arena_copy(emitter->piece->arena, place->key);
    view_emit_end(emitter);
    emitter->key = key;
    emitter->change = row_change_create(emitter->piece->arena);
    return key.data == NULL || emitter->change == NULL ? status_out_of_memory() : status_ok();
}

void view_emit_end(struct view_emitter *emitter)
{
    if (emitter->change != NULL && emitter->is_whole)
        view_commit_put_row(emitter->piece->commit, emitter->key, emitter->change);
    else if (emitter->change != NULL)
        view_commit_row(emitter->piece->commit, emitter->key, emitter->change);
    emitter->change = NULL;
}

/* --- cells --- */

/* The table has all families of the program. */
static status family_of(const struct view_emitter *emitter, const char *name, uint32_t *id)
{
    const struct schema *schema = table_schema(emitter->piece->upkeep->table);
    const struct family *family = schema_family_named(schema, bytes_of(name));
    if (family == NULL)
        return status_make(STATUS_INTERNAL, "The view's table has no family %s.", name);
    *id = family->id;
    return status_ok();
}

/* Cells of these times: of a version, or of all. */
static status remove_column(struct view_emitter *emitter, const struct view_place *place,
                            const char *family, bytes qualifier)
{
    uint32_t id;
    int64_t from_us = place->has_timestamp ? place->timestamp_us : 0;
    int64_t to_us = place->has_timestamp ? from_us + 1 : INT64_MAX;
    TRY(family_of(emitter, family, &id));
    row_change_delete_column(emitter->change, id, qualifier, from_us, to_us);
    return status_ok();
}

/* What is large must stay until the commit is written. */
static status set_cell(struct view_emitter *emitter, const struct view_cell *cell,
                       int64_t timestamp_us)
{
    uint32_t id;
    bytes value = cell->value;
    TRY(family_of(emitter, cell->family, &id));
    if (value.size >= rows_big_value(emitter->piece->upkeep->table)) {
        value = arena_copy(emitter->piece->arena, value);
        if (value.data == NULL)
            return status_out_of_memory();
    }
    row_change_set(emitter->change, id, cell->qualifier, timestamp_us, value);
    return status_ok();
}

status view_emit_row(struct view_emitter *emitter, const struct view_row *row, bool replaces)
{
    if (replaces && !row->place.has_timestamp && !emitter->is_whole)
        row_change_delete_row(emitter->change);
    for (size_t i = 0; i < row->absent_count && !emitter->is_whole; i++)
        TRY(remove_column(emitter, &row->place, row->absent[i].family, row->absent[i].qualifier));
    for (size_t i = 0; i < row->cell_count; i++)
        TRY(set_cell(emitter, &row->cells[i], row->timestamp_us));
    return status_ok();
}

/* --- rows that go --- */

static status remove_columns(struct view_emitter *emitter, const struct view_place *place)
{
    size_t count;
    const struct view_column *columns =
        view_program_columns(emitter->piece->upkeep->program, &count);
    TRY(remove_column(emitter, place, "default", bytes_make(NULL, 0)));
    for (size_t i = 0; i < count; i++)
        if (columns[i].kind == VIEW_COLUMN_CELL || columns[i].is_cell_too)
            TRY(remove_column(emitter, place, columns[i].family, columns[i].qualifier));
    return status_ok();
}

status view_emit_removal(struct view_emitter *emitter, const struct view_place *place,
                         const struct view_row *was)
{
    if (emitter->is_whole)
        return status_ok();
    if (!place->has_timestamp) {
        row_change_delete_row(emitter->change);
        return status_ok();
    }
    if (was == NULL)
        return remove_columns(emitter, place);
    for (size_t i = 0; i < was->cell_count; i++)
        TRY(remove_column(emitter, place, was->cells[i].family, was->cells[i].qualifier));
    return status_ok();
}
