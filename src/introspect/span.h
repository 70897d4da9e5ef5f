/* A request as a span with those of its steps within it, and such spans as the bytes of an OTLP
 * export. */
#ifndef TRESTLE_INTROSPECT_SPAN_H
#define TRESTLE_INTROSPECT_SPAN_H

#include "base/arena.h"
#include "introspect/trace_context.h"
#include "wire/call_steps.h"
#include "wire/grpc_server.h"

enum { SPAN_NAME_MOST = 255 };

/* A span has a fixed size, for a queue. */
struct span {
    struct trace_context parent; /* the span's trace; span_id is zeroes if it is a root */
    uint8_t span_id[SPAN_ID_SIZE];
    const struct grpc_service *service; /* NULL: the path named none */
    const struct grpc_method *method;
    int64_t start_us; /* wall clock */
    int64_t duration_us;
    int64_t client_us;
    enum status_code code;
    int64_t items;
    int64_t seen;
    size_t request_bytes;
    size_t answer_bytes;
    bool is_slow;
    struct call_steps steps;
    char resource[SPAN_NAME_MOST + 1]; /* readable; "": none */
};

/* `parent`: of the client, or with a new trace_id and a span_id of zeroes. */
void span_make(const struct grpc_call_record *record, const struct trace_context *parent,
               bool is_slow, int64_t now_us, struct span *out);

/* How many spans it will be: itself, and its steps. */
static inline size_t span_count(const struct span *span)
{
    return 1 + span->steps.count;
}

/* Appends the export to `out`; memory from the arena. */
status spans_encode(const struct span *spans, size_t count, const char *version,
                    struct arena *arena, struct buffer *out);

#endif
