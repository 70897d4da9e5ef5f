/* Bytes read on a thread of their own, ahead of the caller: a bounded ring of blocks, which that
 * thread fills and the caller's empties.
 *
 * What the source says comes as it says it: bytes in their order, then its end, or its failure
 * behind all bytes that came before it. Memory is the ring, READ_AHEAD_BYTES. The caller is one
 * thread at a time; the source is the other thread's until read_ahead_destroy has returned. */
#ifndef TRESTLE_FORMATS_READ_AHEAD_H
#define TRESTLE_FORMATS_READ_AHEAD_H

#include "base/status.h"

struct read_ahead;

enum { READ_AHEAD_BYTES = 2 << 20 };

/* Both functions are called on the thread that reads ahead. */
struct read_ahead_source {
    void *context;
    /* The next bytes: at least one and at most `room`; 0 is the end. It is asked for nothing behind
     * its end, or a failure. */
    status (*read)(void *context, uint8_t *to, size_t room, size_t *made);
    uint64_t (*position)(void *context); /* how far it has come, in whatever it counts */
};

/* Begins at once. RESOURCE_EXHAUSTED; UNAVAILABLE if no thread can be started. */
status read_ahead_create(const struct read_ahead_source *source, struct read_ahead **out);

/* Waits for the source's read that is under way; NULL is fine. */
void read_ahead_destroy(struct read_ahead *ahead);

/* As the source's `read`: waits for it while nothing is there. What ended it, ends this again and
 * again. */
status read_ahead_take(struct read_ahead *ahead, uint8_t *to, size_t room, size_t *made);

/* How far the source had come with what was taken last, to within a block; at the end, exactly. 0
 * before. */
uint64_t read_ahead_position(const struct read_ahead *ahead);

#endif
