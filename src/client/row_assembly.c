#include "client/row_assembly.h"

#include "wire/proto.h"

enum { ROW_LIMIT = 1 << 30 }; /* bytes of memory for one row */

static status bad_chunks(const char *what)
{
    return status_make(STATUS_DATA_LOSS, "the server's chunks make no rows: %s", what);
}

status row_assembly_init(struct row_assembly *a)
{
    *a = (struct row_assembly){.arena = arena_create(ROW_LIMIT)};
    return a->arena == NULL ? status_out_of_memory() : status_ok();
}

void row_assembly_free(struct row_assembly *a)
{
    arena_destroy(a->arena);
    buffer_free(&a->value);
}

void row_assembly_reset(struct row_assembly *a)
{
    arena_reset(a->arena);
    a->row = (struct move_change){0};
    a->family = NULL;
    a->qualifier = bytes_make(NULL, 0);
    a->is_within_cell = a->is_whole = false;
    buffer_clear(&a->value);
}

static status take_column(struct row_assembly *a, const Bt__ReadRowsResponse__CellChunk *chunk)
{
    if (chunk->family_name != NULL) {
        a->family = arena_string(a->arena, bytes_of(chunk->family_name->value));
        if (a->family == NULL)
            return status_out_of_memory();
    }
    if (chunk->qualifier != NULL) {
        a->qualifier = arena_copy(a->arena, proto_bytes(chunk->qualifier->value));
        if (a->qualifier.data == NULL)
            return status_out_of_memory();
    }
    return a->family == NULL ? bad_chunks("a cell has no family") : status_ok();
}

static status take_row_key(struct row_assembly *a, const Bt__ReadRowsResponse__CellChunk *chunk)
{
    if (chunk->row_key.len > 0) {
        if (a->row.count > 0 && !bytes_equal(a->row.row_key, proto_bytes(chunk->row_key)))
            return bad_chunks("a row begins within another");
        a->row.row_key = arena_copy(a->arena, proto_bytes(chunk->row_key));
        if (a->row.row_key.data == NULL)
            return status_out_of_memory();
    }
    return a->row.row_key.size > 0 ? status_ok() : bad_chunks("a cell has no row");
}

static status begin_cell(struct row_assembly *a, const Bt__ReadRowsResponse__CellChunk *chunk)
{
    TRY(take_row_key(a, chunk));
    TRY(take_column(a, chunk));
    a->timestamp_us = chunk->timestamp_micros;
    buffer_clear(&a->value);
    return status_ok();
}

static status end_cell(struct row_assembly *a)
{
    const struct move_cell cell = {
        .family = a->family,
        .qualifier = a->qualifier,
        .timestamp_us = a->timestamp_us,
        .value =
            a->value.failed ? bytes_make(NULL, 0) : arena_copy(a->arena, buffer_bytes(&a->value)),
    };
    return cell.value.data == NULL ? status_out_of_memory()
                                   : move_change_add(&a->row, a->arena, &cell);
}

status row_assembly_take(struct row_assembly *a, const Bt__ReadRowsResponse__CellChunk *chunk)
{
    if (a->is_whole)
        row_assembly_reset(a);
    if (chunk->row_status_case == BT__READ_ROWS_RESPONSE__CELL_CHUNK__ROW_STATUS_RESET_ROW) {
        row_assembly_reset(a);
        return status_ok();
    }
    if (!a->is_within_cell)
        TRY(begin_cell(a, chunk));
    buffer_append_bytes(&a->value, proto_bytes(chunk->value));
    a->is_within_cell = chunk->value_size > 0;
    if (!a->is_within_cell)
        TRY(end_cell(a));
    if (chunk->row_status_case != BT__READ_ROWS_RESPONSE__CELL_CHUNK__ROW_STATUS_COMMIT_ROW)
        return status_ok();
    a->is_whole = !a->is_within_cell;
    return a->is_whole ? status_ok() : bad_chunks("a row ends within a cell");
}
