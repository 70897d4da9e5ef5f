/* ReadChangeStream: a partition's changes, for as long as the client wants them.
 *
 *     a read, on a pool thread ──► back on the loop ──► the next read
 *              ▲                    │         │
 *              │                    │         └─(nothing is left)──► waits for a change, or for
 *              │                    │                                the time of a heartbeat ──┐
 *              │                    └─(the client does not keep up)──► waits for the client ──┐│
 *              └──────────────────────────────────────────────────────────────────────────────┴┘
 *
 *  1. While it waits nothing is held but the call, and the string of a token: where it stands. Each
 *     read begins with that string, sends what the writer sends at a time (change_writer.h), and
 *     makes the next one. So a client that does not read costs neither memory nor a snapshot.
 *  2. The call is in line for changes before a read begins. If the read finds nothing more, and the
 *     call is still in line, there is nothing more.
 *  3. Within a change, `writer.place` says what of it has been sent; the token is of before it. All
 *     else - heartbeats, closes, the end - waits until the change has been sent.
 *  4. The loop's thread alone waits, is woken, and ends the call: what `awaits` says.
 *  5. Watermarks that the client is told do not go back.
 *  6. Of a drop of rows the stream is told after later commits (cluster/stream/telling.h). Who
 *     began after it is not told: what the token has behind it, its time says. */
#include "base/limits.h"
#include "base/metrics.h"
#include "bigtable/change_writer.h"
#include "bigtable/data_call.h"
#include "bigtable/data_methods.h"
#include "bigtable/stream_end.h"
#include "bigtable/stream_profile.h"
#include "bigtable/stream_readers.h"
#include "bigtable/stream_request.h"
#include "cluster/stream/table_stream.h"

enum {
    READ_BYTES = 256 << 10, /* of the log, about, that one read visits */
    READ_MEMORY = 64 << 20, /* for tokens and partitions */
    BUSY_US = 100000,       /* until a pool whose queue is full is asked again */
    /* Between two looks whether the caller may still read: heartbeats may be rarer. */
    ADMIT_US = 10 * 1000 * 1000,
};

enum awaited {
    AWAITS_READ, /* a read runs, or its end has been posted */
    AWAITS_CLIENT,
    AWAITS_CHANGES, /* or the timer */
    AWAITS_WAITER,  /* the call has ended, and the waiter's task is still to come */
};

struct read_change_stream {
    struct data_call data;
    struct stream_request request;
    struct stream_reader reader;
    struct buffer token; /* a string, without NUL; empty before the first read */
    uint64_t life;       /* of the stream, when the call began */
    int64_t watermark_us;
    int64_t heartbeat_due_us; /* clock_steady_us */
    struct change_writer writer;
    enum awaited awaits;
    struct task task;
    struct timer timer;
    int64_t rests_since_us; /* clock_steady_us; while it awaits changes */
    struct stream_waiter waiter;
    uint32_t waiter_shard;
    bool is_in_line;  /* the waiter: the loop's thread */
    bool is_leaving;  /* the server wants the client to go */
    bool keeps_piece; /* the writer's, from read to read: stream_readers_may_keep */
    size_t taken;     /* bytes, by the client, since it had to be waited for */
    /* Of the last read. */
    bool is_at_end; /* it found nothing more */
    bool is_over;   /* the call is to be ended with `result` */
    status result;
    int64_t records_sent;
    int64_t records_seen;
};

static int64_t steady_us(const struct read_change_stream *self)
{
    return clock_steady_us(cluster_clock(self->data.bigtable->cluster));
}

/* --- a read: its token --- */

static status keep_token(struct read_change_stream *self, const struct stream_token *token)
{
    buffer_clear(&self->token);
    stream_token_write(&self->token, token);
    return self->token.failed ? status_out_of_memory() : status_ok();
}

