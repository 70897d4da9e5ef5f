/* Cursors: a position in the order of a query's results, as bytes that clients keep.
 *
 *     01  hash  position
 *
 * The hash, 8 bytes big-endian, is of what a position means: the namespace, the kind and the order.
 * So a cursor goes on with the same query, with other filters even, and after a restart. An empty
 * position is before the first result. */
#ifndef TRESTLE_DATASTORE_QUERY_QUERY_CURSOR_H
#define TRESTLE_DATASTORE_QUERY_QUERY_CURSOR_H

#include "datastore/query/query_check.h"

/* In the arena. */
status ds_cursor_make(const struct ds_query *query, bytes position, struct arena *arena,
                      ProtobufCBinaryData *out);

/* The position, a view into the cursor. INVALID_ARGUMENT if it is none of a query with this order.
 */
status ds_cursor_read(const struct ds_query *query, bytes cursor, bytes *out);

/* The request's start and end, into the query, which has been planned. */
status ds_cursors_read(const Ds__Query *request, struct ds_query *query);

/* Takes the first `count` values of a position, as they are in it; `values` may be NULL. `rest` is
 * what comes behind: of all values the path, in the key's direction (ds_row_path_append). False if
 * they are not there. */
bool ds_position_values(const struct ds_query *query, bytes position, size_t count, bytes *values,
                        bytes *rest);

bool ds_position_is_valid(const struct ds_query *query, bytes position);

#endif
