/* Points that are kept: rows of a table of the server's own, which no API lists, and which SQL
 * reads under its own name (docs/reference/metric-history.md).
 *
 *     <level>#<subject>#<time>     10s#server#2026-11-29T11:40:10Z
 *
 * A level is how long its points are; a subject is "server", or a table's name in full; the time is
 * when the span begins, by the versions' clock. Cells, whose timestamp is that time, too:
 *
 *     line:<name>       a line, as a number in text; and line:seconds
 *     method:<name>     calls of it, a second
 *     latency:<bound>   calls that took at most so many microseconds, and more than the bound
 *                       before; "more" is the last
 *
 * Invariants
 *  1. Each row is written once, or again with what it comes to anyhow: a span has one point, since
 *     the versions' clock never goes back.
 *  2. What folds is written before what it was made of goes, in the order of time; so for each time
 *     that is kept some level has it, whatever a kill leaves.
 *  3. Writes are not synced, no observer sees them, and they are refused as any write where the
 *     disk is short of space.
 *
 * Functions block. What does not parse is left out. */
#ifndef TRESTLE_HISTORY_HISTORY_STORE_H
#define TRESTLE_HISTORY_HISTORY_STORE_H

#include "cluster/own_table.h"
#include "history/point.h"

#define HISTORY_TABLE       CLUSTER_OWN_TABLES "metrics"
#define HISTORY_SERVER_NAME "server"

enum history_level { HISTORY_TEN_SECONDS, HISTORY_MINUTES, HISTORY_HOURS, HISTORY_LEVELS };

int64_t history_level_span_us(enum history_level level);
/* For how long its points are kept, at most for `retention_us`. */
int64_t history_level_kept_us(enum history_level level, int64_t retention_us);

/* --- writing --- */

status history_batch_put(struct own_batch *batch, enum history_level level, const char *subject,
                         const struct history_point *point);
status history_batch_remove(struct own_batch *batch, enum history_level level, const char *subject,
                            int64_t from_us);

/* As own_batch_write. */
status history_batch_write(struct own_batch *batch, struct cluster *cluster);

/* Removes the table with all that it has, if it is there. */
status history_store_remove(struct cluster *cluster);

/* --- reading: nothing, if there is no such table --- */

/* The points that begin at or after `from_us` and before `until_us`, by time; in the arena. */
status history_store_read(struct cluster *cluster, enum history_level level, const char *subject,
                          int64_t from_us, int64_t until_us, struct arena *arena,
                          struct history_point **points, size_t *count);

/* When the newest point begins; 0 if there is none. */
status history_store_newest(struct cluster *cluster, enum history_level level, const char *subject,
                            int64_t *from_us);

/* The same over all levels. */
status history_store_newest_of_all(struct cluster *cluster, const char *subject, int64_t *from_us);

/* Calls `visit` for each time from `from_us` and before `until_us` at which there is a point. */
status history_store_times(struct cluster *cluster, enum history_level level, const char *subject,
                           int64_t from_us, int64_t until_us,
                           status (*visit)(void *context, int64_t from_us), void *context);

/* Calls `visit` for each subject of a level, until it fails. */
status history_store_subjects(struct cluster *cluster, enum history_level level,
                              status (*visit)(void *context, const char *subject), void *context);

#endif
