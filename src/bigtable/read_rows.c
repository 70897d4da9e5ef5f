/* ReadRows: a scan whose rows go out as chunks.
 *
 * The scan runs in slices, each on one thread at a time:
 *
 *     on the loop, from memory ──(a block is not cached)──► on a pool thread, from anywhere
 *            ▲        │                                             │
 *            │        └──(its time is over)──► posted again         │
 *            └──────────────────(its time is over)──────────────────┘
 *
 *  1. A slice ends when its time is over, when the client does not keep up, or with the call.
 *  2. Whether the client keeps up is decided on the loop alone, which is where on_writable and
 *     on_cancel run. Until then the scan is paused and holds nothing of the store, unless it stands
 *     within a row.
 *  3. A message ends with the row that fills it, since Google's client in Go takes what ends within
 *     a row for the end of the stream. A row of more than MOST_AT_ONCE has a message of its own,
 *     whose size is found before it begins, and whose body is written in pieces of about
 *     MESSAGE_BYTES, so that the row is not in memory a second time. Between them the scan stands
 *     within the row. So is a row sent of which values were left in the store, however large it is:
 *     each is got when it is its turn, and a slice may end there for want of a cached block.
 *  4. Only a row whose message no client could take, or that our own REST is to take to pieces
 *     anyway, comes in several messages. None ends within a chunk.
 *  5. A large value that was left in the store has its turn first (value_turn.h), so that there is
 *     a bound on what clients make us hold that stop within one. The call waits between slices.
 *  6. Each slice on the loop but the first begins with the question whether the caller still may:
 *     so one on the pool begins at most LOOP_SLICE_US after that. */
#include "base/limits.h"
#include "bigtable/client_headers.h"
#include "bigtable/data_call.h"
#include "bigtable/data_methods.h"
#include "bigtable/filter_message.h"
#include "bigtable/read_chunks.h"
#include "bigtable/request_usage.h"
#include "bigtable/row_error.h"
#include "bigtable/row_ranges.h"
#include "bigtable/value_turn.h"
#include "cluster/rows.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

enum {
    MESSAGE_BYTES = 64 << 10,
    MOST_AT_ONCE = 1 << 20,
    MOST_ROOM = 2 * MESSAGE_BYTES,
    ROOM_FOR_ROW = 512,       /* of the first message: what a short row takes, */
    ROOM_FOR_ROWS = 16 << 10, /* and a hundred of them */
    LOOP_SLICE_US = 1000,     /* others wait for the loop meanwhile */
    POOL_SLICE_US = 20000,
};

enum row_form {
    ROW_AMONG_OTHERS, /* whole, in `message` */
    ROW_ANNOUNCED,    /* a message of its own, whose pieces are sent as they are made */
    ROW_IN_MESSAGES,  /* it takes several */
};

/* The event that the call awaits, on the loop: no task is posted meanwhile. */
enum awaited {
    AWAITS_NOTHING,
    AWAITS_CLIENT, /* on_writable, or on_cancel */
    AWAITS_ROOM,   /* turn_ended, or on_cancel */
};

struct read_rows {
    struct data_call data;
    const Bt__ReadRowsRequest *request;
    bool tells_progress;     /* the client understands last_scanned_row_key */
    struct buffer last_told; /* if so: the last key that it was sent, as a row or as progress */
    struct filter *filter;
    struct row_ranges ranges;
    bool is_point; /* `ranges` is one row */
    struct scan *scan;
    struct task task;
    enum awaited awaits; /* loop's thread only */
    struct value_turn turn;
    size_t wants; /* bytes of the value, or block, that it is to ask room for; 0: of none */
    /* Of the current slice. */
    struct row_writer writer; /* done: no row in hand */
    enum row_form form;       /* of the row in hand */
    bool has_deferred;        /* the row in hand: values that were left in the store */
    struct buffer message;    /* not sent yet; empty: none begun */
    size_t room;              /* that the next one begins with, so that it need not grow */
    int64_t rows_left;        /* INT64_MAX: no limit */
    int64_t rows_returned;
    int64_t cells_returned;
};

/* --- messages --- */

static struct buffer *open_message(struct read_rows *self)
{
    if (self->message.size > 0)
        return &self->message;
    (void)buffer_reserve(&self->message, self->room);
    grpc_message_start(&self->message);
    return &self->message;
}

/* The next one may be as long. */
static void send_message(struct read_rows *self)
{
    size_t size = self->message.size;
    if (size == 0 && !self->message.failed)
        return;
    self->room = size < MOST_ROOM ? size : MOST_ROOM;
    grpc_call_send(self->data.call, &self->message);
}

