/* Cuts changes into messages of ReadChangeStream, and sends them.
 *
 * Invariants
 *  1. A message ends between two mutations, or with a slice of a long value; the next slice is then
 *     the first of its message. Each message has at least one of either, the last one too.
 *  2. No more is sent at a time than WRITER_MOST_BYTES (and `more`), and what makes that full: the
 * writer then stops, within the change if need be, and what has been sent of it is `place`. So that
 * a client that does not read makes us hold no more than 64 KiB, however large its values are.
 *  3. The piece of the log that slices are cut from is there until change_writer_rest. It is large:
 *     its caller says who may keep it from one call to the next.
 *
 * One thread at a time. */
#ifndef TRESTLE_BIGTABLE_CHANGE_WRITER_H
#define TRESTLE_BIGTABLE_CHANGE_WRITER_H

#include "bigtable/stream_answer.h"
#include "bigtable/stream_sources.h"
#include "cluster/stream/table_stream.h"
#include "wire/grpc.h"

enum {
    WRITER_MESSAGE_BYTES = 16 << 10,     /* from which on a message is not added to */
    WRITER_SLICE_BYTES = 16 << 10,       /* of a value: longer ones are cut */
    WRITER_MOST_BYTES = 32 << 10,        /* at first, and of a client that does not keep up */
    WRITER_KEEPING_UP_BYTES = 128 << 10, /* of one that does, */
    WRITER_KEPT_UP_BYTES = 2 << 20,      /* when it has taken so much without a wait: what lies on
                                            the way to one that does not read is less */
};

/* Within a change. */
struct change_place {
    bool is_inside;
    struct stream_position position; /* the change's */
    size_t mutation;                 /* the next one to send, or to go on with, */
    size_t offset;                   /* from here on of its value */
    uint32_t pieces;                 /* that the log has of the values before */
};

struct change_writer {
    struct grpc_call *call;
    struct table *table;
    uint32_t shard;
    struct stream_sources sources;
    struct change_place place;
    size_t sent; /* bytes, since it was set to 0 */
    size_t more; /* bytes that may be sent beyond WRITER_MOST_BYTES: the caller's to say */
    struct change_message message;
    struct buffer wire;    /* a message that has not been sent; empty: none has been begun */
    bool has_slice;        /* the message has */
    struct buffer piece;   /* of the log: that number of the change's, */
    uint32_t piece_number; /* from 1; 0: there is none */
};

/* Sends the change, or goes on with it where it stopped; `place` says whether all of it has been
 * sent. Blocks for the disk if values lie apart. DATA_LOSS, OUT_OF_RANGE if the log has lost them.
 * RESOURCE_EXHAUSTED. */
status change_writer_write(struct change_writer *writer, const struct stream_record *record,
                           const struct change_end *end);

static inline bool change_writer_is_full(const struct change_writer *writer)
{
    return writer->sent >= WRITER_MOST_BYTES + writer->more;
}

/* Another message: `append` a body. */
struct buffer *change_writer_open(struct change_writer *writer);
void change_writer_send(struct change_writer *writer);

/* Frees what it holds between two calls: before a wait. */
void change_writer_rest(struct change_writer *writer);

#endif
