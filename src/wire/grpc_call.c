/* A call's life, and what its handler may ask and do. See grpc_private.h for the whole. */
#include "wire/grpc_private.h"

#include "base/check.h"
#include "wire/grpc_text.h"

#include <stdlib.h>

static void run_inbox(struct task *task);
static void run_deadline(struct timer *timer);

/* --- life --- */

/* Everything as for a new call, save the memory that is kept. */
static void make_fresh(struct grpc_call *call, struct grpc_connection *connection)
{
    struct arena *arena = call->arena;
    struct buffer body = call->reader.body;
    struct metadata headers = call->header_metadata;
    struct metadata trailers = call->trailer_metadata;
    *call = (struct grpc_call){
        .magic = GRPC_CALL_MAGIC,
        .server = connection->server,
        .spares = connection->spares,
        .connection = connection,
        .loop = connection->loop,
        .connection_id = connection->id,
        .open = true,
        .admitted = true,
        .reader = {.body = body, .limit = connection->server->options.max_message_size},
        .arena = arena,
        .timeout_us = INT64_MAX,
        .deadline.run = run_deadline,
        .header_metadata = headers,
        .trailer_metadata = trailers,
        .task.run = run_inbox,
    };
    arena_set_limit(arena, LIMIT_ARENA_BASE_BYTES);
}

static struct grpc_call *allocate(void)
{
    struct grpc_call *call = calloc(1, sizeof *call);
    if (call == NULL)
        return NULL;
    call->arena = arena_create(LIMIT_ARENA_BASE_BYTES);
    if (call->arena == NULL) {
        free(call);
        return NULL;
    }
    return call;
}

static struct grpc_call *take_preallocated(struct grpc_spares *spares)
{
    struct grpc_call *call = spares->calls;
    if (call == NULL)
        return allocate();
    spares->calls = call->next;
    spares->call_count--;
    return call;
}

/* What came in one piece came at the same time: a clock is read for all of it. */
static int64_t begin_us(struct grpc_connection *connection)
{
    if (connection->turn_us == 0)
        connection->turn_us = clock_steady_us(loop_clock(connection->loop));
    return connection->turn_us;
}

struct grpc_call *grpc_call_create(struct grpc_connection *connection, int32_t stream_id)
{
    struct grpc_call *call = take_preallocated(connection->spares);
    if (call == NULL)
        return NULL;
    make_fresh(call, connection);
    call->stream_id = stream_id;
    call->begun_us = begin_us(connection);
    call->begun_turn = connection->turn;
    call->next = connection->calls;
    if (call->next != NULL)
        call->next->previous = call;
    connection->calls = call;
    connection->call_count++;
    return call;
}

static void unlink_call(struct grpc_call *call)
{
    struct grpc_connection *connection = call->connection;
    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        connection->calls = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
    connection->call_count--;
}

static void free_call(struct grpc_call *call)
{
    arena_destroy(call->arena);
    message_reader_reset(&call->reader, 0);
    metadata_free(&call->header_metadata);
    metadata_free(&call->trailer_metadata);
    free(call);
}

status grpc_spares_create(struct grpc_spares **out)
{
    struct grpc_spares *spares = malloc(sizeof *spares);
    *out = spares;
    if (spares == NULL)
        return status_out_of_memory();
    *spares = (struct grpc_spares){.call_count = 0};
    h2_memory_init(&spares->memory);
    return status_ok();
}

static void free_spares(struct grpc_spares *spares)
{
    while (spares->calls != NULL) {
        struct grpc_call *call = spares->calls;
        spares->calls = call->next;
        free_call(call);
    }
    spares->call_count = 0;
    h2_batches_free(&spares->batches);
    h2_memory_free(&spares->memory);
}

void grpc_spares_destroy(struct grpc_spares *spares)
{
    if (spares == NULL)
        return;
    free_spares(spares);
    free(spares);
}

