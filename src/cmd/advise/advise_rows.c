/* See advise_rows.h. Chunks are looked at as they come, and a call is cancelled when enough is
 * known: a value's size stands in its first chunk.
 *
 * Bytes that the server sends are counted, whether or not they are looked at, and bounded
 * (sample_rows.most): it may be ahead by CLIENT_SOURCE_WINDOW bytes, and a message of more bytes
 * than are wanted is refused when its size is known, before it comes. A row that is one such
 * message is as large as it says: nothing of it is read except the names of its cells. The largest
 * of its values is found by asking for halves of it, which are refused as well. */
#include "cmd/advise/advise_rows.h"

#include "cmd/advise/advise_sizes.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

#include <ctype.h>

#define READ_ROWS      "/google.bigtable.v2.Bigtable/ReadRows"
#define REVERSE_SCANS  "CAE=" /* google.bigtable.v2.FeatureFlags with reverse_scans */
#define UNTIL_A_MINUTE ((int64_t)60 * 1000 * 1000)

enum {
    MESSAGE_LIMIT = 256 << 20, /* of memory, for one message */
    WHOLE_LEAST = 4 << 20,     /* of a message that must be a whole row: gRPC's usual bound */
    WEIGHED_MOST = 64 << 10,   /* of a message that is asked for its size */
    COUNTED_MOST = 200000,     /* cells, of a row that is estimated */
    COUNTED_BYTES = 1 << 20,   /* that these may take */
    COUNTED_CELL = 16,         /* bytes of a cell without value and name on the wire, about */
    ESTIMATED_BY = 8,          /* cells */
    SEARCHED_ROWS = 4,         /* of a table, whose largest values are looked for */
};

/* --- rows out of chunks --- */

struct reader {
    const struct client_source *client;
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

/* All that has come over the connection since the source began is what was read. */
static void count_received(const struct client_source *client, struct sample_rows *rows)
{
    rows->bytes = client_session_received(client->session) - client->received_before;
}

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

static uint64_t left_of(const struct sample_rows *rows)
{
    return rows->bytes < rows->most ? rows->most - rows->bytes : 0;
}

static status take_message(void *context, bytes message)
{
    struct reader *r = context;
    ProtobufCMessage *decoded;
    count_received(r->client, r->rows);
    arena_reset(r->arena);
    TRY(proto_decode(&bt__read_rows_response__descriptor, message, r->arena, &decoded));
    const Bt__ReadRowsResponse *answer = (const void *)decoded;
    for (size_t i = 0; i < answer->n_chunks; i++)
        TRY(take_chunk(r, answer->chunks[i]));
    r->rows->is_full |= left_of(r->rows) == 0;
    return r->rows->is_full ? stop(r) : status_ok();
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
    struct sample_rows *rows; /* whose bytes are counted, and bound it */
    uint64_t message_limit;   /* bytes of a message that is read, if there are so many left */
    uint64_t *refused;        /* is set to the size of one that is not */
    bytes key;                /* of the only row; empty: a range */
    bytes start;
    bytes end;
    size_t limit;
    bool is_reversed;
    Bt__RowFilter *filter;
    status (*on_message)(void *context, bytes message);
    void *context;
};

/* 0 would be none. */
static uint64_t message_limit(const struct request *wanted)
{
    uint64_t left = left_of(wanted->rows);
    uint64_t limit = wanted->message_limit < left ? wanted->message_limit : left;
    return limit > 0 ? limit : 1;
}

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
                                              .message_limit = message_limit(wanted),
                                              .refused = wanted->refused,
                                              .on_message = wanted->on_message,
                                              .context = wanted->context};
    status s = client_session_stream(wanted->client->session, &session_call, NULL);
    count_received(wanted->client, wanted->rows);
    return s;
}

/* A call that was ended on purpose has ended well. */
static status unless_ended(status s, bool is_full, uint64_t refused)
{
    bool was_ended = (is_full && s.code == STATUS_CANCELLED) ||
                     (refused > 0 && s.code == STATUS_RESOURCE_EXHAUSTED);
    if (!was_ended)
        return s;
    status_free(s);
    return status_ok();
}

/* --- filters --- */

/* A chain of filters: so many cells of each row from one on, with their values or without. */
struct chain {
    Bt__RowFilter parts[3];
    Bt__RowFilter *links[3];
    Bt__RowFilter__Chain chain;
    Bt__RowFilter whole;
};

