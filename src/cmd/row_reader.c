/* See row_reader.h. */
#include "cmd/row_reader.h"

#include <stdlib.h>

#define READ_ROWS "/google.bigtable.v2.Bigtable/ReadRows"

enum {
    ROW_LIMIT = 1 << 30,        /* bytes of memory for one row */
    MESSAGE_LIMIT = 64 << 20,   /* and for one message, decoded */
    RESUMES_MOST = 5,           /* in a row without a row between */
    FIRST_WAIT_US = 100 * 1000, /* twice as long each time */
};

/* A row as its chunks come. */
struct assembly {
    const struct row_reading *reading;
    struct arena *arena;         /* of the row */
    struct arena *message_arena; /* of the message */
    struct move_change row;
    const char *family; /* of the cell that is read, or the one before */
    bytes qualifier;
    int64_t timestamp_us;
    struct buffer value; /* of a cell that comes in parts */
    bool is_within_cell;
    struct buffer last_key; /* of the last row that came whole */
    bool has_last_key;
    bool has_progress; /* since the last call began */
};

static status bad_chunks(const char *what)
{
    return status_make(STATUS_DATA_LOSS, "the server's chunks make no rows: %s", what);
}

/* --- one chunk --- */

static void forget_row(struct assembly *a)
{
    arena_reset(a->arena);
    a->row = (struct move_change){0};
    a->family = NULL;
    a->qualifier = bytes_make(NULL, 0);
    a->is_within_cell = false;
    buffer_clear(&a->value);
}

static status take_column(struct assembly *a, const Bt__ReadRowsResponse__CellChunk *chunk)
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

static status take_row_key(struct assembly *a, const Bt__ReadRowsResponse__CellChunk *chunk)
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

static status begin_cell(struct assembly *a, const Bt__ReadRowsResponse__CellChunk *chunk)
{
    TRY(take_row_key(a, chunk));
    TRY(take_column(a, chunk));
    a->timestamp_us = chunk->timestamp_micros;
    buffer_clear(&a->value);
    return status_ok();
}

static status end_cell(struct assembly *a)
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

static status end_row(struct assembly *a)
{
    TRY(a->reading->on_row(a->reading->context, &a->row));
    buffer_clear(&a->last_key);
    buffer_append_bytes(&a->last_key, a->row.row_key);
    if (a->last_key.failed)
        return status_out_of_memory();
    a->has_last_key = a->has_progress = true;
    forget_row(a);
    return status_ok();
}

static status take_chunk(struct assembly *a, const Bt__ReadRowsResponse__CellChunk *chunk)
{
    if (chunk->row_status_case == BT__READ_ROWS_RESPONSE__CELL_CHUNK__ROW_STATUS_RESET_ROW) {
        forget_row(a);
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
    return a->is_within_cell ? bad_chunks("a row ends within a cell") : end_row(a);
}

static status take_message(void *context, bytes message)
{
    struct assembly *a = context;
    ProtobufCMessage *decoded;
    arena_reset(a->message_arena);
    TRY(proto_decode(&bt__read_rows_response__descriptor, message, a->message_arena, &decoded));
    const Bt__ReadRowsResponse *answer = (const void *)decoded;
    for (size_t i = 0; i < answer->n_chunks; i++)
        TRY(take_chunk(a, answer->chunks[i]));
    return status_ok();
}

/* --- calls --- */

static bool is_behind(const struct assembly *a, bytes key)
{
    return !a->has_last_key || bytes_compare(key, buffer_bytes(&a->last_key)) > 0;
}

/* What is left of the keys. (Ranges are not asked for here.) */
static status leave_out_keys(const struct assembly *a, struct arena *arena, Bt__RowSet *rows)
{
    ProtobufCBinaryData *left = arena_alloc(arena, rows->n_row_keys * sizeof *left);
    size_t count = 0;
    if (left == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < rows->n_row_keys; i++)
        if (is_behind(a, proto_bytes(rows->row_keys[i])))
            left[count++] = rows->row_keys[i];
    rows->row_keys = left;
    rows->n_row_keys = count;
    return status_ok();
}

/* All rows behind the last. */
static status begin_behind(const struct assembly *a, struct arena *arena, Bt__RowSet *rows)
{
    Bt__RowRange *range;
    PROTO_NEW(arena, range, BT__ROW_RANGE__INIT);
    range->start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_OPEN;
    range->start_key_open = proto_data(buffer_bytes(&a->last_key));
    rows->row_ranges = arena_alloc(arena, sizeof(Bt__RowRange *));
    if (rows->row_ranges == NULL)
        return status_out_of_memory();
    rows->row_ranges[0] = range;
    rows->n_row_ranges = 1;
    return status_ok();
}

static status call_once(struct assembly *a, bool *is_all)
{
    const struct row_reading *reading = a->reading;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    Bt__RowFilter filter = BT__ROW_FILTER__INIT;
    Bt__RowSet rows = BT__ROW_SET__INIT;
    request.table_name = reading->table;
    request.app_profile_id = reading->app_profile;
    filter.filter_case = BT__ROW_FILTER__FILTER_CELLS_PER_COLUMN_LIMIT_FILTER;
    filter.cells_per_column_limit_filter = 1;
    request.filter = reading->newest_only ? &filter : NULL;
    forget_row(a);
    arena_reset(a->message_arena);
    if (reading->rows != NULL) {
        rows = *reading->rows;
        TRY(leave_out_keys(a, a->message_arena, &rows));
        request.rows = &rows;
    } else if (a->has_last_key) {
        TRY(begin_behind(a, a->message_arena, &rows));
        request.rows = &rows;
    }
    *is_all = reading->rows != NULL && rows.n_row_keys == 0;
    if (*is_all)
        return status_ok();
    const struct session_call call = {.path = READ_ROWS,
                                      .request = &request.base,
                                      .table = reading->table,
                                      .timeout_us = INT64_MAX,
                                      .on_message = take_message,
                                      .context = a};
    return client_session_stream(reading->session, &call, NULL);
}

static status read_all(struct assembly *a)
{
    unsigned failures = 0;
    for (;;) {
        bool is_all;
        a->has_progress = false;
        status s = call_once(a, &is_all);
        if (s.code != STATUS_UNAVAILABLE)
            return s;
        failures = a->has_progress ? 1 : failures + 1;
        if (failures > RESUMES_MOST)
            return s;
        status_free(s);
        TRY(client_session_wait(a->reading->session, FIRST_WAIT_US << (failures - 1)));
    }
}

status rows_read(const struct row_reading *reading)
{
    struct assembly a = {.reading = reading,
                         .arena = arena_create(ROW_LIMIT),
                         .message_arena = arena_create(MESSAGE_LIMIT)};
    bool has_memory = a.arena != NULL && a.message_arena != NULL;
    status s = has_memory ? read_all(&a) : status_out_of_memory();
    arena_destroy(a.arena);
    arena_destroy(a.message_arena);
    buffer_free(&a.value);
    buffer_free(&a.last_key);
    return s;
}