void grpc_spares_count_ended(struct grpc_spares *spares)
{
    if (++spares->ended < LIMIT_SPARES_CONNECTIONS)
        return;
    spares->ended = 0;
    free_spares(spares);
}

/* Frees what belonged to the call; keeps the rest for the next. */
static void retire(struct grpc_call *call)
{
    CHECK_MAGIC(call, GRPC_CALL_MAGIC);
    CHECK(!call->open && !call->held && call->pins == 0);
    CHECK(call->reader.inflater == NULL); /* grpc_request_release was called, whatever happened */
    struct grpc_spares *spares = call->spares;
    for (size_t i = 0; i < call->header_count; i++) {
        nghttp2_rcbuf_decref(call->headers[i].name);
        nghttp2_rcbuf_decref(call->headers[i].value);
    }
    if (call->authority != NULL)
        nghttp2_rcbuf_decref(call->authority);
    status_free(call->refusal);
    status_free(call->final);
    call->magic = 0;
    if (call->connection != NULL)
        unlink_call(call);
    if (spares->call_count == LIMIT_SPARE_CALLS) {
        free_call(call);
        return;
    }
    arena_reset(call->arena);
    metadata_clear(&call->header_metadata);
    metadata_clear(&call->trailer_metadata);
    call->next = spares->calls;
    spares->calls = call;
    spares->call_count++;
}

void grpc_call_pin(struct grpc_call *call)
{
    call->pins++;
}

void grpc_call_unpin(struct grpc_call *call)
{
    CHECK(call->pins > 0);
    if (--call->pins == 0 && !call->open && !call->held)
        retire(call);
}

static size_t output_share(const struct grpc_connection *connection)
{
    size_t share = LIMIT_CALLS_OUTPUT_BYTES / connection->call_count;
    if (share < LIMIT_CALL_OUTPUT_LEAST_BYTES)
        return LIMIT_CALL_OUTPUT_LEAST_BYTES;
    return share < LIMIT_CALL_OUTPUT_BYTES ? share : LIMIT_CALL_OUTPUT_BYTES;
}

static int64_t age_us(const struct grpc_call *call)
{
    return clock_steady_us(loop_clock(call->loop)) - call->begun_us;
}

/* What came before there was a handler. Without memory there are no steps. */
static void begin_steps(struct grpc_call *call)
{
    struct call_steps *steps = arena_zalloc(call->arena, sizeof *steps);
    call->steps = steps;
    if (steps == NULL || call->arriving_us + call->fault.delay_us == 0)
        return;
    call_steps_begin(steps, CALL_RECEIVES, 0);
    call_steps_begin(steps, CALL_IS_DELAYED, call->arriving_us);
    call_steps_begin(steps, CALL_WORKS, call->fault.delay_us == 0 ? 0 : age_us(call));
}

void grpc_call_hold(struct grpc_call *call)
{
    call->output_limit = output_share(call->connection);
    call->wants_small_messages = call->connection->wants_small_messages;
    call->held = true;
    call->was_held = true;
    atomic_fetch_add(&call->server->call_count, 1);
    if (call->server->options.wants_steps && call->route != NULL)
        begin_steps(call);
}

static int64_t client_us(const struct grpc_call *call)
{
    return call->arriving_us + atomic_load_explicit(&call->congested_us, memory_order_relaxed);
}

static void end_steps(struct grpc_call *call, int64_t at_us)
{
    if (call->steps != NULL)
        call_steps_begin(call->steps, CALL_WORKS, at_us);
}