static void note_told(struct read_rows *self, bytes row_key)
{
    if (!self->tells_progress)
        return;
    buffer_clear(&self->last_told);
    buffer_append_bytes(&self->last_told, row_key);
    self->tells_progress = !self->last_told.failed;
}

/* Clients refuse a key that does not lie behind the last one. */
static bool is_progress(const struct read_rows *self, bytes row_key)
{
    if (!self->tells_progress || row_key.size == 0)
        return false;
    if (self->last_told.size == 0)
        return true;
    int order = bytes_compare(row_key, buffer_bytes(&self->last_told));
    return self->request->reversed ? order < 0 : order > 0;
}

/* Says how far the scan has come, when there was nothing else to say for a while. In a message of
 * its own, since some clients look at this field before the chunks. */
static void tell_progress(struct read_rows *self)
{
    bytes last = scan_last_scanned(self->scan);
    if (!is_progress(self, last))
        return;
    send_message(self);
    Bt__ReadRowsResponse response = BT__READ_ROWS_RESPONSE__INIT;
    response.last_scanned_row_key = proto_data(last);
    proto_encode(&response.base, open_message(self));
    send_message(self);
    note_told(self, last);
}

/* An interleave may return a cell more than once; clients take it that no more is returned than was
 * seen. */
static void append_statistics(struct read_rows *self)
{
    struct scan_counts counts = scan_counts(self->scan);
    Bt__ReadIterationStats iteration = BT__READ_ITERATION_STATS__INIT;
    bool has_copies = self->cells_returned > counts.cells_seen;
    iteration.rows_seen_count = counts.rows_seen;
    iteration.cells_seen_count = has_copies ? self->cells_returned : counts.cells_seen;
    iteration.rows_returned_count = self->rows_returned;
    iteration.cells_returned_count = self->cells_returned;
    struct clock *clock = cluster_clock(self->data.bigtable->cluster);
    int64_t taken_us = clock_steady_us(clock) - self->data.started_us;
    Pb__Duration taken = PB__DURATION__INIT;
    taken.seconds = taken_us / 1000000;
    taken.nanos = (int32_t)(taken_us % 1000000 * 1000);
    Bt__RequestLatencyStats latency = BT__REQUEST_LATENCY_STATS__INIT;
    latency.frontend_server_latency = &taken;
    Bt__FullReadStatsView full = BT__FULL_READ_STATS_VIEW__INIT;
    full.read_iteration_stats = &iteration;
    full.request_latency_stats = &latency;
    Bt__RequestStats stats = BT__REQUEST_STATS__INIT;
    stats.stats_view_case = BT__REQUEST_STATS__STATS_VIEW_FULL_READ_STATS_VIEW;
    stats.full_read_stats_view = &full;
    Bt__ReadRowsResponse response = BT__READ_ROWS_RESPONSE__INIT;
    response.request_stats = &stats;
    proto_encode(&response.base, open_message(self));
}

/* --- the end --- */

/* Takes the status. On either thread; `self` is gone afterwards. */
static void finish(struct read_rows *self, status s)
{
    bool wants_statistics = self->request->request_stats_view ==
                            BT__READ_ROWS_REQUEST__REQUEST_STATS_VIEW__REQUEST_STATS_FULL;
    if (status_is_ok(s) && wants_statistics)
        append_statistics(self);
    send_message(self);
    struct scan_counts counts = scan_counts(self->scan);
    grpc_call_count(self->data.call, self->rows_returned, counts.rows_seen);
    request_usage_read(&self->data, self->request, &self->ranges,
                       (uint64_t)(counts.rows_seen + counts.keys_rejected),
                       (uint64_t)self->rows_returned);
    scan_destroy(self->scan);
    value_turn_shrink(&self->turn, 0);
    filter_destroy(self->filter);
    buffer_free(&self->last_told);
    data_call_finish(&self->data, s);
}

/* --- a slice --- */

enum slice_end {
    SLICE_DONE,      /* the call is to be ended with `*result` */
    SLICE_TIME_OVER, /* more to do */
    SLICE_NOT_CACHED,
    SLICE_CONGESTED,
    SLICE_LACKS_ROOM, /* `wants` */
};

