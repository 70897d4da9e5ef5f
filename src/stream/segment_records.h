/* The directory of segments: which keyspaces a shard's log of change streams lies in, records of
 * the shard's keyspace `system` (cluster/catalog.h lists its keys). For the log itself, and for
 * whoever looks at a store that has none open: which keyspaces are nobody's, what belongs to whom.
 */
#ifndef TRESTLE_STREAM_SEGMENT_RECORDS_H
#define TRESTLE_STREAM_SEGMENT_RECORDS_H

#include "store/store.h"

enum { STREAM_SEGMENT_RECORD = 'L' }; /* <number: 8, big-endian> */

struct stream_segment_record {
    uint64_t number; /* from 1, without a hole; those with lesser numbers were dropped */
    uint64_t keyspace;
    uint64_t from;   /* sequence of the commit that began it; below all that are in it */
    int64_t from_us; /* its time, since 1970 */
};

/* Failures show in the batch. */
void stream_segment_put(struct store_batch *batch, struct keyspace *system,
                        const struct stream_segment_record *record);
void stream_segment_delete(struct store_batch *batch, struct keyspace *system, uint64_t number);

/* Calls `visit` with each, by rising number, until it fails. DATA_LOSS for one that does not parse.
 */
status stream_segments_visit(struct keyspace *system,
                             status (*visit)(void *context,
                                             const struct stream_segment_record *record),
                             void *context);

#endif
