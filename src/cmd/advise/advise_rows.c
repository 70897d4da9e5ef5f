/* See advise_rows.h. Chunks are looked at as they come, and a call is cancelled when enough is
 * known: a value's size stands in its first chunk. */
#include "cmd/advise/advise_rows.h"

#include "google/bigtable/v2/bigtable.pb-c.h"

#include <ctype.h>

#define READ_ROWS      "/google.bigtable.v2.Bigtable/ReadRows"
#define REVERSE_SCANS  "CAE=" /* google.bigtable.v2.FeatureFlags with reverse_scans */
#define UNTIL_A_MINUTE ((int64_t)60 * 1000 * 1000)

enum {
    MESSAGE_LIMIT = 256 << 20, /* of memory, for one message */
    COUNTED_MOST = 200000,     /* cells, of a row that is estimated */
    ESTIMATED_BY = 8,          /* cells */
};

/* --- rows out of chunks --- */

struct reader {
    struct sample_rows *rows;
    const struct sample_reading *reading;
    struct arena *arena; /* of a message */
    struct buffer cells; /* of the row that has begun: struct advice_cell */
    struct advice_row row;
    uint32_t family; /* of the last cell */
    bytes qualifier; /* of the last cell */
    bool is_known;   /* the family is */
    bool is_within_value;
    bool is_full;  /* the call was ended, since it has brought enough */
    bool is_cut;   /* a row was */
    size_t read;   /* rows */
    uint64_t size; /* of them */
};

static void drop_row(struct reader *r)
{
    buffer_clear(&r->cells);
    r->row = (struct advice_row){.place = r->reading->place};
    r->is_within_value = false;
}

static status take_names(struct reader *r, const Bt__ReadRowsResponse__CellChunk *chunk)
{
    struct arena *arena = r->rows->arena;
    if (chunk->row_key.len > 0 && r->row.key.size == 0) {
        r->row.key = arena_copy(arena, proto_bytes(chunk->row_key));
        r->row.size = r->row.key.size;
        if (r->row.key.data == NULL)
            return status_out_of_memory();
    }
    if (chunk->family_name != NULL)
        r->is_known = sample_rows_family(r->rows, bytes_of(chunk->family_name->value), &r->family);
    if (chunk->qualifier != NULL) {
        r->qualifier = arena_copy(arena, proto_bytes(chunk->qualifier->value));
        if (r->qualifier.data == NULL)
            return status_out_of_memory();
    }
    return status_ok();
}

/* A family that is newer than the schema has no place in it: its cells count for the size alone. */
static status take_cell(struct reader *r, const Bt__ReadRowsResponse__CellChunk *chunk)
{
    bool is_first = !r->is_within_value;
    r->is_within_value = chunk->value_size > 0;
    if (!is_first)
        return status_ok();
    const struct advice_cell cell = {
        .family = r->family,
        .qualifier = r->qualifier,
        .timestamp_us = chunk->timestamp_micros,
        .size = chunk->value_size > 0 ? (uint64_t)chunk->value_size : chunk->value.len,
        .hash = chunk->value_size > 0 ? 0 : advice_hash(proto_bytes(chunk->value)),
    };
    r->row.size += cell.size + cell.qualifier.size;
    if (r->is_known)
        buffer_append(&r->cells, &cell, sizeof cell);
    return r->cells.failed ? status_out_of_memory() : status_ok();
}

static status keep_row(struct reader *r)
{
    struct sample_rows *rows = r->rows;
    bytes cells = arena_copy(rows->arena, buffer_bytes(&r->cells));
    if (cells.data == NULL)
        return status_out_of_memory();
    r->row.cells = (struct advice_cell *)(uintptr_t)cells.data;
    r->row.cell_count = cells.size / sizeof *r->row.cells;
    r->row.is_cut |= r->row.cell_count >= SAMPLE_CELLS_MOST;
    TRY(sample_rows_add(rows, &r->row));
    r->read++;
    r->is_cut |= r->row.is_cut;
    r->size += r->row.size;
    drop_row(r);
    return status_ok();
}

