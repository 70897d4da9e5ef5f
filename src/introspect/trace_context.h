/* The header `traceparent` of W3C's Trace Context: which trace a request belongs to, and which span
 * of the client it is a child of.
 *
 *     00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
 *     version, 16 bytes of trace, 8 bytes of span, flags (1: sampled) */
#ifndef TRESTLE_INTROSPECT_TRACE_CONTEXT_H
#define TRESTLE_INTROSPECT_TRACE_CONTEXT_H

#include "base/bytes.h"

enum { TRACE_ID_SIZE = 16, SPAN_ID_SIZE = 8, TRACE_ID_TEXT_SIZE = 2 * TRACE_ID_SIZE + 1 };

struct trace_context {
    uint8_t trace_id[TRACE_ID_SIZE];
    uint8_t span_id[SPAN_ID_SIZE]; /* the client's */
    bool is_sampled;
};

/* False, with `*out` in any state, for what is none: such a header is as good as absent. */
bool trace_context_parse(bytes header, struct trace_context *out);

/* The trace's id as hexadecimal digits and a NUL. */
void trace_context_id_text(const struct trace_context *context, char text[TRACE_ID_TEXT_SIZE]);

#endif
