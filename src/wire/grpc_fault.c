/* Faults that are put in a call's way, for tests of clients: see grpc_server_options.inject.
 *
 * A call that is delayed is whole and admitted, but not held: no handler knows of it. Whatever ends
 * it meanwhile, its deadline, its client or its connection, ends it as it ends one that has not
 * come in full, and takes the timer back. */
#include "wire/grpc_private.h"

static status injected(const struct grpc_call *call)
{
    return status_make(call->fault.code, "%s", call->fault.words);
}

static void go_on(struct grpc_call *call)
{
    if (call->ended)
        return; /* its deadline has passed */
    if (call->fault.code != STATUS_OK && call->fault.after == 0)
        grpc_answer_end(call, injected(call));
    else
        grpc_request_handle(call);
}

static void run_delay(struct timer *timer)
{
    struct grpc_call *call = (void *)((char *)timer - offsetof(struct grpc_call, delay));
    grpc_call_pin(call);
    go_on(call);
    grpc_call_unpin(call);
}

void grpc_fault_begin(struct grpc_call *call)
{
    const struct grpc_server_options *options = &call->server->options;
    call->fault =
        options->inject(options->context, call->route->index, buffer_bytes(&call->reader.body));
    if (call->fault.delay_us == 0) {
        go_on(call);
        return;
    }
    call->delay.run = run_delay;
    int64_t now = clock_steady_us(loop_clock(call->loop));
    status s = loop_timer_set(call->loop, &call->delay, now + call->fault.delay_us);
    if (!status_is_ok(s))
        grpc_answer_end(call, s);
}

/* The handler is told when the stream is closed, which is soon; what it sends until then is
 * dropped. Not here: it is in the middle of sending. */
void grpc_fault_count_message(struct grpc_call *call)
{
    if (--call->fault.after > 0)
        return;
    grpc_answer_end(call, injected(call));
    atomic_store(&call->cancelled, true);
}
