/* Groups of a large table, by several threads.
 *
 *     AGGREGATE over FILTER, PROJECT, UNNEST, UNPACK of a SCAN
 *
 * The range of the scan is divided into parts, by what the table knows of its sizes. Each part is
 * an execution of its own of the plan up to the AGGREGATE, with its own session, iterators and
 * arenas; one thread at a time goes on with it, for a turn. The query's own thread is one of them,
 * and others help as long as they have nothing else to do (sql_helpers). What the parts come to is
 * merged by the query's thread in the order of the parts: groups come, and functions get their
 * rows, in the order of the table's keys, as if one thread had done it all. So the result is the
 * same, to the bit, and of several failures it is that of the first row.
 *
 * Not in parts: functions that cannot be merged, DISTINCT, HAVING, ORDER BY and LIMIT within
 * aggregates; scans of several ranges, or backwards; a table that is not large; and all with a
 * budget (--memory), where a query waits for room as one thread.
 *
 * All parts together may keep what one query may; when that is not enough, since each has most
 * groups, they are given up, and the query's thread does it alone.
 *
 * As in any scan, each row is as it was at one instant, and nothing is promised across rows.
 *
 * Invariants
 *  1. A part is used by who has taken it, or, when it is done, by the query's thread.
 *  2. Who has taken a part waits for nobody. So the query's thread may wait for him, when nothing
 *     else is left to do, and to end.
 *  3. A helper's task may come when all is over, and the query is gone: it looks at `is_stopping`
 *     first, and the last who holds `struct parts` frees it. */
#ifndef TRESTLE_SQL_RUN_PARTS_H
#define TRESTLE_SQL_RUN_PARTS_H

#include "sql/run/execute_private.h"

struct parts;

/* Divides what the aggregate reads; its scan has begun. `*out` NULL: it is not done in parts. */
status parts_create(struct iterator *iterator, struct parts **out);
/* Ends helpers, which takes as long as they work between two looks of their watch. NULL is fine. */
void parts_destroy(struct parts *parts);

/* Groups all rows, or goes on to: merges into the aggregate's groups. `*is_short`: memory was; what
 * there is of groups is of no use. A pause as in any execution. */
status parts_run(struct iterator *iterator, struct parts *parts, bool *is_short);

/* The aggregate that is done in parts; NULL: none is. */
const struct sql_operator *parts_of(const struct sql_execution *execution);
size_t parts_count(const struct parts *parts);     /* NULL is fine, here and below */
size_t parts_footprint(const struct parts *parts); /* bytes; any thread */
void parts_add_counts(struct parts *parts, struct sql_execution_counts *counts);

#endif
