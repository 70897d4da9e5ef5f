/* A view's records: raw keys and values, by rising key, that nobody but the upkeep of views reads
 * and writes. They are in a keyspace of their own. Keys and values are not empty; no key begins
 * with R or S (row/row_key.h), so that a salvage knows whose the keyspace is.
 *
 * What is read is what has been committed (view_commit.h) when a call, or a cursor, begins. All of
 * it may block for the disk. */
#ifndef TRESTLE_CLUSTER_VIEW_VIEW_RECORDS_H
#define TRESTLE_CLUSTER_VIEW_VIEW_RECORDS_H

#include "cluster/cluster.h"

/* Appends the record's value, if there is such a record. */
status view_records_get(struct table *view, bytes key, struct buffer *value, bool *is_there);

/* Several at once, which is cheaper by far than one by one: calls `visit` with each that there is,
 * with its place among `keys`, which rise, none twice, until it fails. `are_hot`: each may have
 * been written many times of late; a cursor would pass all that was written. */
status view_records_get_many(struct table *view, const bytes *keys, size_t count, bool are_hot,
                             status (*visit)(void *context, size_t i, bytes value), void *context);

/* Calls `visit` with each record from `from` to `to` (exclusive; empty: no bound), by rising key,
 * or by falling, until it fails or says that it has enough. */
struct view_range {
    bytes from;
    bytes to;
    bool is_reversed;
};
status view_records_visit(struct table *view, const struct view_range *range,
                          status (*visit)(void *context, bytes key, bytes value, bool *enough),
                          void *context);

/* A walk over all records as they were when it was made. One thread. Where it is, it stays until it
 * is moved; slices are valid as long. */
struct view_cursor;
status view_cursor_create(struct table *view, struct view_cursor **out);
void view_cursor_destroy(struct view_cursor *cursor);                /* NULL is fine */
void view_cursor_seek(struct view_cursor *cursor, bytes key);        /* first at or after */
void view_cursor_seek_before(struct view_cursor *cursor, bytes key); /* last strictly before; empty:
                                                                        the last of all */
void view_cursor_next(struct view_cursor *cursor);
void view_cursor_previous(struct view_cursor *cursor);
/* Whether it is at a record; if not there is none more, or the status says what failed. */
bool view_cursor_valid(const struct view_cursor *cursor);
status view_cursor_status(const struct view_cursor *cursor);
bytes view_cursor_key(const struct view_cursor *cursor);
bytes view_cursor_value(const struct view_cursor *cursor);

/* What a view takes, bytes: of table files, and what is in none yet. Cheap. */
struct view_sizes {
    uint64_t rows;
    uint64_t records; /* "intermediate storage" */
};
struct view_sizes view_sizes(struct table *view);

#endif
