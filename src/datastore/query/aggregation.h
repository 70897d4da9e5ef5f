/* Aggregations over the results of a query: count, sum and avg.
 *
 * Sums are of what indexes hold: sum and avg make of a query one whose results are, as if they were
 * projected, the combinations of values that an entity has of the aggregated properties: of an
 * array each different element is a value, and an entity without an indexed value of one of them is
 * in no aggregation, not even in a count beside it. These results are what offset and limit are of.
 * They come in the query's order and then, the least first, by the aggregated values, if there is
 * an index for that; else (and where the query has cursors, conditions on keys, equalities for what
 * is aggregated, or says that its order is that of keys) in the query's own, and the entities are
 * read.
 *
 * A sum of integers is one, as long as it fits; with a double among them, or beyond, it is a
 * double. Values that are no numbers count for neither sum nor avg; a NaN makes both one. */
#ifndef TRESTLE_DATASTORE_QUERY_AGGREGATION_H
#define TRESTLE_DATASTORE_QUERY_AGGREGATION_H

#include "base/limits.h"
#include "datastore/model/property_path.h"
#include "datastore/query/query_results.h"

struct ds_aggregation; /* one of them */

/* A property that is aggregated. */
struct ds_aggregated {
    const char *name;
    struct ds_property_path path; /* the same, through entities */
    size_t order; /* of the query's orders it is this one, if values are those of positions */
};

struct ds_aggregations {
    struct ds_aggregation *items;
    size_t count;
    struct ds_aggregated properties[LIMIT_DS_AGGREGATIONS]; /* each once, by name */
    size_t property_count;
    bool by_position; /* values are those of positions, no entity is read for them */
};

/* INVALID_ARGUMENT for what no query may ask. In the arena. */
status ds_aggregations_check(const Ds__AggregationQuery *request, struct arena *arena,
                             struct ds_aggregations *out);

/* INVALID_ARGUMENT if the query does not give what is to be aggregated. */
status ds_aggregations_check_query(const struct ds_aggregations *aggregations,
                                   const struct ds_query *query);

/* Plans the query (see ds_plan_make), best so that the values come from an index: then its orders
 * are changed, and `by_position` is set. `request` is the one that the query was made of. */
status ds_aggregations_plan(struct ds_aggregations *aggregations, const Ds__Query *request,
                            const struct ds_index *indexes, size_t count, struct arena *arena,
                            struct ds_query *query, struct ds_plan *out);

/* Over the query's results, its offset, limit and cursors among it. `reads`: what it took. */
status ds_aggregations_run(struct ds_aggregations *aggregations, const struct ds_query *query,
                           const struct ds_plan *plan, struct ds_reading *reading,
                           struct arena *arena, struct ds_reads *reads,
                           Ds__AggregationResultBatch **out);

#endif
