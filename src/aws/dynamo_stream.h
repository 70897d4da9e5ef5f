/* The changes of a table, in order, from its stream.
 *
 * A stream is made of shards; a shard that was split, or had its time, is closed, and has children
 * that go on where it ends. The changes of one item are in one shard and its descendants, in order,
 * so a shard is read when its parents have been read to the end, and all that may be read are read
 * side by side.
 *
 * A position holds, for each shard, the sequence number of the last change that was given out. The
 * first is *noted* before the table is scanned: shards that are closed then hold nothing that the
 * scan will not see; the open ones are read from their beginning, and what is older than the note
 * by a minute is passed over. Whatever else the scan has seen already comes again: since changes
 * are whole images of items, in order, what is there at the end is right.
 *
 * DynamoDB keeps a change for 24 hours. While it waits the loop runs. One thread. */
#ifndef TRESTLE_AWS_DYNAMO_STREAM_H
#define TRESTLE_AWS_DYNAMO_STREAM_H

#include "aws/dynamo_table.h"
#include "formats/dynamo_record.h"

struct dynamo_stream;

/* The position from which changes are those since now. FAILED_PRECONDITION if the table has no
 * stream, or one without new images. */
status dynamo_stream_note(struct dynamo_client *client, const struct dynamo_table *table,
                          json_t **out);

struct dynamo_stream_options {
    struct dynamo_client *client;
    const char *stream; /* its ARN */
    int64_t poll_us;    /* between questions to a shard that had nothing; 0: 250 ms */
};

/* What the options point to must outlive the stream. DATA_LOSS if that is no position. */
status dynamo_stream_create(const struct dynamo_stream_options *options, const json_t *position,
                            struct dynamo_stream **out);
void dynamo_stream_destroy(struct dynamo_stream *stream); /* NULL is fine */

struct dynamo_change {
    bytes text; /* of the record: JSON */
    struct dynamo_record record;
    status failure; /* not OK: the record cannot be read; the taker's */
};

enum dynamo_streamed {
    STREAM_CHANGE,    /* there is one */
    STREAM_RESTS,     /* there is none now: ask again, which waits */
    STREAM_CAUGHT_UP, /* every open shard had nothing, ten times in a row; ask again for more */
    STREAM_STOPPED,   /* by dynamo_stream_stop */
    STREAM_CLOSED,    /* it was ended: nothing will ever come */
};

/* The next change; it lives until the next call, in the arena and in the page. DATA_LOSS: what
 * should come next is no longer kept. */
status dynamo_stream_next(struct dynamo_stream *stream, struct arena *arena,
                          struct dynamo_change *out, enum dynamo_streamed *what);

/* The call of dynamo_stream_next that waits, and each later one, ends with STREAM_STOPPED. From the
 * loop. */
void dynamo_stream_stop(struct dynamo_stream *stream);

/* Behind the change that came last. A new reference; NULL: no memory. */
json_t *dynamo_stream_save(const struct dynamo_stream *stream);

uint64_t dynamo_stream_bytes(const struct dynamo_stream *stream); /* of pages that have come */

#endif
