/* The rows of one range of a table of a Bigtable endpoint, asked for ahead of their reader.
 *
 * A stream has one ReadRows call under way, and begins another behind its last row when the
 * connection breaks. Rows that have come and are not wanted yet wait here, ROW_STREAM_AHEAD bytes
 * of them and what the transport lets in beyond; then the server waits. Several streams may share a
 * link and a loop; a reader that waits for rows runs the loop. */
#ifndef TRESTLE_CLIENT_ROW_STREAM_H
#define TRESTLE_CLIENT_ROW_STREAM_H

#include "client/client_session.h"
#include "formats/change.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

struct row_stream;

enum { ROW_STREAM_AHEAD = 2 << 20 };

struct row_stream_options {
    struct client_session *session;
    const char *table;           /* its full name */
    const Bt__RowFilter *filter; /* NULL: none */
    bytes start;                 /* the first key, or the one before it */
    bool start_is_closed;        /* the first key */
    bytes end;                   /* the key behind the last; empty: there is none */
    void *context;
    void (*on_change)(void *context); /* there may be a row, or the end: the reader may look */
};

/* What the options point to must outlive the stream, except the keys, which are copied. */
status row_stream_create(const struct row_stream_options *options, struct row_stream **out);
void row_stream_destroy(struct row_stream *stream); /* NULL is fine */

/* Asks for the first rows already. Once. */
status row_stream_begin(struct row_stream *stream);

/* The next row, until the next call; NULL if none is here now. `*is_end`: none will come. Fails
 * with what the server answers, or UNAVAILABLE when it has not been reached for a minute. */
status row_stream_next(struct row_stream *stream, const struct move_change **row, bool *is_end);

#endif
