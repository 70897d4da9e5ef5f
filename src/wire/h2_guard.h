/* Which frames a client may still send on which stream. nghttp2 forgets a stream when it is closed,
 * and lets pass what comes on it later; this remembers, of the last LIMIT_STREAMS_REMEMBERED that
 * a client opened or passed over, how the client ended each: a byte a stream, whatever it does.
 *
 * It reads the headers of frames ahead of nghttp2, and changes nothing. What is wrong with a frame
 * by itself, and with streams that are not open yet, nghttp2 finds out.
 *
 * Invariants
 *  1. Only what the client did counts: frames may be on their way on a stream that we have ended.
 *  2. Streams older than those remembered may do anything: nghttp2 ignores it. */
#ifndef TRESTLE_WIRE_H2_GUARD_H
#define TRESTLE_WIRE_H2_GUARD_H

#include "base/bytes.h"
#include "base/limits.h"

#include <stdbool.h>

enum { H2_FRAME_HEADER = 9 };

struct h2_guard {
    size_t preface_left; /* bytes of the client's preface that have not come */
    size_t payload_left; /* of the frame that is coming in */
    size_t header_size;  /* bytes of `header` that have come; 0 while a payload comes */
    uint8_t header[H2_FRAME_HEADER];
    int64_t newest;                         /* the place of the last stream opened; -1: none */
    uint8_t ends[LIMIT_STREAMS_REMEMBERED]; /* by place, modulo */
};

/* What a client may not do. By the code NGHTTP2_NO_ERROR it did nothing. */
struct h2_offence {
    int32_t stream;
    uint32_t code;
    bool ends_connection; /* else its stream alone is reset */
};

void h2_guard_init(struct h2_guard *guard);

/* Reads on, to the input's end or through the header of the first frame that offends: so many bytes
 * of the input are for nghttp2 before the offender is punished. */
size_t h2_guard_scan(struct h2_guard *guard, bytes input, struct h2_offence *offence);

#endif