void grpc_call_report(struct grpc_call *call)
{
    const struct grpc_server *server = call->server;
    if (call->reported || server->options.on_call_end == NULL)
        return;
    call->reported = true;
    const struct grpc_route *route = call->route;
    int64_t duration_us = age_us(call);
    end_steps(call, duration_us);
    const struct grpc_call_record record = {
        .service = route == NULL ? NULL : route->service,
        .method = route == NULL ? NULL : route->method,
        .method_index = route == NULL ? server->method_count : route->index,
        .code = call->ended ? call->final.code : STATUS_CANCELLED,
        .end = call->ended ? &call->final : NULL,
        .duration_us = duration_us,
        .client_us = client_us(call),
        .request_bytes = call->request_bytes,
        .response_bytes = call->response_bytes,
        .note = call->note,
        .call = call,
        .peer = call->connection == NULL ? NULL : call->connection->peer,
        .request = buffer_bytes(&call->reader.body),
        .items = atomic_load_explicit(&call->items, memory_order_relaxed),
        .seen = atomic_load_explicit(&call->seen, memory_order_relaxed),
        .explanation = call->explanation,
        .profile = call->profile,
        .steps = call->steps,
    };
    server->options.on_call_end(server->options.context, &record);
}

/* The client has made room, or has gone. False if no handler waits for that. */
static bool end_congestion(struct grpc_call *call)
{
    if (!atomic_exchange(&call->wants_writable, false))
        return false;
    int64_t since_us = atomic_load(&call->congested_since_us);
    int64_t waited_us = clock_steady_us(loop_clock(call->loop)) - since_us;
    atomic_fetch_add_explicit(&call->congested_us, waited_us, memory_order_relaxed);
    return true;
}

void grpc_call_cancel(struct grpc_call *call)
{
    atomic_store(&call->cancelled, true);
    if (!call->held)
        return;
    grpc_call_pin(call);
    if (!call->told_cancelled && call->on_cancel != NULL) {
        call->told_cancelled = true;
        call->on_cancel(call->context);
    }
    if (call->held && end_congestion(call) && call->on_writable != NULL)
        call->on_writable(call->context); /* it need not wait for a client that has gone */
    grpc_request_tell_end(call);
    grpc_call_unpin(call);
}

/* The stream does not exist any more. */
static void end_stream(struct grpc_call *call)
{
    call->open = false;
    loop_timer_clear(call->loop, &call->deadline);
    loop_timer_clear(call->loop, &call->delay);
    message_queue_clear(&call->queue, &call->connection->output);
}

static void tell_end(struct grpc_call *call)
{
    if (call->held)
        grpc_call_cancel(call);
    else
        grpc_call_report(call);
}

void grpc_call_close(struct grpc_call *call)
{
    grpc_call_pin(call);
    end_stream(call);
    if (!call->held)
        grpc_request_release(call);
    tell_end(call);
    grpc_call_unpin(call);
}

void grpc_call_detach(struct grpc_call *call)
{
    grpc_call_pin(call);
    end_stream(call);
    unlink_call(call);
    call->connection = NULL;
    if (!call->held)
        grpc_request_release(call);
    tell_end(call);
    grpc_call_unpin(call);
}

static void run_deadline(struct timer *timer)
{
    struct grpc_call *call = (void *)((char *)timer - offsetof(struct grpc_call, deadline));
    grpc_call_pin(call);
    grpc_answer_end(call, status_make(STATUS_DEADLINE_EXCEEDED, "the deadline has passed"));
    grpc_call_cancel(call);
    grpc_call_unpin(call);
}

static bool can_be_rescued(const struct grpc_call *call, status s)
{
    return call->rescue != NULL && s.code == STATUS_UNAVAILABLE && !call->ended &&
           !call->headers_sent && call->queue.size == 0 && call->body_left == 0 &&
           call->response_bytes == 0 && !grpc_call_is_cancelled(call) && call->connection != NULL;
}

/* Whether somebody else has it now. */
static bool was_rescued(struct grpc_call *call, status s)
{
    bool (*rescue)(void *context, struct grpc_call *call) = call->rescue;
    bool can_be = can_be_rescued(call, s);
    call->rescue = NULL;
    if (!can_be)
        return false;
    call->shared_count = 0;
    call->shared_trailers = NULL;
    metadata_clear(&call->header_metadata);
    metadata_clear(&call->trailer_metadata);
    call->on_drain = NULL;
    grpc_call_set_callbacks(call, NULL, NULL, NULL);
    return rescue(call->rescue_context, call);
}