static status open_token(struct read_change_stream *self, struct arena *arena,
                         struct stream_token *out)
{
    const struct stream_request *request = &self->request;
    if (self->token.size > 0)
        return stream_token_read(buffer_bytes(&self->token), arena, out);
    if (request->has_tokens) {
        *out = request->token;
        return status_ok();
    }
    return table_stream_token_at(self->data.table, request->start_us, request->start, request->end,
                                 arena, out);
}

/* --- a read: its records --- */

struct reading {
    struct read_change_stream *self;
    struct stream_token from; /* where the read began */
    struct stream_part *parts;
    struct buffer string;
};

static status reading_begin(struct reading *reading, struct read_change_stream *self,
                            const struct stream_token *token, struct arena *arena)
{
    size_t size = token->part_count * sizeof *token->parts;
    *reading = (struct reading){.self = self, .from = *token};
    reading->parts = arena_alloc(arena, size);
    reading->from.parts = arena_alloc(arena, size);
    if (reading->parts == NULL || reading->from.parts == NULL)
        return status_out_of_memory();
    memcpy(reading->from.parts, token->parts, size);
    if (token->time_us > self->watermark_us)
        self->watermark_us = token->time_us;
    return status_ok();
}

static bool is_wanted(const struct reading *reading, const struct stream_record *record)
{
    const struct stream_request *request = &reading->self->request;
    int64_t time_us = version_time_us(record->version);
    bool is_behind = record->kind == STREAM_DROPPED && time_us < reading->from.time_us;
    return !is_behind && time_us >= request->start_us && time_us <= request->end_us;
}

static status make_end(struct reading *reading, const struct stream_record *record,
                       struct change_end *end)
{
    struct read_change_stream *self = reading->self;
    const struct stream_token *from = &reading->from;
    int64_t time_us =
        table_stream_watermark(self->data.table, from->shard, from->start, stream_token_end(from),
                               record->position, version_time_us(record->version));
    if (time_us > self->watermark_us)
        self->watermark_us = time_us;
    struct stream_token behind =
        stream_token_advanced(&reading->from, record->position, self->watermark_us, reading->parts);
    buffer_clear(&reading->string);
    stream_token_write(&reading->string, &behind);
    *end = (struct change_end){buffer_bytes(&reading->string), self->watermark_us};
    return reading->string.failed ? status_out_of_memory() : status_ok();
}

static status send_record(struct reading *reading, const struct stream_record *record)
{
    struct read_change_stream *self = reading->self;
    struct change_end end;
    TRY(make_end(reading, record, &end));
    TRY(change_writer_write(&self->writer, record, &end));
    if (!self->writer.place.is_inside)
        self->records_sent++;
    return status_ok();
}

static status visit(void *context, const struct stream_record *record, bool *enough)
{
    struct reading *reading = context;
    struct read_change_stream *self = reading->self;
    const struct change_place *place = &self->writer.place;
    if (grpc_call_is_cancelled(self->data.call))
        return status_make(STATUS_CANCELLED, "The call was cancelled");
    if (place->is_inside && stream_position_compare(record->position, place->position) != 0)
        return status_make(STATUS_ABORTED, "A change was not there any more when it was half sent");
    self->records_seen++;
    if (is_wanted(reading, record))
        TRY(send_record(reading, record));
    *enough = place->is_inside || change_writer_is_full(&self->writer);
    return status_ok();
}

/* Where the next read is to begin: behind what was visited, or before the change in hand. */
static status keep_place(struct reading *reading, const struct stream_token *reached)
{
    struct read_change_stream *self = reading->self;
    const struct change_place *place = &self->writer.place;
    if (!place->is_inside) {
        if (reached->time_us > self->watermark_us)
            self->watermark_us = reached->time_us;
        return keep_token(self, reached);
    }
    struct stream_token before =
        stream_token_advanced(&reading->from, stream_position_before(place->position),
                              reading->from.time_us, reading->parts);
    return keep_token(self, &before);
}