/* Ends the call: what it has brought is enough. */
static status stop(struct reader *r)
{
    r->is_full = true;
    return status_make(STATUS_CANCELLED, "enough was read");
}

static status take_chunk(struct reader *r, const Bt__ReadRowsResponse__CellChunk *chunk)
{
    if (chunk->row_status_case == BT__READ_ROWS_RESPONSE__CELL_CHUNK__ROW_STATUS_RESET_ROW) {
        drop_row(r);
        return status_ok();
    }
    TRY(take_names(r, chunk));
    TRY(take_cell(r, chunk));
    bool is_too_large = r->row.size > SAMPLE_ROW_MOST;
    bool is_end =
        chunk->row_status_case == BT__READ_ROWS_RESPONSE__CELL_CHUNK__ROW_STATUS_COMMIT_ROW;
    if (!is_end && !is_too_large)
        return status_ok();
    r->row.is_cut = !is_end;
    TRY(keep_row(r));
    return !is_end || r->size > SAMPLE_READ_MOST ? stop(r) : status_ok();
}

static status take_message(void *context, bytes message)
{
    struct reader *r = context;
    ProtobufCMessage *decoded;
    r->rows->bytes += message.size;
    arena_reset(r->arena);
    TRY(proto_decode(&bt__read_rows_response__descriptor, message, r->arena, &decoded));
    const Bt__ReadRowsResponse *answer = (const void *)decoded;
    for (size_t i = 0; i < answer->n_chunks; i++)
        TRY(take_chunk(r, answer->chunks[i]));
    return status_ok();
}

/* --- requests --- */

/* An empty start is before all keys. */
static void fill_range(bytes start, bytes end, Bt__RowRange *range)
{
    if (start.size > 0) {
        range->start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_CLOSED;
        range->start_key_closed = proto_data(start);
    }
    if (end.size > 0) {
        range->end_key_case = BT__ROW_RANGE__END_KEY_END_KEY_OPEN;
        range->end_key_open = proto_data(end);
    }
}

struct request {
    const struct client_source *client;
    bytes key; /* of the only row; empty: a range */
    bytes start;
    bytes end;
    size_t limit;
    bool is_reversed;
    Bt__RowFilter *filter;
    status (*on_message)(void *context, bytes message);
    void *context;
};

static status call(const struct request *wanted)
{
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    Bt__RowSet set = BT__ROW_SET__INIT;
    Bt__RowRange range = BT__ROW_RANGE__INIT;
    Bt__RowRange *ranges[] = {&range};
    ProtobufCBinaryData key = proto_data(wanted->key);
    fill_range(wanted->start, wanted->end, &range);
    set.row_ranges = ranges;
    set.row_keys = &key;
    set.n_row_ranges = wanted->key.size == 0;
    set.n_row_keys = wanted->key.size > 0;
    request.table_name = wanted->client->table;
    request.app_profile_id = client_session_app_profile(wanted->client->session);
    request.rows = &set;
    request.filter = wanted->filter;
    request.rows_limit = (int64_t)wanted->limit;
    request.reversed = wanted->is_reversed;
    const struct session_call session_call = {.path = READ_ROWS,
                                              .request = &request.base,
                                              .features =
                                                  wanted->is_reversed ? REVERSE_SCANS : NULL,
                                              .table = wanted->client->table,
                                              .timeout_us = UNTIL_A_MINUTE,
                                              .on_message = wanted->on_message,
                                              .context = wanted->context};
    return client_session_stream(wanted->client->session, &session_call, NULL);
}

/* A call that was ended on purpose has ended well. */
static status unless_full(status s, bool is_full)
{
    if (!is_full || s.code != STATUS_CANCELLED)
        return s;
    status_free(s);
    return status_ok();
}