/* The handler has finished. May free the call. */
static void finish(struct grpc_call *call, status s)
{
    CHECK_MAGIC(call, GRPC_CALL_MAGIC);
    CHECK(call->held);
    if (was_rescued(call, s)) {
        status_free(s);
        return;
    }
    grpc_call_pin(call);
    loop_timer_clear(call->loop, &call->deadline);
    if (atomic_load(&call->lost)) {
        status_ignore(s); /* the client must know that something is missing */
        s = status_out_of_memory();
    }
    grpc_answer_end(call, s);
    call->held = false;
    atomic_fetch_sub(&call->server->call_count, 1);
    grpc_call_report(call);
    grpc_request_release(call);
    grpc_call_unpin(call);
}

/* --- between threads --- */

/* Puts a message, or finish_mark, where the loop's thread finds it. After finish_mark the call may
 * be gone at once, save when its inbox was empty: then the loop's thread does not look before the
 * task is posted. */
static void hand_over(struct grpc_call *call, struct link *link)
{
    struct link *newest = atomic_load(&call->inbox);
    do {
        link->next = newest;
    } while (!atomic_compare_exchange_weak(&call->inbox, &newest, link));
    if (newest == NULL)
        loop_post(call->loop, &call->task);
}

static struct link *reverse(struct link *newest)
{
    struct link *oldest = NULL;
    while (newest != NULL) {
        struct link *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

static void run_inbox(struct task *task)
{
    struct grpc_call *call = LIST_ENTRY(task, struct grpc_call, task);
    CHECK_MAGIC(call, GRPC_CALL_MAGIC);
    struct link *link = reverse(atomic_exchange(&call->inbox, NULL));
    while (link != NULL) {
        struct link *next = link->next;
        if (link == &call->finish_mark) { /* always the last */
            finish(call, call->handed_over);
            return;
        }
        grpc_answer_message(call, LIST_ENTRY(link, struct message, link));
        link = next;
    }
}

/* Whether the caller may act on the call itself, and nothing handed over is still on its way. */
static bool is_direct(struct grpc_call *call)
{
    return loop_is_current(call->loop) && atomic_load(&call->inbox) == NULL;
}

/* --- what a handler may ask and do --- */

struct arena *grpc_call_arena(struct grpc_call *call)
{
    return call->arena;
}

struct loop *grpc_call_loop(struct grpc_call *call)
{
    return call->loop;
}

void grpc_call_set_note(struct grpc_call *call, const void *note)
{
    call->note = note;
}

void grpc_call_set_profile(struct grpc_call *call, const char *id)
{
    call->profile = id;
}

const void *grpc_call_note(const struct grpc_call *call)
{
    return call->note;
}

void grpc_call_count(struct grpc_call *call, int64_t items, int64_t seen)
{
    atomic_store_explicit(&call->items, items, memory_order_relaxed);
    atomic_store_explicit(&call->seen, seen, memory_order_relaxed);
}

bool grpc_call_is_slow(const struct grpc_call *call)
{
    int64_t slow_us = call->server->options.slow_us;
    return slow_us != INT64_MAX && age_us(call) - client_us(call) >= slow_us;
}

void grpc_call_rested(struct grpc_call *call, int64_t us)
{
    atomic_fetch_add_explicit(&call->congested_us, us, memory_order_relaxed);
}

void grpc_call_explain(struct grpc_call *call, bytes words)
{
    call->explanation = words;
}

void grpc_call_is_at(struct grpc_call *call, enum call_step step)
{
    atomic_store_explicit(&call->step, (unsigned char)step, memory_order_relaxed);
}

void grpc_call_step(struct grpc_call *call, enum call_step step)
{
    grpc_call_is_at(call, step);
    if (call->steps != NULL)
        call_steps_begin(call->steps, step, age_us(call));
}

void grpc_call_step_at(struct grpc_call *call, enum call_step step, int64_t at_us)
{
    if (call->steps != NULL)
        call_steps_begin(call->steps, step, at_us - call->begun_us);
}

static bool decode_header(struct grpc_call *call, bytes *value)
{
    uint8_t *decoded = arena_alloc(call->arena, base64_decoded_most(value->size));
    size_t size;
    if (decoded == NULL || !base64_decode(*value, decoded, &size))
        return false;
    *value = bytes_make(decoded, size);
    return true;
}

bool grpc_call_header(struct grpc_call *call, const char *name, bytes *value)
{
    bytes wanted = bytes_of(name);
    *value = bytes_make(NULL, 0);
    for (size_t i = 0; i < call->header_count; i++) {
        nghttp2_vec found = nghttp2_rcbuf_get_buf(call->headers[i].name);
        if (!bytes_equal(bytes_make(found.base, found.len), wanted))
            continue;
        nghttp2_vec text = nghttp2_rcbuf_get_buf(call->headers[i].value);
        *value = bytes_make(text.base, text.len);
        return !metadata_is_binary(wanted) || decode_header(call, value);
    }
    return false;
}

int64_t grpc_call_deadline_us(const struct grpc_call *call)
{
    return call->timeout_us == INT64_MAX ? INT64_MAX : call->begun_us + call->timeout_us;
}

bool grpc_call_is_cancelled(const struct grpc_call *call)
{
    return atomic_load(&call->cancelled) || atomic_load(&call->lost);
}

static void send(struct grpc_call *call, struct message *message)
{
    if (grpc_call_is_cancelled(call)) {
        message_free(message);
        return;
    }
    atomic_fetch_add(&call->unsent, message->size);
    if (is_direct(call))
        grpc_answer_message(call, message);
    else
        hand_over(call, &message->link);
}

static void send_or_lose(struct grpc_call *call, struct message *message)
{
    CHECK_MAGIC(call, GRPC_CALL_MAGIC);
    if (message == NULL)
        atomic_store(&call->lost, true);
    else
        send(call, message);
}

void grpc_call_send(struct grpc_call *call, struct buffer *buffer)
{
    send_or_lose(call, message_seal(buffer, call->answers_gzip));
}

void grpc_call_announce(struct grpc_call *call, uint32_t body_size)
{
    send_or_lose(call, message_announce(body_size));
}

void grpc_call_send_piece(struct grpc_call *call, struct buffer *piece)
{
    send_or_lose(call, message_of_piece(piece));
}

bool grpc_call_wants_small_messages(const struct grpc_call *call)
{
    return call->wants_small_messages;
}

void grpc_call_visit_headers(const struct grpc_call *call, void *context,
                             void (*each)(void *context, bytes name, bytes value))
{
    if (call->authority != NULL) {
        nghttp2_vec host = nghttp2_rcbuf_get_buf(call->authority);
        each(context, bytes_of("host"), bytes_make(host.base, host.len));
    }
    for (size_t i = 0; i < call->header_count; i++) {
        nghttp2_vec name = nghttp2_rcbuf_get_buf(call->headers[i].name);
        nghttp2_vec value = nghttp2_rcbuf_get_buf(call->headers[i].value);
        each(context, bytes_make(name.base, name.len), bytes_make(value.base, value.len));
    }
}

void grpc_call_answer_http(struct grpc_call *call, unsigned code, const char *content_type,
                           const char *caching)
{
    call->http_code = code;
    call->http_caching = caching;
    call->http_type = content_type;
}

void grpc_call_send_http(struct grpc_call *call, bytes body)
{
    CHECK(call->is_http && call->http_code != 0);
    send_or_lose(call, message_of_bytes(body));
}

void grpc_call_finish(struct grpc_call *call, status s)
{
    CHECK_MAGIC(call, GRPC_CALL_MAGIC);
    if (is_direct(call)) {
        finish(call, s);
        return;
    }
    call->handed_over = s;
    hand_over(call, &call->finish_mark);
}

void grpc_call_add_header(struct grpc_call *call, const char *name, bytes value)
{
    if (call->is_http)
        metadata_add_text(&call->header_metadata, bytes_of(name), value);
    else
        metadata_add(&call->header_metadata, name, value);
}

void grpc_call_add_trailer(struct grpc_call *call, const char *name, bytes value)
{
    metadata_add(&call->trailer_metadata, name, value);
}

struct metadata *grpc_headers_create(const struct grpc_field *fields, size_t count)
{
    struct metadata *headers = calloc(1, sizeof *headers);
    if (headers == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        metadata_add(headers, fields[i].name, fields[i].value);
    if (headers->count < count) {
        grpc_headers_destroy(headers);
        return NULL;
    }
    return headers;
}

void grpc_headers_destroy(struct metadata *headers)
{
    if (headers == NULL)
        return;
    metadata_free(headers);
    free(headers);
}

void grpc_call_share_headers(struct grpc_call *call, const struct metadata *headers)
{
    CHECK(call->shared_count < GRPC_SHARED_MOST);
    call->shared_headers[call->shared_count++] = headers;
}

void grpc_call_share_trailers(struct grpc_call *call, const struct metadata *trailers)
{
    call->shared_trailers = trailers;
}

int64_t grpc_call_begun_us(const struct grpc_call *call)
{
    return call->begun_us;
}

void *grpc_call_peer(const struct grpc_call *call)
{
    return call->connection == NULL ? NULL : call->connection->peer;
}

uint64_t grpc_call_connection(const struct grpc_call *call)
{
    return call->connection_id;
}

/* The wish is noted before the second look, and the thread that lowers `unsent` looks at the wish
 * after: one of the two sees the other, so that a handler that was told to wait is always told to
 * go on. */
bool grpc_call_is_congested(struct grpc_call *call)
{
    if (atomic_load(&call->unsent) <= call->output_limit || grpc_call_is_cancelled(call))
        return false;
    if (!atomic_load(&call->wants_writable))
        atomic_store(&call->congested_since_us, clock_steady_us(loop_clock(call->loop)));
    atomic_store(&call->wants_writable, true);
    bool is_over = atomic_load(&call->unsent) <= call->output_limit || grpc_call_is_cancelled(call);
    return !(is_over && atomic_exchange(&call->wants_writable, false));
}

void grpc_call_count_sent(struct grpc_call *call, size_t size)
{
    size_t before = atomic_fetch_sub(&call->unsent, size);
    if (before - size > call->output_limit || call->connection == NULL || !end_congestion(call) ||
        call->is_to_be_told)
        return;
    call->is_to_be_told = true;
    grpc_call_pin(call); /* until the connection has told it */
    list_append(&call->connection->writable, &call->writable_link);
}

void grpc_call_set_rescue(struct grpc_call *call, void *context,
                          bool (*rescue)(void *context, struct grpc_call *call))
{
    call->rescue = rescue;
    call->rescue_context = context;
}

void grpc_call_set_on_drain(struct grpc_call *call, void (*on_drain)(void *context))
{
    call->on_drain = on_drain;
    if (call->connection != NULL && call->connection->is_draining)
        grpc_call_drain(call);
}

void grpc_call_drain(struct grpc_call *call)
{
    void (*on_drain)(void *context) = call->on_drain;
    call->on_drain = NULL;
    if (call->held && on_drain != NULL)
        on_drain(call->context);
}

void grpc_call_set_callbacks(struct grpc_call *call, void *context,
                             void (*on_writable)(void *context), void (*on_cancel)(void *context))
{
    call->context = context;
    call->on_writable = on_writable;
    call->on_cancel = on_cancel;
    if (atomic_load(&call->cancelled))
        grpc_call_cancel(call);
}
