/* Admission: bounds on the request messages that one connection makes us hold, and that all of them
 * do. See grpc_private.h for the whole.
 *
 * A long message for which there is no room waits on its connection's list: its stream gets no more
 * window than it had unasked. The first of a list asks the server's room (request_room.h), so that
 * connections take turns there, however many messages each has waiting.
 *
 * Invariants
 *  1. A call that is on the list `waiting` is pinned, and once more from when it asks the room for
 *     its place until it has been granted or has left.
 *  2. What a call that is not admitted has got counts for its connection, not in the room, where it
 *     has a part instead. */
#include "wire/grpc_private.h"

size_t grpc_admission_unasked(const struct grpc_server *server)
{
    return server->room != NULL ? server->room->part : (size_t)LIMIT_STREAM_WINDOW_BYTES;
}

static bool is_long(const struct grpc_call *call, size_t size)
{
    return size > grpc_admission_unasked(call->server);
}

status grpc_admission_refusal(const char *words)
{
    enum { RETRY_MS = 200 };
    status s = status_make(STATUS_RESOURCE_EXHAUSTED, "%s", words);
    status_add_retry_info(&s, RETRY_MS);
    return s;
}

static status no_room(void)
{
    return grpc_admission_refusal("The requests that are under way take too much memory");
}

/* --- what is held --- */

static bool fits_connection(const struct grpc_call *call, size_t total)
{
    const struct grpc_connection *connection = call->connection;
    size_t most = connection->server->options.max_buffered_requests;
    if (total <= call->reserved || connection->buffered == 0)
        return true;
    return connection->buffered <= most && total - call->reserved <= most - connection->buffered;
}

static void reserve(struct grpc_call *call, size_t size)
{
    call->connection->buffered += size - call->reserved;
    call->reserved = size;
}

/* Of a request of REST's, whose body has its room, or came by HTTP/1.1, which bounds them. */
static bool is_inner(const struct grpc_call *call)
{
    return call->connection->wants_small_messages;
}

/* Administration has its place whatever clients for data send. */
static bool is_never_refused(const struct grpc_call *call)
{
    return call->route == NULL || !call->route->service->is_data || is_inner(call);
}

static bool take_part(struct grpc_call *call)
{
    call->has_part = call->server->room != NULL && request_room_take_part(call->server->room);
    return call->has_part || call->server->room == NULL;
}

static void return_part(struct grpc_call *call)
{
    if (call->has_part)
        request_room_return_part(call->server->room);
    call->has_part = false;
}

/* --- windows --- */

/* Opens the stream's window for the rest of a long message. Failure is nghttp2's lack of memory:
 * the stream then goes on with the window it has. */
static void widen_window(struct grpc_call *call, size_t size)
{
    if (!is_long(call, size))
        return;
    if (size > LIMIT_CONNECTION_WINDOW_BYTES)
        size = LIMIT_CONNECTION_WINDOW_BYTES;
    int error = nghttp2_session_set_local_window_size(call->connection->session, NGHTTP2_FLAG_NONE,
                                                      call->stream_id, (int32_t)size);
    (void)error;
}

void grpc_admission_credit(struct grpc_call *call, size_t size)
{
    if (!call->admitted) {
        call->unconsumed += size;
        return;
    }
    int error = nghttp2_session_consume_stream(call->connection->session, call->stream_id,
                                               size + call->unconsumed);
    call->unconsumed = 0;
    if (error != 0)
        call->connection->is_broken = true;
}

/* --- those that wait --- */

static bool still_wants(const struct grpc_call *call)
{
    return call->connection != NULL && call->open && !call->ended;
}

/* On the thread that gave the room back. */
static void post_granted(struct request_waiter *waiter)
{
    struct grpc_call *call = LIST_ENTRY(waiter, struct grpc_call, waiter);
    loop_post(call->loop, &call->granted);
}

static void admit_waiting(struct grpc_connection *connection);

static void run_granted(struct task *task)
{
    struct grpc_call *call = LIST_ENTRY(task, struct grpc_call, granted);
    call->waits_for_room = false;
    call->share.long_bytes += call->waiter.size;
    if (still_wants(call)) {
        admit_waiting(call->connection); /* it is the first */
        grpc_connection_signal(call->connection);
    } else {
        grpc_admission_end(call);
    }
    grpc_call_unpin(call);
}

static bool ask_for(struct grpc_call *call, size_t size)
{
    call->waiter.size = size;
    call->waiter.granted = post_granted;
    call->granted.run = run_granted;
    if (!request_room_ask(call->server->room, &call->waiter)) {
        grpc_call_pin(call);
        call->waits_for_room = true; /* run_granted is on this thread, too */
        return false;
    }
    call->share.long_bytes += size;
    return true;
}