/* The row in hand, of which nothing is in the message, gets one of its own, or several. */
static void begin_large_row(struct read_rows *self, uint64_t size)
{
    struct grpc_call *call = self->data.call;
    send_message(self);
    bool is_for_one = size <= LIMIT_ROW_MESSAGE_BYTES && !grpc_call_wants_small_messages(call);
    self->form = is_for_one ? ROW_ANNOUNCED : ROW_IN_MESSAGES;
    if (is_for_one)
        grpc_call_announce(call, (uint32_t)size);
}

/* Takes back what has been written of the row in hand. */
static void put_row_back(struct read_rows *self, size_t rows_before)
{
    self->message.size = rows_before;
    if (rows_before == GRPC_PREFIX_SIZE)
        buffer_free(&self->message);
    row_writer_restart(&self->writer);
}

/* Puts the row in hand into the message, or finds that it is too large for that: mostly by its
 * values alone, before anything is written. */
static void write_among_others(struct read_rows *self)
{
    if (self->has_deferred || row_writer_has_values(&self->writer, MOST_AT_ONCE)) {
        begin_large_row(self, row_writer_size(&self->writer));
        return;
    }
    struct buffer *message = open_message(self);
    size_t rows_before = message->size;
    row_writer_write(&self->writer, message, MESSAGE_BYTES);
    if (row_writer_is_done(&self->writer) || message->failed)
        return;
    uint64_t size = row_writer_size(&self->writer);
    if (size <= MOST_AT_ONCE) {
        row_writer_write(&self->writer, message, SIZE_MAX);
        return;
    }
    put_row_back(self, rows_before);
    begin_large_row(self, size);
}

static bool has_room(const struct read_rows *self, const struct cell *cell)
{
    return self->data.bigtable->values == NULL || value_turn_covers(&self->turn, cell->value.size);
}

/* Gives the writer a value that was left in the store; false with why not. */
static bool load_value(struct read_rows *self, const struct cell *cell,
                       enum store_read_tier read_tier, enum slice_end *end, status *result)
{
    bytes value = {0};
    enum row_outcome outcome;
    *end = SLICE_LACKS_ROOM;
    *result = status_ok();
    if (!has_room(self, cell)) {
        self->wants = cell->value.size;
        return false;
    }
    *result = scan_load_value(self->scan, cell, read_tier, &value, &outcome);
    *end = status_is_ok(*result) ? SLICE_NOT_CACHED : SLICE_DONE;
    if (!status_is_ok(*result) || outcome != ROW_FOUND)
        return false;
    value_turn_shrink(&self->turn, value.size);
    row_writer_give(&self->writer, value);
    return true;
}

static void let_go_of_value(struct read_rows *self)
{
    scan_release_value(self->scan);
    row_writer_take_back(&self->writer);
    value_turn_shrink(&self->turn, 0);
}

/* Writes of the row in hand until `out` is full; false, with why, when a value cannot be had. */
static bool fill_from_row(struct read_rows *self, struct buffer *out,
                          enum store_read_tier read_tier, enum slice_end *end, status *result)
{
    while (!row_writer_is_done(&self->writer) && out->size < MESSAGE_BYTES && !out->failed) {
        const struct cell *cell = row_writer_lacks(&self->writer);
        if (cell != NULL && !load_value(self, cell, read_tier, end, result))
            return false;
        row_writer_write(&self->writer, out, MESSAGE_BYTES);
    }
    if (row_writer_is_done(&self->writer))
        let_go_of_value(self);
    return true;
}

static bool write_piece(struct read_rows *self, enum store_read_tier read_tier, enum slice_end *end,
                        status *result)
{
    struct buffer piece = {0};
    grpc_piece_start(&piece);
    bool goes_on = fill_from_row(self, &piece, read_tier, end, result);
    if (piece.size > GRPC_PIECE_SIZE || piece.failed)
        grpc_call_send_piece(self->data.call, &piece);
    else
        buffer_free(&piece);
    return goes_on;
}

/* The message is sent at the slice's end, if not before. */
static bool write_message(struct read_rows *self, enum store_read_tier read_tier,
                          enum slice_end *end, status *result)
{
    row_writer_next_message(&self->writer);
    bool goes_on = fill_from_row(self, open_message(self), read_tier, end, result);
    if (self->message.size == GRPC_PREFIX_SIZE && !self->message.failed)
        buffer_free(&self->message);
    return goes_on;
}

/* Writes the row in hand, or a part of it; a message goes out when it is full. False, with why, if
 * the client does not keep up, or a value cannot be had. */
