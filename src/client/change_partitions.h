/* The partitions that a table's change stream is followed by, and how far each has been.
 *
 *     reading ──(closed)──► waiting, one for each token
 *     waiting ──(the tokens tile the new partition)──► reading, all of it
 *     waiting ──(for long)──► reading, alone: the server says what has become of it
 *     reading ──(closed at the end)──► ended
 *     ended ──(another waits for it in vain)──► reading
 *
 * A split's tokens are each of a whole new partition, so they do not wait. Those of a merge, or of
 * several generations of both, wait for what else the new partition is made of. That may be one
 * that has ended, since all up to the end was given: it keeps its tokens for that.
 *
 * Invariants
 *  1. They are in the order of their keys, and tile all keys: a change is of one of them.
 *  2. Each has where to go on: tokens that tile it, or the time from which all was asked for.
 *  3. A change of a row that has moved to another partition is not read before those of the row
 *     that are behind the former one's token have been given: a partition's tokens are of its end.
 *
 * No I/O. One thread. */
#ifndef TRESTLE_CLIENT_CHANGE_PARTITIONS_H
#define TRESTLE_CLIENT_CHANGE_PARTITIONS_H

#include "base/status.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

enum partition_state { PARTITION_READING, PARTITION_WAITING, PARTITION_ENDED };

struct partition_token {
    bytes start, end; /* of keys; an empty end is none */
    const char *text;
};

struct change_stream; /* who reads it: the feed's */

struct feed_partition {
    bytes start, end;
    enum partition_state state;
    struct partition_token *tokens; /* in the order of their keys */
    size_t token_count;             /* 0: from the beginning; waiting ones have 1 */
    bool has_ended;                 /* once; without tokens it goes on at the end */
    bytes claim_start, claim_end;   /* of a waiting one: the new partition */
    int64_t waits_since_us;         /* of a waiting one: clock_steady_us */
    int64_t watermark_us;           /* 0: not known yet */
    struct change_stream *stream;   /* of one that is read; NULL: nobody */
    struct arena *arena;            /* of all that */
    struct buffer latest;           /* the token of the change that was given last; a NUL */
};

struct change_partitions {
    struct feed_partition **items;
    size_t count;
    size_t capacity;
    int64_t end_us; /* commits up to then are wanted; 0: all. Set before there are any */
};

/* Neither ends the partitions' streams: there are none any more. Keeps `end_us`. */
void change_partitions_free(struct change_partitions *partitions);
void feed_partition_destroy(struct feed_partition *partition); /* NULL is fine */

/* Adds one to read behind those that there are. DATA_LOSS if it does not begin where they end. */
status change_partitions_add(struct change_partitions *partitions, bytes start, bytes end,
                             const struct partition_token *tokens, size_t token_count,
                             int64_t watermark_us);

/* DATA_LOSS unless they tile all keys. */
status change_partitions_check(const struct change_partitions *partitions);

/* Everything up to the token has been given. The watermark does not go back. */
status feed_partition_advance(struct feed_partition *partition, const char *token,
                              int64_t watermark_us);

/* The partition, which is read and has no stream any more, was closed so: it ends, or is replaced
 * by those that its tokens are of, and what of them is whole is to be read. Fails with the status
 * that it was closed with, or DATA_LOSS if its tokens do not tile it. After a failure the
 * partitions are what they were. */
status change_partitions_close(struct change_partitions *partitions,
                               struct feed_partition *partition,
                               const Bt__ReadChangeStreamResponse__CloseStream *close,
                               int64_t now_us);

/* Reads those alone that have waited since then or longer, and again what has ended of the
 * partitions that they wait for. Whether there are any. */
bool change_partitions_probe(struct change_partitions *partitions, int64_t since_us);

/* The least of all; 0: not all are known. That of what has ended is the end. */
int64_t change_partitions_watermark_us(const struct change_partitions *partitions);

bool change_partitions_have_ended(const struct change_partitions *partitions);

#endif
