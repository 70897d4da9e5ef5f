/* Memory for HTTP/2 sessions. nghttp2 makes and frees some twenty small objects for each call
 * (streams, frames, header fields); those that are freed are kept, by size, for the next.
 *
 * For sessions of one thread. What they took may be given back after they have ended: header fields
 * live as long as they are referred to. */
#ifndef TRESTLE_WIRE_H2_MEMORY_H
#define TRESTLE_WIRE_H2_MEMORY_H

#include <nghttp2/nghttp2.h>

enum { H2_MEMORY_CLASSES = 16 };

struct h2_kept;

struct h2_memory {
    nghttp2_mem functions; /* to create sessions with */
    size_t kept_bytes;
    struct h2_kept *kept[H2_MEMORY_CLASSES];
};

void h2_memory_init(struct h2_memory *memory);

/* Frees what is kept: when everything has been given back, or to begin with none. */
void h2_memory_free(struct h2_memory *memory);

#endif
