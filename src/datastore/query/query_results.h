/* The results of a query in order, each once: its branches merged, from its start to its end
 * cursor, without offset and limit. */
#ifndef TRESTLE_DATASTORE_QUERY_QUERY_RESULTS_H
#define TRESTLE_DATASTORE_QUERY_QUERY_RESULTS_H

#include "datastore/query/query_branch.h"

struct ds_results;

/* Position and types are valid until the next call. */
struct ds_result {
    bytes position;
    bytes types; /* of its values, a byte for each order; 0 for a constant */
    const Ds__Key *key;
    struct ds_version version; /* entity NULL: it was not asked for */
};

/* What the arguments point to must outlive the results. */
status ds_results_open(const struct ds_query *query, const struct ds_plan *plan,
                       struct ds_reading *reading, struct arena *arena, struct ds_results **out);

/* Must be called if it was opened, whatever failed since. */
status ds_results_close(struct ds_results *results);

/* The next; `*found` false at the end. Its key, and its entity if it is wanted, are made in
 * `arena`; NULL: valid until the next call, as the rest. */
status ds_results_next(struct ds_results *results, bool wants_entity, struct arena *arena,
                       struct ds_result *out, bool *found);

/* At the end: whether more comes behind the end cursor. */
bool ds_results_stopped_at_cursor(const struct ds_results *results);

/* Counts of what has been read so far. */
struct ds_reads {
    int64_t rows; /* of indexes, or of entities in the order of their keys */
    int64_t entities;
};

struct ds_reads ds_results_reads(const struct ds_results *results);

#endif
