/* find_nearest: of a query's results those whose vector is nearest to a given one, in the order of
 * distance, then of keys.
 *
 * A vector is an array of doubles with meaning 31 (DS_MEANING_VECTOR), indexed or not. All results
 * of the query are read and measured, and only so many as are asked for are kept: there is no index
 * of vectors, so the answer is exact, and takes as long as reading them all.
 *
 * Left out are entities without a vector of the same dimension, those beyond the threshold, and
 * those whose distance is no number (the cosine with a vector of zeroes). */
#ifndef TRESTLE_DATASTORE_QUERY_QUERY_NEAREST_H
#define TRESTLE_DATASTORE_QUERY_QUERY_NEAREST_H

#include "datastore/model/property_path.h"
#include "datastore/query/query_results.h"

/* Everything is an arena's, or the request's. */
struct ds_nearest {
    const char *property;
    struct ds_property_path path; /* the same, through entities */
    Ds__FindNearest__DistanceMeasure measure;
    const double *vector;
    size_t dimension;
    size_t limit;
    const double *threshold;     /* NULL: none */
    const char *result_property; /* which gets the distance; NULL: none */
    Ds__EntityResult__ResultType result_type;
    const Ds__PropertyMask *projected; /* what results show; NULL: all, or of keys nothing */
};

/* `request` has a find_nearest. `*candidates` is the same query without it, and without what it
 * projects: its results are what the nearest are searched in. INVALID_ARGUMENT for what cannot be,
 * or not together with find_nearest. */
status ds_nearest_check(const Ds__Query *request, struct arena *arena, struct ds_nearest *out,
                        Ds__Query **candidates);

/* The nearest, in one batch without cursors, in the arena. `query` and `plan` are of the
 * candidates; `mask` may be NULL. `reads`: what it took. RESOURCE_EXHAUSTED if the results have
 * more than LIMIT_DS_NEAREST_BYTES. */
status ds_nearest_batch(const struct ds_nearest *nearest, const struct ds_query *query,
                        const Ds__PropertyMask *mask, const struct ds_plan *plan,
                        struct ds_reading *reading, struct arena *arena, struct ds_reads *reads,
                        Ds__QueryResultBatch **out);

#endif