static status read_records(struct read_change_stream *self, struct stream_token *token,
                           struct arena *arena)
{
    struct reading reading;
    TRY(reading_begin(&reading, self, token, arena));
    int64_t sent_before = self->records_sent;
    self->writer.sent = 0;
    self->writer.shard = token->shard;
    status s =
        table_stream_read(self->data.table, token, READ_BYTES, visit, &reading, &self->is_at_end);
    if (status_is_ok(s))
        s = keep_place(&reading, token);
    buffer_free(&reading.string);
    self->is_at_end = self->is_at_end && !self->writer.place.is_inside;
    struct metrics *metrics = self->data.bigtable->metrics;
    metrics_add(metrics, METRIC_change_stream_records_total, self->records_sent - sent_before);
    metrics_add(metrics, METRIC_change_stream_bytes_total, (int64_t)self->writer.sent);
    return s;
}

/* --- a read: what is between changes --- */

static status send_heartbeat(struct read_change_stream *self, struct arena *arena)
{
    const struct stream_request *request = &self->request;
    const char *token = arena_string(arena, buffer_bytes(&self->token));
    if (token == NULL)
        return status_out_of_memory();
    heartbeat_append(change_writer_open(&self->writer), request->start, request->end, token,
                     self->watermark_us);
    change_writer_send(&self->writer);
    self->heartbeat_due_us = steady_us(self) + request->heartbeat_us;
    return status_ok();
}

static status send_close(struct read_change_stream *self, const struct stream_token *token,
                         bool is_end, struct arena *arena)
{
    const struct stream_request *request = &self->request;
    struct buffer *out = change_writer_open(&self->writer);
    status s = status_ok();
    if (is_end)
        close_append(out, NULL, 0, arena);
    else
        s = stream_end_misaligned(self->data.table, request, token, arena, out);
    if (status_is_ok(s))
        change_writer_send(&self->writer);
    change_writer_rest(&self->writer);
    self->is_over = true;
    return s;
}

static bool is_partition(const struct read_change_stream *self)
{
    uint32_t shard;
    return table_stream_is_partition(self->data.table, self->request.start, self->request.end,
                                     &shard);
}

/* What is behind the end is not wanted; what has its time may still come. */
static status read_from(struct read_change_stream *self, struct stream_token *token,
                        struct arena *arena)
{
    bool is_inside = self->writer.place.is_inside;
    if (!is_inside && token->time_us > self->request.end_us)
        return send_close(self, token, true, arena);
    if (!is_inside && !is_partition(self))
        return send_close(self, token, false, arena);
    TRY(read_records(self, token, arena));
    if (self->writer.place.is_inside)
        return status_ok();
    if (token->time_us >= self->request.end_us)
        return send_close(self, token, true, arena);
    return steady_us(self) >= self->heartbeat_due_us ? send_heartbeat(self, arena) : status_ok();
}

/* A range that was never a partition has no token: it need not lie in one shard. */
static status begin_reading(struct read_change_stream *self, const struct stream_facts *facts,
                            struct arena *arena)
{
    const struct stream_request *request = &self->request;
    bool has_token = self->token.size > 0 || request->has_tokens;
    struct stream_token token;
    if (!has_token && request->start_us > request->end_us)
        return send_close(self, NULL, true, arena);
    if (!has_token && !is_partition(self))
        return send_close(self, NULL, false, arena);
    TRY(open_token(self, arena, &token));
    TRY(stream_token_check_age(&token, facts));
    return read_from(self, &token, arena);
}

/* What is so now, if the stream is still the one that the call began with. */
static status look_at_facts(const struct read_change_stream *self, struct stream_facts *facts)
{
    *facts = table_stream_facts(self->data.table);
    TRY(stream_facts_check(facts, table_name(self->data.table)));
    if (facts->life == self->life)
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "The change stream of table '%s' has been switched off meanwhile",
                       table_name(self->data.table));
}

