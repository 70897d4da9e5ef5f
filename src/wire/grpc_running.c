/* What runs on a connection: looking at calls, and ending one. See grpc_private.h for the whole.
 *
 * Nothing is noted for it while calls run but what they do, a byte: they are on their connection's
 * list anyway. */
#include "wire/grpc_private.h"

#include "base/check.h"

uint64_t grpc_connection_id(const struct grpc_connection *connection)
{
    return connection->id;
}

/* By what the handler has said, or by what has become of the call. */
static enum call_step step_of(const struct grpc_call *call)
{
    if (!call->was_held)
        return call->has_message && call->fault.delay_us > 0 ? CALL_IS_DELAYED : CALL_RECEIVES;
    if (!call->held || atomic_load(&call->wants_writable))
        return CALL_AWAITS_CLIENT;
    return (enum call_step)atomic_load_explicit(&call->step, memory_order_relaxed);
}

static void describe(const struct grpc_connection *connection, struct grpc_call *call,
                     struct grpc_running *out)
{
    *out = (struct grpc_running){
        .service = call->route->service,
        .method = call->route->method,
        .connection_id = connection->id,
        .stream_id = call->stream_id,
        .call = call,
        .peer = connection->peer,
        .note = call->note,
        .request = call->has_message ? buffer_bytes(&call->reader.body) : bytes_make(NULL, 0),
        .begun_us = call->begun_us,
        .deadline_us = grpc_call_deadline_us(call),
        .request_bytes = call->request_bytes,
        .response_bytes = call->response_bytes,
        .items = atomic_load_explicit(&call->items, memory_order_relaxed),
        .seen = atomic_load_explicit(&call->seen, memory_order_relaxed),
        .profile = call->profile,
        .step = step_of(call),
        .is_cancelled = grpc_call_is_cancelled(call),
    };
}

void grpc_connection_visit(const struct grpc_connection *connection, void *context,
                           void (*each)(void *context, const struct grpc_running *call))
{
    CHECK_MAGIC(connection, GRPC_CONNECTION_MAGIC);
    for (struct grpc_call *call = connection->calls; call != NULL; call = call->next) {
        struct grpc_running running;
        if (call->route == NULL || !call->open)
            continue;
        describe(connection, call, &running);
        each(context, &running);
    }
}

static struct grpc_call *find(const struct grpc_connection *connection, int32_t stream_id)
{
    struct grpc_call *call = connection->calls;
    while (call != NULL && call->stream_id != stream_id)
        call = call->next;
    return call;
}

bool grpc_connection_end_call(struct grpc_connection *connection, int32_t stream_id, status s)
{
    struct grpc_call *call = find(connection, stream_id);
    CHECK_MAGIC(connection, GRPC_CONNECTION_MAGIC);
    if (call == NULL || call->route == NULL || !call->open || call->ended) {
        status_ignore(s);
        return false;
    }
    grpc_call_pin(call);
    grpc_answer_end(call, s);
    grpc_call_cancel(call);
    grpc_call_unpin(call);
    return true;
}
