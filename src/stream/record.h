/* A record of the stream's log: one change of one row. Byte formats: docs/internals/format.md,
 * "Change streams".
 *
 *     key    <tablet: 8> <sequence: 8> <ordinal: 4> <piece: 4>, big-endian
 *     piece 0: head (kind, version, row key), then the change list
 *     pieces 1..: values that lie apart, in order, each in pieces of at most STREAM_PIECE_BYTES
 *
 * Tablet 0 is none: there are marks, <0: 8> <sequence: 8>, with the time of that commit. */
#ifndef TRESTLE_STREAM_RECORD_H
#define TRESTLE_STREAM_RECORD_H

#include "row/change_list.h"
#include "stream/position.h"

enum { STREAM_KEY_BYTES = 24, STREAM_PIECE_BYTES = 1 << 20 };

/* Numbers as stored. */
enum stream_record_kind {
    STREAM_USER = 1,
    STREAM_COLLECTED = 2, /* by a garbage-collection rule */
    /* As a client asked, by a drop of rows that was committed before: it has that version, and may
     * stand behind records of later ones. */
    STREAM_DROPPED = 3,
};

struct stream_record {
    enum stream_record_kind kind;
    uint64_t tablet; /* not 0 */
    struct stream_position position;
    uint64_t version; /* of the commit: its time, and what breaks ties */
    bytes row_key;    /* not empty */
    bytes list;       /* change_list.h; of any bytes where it was read */
};

void stream_record_key(uint8_t out[STREAM_KEY_BYTES], uint64_t tablet,
                       struct stream_position position, uint32_t piece);
/* False: it is no key of a record or a piece. */
bool stream_record_key_read(bytes key, uint64_t *tablet, struct stream_position *position,
                            uint32_t *piece);

/* Appends the value of piece 0. Failures show in out->failed. */
void stream_record_write(struct buffer *out, const struct stream_record *record);
/* DATA_LOSS if it is no record, or does not parse; the list is not looked at. Slices point into
 * `value`. */
status stream_record_read(bytes key, bytes value, struct stream_record *out);

/* Pieces of a value that lies apart. */
static inline uint32_t stream_piece_count(size_t size)
{
    return (uint32_t)((size + STREAM_PIECE_BYTES - 1) / STREAM_PIECE_BYTES);
}

#endif