/* What went wrong while the stream ended went wrong for that. */
static status read_once(struct read_change_stream *self)
{
    struct arena *arena = arena_create(READ_MEMORY);
    if (arena == NULL)
        return status_out_of_memory();
    struct stream_facts facts;
    status s = look_at_facts(self, &facts);
    if (status_is_ok(s))
        s = begin_reading(self, &facts, arena);
    arena_destroy(arena);
    status off = status_is_ok(s) ? status_ok() : look_at_facts(self, &facts);
    if (status_is_ok(off))
        return s;
    status_free(s);
    return off;
}

/* For who looks at the readers. */
static void note_progress(struct read_change_stream *self)
{
    if (self->watermark_us > atomic_load(&self->reader.position_us))
        atomic_store(&self->reader.position_us, self->watermark_us);
    atomic_store(&self->reader.records, self->records_sent);
}

static void go_on(struct task *task);

static void run_on_pool(struct task *task)
{
    struct read_change_stream *self = LIST_ENTRY(&task->link, struct read_change_stream, task.link);
    grpc_call_step(self->data.call, CALL_READS);
    self->result = read_once(self);
    self->is_over = self->is_over || !status_is_ok(self->result);
    grpc_call_count(self->data.call, self->records_sent, self->records_seen);
    note_progress(self);
    self->task.run = go_on;
    grpc_call_step(self->data.call, CALL_AWAITS_LOOP);
    loop_post(grpc_call_loop(self->data.call), &self->task);
}

/* --- what is held between two reads: on the loop, as all that follows --- */

static void rest(struct read_change_stream *self)
{
    self->writer.more = 0;
    self->taken = 0;
    change_writer_rest(&self->writer);
    if (self->keeps_piece)
        stream_readers_give_back(&self->data.bigtable->stream_readers);
    self->keeps_piece = false;
}

/* A client that keeps up is not to have a piece of the log read for each slice of it, as long as
 * there are not many such clients. */
static void rest_if_many(struct read_change_stream *self)
{
    self->taken += self->writer.sent;
    if (self->taken >= WRITER_KEPT_UP_BYTES)
        self->writer.more = WRITER_KEEPING_UP_BYTES - WRITER_MOST_BYTES; /* fewer reads */
    if (self->writer.piece_number != 0 && !self->keeps_piece)
        self->keeps_piece = stream_readers_may_keep(&self->data.bigtable->stream_readers);
    if (!self->keeps_piece)
        change_writer_rest(&self->writer);
}

/* --- the end --- */

static void finish(struct read_change_stream *self)
{
    rest(self);
    buffer_free(&self->token);
    stream_readers_leave(&self->data.bigtable->stream_readers, &self->reader);
    data_call_finish(&self->data, self->result);
}

/* Takes the status. A waiter whose task has been posted is waited for. */
static void end(struct read_change_stream *self, status s)
{
    self->result = s;
    self->awaits = AWAITS_WAITER;
    if (self->is_in_line)
        self->is_in_line =
            !table_stream_forget(self->data.table, self->waiter_shard, &self->waiter);
    if (!self->is_in_line)
        finish(self);
}

static void cancel(struct read_change_stream *self)
{
    end(self, status_make(STATUS_CANCELLED, "The call was cancelled"));
}

/* The client asks again, elsewhere or later. */
static void leave(struct read_change_stream *self)
{
    end(self, status_make(STATUS_UNAVAILABLE, "The server is about to stop"));
}

/* --- waiting --- */

static void read_again(struct read_change_stream *self);

/* False: the call has ended for want of memory. */
static bool set_timer(struct read_change_stream *self, int64_t due_us)
{
    status s = loop_timer_set(grpc_call_loop(self->data.call), &self->timer, due_us);
    if (status_is_ok(s))
        return true;
    end(self, s);
    return false;
}

