/* A batch: the results of a query from its offset on, as many as its limit, or a batch, has. */
#ifndef TRESTLE_DATASTORE_QUERY_QUERY_BATCH_H
#define TRESTLE_DATASTORE_QUERY_QUERY_BATCH_H

#include "datastore/query/query_results.h"

/* A batch ends after so many results, or this many bytes of them: the client goes on from its end
 * cursor. */
enum { DS_BATCH_RESULTS = 300, DS_BATCH_BYTES = 1 << 20 };

/* `mask` may be NULL. In the arena. `reads`: what it took. */
status ds_batch_make(const struct ds_query *query, const Ds__PropertyMask *mask,
                     const struct ds_plan *plan, struct ds_reading *reading, struct arena *arena,
                     struct ds_reads *reads, Ds__QueryResultBatch **out);

#endif