static bool write_row(struct read_rows *self, enum store_read_tier read_tier, enum slice_end *end,
                      status *result)
{
    bool goes_on = true;
    switch (self->form) {
    case ROW_AMONG_OTHERS:
        write_among_others(self);
        break;
    case ROW_ANNOUNCED:
        goes_on = write_piece(self, read_tier, end, result);
        break;
    case ROW_IN_MESSAGES:
        goes_on = write_message(self, read_tier, end, result);
        break;
    }
    bool is_full = self->message.size >= MESSAGE_BYTES || self->message.failed;
    if (is_full)
        send_message(self);
    if (!goes_on || (!is_full && self->form != ROW_ANNOUNCED))
        return goes_on;
    *end = SLICE_CONGESTED;
    return !grpc_call_is_congested(self->data.call);
}

static void take_row(struct read_rows *self, const struct scan_row *row)
{
    row_writer_start(&self->writer, row->key, row->cells);
    self->form = ROW_AMONG_OTHERS;
    self->has_deferred = row->has_deferred;
    if (self->turn.held > 0 && !row->has_deferred)
        value_turn_shrink(&self->turn, 0);
    note_told(self, row->key);
    self->rows_left--;
    self->rows_returned++;
    self->cells_returned += (int64_t)row->cells->count;
}

/* Gets the next row in hand; false with why not. */
static bool next_row(struct read_rows *self, enum store_read_tier read_tier, enum slice_end *end,
                     status *result)
{
    struct scan_row row;
    enum row_outcome outcome;
    *end = SLICE_DONE;
    *result = status_ok();
    if (self->rows_left == 0)
        return false;
    *result = scan_next(self->scan, read_tier, &row, &outcome);
    if (!status_is_ok(*result))
        return false;
    switch (outcome) {
    case ROW_FOUND:
        take_row(self, &row);
        return true;
    case ROW_ABSENT:
        tell_progress(self);
        *end = SLICE_TIME_OVER;
        return false;
    case ROW_NOT_CACHED:
        *end = SLICE_NOT_CACHED;
        return false;
    case ROW_TOO_LARGE:
        *result = row_too_large(row.key, table_name(self->data.table));
        return false;
    case ROW_END:
        break;
    }
    return false;
}

/* Reading a clock costs a fifth of what a short row does, so not each row is followed by a look. */
struct slice_time {
    int64_t began_us;
    int64_t over_us;
    int64_t rows;
    int64_t look_at; /* rows */
};

/* The next look is due when half of what is left has passed at the pace so far. */
static bool is_time_over(struct slice_time *time, struct clock *clock)
{
    enum { MOST_ROWS = 16 };
    if (++time->rows < time->look_at)
        return false;
    int64_t now_us = clock_steady_us(clock);
    if (now_us >= time->over_us)
        return true;
    int64_t row_us = (now_us - time->began_us) / time->rows + 1;
    int64_t more = (time->over_us - now_us) / (2 * row_us);
    time->look_at = time->rows + (more < MOST_ROWS ? more : MOST_ROWS);
    return false;
}

static enum slice_end fill_messages(struct read_rows *self, enum store_read_tier read_tier,
                                    int64_t slice_us, status *result)
{
    struct clock *clock = cluster_clock(self->data.bigtable->cluster);
    int64_t now_us = clock_steady_us(clock);
    struct slice_time time = {
        .began_us = now_us,
        .over_us = now_us + slice_us,
        .look_at = self->is_point ? 2 : 1, /* behind one row, or its first piece, is the end */
    };
    enum slice_end end;
    *result = status_ok();
    do {
        if (grpc_call_is_cancelled(self->data.call)) {
            *result = status_make(STATUS_CANCELLED, "The call was cancelled");
            return SLICE_DONE;
        }
        if (row_writer_is_done(&self->writer) && !next_row(self, read_tier, &end, result))
            return end;
        if (!write_row(self, read_tier, &end, result))
            return end;
    } while (!is_time_over(&time, clock));
    return SLICE_TIME_OVER;
}

/* Rows that were found go out at the end of a slice, however few: the next one may take long to
 * find more. */
static enum slice_end run_slice(struct read_rows *self, enum store_read_tier read_tier,
                                int64_t slice_us, status *result)
{
    enum slice_end end = fill_messages(self, read_tier, slice_us, result);
    if (end == SLICE_DONE)
        return end;
    grpc_call_count(self->data.call, self->rows_returned, scan_counts(self->scan).rows_seen);
    send_message(self);
    return end;
}

static void run_again(struct task *task);
static void run_on_pool(struct task *task);

