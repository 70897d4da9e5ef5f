/* Where a reader of a change stream stands, and the token that carries it to the client and back.
 *
 * Invariants
 *  1. A position is a place in the order of one shard's commits, and a row of that commit:
 *     everything up to and including it has been delivered, nothing behind it.
 *  2. A reader's range is cut into one or several sub-ranges, each with a position of its own: they
 *     are apart where partitions were merged whose readers stood at different places, and become
 * one when all have been passed.
 *  3. A token says all: the stream's life, the server's era, the shard, the range, the positions.
 * It is printable and has a checksum, so that a flipped bit is noticed; it is no secret and no
 * credential. */
#ifndef TRESTLE_STREAM_POSITION_H
#define TRESTLE_STREAM_POSITION_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/status.h"

struct stream_position {
    uint64_t sequence;
    uint32_t ordinal; /* of the row among its commit's; UINT32_MAX: all of them */
};

static inline int stream_position_compare(struct stream_position a, struct stream_position b)
{
    if (a.sequence != b.sequence)
        return a.sequence < b.sequence ? -1 : 1;
    return a.ordinal < b.ordinal ? -1 : a.ordinal > b.ordinal;
}

/* A part of a reader's range. */
struct stream_part {
    bytes end; /* exclusive; empty: no bound. Where the next part begins */
    struct stream_position after;
};

/* What has been delivered when all but `position` and what is behind it has. */
static inline struct stream_position stream_position_before(struct stream_position position)
{
    if (position.ordinal > 0)
        return (struct stream_position){position.sequence, position.ordinal - 1};
    return position.sequence == 0 ? position
                                  : (struct stream_position){position.sequence - 1, UINT32_MAX};
}

struct stream_token {
    uint64_t life; /* of the stream: another one after it was off */
    uint64_t era;  /* of the server, when it was made (eras.h): 0 if it was never restored */
    uint32_t shard;
    int64_t time_us; /* all commits up to this time have been delivered, about: for retention */
    bytes start;
    struct stream_part *parts; /* they tile the range, in order; at least one */
    size_t part_count;
};

/* The end of its range. */
static inline bytes stream_token_end(const struct stream_token *token)
{
    return token->parts[token->part_count - 1].end;
}

/* Appends its string. Failures show in out->failed. */
void stream_token_write(struct buffer *out, const struct stream_token *token);

/* INVALID_ARGUMENT if it is none of ours. Memory from the arena; no slice points into `string`. */
status stream_token_read(bytes string, struct arena *arena, struct stream_token *out);

/* The token when everything of its range up to `position` has been delivered, all commits up to
 * `time_us` with it. `parts`: room for as many as it has, or its own. Points to its keys. */
struct stream_token stream_token_advanced(const struct stream_token *token,
                                          struct stream_position position, int64_t time_us,
                                          struct stream_part *parts);

/* The part of `token` that lies in [start, end), which meets its range. Memory from the arena. */
status stream_token_cut(const struct stream_token *token, bytes start, bytes end,
                        struct arena *arena, struct stream_token *out);

/* Puts tokens together, in any order, whose ranges tile [start, end) without a gap or an overlap,
 * all of one life and shard; of their eras it has any. Neighbours at the same position become one
 * part. INVALID_ARGUMENT in words otherwise. */
status stream_token_join(const struct stream_token *tokens, size_t count, bytes start, bytes end,
                         struct arena *arena, struct stream_token *out);

#endif
