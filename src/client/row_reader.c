/* See row_reader.h. */
#include "client/row_reader.h"

#include "client/row_assembly.h"

#include <stdlib.h>

#define READ_ROWS "/google.bigtable.v2.Bigtable/ReadRows"

enum {
    MESSAGE_LIMIT = 64 << 20,   /* of memory, for one message */
    RESUMES_MOST = 5,           /* in a row without a row between */
    FIRST_WAIT_US = 100 * 1000, /* twice as long each time */
};

struct reader {
    const struct row_reading *reading;
    struct arena *arena; /* of a message, and of a request */
    struct row_assembly assembly;
    struct buffer last_key; /* of the last row that came whole */
    bool has_last_key;
    bool has_progress; /* since the last call began */
};

/* --- rows --- */

static status take_row(struct reader *r)
{
    const struct move_change *row = &r->assembly.row;
    TRY(r->reading->on_row(r->reading->context, row));
    buffer_clear(&r->last_key);
    buffer_append_bytes(&r->last_key, row->row_key);
    if (r->last_key.failed)
        return status_out_of_memory();
    r->has_last_key = r->has_progress = true;
    return status_ok();
}

static status take_message(void *context, bytes message)
{
    struct reader *r = context;
    ProtobufCMessage *decoded;
    arena_reset(r->arena);
    TRY(proto_decode(&bt__read_rows_response__descriptor, message, r->arena, &decoded));
    const Bt__ReadRowsResponse *answer = (const void *)decoded;
    for (size_t i = 0; i < answer->n_chunks; i++) {
        TRY(row_assembly_take(&r->assembly, answer->chunks[i]));
        if (r->assembly.is_whole)
            TRY(take_row(r));
    }
    return status_ok();
}

/* --- calls --- */

static bool is_behind(const struct reader *r, bytes key)
{
    return !r->has_last_key || bytes_compare(key, buffer_bytes(&r->last_key)) > 0;
}

/* Leaves out the keys that have come. (Ranges are not asked for here.) */
static status leave_out_keys(const struct reader *r, struct arena *arena, Bt__RowSet *rows)
{
    ProtobufCBinaryData *left = arena_alloc(arena, rows->n_row_keys * sizeof *left);
    size_t count = 0;
    if (left == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < rows->n_row_keys; i++)
        if (is_behind(r, proto_bytes(rows->row_keys[i])))
            left[count++] = rows->row_keys[i];
    rows->row_keys = left;
    rows->n_row_keys = count;
    return status_ok();
}

/* All rows behind the last. */
static status begin_behind(const struct reader *r, struct arena *arena, Bt__RowSet *rows)
{
    Bt__RowRange *range;
    PROTO_NEW(arena, range, BT__ROW_RANGE__INIT);
    range->start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_OPEN;
    range->start_key_open = proto_data(buffer_bytes(&r->last_key));
    rows->row_ranges = arena_alloc(arena, sizeof(Bt__RowRange *));
    if (rows->row_ranges == NULL)
        return status_out_of_memory();
    rows->row_ranges[0] = range;
    rows->n_row_ranges = 1;
    return status_ok();
}

static status call_once(struct reader *r, bool *is_all)
{
    const struct row_reading *reading = r->reading;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    Bt__RowSet rows = BT__ROW_SET__INIT;
    request.table_name = reading->table;
    request.app_profile_id = reading->app_profile;
    request.filter = (Bt__RowFilter *)(uintptr_t)reading->filter; /* which stays as it is */
    row_assembly_reset(&r->assembly);
    arena_reset(r->arena);
    if (reading->rows != NULL) {
        rows = *reading->rows;
        TRY(leave_out_keys(r, r->arena, &rows));
        request.rows = &rows;
    } else if (r->has_last_key) {
        TRY(begin_behind(r, r->arena, &rows));
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
                                      .context = r};
    return client_session_stream(reading->session, &call, NULL);
}

static status read_all(struct reader *r)
{
    unsigned failures = 0;
    for (;;) {
        bool is_all;
        r->has_progress = false;
        status s = call_once(r, &is_all);
        if (s.code != STATUS_UNAVAILABLE)
            return s;
        failures = r->has_progress ? 1 : failures + 1;
        if (failures > RESUMES_MOST)
            return s;
        status_free(s);
        TRY(client_session_wait(r->reading->session, FIRST_WAIT_US << (failures - 1)));
    }
}

status rows_read(const struct row_reading *reading)
{
    struct reader r = {.reading = reading, .arena = arena_create(MESSAGE_LIMIT)};
    status s = r.arena == NULL ? status_out_of_memory() : row_assembly_init(&r.assembly);
    if (status_is_ok(s))
        s = read_all(&r);
    arena_destroy(r.arena);
    row_assembly_free(&r.assembly);
    buffer_free(&r.last_key);
    return s;
}
