/* The positions of one conjunction, in order: its scans merged (query_plan.h), without what lies
 * outside of its ranges. */
#ifndef TRESTLE_DATASTORE_QUERY_QUERY_BRANCH_H
#define TRESTLE_DATASTORE_QUERY_QUERY_BRANCH_H

#include "datastore/commit/reading.h"
#include "datastore/query/query_plan.h"

struct ds_branch;

/* Positions after query->start. All that the arguments point to must outlive the branch. */
status ds_branch_open(const struct ds_query *query, const struct ds_branch_plan *plan,
                      struct ds_reading *reading, struct arena *arena, struct ds_branch **out);

/* Notes what was looked at, unless there was a failure before. NULL is fine. */
status ds_branch_close(struct ds_branch *branch);

/* On to the next position, at first to the first. */
status ds_branch_next(struct ds_branch *branch);

/* The branch's position: views, valid until the next call. */
bool ds_branch_is_at_end(const struct ds_branch *branch);
bytes ds_branch_position(const struct ds_branch *branch);

/* The types of the position's values, a byte for each order of the query; 0 for a constant. */
bytes ds_branch_types(const struct ds_branch *branch);

/* Rows that were looked at. */
int64_t ds_branch_rows(const struct ds_branch *branch);

#endif
