/* See h2_guard.h.
 *
 * A client's streams have odd ids that only go up; a stream's place is how many come before it. */
#include "wire/h2_guard.h"

#include <nghttp2/nghttp2.h>
#include <string.h>

/* How a client has ended a stream. */
enum end {
    PASSED_OVER, /* by opening a later one: it may not be opened any more */
    NOT_YET,
    ENDED, /* END_STREAM */
    RESET, /* RST_STREAM */
};

void h2_guard_init(struct h2_guard *guard)
{
    *guard = (struct h2_guard){.preface_left = NGHTTP2_CLIENT_MAGIC_LEN, .newest = -1};
}

static uint8_t *end_of(struct h2_guard *guard, int64_t place)
{
    return &guard->ends[place % LIMIT_STREAMS_REMEMBERED];
}

/* Streams up to this one are passed over; what was at their places is forgotten. */
static void move_to(struct h2_guard *guard, int64_t place)
{
    int64_t first = guard->newest + 1;
    if (place - first >= LIMIT_STREAMS_REMEMBERED)
        first = place - LIMIT_STREAMS_REMEMBERED + 1;
    for (; first <= place; first++)
        *end_of(guard, first) = PASSED_OVER;
    guard->newest = place;
}

static struct h2_offence offend(int32_t stream, uint32_t code, bool ends_connection)
{
    return (struct h2_offence){stream, code, ends_connection};
}

/* HEADERS or DATA on a stream that is remembered. */
static struct h2_offence judge(enum end end, int32_t stream)
{
    switch (end) {
    case PASSED_OVER:
        return offend(stream, NGHTTP2_PROTOCOL_ERROR, true);
    case ENDED:
        return offend(stream, NGHTTP2_STREAM_CLOSED, true);
    case RESET:
        return offend(stream, NGHTTP2_STREAM_CLOSED, false);
    case NOT_YET:
        break;
    }
    return offend(stream, NGHTTP2_NO_ERROR, false);
}

static struct h2_offence note_frame(struct h2_guard *guard, uint8_t type, uint8_t flags,
                                    int32_t stream)
{
    struct h2_offence none = offend(stream, NGHTTP2_NO_ERROR, false);
    bool is_content = type == NGHTTP2_HEADERS || type == NGHTTP2_DATA;
    int64_t place = stream / 2;
    if (stream % 2 == 0 || (!is_content && type != NGHTTP2_RST_STREAM))
        return none;
    if (place > guard->newest && type == NGHTTP2_HEADERS) {
        move_to(guard, place);
        *end_of(guard, place) = NOT_YET;
    }
    if (place > guard->newest || place <= guard->newest - LIMIT_STREAMS_REMEMBERED)
        return none;
    uint8_t *end = end_of(guard, place);
    if (type == NGHTTP2_RST_STREAM) {
        if (*end == NOT_YET)
            *end = RESET;
        return none;
    }
    struct h2_offence offence = judge(*end, stream);
    if (*end == NOT_YET && (flags & NGHTTP2_FLAG_END_STREAM) != 0)
        *end = ENDED;
    return offence;
}

static struct h2_offence read_header(struct h2_guard *guard, const uint8_t *at)
{
    guard->payload_left = (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];
    uint32_t stream = (uint32_t)at[5] << 24 | (uint32_t)at[6] << 16 | (uint32_t)at[7] << 8 | at[8];
    return note_frame(guard, at[3], at[4], (int32_t)(stream & 0x7fffffff));
}

/* How much of what is left comes with so many bytes; it is not left any more. */
static size_t pass(size_t *left, size_t size)
{
    size_t passed = *left < size ? *left : size;
    *left -= passed;
    return passed;
}

/* A header, or as much of one as there is; most are there as a whole. */
static size_t take_header(struct h2_guard *guard, bytes input, struct h2_offence *offence)
{
    if (guard->header_size == 0 && input.size >= H2_FRAME_HEADER) {
        *offence = read_header(guard, input.data);
        return H2_FRAME_HEADER;
    }
    size_t wanted = H2_FRAME_HEADER - guard->header_size;
    size_t size = wanted < input.size ? wanted : input.size;
    memcpy(guard->header + guard->header_size, input.data, size);
    guard->header_size += size;
    if (guard->header_size == H2_FRAME_HEADER) {
        guard->header_size = 0;
        *offence = read_header(guard, guard->header);
    }
    return size;
}

size_t h2_guard_scan(struct h2_guard *guard, bytes input, struct h2_offence *offence)
{
    *offence = offend(0, NGHTTP2_NO_ERROR, false);
    size_t at = pass(&guard->preface_left, input.size);
    while (at < input.size && offence->code == NGHTTP2_NO_ERROR) {
        at += pass(&guard->payload_left, input.size - at);
        if (at == input.size)
            break;
        at += take_header(guard, bytes_from(input, at), offence);
    }
    return at;
}