static void post_to_loop(struct read_rows *self)
{
    self->task.run = run_again;
    grpc_call_step(self->data.call, CALL_AWAITS_LOOP);
    loop_post(grpc_call_loop(self->data.call), &self->task);
}

static void post_to_pool(struct read_rows *self)
{
    self->task.run = run_on_pool;
    grpc_call_step(self->data.call, CALL_AWAITS_THREAD);
    if (!pool_submit(cluster_pool(self->data.bigtable->cluster), &self->task))
        finish(self, pool_full());
}

/* on_writable, or on_cancel, comes when there is something to do again. */
static void wait_for_client(struct read_rows *self)
{
    if (row_writer_is_done(&self->writer))
        scan_pause(self->scan);
    if (!row_writer_holds_value(&self->writer))
        let_go_of_value(self);
    self->awaits = AWAITS_CLIENT;
    grpc_call_step(self->data.call, CALL_AWAITS_CLIENT);
    value_turn_client_stops(&self->turn);
}

static void turn_ended(struct value_turn *turn, status s)
{
    struct read_rows *self = LIST_ENTRY(turn, struct read_rows, turn);
    self->awaits = AWAITS_NOTHING;
    if (status_is_ok(s))
        post_to_loop(self);
    else
        finish(self, s);
}

static void value_is_wanted(struct value_turn *turn)
{
    let_go_of_value(LIST_ENTRY(turn, struct read_rows, turn));
}

static void wait_for_room(struct read_rows *self)
{
    bool has_room;
    let_go_of_value(self);
    self->turn.room = self->data.bigtable->values;
    self->turn.loop = grpc_call_loop(self->data.call);
    self->turn.ended = turn_ended;
    self->turn.wanted = value_is_wanted;
    status s = value_turn_ask(&self->turn, self->wants, &has_room);
    self->wants = 0;
    if (!status_is_ok(s)) {
        finish(self, s);
    } else if (has_room) {
        post_to_loop(self);
    } else {
        self->awaits = AWAITS_ROOM;
        grpc_call_step(self->data.call, CALL_AWAITS_ROOM);
    }
}

/* A read at once has a bound, too: how large a row's values are is not known before. And so has
 * what a filter gets to see of values that were left in the store. Rows that it turns away may
 * follow for hours, so what they took is given back. */
static enum slice_end run_bounded_slice(struct read_rows *self, status *result)
{
    if (self->data.bigtable->values == NULL)
        return run_slice(self, STORE_READ_ANY, POOL_SLICE_US, result);
    struct store_read_bound bound = {.most = value_turn_most(&self->turn)};
    bound = store_bound_reads(bound);
    enum slice_end end = run_slice(self, STORE_READ_ANY, POOL_SLICE_US, result);
    bound = store_bound_reads(bound);
    if (end == SLICE_NOT_CACHED)
        self->wants = bound.refused;
    else if (row_writer_is_done(&self->writer))
        value_turn_shrink(&self->turn, 0);
    return end;
}

static void run_on_pool(struct task *task)
{
    struct read_rows *self = LIST_ENTRY(&task->link, struct read_rows, task.link);
    status result;
    grpc_call_step(self->data.call, CALL_READS);
    if (run_bounded_slice(self, &result) == SLICE_DONE)
        finish(self, result);
    else
        post_to_loop(self);
}

static void run_on_loop(struct read_rows *self)
{
    struct grpc_call *call = self->data.call;
    if (grpc_call_is_congested(call) && !grpc_call_is_cancelled(call)) {
        wait_for_client(self);
        return;
    }
    if (self->wants > 0 && !grpc_call_is_cancelled(call)) {
        wait_for_room(self);
        return;
    }
    status result;
    grpc_call_step(call, CALL_READS);
    switch (run_slice(self, STORE_READ_CACHED, LOOP_SLICE_US, &result)) {
    case SLICE_DONE:
        finish(self, result);
        break;
    case SLICE_TIME_OVER:
        post_to_loop(self);
        break;
    case SLICE_NOT_CACHED:
        post_to_pool(self);
        break;
    case SLICE_CONGESTED:
        wait_for_client(self);
        break;
    case SLICE_LACKS_ROOM:
        wait_for_room(self);
        break;
    }
}

/* A scan may take hours: it ends when its caller may not begin it any more. */
static void run_again(struct task *task)
{
    struct read_rows *self = LIST_ENTRY(&task->link, struct read_rows, task.link);
    status s = grpc_call_admit_again(self->data.call);
    if (status_is_ok(s))
        run_on_loop(self);
    else
        finish(self, s);
}

