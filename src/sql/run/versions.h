/* Rows of a materialized view that gives `_timestamp`: each time of a row's cells is one row of the
 * relation, the newest first. */
#ifndef TRESTLE_SQL_RUN_VERSIONS_H
#define TRESTLE_SQL_RUN_VERSIONS_H

#include "sql/catalog.h"

struct versions;

status versions_create(struct arena *arena, struct versions **out);
void versions_end(struct versions *versions); /* NULL is fine */

/* Begins with a row of the table, which stays valid until its last version. */
status versions_begin(struct versions *versions, const struct sql_scan_row *row);

/* The row's next version: its key, and its cells of that time, valid until the next call. False:
 * there is no other. */
bool versions_next(struct versions *versions, struct sql_scan_row *out);

/* Of the last version, in microseconds. */
int64_t versions_time(const struct versions *versions);

#endif
