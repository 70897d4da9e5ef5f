/* The changes that the messages of ReadChangeStream's answers make up, one after the other.
 *
 *     first message ─► CONTINUATION … ─► the one with `done`: CHANGE_WHOLE
 *     heartbeat: CHANGE_HEARTBEAT        close: CHANGE_CLOSE
 *
 * Invariants
 *  1. A value that came in pieces is whole in the change; nobody sees pieces.
 *  2. What does not follow the rules of a stream (docs/reference/data-api.md) is DATA_LOSS, and
 *     nothing of it is given. A break within a change gives nothing of it, either. */
#ifndef TRESTLE_CLIENT_CHANGE_ASSEMBLY_H
#define TRESTLE_CLIENT_CHANGE_ASSEMBLY_H

#include "base/status.h"
#include "base/vector.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

/* What a row had at once. */
struct feed_change {
    bytes row_key;
    int64_t commit_us;
    int32_t tiebreaker;
    bool is_collection;             /* GARBAGE_COLLECTION; else a user's */
    const char *source_cluster;     /* "" of a collection */
    Bt__Mutation *const *mutations; /* values are whole, however large they are */
    size_t count;                   /* at least 1 */
    bytes partition;                /* the first key of the one that it came by */
};

enum change_event {
    CHANGE_PART, /* more is to come */
    CHANGE_WHOLE,
    CHANGE_HEARTBEAT,
    CHANGE_CLOSE,
};

/* All zeroes is none; change_assembly_init before use, change_assembly_free after it. What it
 * points to lives until the next message, or reset. */
struct change_assembly {
    struct arena *arena; /* of the change */
    struct arena *piece; /* of a message within a value */
    struct feed_change change;
    struct vector mutations;
    bool is_within;       /* a change */
    Bt__Mutation *valued; /* whose value comes in pieces; NULL: none does */
    size_t value_size;    /* of it in all */
    const char *token;    /* of a whole change or a heartbeat; not empty */
    int64_t watermark_us; /* likewise */
    const Bt__ReadChangeStreamResponse__CloseStream *close;
};

status change_assembly_init(struct change_assembly *assembly);
void change_assembly_free(struct change_assembly *assembly);

/* Forgets the change that has begun: it will come again. */
void change_assembly_reset(struct change_assembly *assembly);

/* `*event` is what the message, of which nothing is needed any more, came to. */
status change_assembly_take(struct change_assembly *assembly, bytes message,
                            enum change_event *event);

/* The server has ended the stream well: DATA_LOSS within a change. */
status change_assembly_end(const struct change_assembly *assembly);

#endif
