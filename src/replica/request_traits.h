/* What routing has to know of a data call's request, found without decoding it. Of a request that
 * is malformed nothing is true: whoever gets it says so. Any thread. */
#ifndef TRESTLE_REPLICA_REQUEST_TRAITS_H
#define TRESTLE_REPLICA_REQUEST_TRAITS_H

#include "base/bytes.h"

/* Whether the mutations may be applied in two clusters and come to the same: none adds, merges, or
 * has the server's time for its cell. `list` is the request's field that has them; with `entry`
 * not 0 it has entries, whose field `entry` has them. */
bool mutations_may_repeat(bytes request, uint32_t list, uint32_t entry);

/* The key of a request about just one row, by field:
 *
 *     ROW_KEY        the field is the key
 *     ROW_KEY_ENTRY  it is repeated, and the key is field 1 of each
 *     ROW_KEY_SET    it is a RowSet */
enum row_key_place { ROW_KEY_NONE, ROW_KEY, ROW_KEY_ENTRY, ROW_KEY_SET };

/* False: it is about none, or several, or ranges. */
bool request_row_key(bytes request, enum row_key_place place, uint32_t field, bytes *key);

#endif