/* --- what the client does meanwhile --- */

static void go_on(void *context)
{
    struct read_rows *self = context;
    if (self->awaits != AWAITS_CLIENT)
        return;
    self->awaits = AWAITS_NOTHING;
    value_turn_client_goes_on(&self->turn);
    post_to_loop(self);
}

static void give_up(void *context)
{
    struct read_rows *self = context;
    if (self->awaits == AWAITS_ROOM && value_turn_leave(&self->turn))
        turn_ended(&self->turn, status_ok()); /* to find that it is cancelled */
    else
        go_on(self);
}

/* --- the request --- */

static status check_request(struct read_rows *self)
{
    const Bt__FeatureFlags *features = client_features(self->data.call);
    self->tells_progress = features->last_scanned_row_responses;
    if (self->request->reversed && !features->reverse_scans)
        return status_make(STATUS_UNIMPLEMENTED, "Client doesn't support reverse scans yet");
    if (self->request->rows_limit < 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Error in field 'rows_limit' : argument must not be negative");
    self->rows_left = self->request->rows_limit == 0 ? INT64_MAX : self->request->rows_limit;
    return status_ok();
}

static bool has_family(void *schema, bytes family)
{
    return schema_family_named(schema, family) != NULL;
}

static bool shows_family(void *view, bytes family)
{
    return columns_of_family(&((const struct view *)view)->columns, family) != NULL;
}

/* A filter that names a family which is not there is a mistake; a pattern that fits no name is
 * none. */
static status check_families(const struct read_rows *self, const struct schema *schema)
{
    const struct data_call *data = &self->data;
    union { /* a context has no const */
        const void *given;
        void *wanted;
    } in_view = {.given = data->view}, in_table = {.given = schema};
    if (data->view != NULL && !filter_names_only(self->filter, shows_family, in_view.wanted))
        return view_refuse_family(data->view);
    if (filter_names_only(self->filter, has_family, in_table.wanted))
        return status_ok();
    return status_make(STATUS_NOT_FOUND,
                       "Error while reading table '%s' : Requested column family not found",
                       table_name(data->table));
}

static bool is_cancelled(const void *call)
{
    return grpc_call_is_cancelled(call);
}

static status open_scan(struct read_rows *self)
{
    struct data_call *data = &self->data;
    const Bt__ReadRowsRequest *request = self->request;
    const struct view *view = data->view;
    const struct schema *schema = table_schema(data->table);
    TRY(row_ranges_from_message(request->rows, data->arena, &self->ranges));
    if (view != NULL)
        TRY(row_ranges_intersect(&self->ranges, &view->rows, data->arena));
    TRY(filter_message_compile(request->filter, data->arena, &self->filter));
    TRY(check_families(self, schema));
    self->is_point = self->ranges.count == 1 && self->ranges.items[0].is_point;
    self->room = self->is_point ? ROOM_FOR_ROW : ROOM_FOR_ROWS;
    return scan_create(&(struct scan_spec){.table = data->table,
                                           .ranges = self->ranges.items,
                                           .range_count = self->ranges.count,
                                           .reversed = request->reversed,
                                           .schema = schema,
                                           .columns = view == NULL ? NULL : &view->columns,
                                           .filter = self->filter,
                                           .defers_values = true,
                                           .is_given_up = is_cancelled,
                                           .context = data->call,
                                           .arena = data->arena},
                       &self->scan);
}

static status start(struct read_rows *self, bytes wire)
{
    struct data_call *data = &self->data;
    ProtobufCMessage *message;
    TRY(proto_decode(&bt__read_rows_request__descriptor, wire, data->arena, &message));
    self->request = (const void *)message;
    TRY(check_request(self));
    TRY(data_call_open(data, &(struct data_target){
                                 .table_name = self->request->table_name,
                                 .app_profile_id = self->request->app_profile_id,
                                 .authorized_view_name = self->request->authorized_view_name,
                                 .materialized_view_name = self->request->materialized_view_name}));
    TRY(open_scan(self));
    data_call_add_headers(data);
    grpc_call_set_callbacks(data->call, self, go_on, give_up);
    run_on_loop(self);
    return status_ok();
}

void read_rows(void *context, struct grpc_call *call, bytes request)
{
    struct read_rows *self = data_call_create(context, call, sizeof *self);
    if (self == NULL)
        return;
    status s = start(self, request);
    if (!status_is_ok(s)) {
        filter_destroy(self->filter);
        data_call_finish(&self->data, s);
    }
}
