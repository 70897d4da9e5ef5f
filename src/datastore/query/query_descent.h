/* The built-in index of a property, read downwards: the greatest value first, and of one value the
 * keys in their order.
 *
 * There are ascending rows alone. A reader downwards is shown them as if each value's bytes were
 * inverted, so that the keys it sees rise: *mirrored* keys. They, and bounds and targets among
 * them, order as bytes do, whatever they are; only this module knows which rows that means. */
#ifndef TRESTLE_DATASTORE_QUERY_QUERY_DESCENT_H
#define TRESTLE_DATASTORE_QUERY_QUERY_DESCENT_H

#include "datastore/commit/reading.h"

struct ds_descent;

/* So many rows of one value are turned round in memory; from one more on they are read again. */
enum { DS_DESCENT_ROWS = 16 };

/* The rows that are shown begin with `prefix` (ds_property_prefix) and lie from `from` up to `to`,
 * of which neither comes before what begins with the prefix. What they point to, and the snapshot,
 * must outlive the descent. */
status ds_descent_open(const struct ds_snapshot *snapshot, bytes prefix, bytes from, bytes to,
                       struct arena *arena, struct ds_descent **out);
void ds_descent_close(struct ds_descent *descent); /* NULL is fine */

/* The next; `*found` false at the end. Valid until the next call. */
status ds_descent_next(struct ds_descent *descent, struct ds_row_found *row, bool *found);

/* On to the first at or after `key`, which is not before what was given. */
status ds_descent_seek(struct ds_descent *descent, bytes key);

/* Notes that everything from `from` up to `to` has been looked at: no other rows than those. */
status ds_descent_note(struct ds_reading *reading, bytes prefix, bytes from, bytes to);

#endif
