/* Aggregations over the results of a query: count, sum and avg.
 *
 * A sum of integers is one, as long as it fits; with a double among them, or beyond, it is a
 * double. What is no number counts for neither sum nor avg; a NaN makes both one. Entities that
 * lack one of the aggregated properties, or have it excluded from indexes, are in no aggregation,
 * not even in a count beside it. */
#ifndef TRESTLE_DATASTORE_AGGREGATION_H
#define TRESTLE_DATASTORE_AGGREGATION_H

#include "datastore/query_results.h"

struct ds_aggregation; /* one of them */

struct ds_aggregations {
    struct ds_aggregation *items;
    size_t count;
};

/* INVALID_ARGUMENT for what no query may ask. In the arena. */
status ds_aggregations_check(const Ds__AggregationQuery *request, struct arena *arena,
                             struct ds_aggregations *out);

/* INVALID_ARGUMENT if the query does not give what is to be aggregated. */
status ds_aggregations_check_query(const struct ds_aggregations *aggregations,
                                   const struct ds_query *query);

/* Over the query's results, its offset, limit and cursors among it: what is in no aggregation does
 * not count for offset and limit. `reads`: what it took. */
status ds_aggregations_run(struct ds_aggregations *aggregations, const struct ds_query *query,
                           const struct ds_plan *plan, struct ds_reading *reading,
                           struct arena *arena, struct ds_reads *reads,
                           Ds__AggregationResultBatch **out);

#endif