static status read_once(const struct client_source *client, struct sample_rows *rows,
                        const struct sample_reading *reading, bool *is_whole)
{
    Bt__RowFilter filter = BT__ROW_FILTER__INIT;
    struct reader reader = {.rows = rows, .reading = reading, .arena = arena_create(MESSAGE_LIMIT)};
    const struct request request = {.client = client,
                                    .start = reading->start,
                                    .end = reading->end,
                                    .limit = reading->limit,
                                    .is_reversed = reading->is_reversed,
                                    .filter = &filter,
                                    .on_message = take_message,
                                    .context = &reader};
    filter.filter_case = BT__ROW_FILTER__FILTER_CELLS_PER_ROW_LIMIT_FILTER;
    filter.cells_per_row_limit_filter = SAMPLE_CELLS_MOST;
    drop_row(&reader);
    status s = reader.arena == NULL ? status_out_of_memory() : call(&request);
    s = unless_full(s, reader.is_full);
    *is_whole = !reader.is_full && !reader.is_cut && reader.read < reading->limit;
    buffer_free(&reader.cells);
    arena_destroy(reader.arena);
    return s;
}

/* --- rows that are too large to be read --- */

static int hex_value(uint8_t c)
{
    return isdigit(c) ? c - '0' : tolower(c) - 'a' + 10;
}

bytes client_key_of_text(bytes text, struct arena *arena)
{
    size_t size = 0;
    uint8_t *key = arena_alloc(arena, text.size);
    if (key == NULL)
        return bytes_make(NULL, 0);
    for (size_t at = 0; at < text.size; at++) {
        const uint8_t *c = text.data + at;
        bool is_escape = text.size - at >= strlen("\\xNN") && c[0] == '\\' && c[1] == 'x' &&
                         isxdigit(c[2]) && isxdigit(c[3]);
        key[size++] = is_escape ? (uint8_t)(hex_value(c[2]) << 4 | hex_value(c[3])) : *c;
        at += is_escape ? strlen("xNN") : 0;
    }
    return bytes_make(key, size);
}

/* The key in a server's words about a row that is larger than it gives out, which it reads for
 * nothing: `Error while reading the row 'KEY' (TABLE) : …`. False: they are about something else.
 */
static bool find_key(const char *words, bytes *out)
{
    static const char before[] = "reading the row '";
    const char *key = strstr(words, before);
    const char *end = key == NULL ? NULL : strstr(key + strlen(before), "' (");
    if (end == NULL)
        return false;
    key += strlen(before);
    *out = bytes_make(key, (size_t)(end - key));
    return true;
}

status client_read_rows(struct advice_source *source, struct sample_rows *rows,
                        const struct sample_reading *reading, bool *is_whole)
{
    bytes key;
    status s = read_once(client_source_of(source), rows, reading, is_whole);
    if (s.code != STATUS_FAILED_PRECONDITION || !find_key(status_message(s), &key))
        return s;
    *is_whole = false;
    key = client_key_of_text(key, rows->arena);
    status kept = key.data == NULL ? status_out_of_memory()
                                   : sample_rows_add_unreadable(rows, reading->place, key);
    status_free(s);
    return kept;
}

/* --- sizes of rows that were not read whole --- */

/* The cells of one row, counted and weighed. */
struct weighing {
    struct arena *arena;
    uint64_t *read; /* bytes, of all that is sampled */
    size_t cells;
    size_t rows;
    uint64_t names; /* bytes of qualifiers */
    uint64_t size;  /* of values, as their first chunks say */
    size_t most;    /* cells after which it is enough */
    uint64_t last_name;
    bool is_within_value;
    bool is_full;
};

static void weigh_chunk(struct weighing *w, const Bt__ReadRowsResponse__CellChunk *chunk)
{
    bool is_first = !w->is_within_value;
    w->is_within_value = chunk->value_size > 0;
    w->rows += chunk->row_status_case == BT__READ_ROWS_RESPONSE__CELL_CHUNK__ROW_STATUS_COMMIT_ROW;
    if (!is_first)
        return;
    if (chunk->qualifier != NULL)
        w->last_name = chunk->qualifier->value.len;
    w->cells++;
    w->names += w->last_name;
    w->size += chunk->value_size > 0 ? (uint64_t)chunk->value_size : chunk->value.len;
}

