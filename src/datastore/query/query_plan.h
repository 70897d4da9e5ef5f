/* How a query is run: for each conjunction the ranges of index rows whose common suffixes are its
 * positions.
 *
 * A scan is the rows with one prefix; what stands behind it is the *suffix*: the values of those
 * ordered properties that the conjunction has no equality for, and the path. All scans of a branch
 * have the same suffixes in the same order, so that what all of them have is what fits all
 * equalities (a zig-zag merge). Of a built-in index that is read downwards the suffixes are those
 * that rows of inverted values would have (query_descent.h). A position is a suffix with the
 * constants of the equalities put in.
 *
 * The built-in indexes serve any equalities if the order is that of keys, and one ordered property
 * by itself; composite indexes, which begin with equalities in any order and end with the ordered
 * properties, the rest. */
#ifndef TRESTLE_DATASTORE_QUERY_QUERY_PLAN_H
#define TRESTLE_DATASTORE_QUERY_QUERY_PLAN_H

#include "datastore/index/index_rows.h"
#include "datastore/query/query_check.h"

struct ds_scan_plan {
    const char *property;         /* of a built-in index */
    enum ds_flip flip;            /* of a built-in index's values: how it is read */
    const struct ds_index *index; /* of a composite one */
    bytes prefix; /* with the values of equalities, and the ancestor if it is in it */
    bytes from;   /* the range of what is read; downwards as in query_descent.h */
    bytes to;
    size_t type_offset; /* of the types in a row's cell, the first that is of the suffix */
};

/* A part of a position, a value or the path, and where it lies: all in its direction. */
struct ds_part {
    bytes constant; /* of an equality; empty: it is in the suffix, within what follows */
    bytes start;    /* empty: none */
    bytes end;
    bool is_start_open;
    bool is_end_open;
    const bytes *excluded;
    size_t excluded_count;
};

struct ds_branch_plan {
    const struct ds_scan_plan *scans;
    size_t scan_count;           /* at least 1 */
    const struct ds_part *parts; /* one for each order of the query, and one for the path */
};

struct ds_plan {
    const struct ds_branch_plan *branches;
    size_t branch_count;
};

/* `indexes`: the composite ones that are ready; they must outlive the plan. The query's order may
 * be changed where it is free to be. FAILED_PRECONDITION with a recommendation if there is no index
 * for a conjunction. */
status ds_plan_make(struct ds_query *query, const struct ds_index *indexes, size_t count,
                    struct arena *arena, struct ds_plan *out);

#endif