static Bt__RowFilter *add_part(struct chain *chain, Bt__RowFilter__FilterCase kind)
{
    Bt__RowFilter *part = &chain->parts[chain->chain.n_filters];
    *part = (Bt__RowFilter)BT__ROW_FILTER__INIT;
    part->filter_case = kind;
    chain->links[chain->chain.n_filters++] = part;
    return part;
}

static Bt__RowFilter *cells_from(struct chain *chain, size_t first, size_t count, bool has_values)
{
    chain->chain = (Bt__RowFilter__Chain)BT__ROW_FILTER__CHAIN__INIT;
    chain->chain.filters = chain->links;
    if (first > 0)
        add_part(chain, BT__ROW_FILTER__FILTER_CELLS_PER_ROW_OFFSET_FILTER)
            ->cells_per_row_offset_filter = (int32_t)first;
    add_part(chain, BT__ROW_FILTER__FILTER_CELLS_PER_ROW_LIMIT_FILTER)->cells_per_row_limit_filter =
        (int32_t)count;
    if (!has_values)
        add_part(chain, BT__ROW_FILTER__FILTER_STRIP_VALUE_TRANSFORMER)->strip_value_transformer =
            true;
    if (chain->chain.n_filters == 1)
        return &chain->parts[0];
    chain->whole = (Bt__RowFilter)BT__ROW_FILTER__INIT;
    chain->whole.filter_case = BT__ROW_FILTER__FILTER_CHAIN;
    chain->whole.chain = &chain->chain;
    return &chain->whole;
}

/* --- a reading --- */

/* A part of a reading's range, and how its reading ended. */
struct part {
    const struct sample_reading *reading;
    bytes key; /* of the only row; empty: all of the range */
    bool has_values;
    bool is_whole;
    uint64_t refused; /* bytes of the message at which it ended; 0: none */
};

