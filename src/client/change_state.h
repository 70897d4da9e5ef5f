/* Where a feed stands, as text that may be kept: JSON.
 *
 *     {"change_feed":1,"table":"projects/…","from":0,"partitions":[
 *       {"start":"","end":"bQ","watermark":1700000000000000,
 *        "tokens":[{"start":"","end":"bQ","token":"…"}]}, …]}
 *
 * Keys are base64; times are in microseconds. A partition without tokens begins at `from`; 0 there
 * is when it is asked for. */
#ifndef TRESTLE_CLIENT_CHANGE_STATE_H
#define TRESTLE_CLIENT_CHANGE_STATE_H

#include "client/change_partitions.h"

struct change_state {
    const char *table; /* its full name */
    int64_t from_us;
};

/* Appends; `out->failed` says whether there was memory. */
void change_state_write(const struct change_state *state,
                        const struct change_partitions *partitions, struct buffer *out);

/* Reads what was written for `state->table` into `partitions`, which are none, and
 * `state->from_us`. INVALID_ARGUMENT, in words, if it is anything else; then the partitions are to
 * be freed, too. */
status change_state_read(bytes text, struct change_state *state,
                         struct change_partitions *partitions);

#endif