/* Whether the server has room for what is promised; if not, run_granted comes. */
static bool ask_room(struct grpc_call *call)
{
    size_t held = call->share.long_bytes + call->share.short_bytes;
    if (call->server->room == NULL || held >= call->promised)
        return true;
    if (!is_inner(call))
        return ask_for(call, call->promised - held);
    const struct request_share more = {.long_bytes = call->promised - held};
    request_room_take_anyway(call->server->room, more);
    call->share.long_bytes += more.long_bytes;
    return true;
}

/* Of the first that waits. */
static bool has_room(struct grpc_call *call)
{
    return !call->waits_for_room && fits_connection(call, call->promised) && ask_room(call);
}

static void let_in(struct grpc_call *call)
{
    if (call->promised > call->reserved)
        reserve(call, call->promised);
    widen_window(call, call->promised);
    grpc_admission_credit(call, 0);
}

static void admit_waiting(struct grpc_connection *connection)
{
    while (!list_is_empty(&connection->waiting)) {
        struct grpc_call *call =
            LIST_ENTRY(connection->waiting.first, struct grpc_call, admission_link);
        if (still_wants(call) && !has_room(call))
            return;
        list_take(&connection->waiting);
        call->admitted = true;
        return_part(call);
        if (still_wants(call))
            let_in(call);
        grpc_call_unpin(call);
    }
}

static status ask_long(struct grpc_call *call, size_t size)
{
    if (!take_part(call))
        return no_room();
    call->admitted = false;
    call->promised = size;
    grpc_call_pin(call);
    bool is_first = list_is_empty(&call->connection->waiting);
    list_append(&call->connection->waiting, &call->admission_link);
    if (is_first)
        admit_waiting(call->connection);
    return status_ok();
}

/* --- what comes --- */

static status take_short(struct grpc_call *call, size_t more)
{
    struct request_room *room = call->server->room;
    if (room == NULL)
        return status_ok();
    if (is_never_refused(call))
        request_room_take_anyway(room, (struct request_share){.short_bytes = more});
    else if (!request_room_take_short(room, more))
        return no_room();
    call->share.short_bytes += more;
    return status_ok();
}

status grpc_admission_ask(struct grpc_call *call, size_t size)
{
    if (!call->admitted || size <= call->reserved)
        return status_ok();
    if (is_long(call, size))
        return ask_long(call, size);
    TRY(take_short(call, size - call->reserved));
    reserve(call, size);
    return status_ok();
}

/* What was not promised: a message that is longer when it is inflated. */
static status take_long(struct grpc_call *call, size_t more)
{
    struct request_room *room = call->server->room;
    if (!fits_connection(call, call->reserved + more))
        return status_make(STATUS_RESOURCE_EXHAUSTED,
                           "the connection's requests take too much memory");
    if (room == NULL)
        return status_ok();
    if (is_inner(call))
        request_room_take_anyway(room, (struct request_share){.long_bytes = more});
    else if (!request_room_take_long(room, more))
        return no_room();
    call->share.long_bytes += more;
    return status_ok();
}

/* Short ones have come already: they are counted, and no more. */
status grpc_admission_grow(struct grpc_call *call)
{
    size_t size = call->reader.body.size;
    if (size <= call->reserved)
        return status_ok();
    size_t more = size - call->reserved;
    if (is_long(call, size)) {
        TRY(take_long(call, more));
    } else if (call->server->room != NULL && call->admitted) {
        request_room_take_anyway(call->server->room, (struct request_share){.short_bytes = more});
        call->share.short_bytes += more;
    }
    reserve(call, size);
    return status_ok();
}

/* --- the end --- */

/* The caller has pinned the call, or its stream is open. */
static void leave_room(struct grpc_call *call)
{
    struct request_room *room = call->server->room;
    const struct request_share share = call->share;
    if (room == NULL)
        return;
    call->share = (struct request_share){0};
    return_part(call);
    if (share.long_bytes + share.short_bytes > 0)
        request_room_give_back(room, share);
    if (call->waits_for_room && request_room_leave(room, &call->waiter)) {
        call->waits_for_room = false;
        grpc_call_unpin(call);
    }
}

void grpc_admission_end(struct grpc_call *call)
{
    struct grpc_connection *connection = call->connection;
    size_t reserved = call->reserved;
    leave_room(call);
    call->reserved = 0;
    if (connection == NULL)
        return;
    connection->buffered -= reserved;
    if (list_is_empty(&connection->waiting))
        return;
    admit_waiting(connection);
    grpc_connection_signal(connection); /* of new credit */
}