static status weigh_message(void *context, bytes message)
{
    struct weighing *w = context;
    ProtobufCMessage *decoded;
    *w->read += message.size;
    arena_reset(w->arena);
    TRY(proto_decode(&bt__read_rows_response__descriptor, message, w->arena, &decoded));
    const Bt__ReadRowsResponse *answer = (const void *)decoded;
    for (size_t i = 0; i < answer->n_chunks && w->cells < w->most; i++)
        weigh_chunk(w, answer->chunks[i]);
    w->is_full = w->cells >= w->most;
    return w->is_full ? status_make(STATUS_CANCELLED, "enough was read") : status_ok();
}

static status weigh(struct sample_rows *rows, const struct request *wanted, struct weighing *w)
{
    struct request request = *wanted;
    w->read = &rows->bytes;
    w->arena = arena_create(MESSAGE_LIMIT);
    if (w->arena == NULL)
        return status_out_of_memory();
    request.on_message = weigh_message;
    request.context = w;
    status s = unless_full(call(&request), w->is_full);
    arena_destroy(w->arena);
    return s;
}

static status count_cells(const struct client_source *client, struct sample_rows *rows, bytes key,
                          struct weighing *w)
{
    Bt__RowFilter strip = BT__ROW_FILTER__INIT;
    strip.filter_case = BT__ROW_FILTER__FILTER_STRIP_VALUE_TRANSFORMER;
    strip.strip_value_transformer = true;
    *w = (struct weighing){.most = COUNTED_MOST};
    return weigh(rows, &(struct request){.client = client, .key = key, .filter = &strip}, w);
}

/* The size of the cell that so many others of the row come before. */
static status weigh_cell(const struct client_source *client, struct sample_rows *rows, bytes key,
                         size_t offset, uint64_t *size)
{
    Bt__RowFilter skip = BT__ROW_FILTER__INIT, one = BT__ROW_FILTER__INIT;
    Bt__RowFilter chain = BT__ROW_FILTER__INIT;
    Bt__RowFilter *both[] = {&skip, &one};
    Bt__RowFilter__Chain links = BT__ROW_FILTER__CHAIN__INIT;
    struct weighing w = {.most = 1};
    skip.filter_case = BT__ROW_FILTER__FILTER_CELLS_PER_ROW_OFFSET_FILTER;
    skip.cells_per_row_offset_filter = (int32_t)offset;
    one.filter_case = BT__ROW_FILTER__FILTER_CELLS_PER_ROW_LIMIT_FILTER;
    one.cells_per_row_limit_filter = 1;
    links.filters = both;
    links.n_filters = 2;
    chain.filter_case = BT__ROW_FILTER__FILTER_CHAIN;
    chain.chain = &links;
    TRY(weigh(rows, &(struct request){.client = client, .key = key, .filter = &chain}, &w));
    *size = w.size;
    return status_ok();
}

status client_estimate_row(struct advice_source *source, struct sample_rows *rows,
                           struct advice_row *row)
{
    const struct client_source *client = client_source_of(source);
    struct weighing all;
    uint64_t sum = 0, size;
    TRY(count_cells(client, rows, row->key, &all));
    for (size_t i = 0; i < ESTIMATED_BY; i++) {
        TRY(weigh_cell(client, rows, row->key, all.cells * i / ESTIMATED_BY, &size));
        sum += size;
    }
    uint64_t estimate = row->key.size + all.names + sum / ESTIMATED_BY * all.cells;
    row->size = estimate > row->size ? estimate : row->size;
    return status_ok();
}

status client_is_one_row(struct advice_source *source, struct sample_rows *rows, bytes start,
                         bytes end, bool *is_one)
{
    Bt__RowFilter one = BT__ROW_FILTER__INIT;
    struct weighing w = {.most = 2};
    one.filter_case = BT__ROW_FILTER__FILTER_CELLS_PER_ROW_LIMIT_FILTER;
    one.cells_per_row_limit_filter = 1;
    const struct request request = {
        .client = client_source_of(source), .start = start, .end = end, .limit = 2, .filter = &one};
    TRY(weigh(rows, &request, &w));
    *is_one = w.cells == 1 && w.rows == 1;
    return status_ok();
}