static status read_part(const struct client_source *client, struct sample_rows *rows,
                        struct part *part)
{
    struct chain chain;
    struct reader reader = {.client = client,
                            .rows = rows,
                            .reading = part->reading,
                            .arena = arena_create(MESSAGE_LIMIT)};
    const struct request request = {.client = client,
                                    .rows = rows,
                                    .message_limit = SAMPLE_ROW_MOST,
                                    .refused = &part->refused,
                                    .key = part->key,
                                    .start = part->reading->start,
                                    .end = part->reading->end,
                                    .limit = part->reading->limit,
                                    .is_reversed = part->reading->is_reversed,
                                    .filter =
                                        cells_from(&chain, 0, SAMPLE_CELLS_MOST, part->has_values),
                                    .on_message = take_message,
                                    .context = &reader};
    drop_row(&reader);
    part->refused = 0;
    status s = reader.arena == NULL ? status_out_of_memory() : call(&request);
    s = unless_ended(s, reader.is_full, part->refused);
    part->is_whole = !reader.is_full && part->refused == 0 && !reader.is_cut &&
                     reader.read < part->reading->limit;
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

/* --- sizes of what is not read --- */

/* The cells of one row, counted and weighed. */
struct weighing {
    const struct client_source *client;
    struct sample_rows *sample;
    struct arena *arena;
    size_t cells;
    size_t rows;
    uint64_t names; /* bytes of qualifiers */
    uint64_t size;  /* of values, as their first chunks say */
    size_t most;    /* cells after which it is enough */
    uint64_t last_name;
    bool is_within_value;
    bool is_full;
    uint64_t until;   /* bytes of the sample, at which it is enough */
    uint64_t refused; /* bytes of a message; 0: none was */
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
    count_received(w->client, w->sample);
    arena_reset(w->arena);
    TRY(proto_decode(&bt__read_rows_response__descriptor, message, w->arena, &decoded));
    const Bt__ReadRowsResponse *answer = (const void *)decoded;
    for (size_t i = 0; i < answer->n_chunks && w->cells < w->most; i++)
        weigh_chunk(w, answer->chunks[i]);
    w->is_full = w->cells >= w->most || w->sample->bytes >= w->until;
    return w->is_full ? status_make(STATUS_CANCELLED, "enough was read") : status_ok();
}

/* Reads what `w` asks for by `most`; nothing where nothing more may be read. */
static status weigh(const struct request *wanted, struct weighing *w)
{
    struct request request = *wanted;
    w->client = request.client;
    w->sample = request.rows;
    if (left_of(request.rows) == 0)
        return status_ok();
    w->until = request.rows->bytes + request.message_limit + CLIENT_SOURCE_WINDOW;
    w->arena = arena_create(MESSAGE_LIMIT);
    if (w->arena == NULL)
        return status_out_of_memory();
    request.refused = &w->refused;
    request.on_message = weigh_message;
    request.context = w;
    status s = unless_ended(call(&request), w->is_full, w->refused);
    arena_destroy(w->arena);
    return s;
}

/* The size of the values of so many cells of a row, or `*refused` of the message that has them. */
static status weigh_cells(const struct client_source *client, struct sample_rows *rows, bytes key,
                          size_t first, size_t count, uint64_t *size, uint64_t *refused)
{
    struct chain chain;
    struct weighing w = {.most = count};
    TRY(weigh(&(struct request){.client = client,
                                .rows = rows,
                                .message_limit = WEIGHED_MOST,
                                .key = key,
                                .filter = cells_from(&chain, first, count, true)},
              &w));
    *size = w.size;
    *refused = w.refused;
    return status_ok();
}

/* --- rows that are one large message --- */

static void share_out(struct advice_row *row, size_t from, size_t to, uint64_t size)
{
    for (size_t i = from; i < to; i++) {
        row->cells[i].size = size / (to - from);
        row->cells[i].hash = 0;
    }
}

/* Weighs the cells from `from` up to `to`. */
static status weigh_known(const struct client_source *client, struct sample_rows *rows,
                          const struct advice_row *row, size_t from, size_t to, uint64_t *size)
{
    uint64_t refused;
    TRY(weigh_cells(client, rows, row->key, from, to - from, size, &refused));
    return refused == 0 ? status_ok()
                        : advise_values_of_message(rows, row, from, to, refused, size);
}

/* Of two halves of the cells the larger one is halved again, down to one cell. */
static status find_largest(const struct client_source *client, struct sample_rows *rows,
                           struct advice_row *row, uint64_t size)
{
    size_t from = 0, to = row->cell_count;
    while (to - from > 1 && left_of(rows) > 0) {
        size_t middle = from + (to - from) / 2;
        uint64_t before;
        TRY(weigh_known(client, rows, row, from, middle, &before));
        before = before < size ? before : size;
        share_out(row, from, middle, before);
        share_out(row, middle, to, size - before);
        bool is_before = before > size - before;
        size = is_before ? before : size - before;
        from = is_before ? from : middle;
        to = is_before ? middle : to;
    }
    if (to - from > 1 || row->cell_count == 1 || left_of(rows) == 0)
        return status_ok();
    TRY(weigh_known(client, rows, row, from, to, &size));
    share_out(row, from, to, size);
    return status_ok();
}

static uint64_t names_of(const struct advice_row *row)
{
    uint64_t names = 0;
    for (size_t i = 0; i < row->cell_count; i++)
        names += row->cells[i].qualifier.size;
    return names;
}

/* A message that is larger than others send is the whole row. */
static status keep_large_row(struct client_source *client, struct sample_rows *rows,
                             const struct advice_row *names, uint64_t message)
{
    struct advice_row row = *names;
    uint64_t values = message;
    row.is_cut |= message < WHOLE_LEAST;
    if (row.cell_count > 0)
        TRY(advise_values_of_message(rows, &row, 0, row.cell_count, message, &values));
    row.size = row.key.size + names_of(&row) + values;
    share_out(&row, 0, row.cell_count, values);
    if (!row.is_cut && row.cell_count > 0 && client->searched++ < SEARCHED_ROWS)
        TRY(find_largest(client, rows, &row, values));
    return sample_rows_add(rows, &row);
}

/* A row whose message was refused, of which the names of cells have been read. It may have been one
 * of several in the message. */
static status read_by_itself(struct client_source *client, struct sample_rows *rows,
                             const struct sample_reading *reading, const struct advice_row *names)
{
    struct sample_reading one = *reading;
    struct part part = {.reading = &one, .key = names->key, .has_values = true};
    one.limit = 1;
    one.is_reversed = false;
    if (left_of(rows) == 0)
        return status_ok();
    TRY(read_part(client, rows, &part));
    if (part.refused > SAMPLE_ROW_MOST)
        return keep_large_row(client, rows, names, part.refused);
    rows->is_full |= part.refused > 0;
    return status_ok();
}

/* The rest of a reading that ended before a large message; the last row before that is known. */
static status rest_of(const struct sample_reading *reading, const struct sample_rows *rows,
                      size_t before, struct sample_reading *out)
{
    *out = *reading;
    out->limit = 1;
    if (rows->count == before)
        return status_ok();
    bytes last = rows->rows[rows->count - 1].key;
    if (reading->is_reversed) {
        out->end = last;
        return status_ok();
    }
    uint8_t *next = arena_alloc(rows->arena, last.size + 1);
    if (next == NULL)
        return status_out_of_memory();
    memcpy(next, last.data, last.size);
    next[last.size] = 0;
    out->start = bytes_make(next, last.size + 1);
    return status_ok();
}

static status read_large_row(struct client_source *client, struct sample_rows *rows,
                             const struct sample_reading *reading, size_t before)
{
    struct sample_reading rest;
    struct part part = {.reading = &rest};
    TRY(rest_of(reading, rows, before, &rest));
    size_t known = rows->count;
    TRY(read_part(client, rows, &part));
    if (rows->count == known)
        return status_ok();
    const struct advice_row names = rows->rows[--rows->count];
    rows->cells -= names.cell_count;
    return read_by_itself(client, rows, &rest, &names);
}

/* A message of less than is wanted of any was refused for what was left. */
static status read_rows(struct client_source *client, struct sample_rows *rows,
                        const struct sample_reading *reading, bool *is_whole)
{
    struct part part = {.reading = reading, .has_values = true};
    size_t before = rows->count;
    TRY(read_part(client, rows, &part));
    *is_whole = part.is_whole;
    rows->is_full |= part.refused > 0 && part.refused <= SAMPLE_ROW_MOST;
    bool has_large = part.refused > SAMPLE_ROW_MOST && left_of(rows) > 0;
    return has_large ? read_large_row(client, rows, reading, before) : status_ok();
}

status client_read_rows(struct advice_source *source, struct sample_rows *rows,
                        const struct sample_reading *reading, bool *is_whole)
{
    bytes key;
    status s = read_rows(client_source_of(source), rows, reading, is_whole);
    if (s.code != STATUS_FAILED_PRECONDITION || !find_key(status_message(s), &key))
        return s;
    *is_whole = false;
    key = client_key_of_text(key, rows->arena);
    status kept = key.data == NULL ? status_out_of_memory()
                                   : sample_rows_add_unreadable(rows, reading->place, key);
    status_free(s);
    return kept;
}

/* --- estimates --- */

/* Of cells that take more than may be read for that, what these take tells how many there are. */
static status count_cells(const struct client_source *client, struct sample_rows *rows,
                          const struct advice_row *row, struct weighing *w)
{
    struct chain chain;
    *w = (struct weighing){.most = COUNTED_MOST};
    TRY(weigh(&(struct request){.client = client,
                                .rows = rows,
                                .message_limit = COUNTED_BYTES,
                                .key = row->key,
                                .filter = cells_from(&chain, 0, COUNTED_MOST, false)},
              w));
    if (w->refused == 0 || row->cell_count == 0)
        return status_ok();
    uint64_t name = names_of(row) / row->cell_count;
    w->cells = (size_t)(w->refused / (name + COUNTED_CELL));
    w->names = w->cells * name;
    return status_ok();
}

status client_estimate_row(struct advice_source *source, struct sample_rows *rows,
                           struct advice_row *row)
{
    const struct client_source *client = client_source_of(source);
    struct weighing all;
    uint64_t sum = 0, size, refused;
    TRY(count_cells(client, rows, row, &all));
    for (size_t i = 0; i < ESTIMATED_BY; i++) {
        TRY(weigh_cells(client, rows, row->key, all.cells * i / ESTIMATED_BY, 1, &size, &refused));
        sum += refused > 0 ? refused : size;
    }
    uint64_t estimate = row->key.size + all.names + sum / ESTIMATED_BY * all.cells;
    row->size = estimate > row->size ? estimate : row->size;
    return status_ok();
}

status client_is_one_row(struct advice_source *source, struct sample_rows *rows, bytes start,
                         bytes end, bool *is_one)
{
    struct chain chain;
    struct weighing w = {.most = 2};
    TRY(weigh(&(struct request){.client = client_source_of(source),
                                .rows = rows,
                                .message_limit = WEIGHED_MOST,
                                .start = start,
                                .end = end,
                                .limit = 2,
                                .filter = cells_from(&chain, 0, 1, false)},
              &w));
    *is_one = w.cells == 1 && w.rows == 1;
    return status_ok();
}
