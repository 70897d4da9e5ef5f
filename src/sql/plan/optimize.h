/* The planner: makes of a plan one that reads less.
 *
 * A table has one index, its row key. So there are four things to do: conditions on the key become
 * ranges of keys; families and columns that are not used are not read; a LIMIT ends the scan, and
 * bounds what a sort keeps; the order of keys, if that is what is asked for, needs no sort. */
#ifndef TRESTLE_SQL_PLAN_OPTIMIZE_H
#define TRESTLE_SQL_PLAN_OPTIMIZE_H

#include "sql/plan/plan.h"

/* Rewrites the plan, in the arena. */
status sql_optimize(struct sql_plan *plan, struct arena *arena);

/* Whether it reads one row by its key, and does with it no more than to walk along its values: what
 * takes a few microseconds, unless the row has to come from the disk. */
bool sql_plan_is_quick(const struct sql_plan *plan);

/* The ranges of keys outside of which the scan's condition cannot be TRUE, sorted, without overlap;
 * none at all if nothing fits it. Parameters are the frame's; the ranges are in its arena. */
status sql_scan_ranges(const struct sql_scan_plan *scan, struct sql_frame *frame,
                       const struct sql_key_range **out, size_t *count);

/* What an operator took by itself, without those below it, by the steady clock; what several
 * threads did at once counts for each. */
struct sql_operator_time {
    uint64_t rows; /* that it gave */
    int64_t ns;
};

struct sql_explained {
    const struct sql_plan *plan;
    const struct sql_scan_spec *reading; /* what its scan was asked for; NULL: it has not begun */
    const struct sql_operator *divided;  /* what is done in parts, by several threads; or NULL */
    size_t parts;
    const struct sql_operator_time *times; /* of each operator, the last first; NULL: not known */
};

/* What the plan does, a line for each operator, and a few for the scan: for EXPLAIN. */
void sql_explain(const struct sql_explained *explained, struct buffer *out);

#endif