/* The end that was asked for comes by itself, too. */
static int64_t next_due_us(const struct read_change_stream *self)
{
    enum { LATER_US = 10000 };
    int64_t now_us = steady_us(self), due_us = self->heartbeat_due_us;
    due_us = due_us < now_us + ADMIT_US ? due_us : now_us + ADMIT_US;
    if (self->request.end_us == INT64_MAX)
        return due_us;
    int64_t left_us = self->request.end_us - cluster_wall_us(self->data.bigtable->cluster);
    int64_t end_us = now_us + (left_us > 0 ? left_us : 0) + LATER_US;
    return end_us < due_us ? end_us : due_us;
}

static void wait_for_changes(struct read_change_stream *self, int64_t due_us)
{
    rest(self);
    self->awaits = AWAITS_CHANGES;
    self->rests_since_us = steady_us(self);
    grpc_call_step(self->data.call, CALL_AWAITS_CHANGES);
    (void)set_timer(self, due_us);
}

static void stop_waiting(struct read_change_stream *self)
{
    struct stream_reader *reader = &self->reader;
    if (atomic_exchange(&reader->has_all, false)) /* up to what has woken it */
        atomic_store(&reader->position_us, cluster_version_us(self->data.bigtable->cluster));
    loop_timer_clear(grpc_call_loop(self->data.call), &self->timer);
    grpc_call_rested(self->data.call, steady_us(self) - self->rests_since_us);
}

static void time_is_over(struct timer *timer)
{
    struct read_change_stream *self = LIST_ENTRY(timer, struct read_change_stream, timer);
    stop_waiting(self);
    read_again(self);
}

static void woken(struct task *task)
{
    struct stream_waiter *waiter = LIST_ENTRY(&task->link, struct stream_waiter, task.link);
    struct read_change_stream *self = LIST_ENTRY(waiter, struct read_change_stream, waiter);
    self->is_in_line = false;
    if (self->awaits == AWAITS_WAITER) {
        finish(self);
    } else if (self->awaits == AWAITS_CHANGES) {
        stop_waiting(self);
        read_again(self);
    }
}

static void get_in_line(struct read_change_stream *self)
{
    struct table *table = self->data.table;
    bytes start = self->request.start, end = self->request.end;
    self->waiter.loop = grpc_call_loop(self->data.call);
    self->waiter.task.run = woken;
    self->is_in_line = table_stream_is_partition(table, start, end, &self->waiter_shard) &&
                       table_stream_wait(table, start, end, &self->waiter);
}

static void read_again(struct read_change_stream *self)
{
    status s = grpc_call_admit_again(self->data.call);
    if (!status_is_ok(s)) {
        end(self, s);
        return;
    }
    if (!self->is_in_line)
        get_in_line(self);
    self->awaits = AWAITS_READ;
    self->task.run = run_on_pool;
    grpc_call_step(self->data.call, CALL_AWAITS_THREAD);
    if (!pool_submit(cluster_pool(self->data.bigtable->cluster), &self->task))
        wait_for_changes(self, steady_us(self) + BUSY_US);
}

static void go_on(struct task *task)
{
    struct read_change_stream *self = LIST_ENTRY(&task->link, struct read_change_stream, task.link);
    struct grpc_call *call = self->data.call;
    if (self->is_over) {
        end(self, self->result);
    } else if (grpc_call_is_cancelled(call)) {
        cancel(self);
    } else if (self->is_leaving) {
        leave(self);
    } else if (grpc_call_is_congested(call)) {
        rest(self);
        self->awaits = AWAITS_CLIENT;
        grpc_call_step(call, CALL_AWAITS_CLIENT);
    } else if (self->is_at_end && self->is_in_line) {
        atomic_store(&self->reader.has_all, true);
        wait_for_changes(self, next_due_us(self));
    } else {
        rest_if_many(self);
        read_again(self);
    }
}

static void client_goes_on(void *context)
{
    struct read_change_stream *self = context;
    if (self->awaits == AWAITS_CLIENT)
        read_again(self);
}

