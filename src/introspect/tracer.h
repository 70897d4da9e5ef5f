/* Spans of requests for an OpenTelemetry collector: which are traced, and how they get there.
 *
 * A request is a span, and each of its steps (wire/call_steps.h) one within it. The client's
 * traceparent says which trace it belongs to and whether it is sampled; of requests without one,
 * one in `one_in` is; slow ones always are.
 *
 * A span is copied into a bounded queue when the request has ended. A thread of the tracer's own
 * encodes what has gathered, and sends it: no other thread waits for the collector, and what does
 * not fit into the queue is dropped and counted (trace_spans_dropped_total). */
#ifndef TRESTLE_INTROSPECT_TRACER_H
#define TRESTLE_INTROSPECT_TRACER_H

#include "base/log.h"
#include "base/metrics.h"
#include "wire/grpc_server.h"

struct tracer;

struct tracer_options {
    uint64_t one_in; /* 0: only those whose client says so, and slow ones */
    const struct log *log;
    struct clock *clock;
    struct metrics *metrics; /* may be NULL */
    const char *version;     /* the program's */

    /* Sends an encoded batch, on the tracer's thread, within so many microseconds. UNAVAILABLE: it
     * may be sent again; anything else: it is lost. */
    status (*send)(void *context, bytes batch, int64_t timeout_us);
    void *context;
};

/* All of the options outlives it. */
status tracer_create(const struct tracer_options *options, struct tracer **out);

/* Sends what waits, for no longer than some seconds, and ends the thread. NULL is fine. */
void tracer_destroy(struct tracer *tracer);

/* A call that has ended; on its loop. */
void tracer_add(struct tracer *tracer, const struct grpc_call_record *record, bool is_slow);

#endif
