/* Explanations tell a client how a query was, or would be, run. */
#ifndef TRESTLE_DATASTORE_QUERY_QUERY_EXPLAIN_H
#define TRESTLE_DATASTORE_QUERY_QUERY_EXPLAIN_H

#include "datastore/query/query_results.h"

/* The indexes that the plan uses, each once. In the arena. */
status ds_explain_plan(const struct ds_query *query, const struct ds_plan *plan,
                       struct arena *arena, Ds__ExplainMetrics **out);

/* Kinds of billing, were the query one of production's. */
enum ds_billing {
    DS_BILLED_ENTITIES,    /* each that is read */
    DS_BILLED_SMALL,       /* results that are keys, or projected: small operations */
    DS_BILLED_AGGREGATION, /* each entry of an index that is read */
};

/* Adds what running it took. */
status ds_explain_run(const struct ds_reads *reads, enum ds_billing billing, int64_t results,
                      int64_t duration_us, struct arena *arena, Ds__ExplainMetrics *metrics);

#endif