static void client_has_gone(void *context)
{
    struct read_change_stream *self = context;
    if (self->awaits == AWAITS_CHANGES)
        stop_waiting(self);
    if (self->awaits == AWAITS_CHANGES || self->awaits == AWAITS_CLIENT)
        cancel(self);
}

static void client_is_to_leave(void *context)
{
    struct read_change_stream *self = context;
    self->is_leaving = true;
    if (self->awaits == AWAITS_CHANGES)
        stop_waiting(self);
    if (self->awaits == AWAITS_CHANGES || self->awaits == AWAITS_CLIENT)
        leave(self);
}

/* --- the request --- */

/* Those from before a restore are as good as any if they are not behind it. */
static status adopt_tokens(struct stream_request *request, struct table *table)
{
    for (size_t i = 0; i < request->token_count; i++) {
        TRY(table_stream_adopt(table, &request->tokens[i]));
        request->token.era = request->tokens[i].era;
    }
    return status_ok();
}

static status open_table(struct read_change_stream *self,
                         const Bt__ReadChangeStreamRequest *request)
{
    struct data_call *data = &self->data;
    const char *cluster_id;
    TRY(data_call_open(data, &(struct data_target){.table_name = request->table_name,
                                                   .app_profile_id = request->app_profile_id}));
    TRY(stream_profile_check(data->bigtable, request->table_name, request->app_profile_id,
                             data->arena, &cluster_id));
    self->writer.call = data->call;
    self->writer.table = data->table;
    self->writer.sources.own = bytes_of(cluster_id);
    TRY(stream_sources_find(data->bigtable, request->table_name, data->arena,
                            &self->writer.sources));
    const struct stream_facts facts = table_stream_facts(data->table);
    self->life = facts.life;
    TRY(stream_facts_check(&facts, request->table_name));
    const struct stream_now now = {.version_us = cluster_version_us(data->bigtable->cluster),
                                   .wall_us = cluster_wall_us(data->bigtable->cluster)};
    TRY(stream_request_check(&self->request, &facts, &now));
    return adopt_tokens(&self->request, data->table);
}

/* Among those who read now. */
static status enter(struct read_change_stream *self)
{
    const struct stream_request *request = &self->request;
    struct bigtable *bigtable = self->data.bigtable;
    const char *profile = self->data.profile;
    self->reader = (struct stream_reader){.table = self->data.table,
                                          .start = request->start,
                                          .end = request->end,
                                          .profile = profile == NULL ? "" : profile,
                                          .since_us = cluster_wall_us(bigtable->cluster)};
    atomic_init(&self->reader.position_us,
                request->has_tokens ? request->token.time_us : request->start_us);
    return stream_readers_enter(&bigtable->stream_readers, &self->reader);
}

static status start(struct read_change_stream *self, bytes wire)
{
    struct data_call *data = &self->data;
    ProtobufCMessage *message;
    TRY(proto_decode(&bt__read_change_stream_request__descriptor, wire, data->arena, &message));
    const Bt__ReadChangeStreamRequest *request = (const void *)message;
    TRY(stream_request_read(request, data->arena, &self->request));
    TRY(open_table(self, request));
    TRY(enter(self));
    data_call_add_headers(data);
    self->timer.run = time_is_over;
    self->heartbeat_due_us = steady_us(self) + self->request.heartbeat_us;
    grpc_call_set_callbacks(data->call, self, client_goes_on, client_has_gone);
    grpc_call_set_on_drain(data->call, client_is_to_leave);
    read_again(self);
    return status_ok();
}

void read_change_stream(void *context, struct grpc_call *call, bytes request)
{
    struct read_change_stream *self = data_call_create(context, call, sizeof *self);
    if (self == NULL)
        return;
    status s = start(self, request);
    if (!status_is_ok(s))
        data_call_finish(&self->data, s);
}
