/* The statement that makes the view which serves a question by a column's value: an index. */
#ifndef TRESTLE_ADVISOR_VIEW_STATEMENT_H
#define TRESTLE_ADVISOR_VIEW_STATEMENT_H

#include "base/bytes.h"

/* Appends CREATE MATERIALIZED VIEW …, as `trestle sql` takes it. Nothing for a table whose name it
 * could not quote. Failures show in out->failed. */
void view_statement_append(const char *table, bytes family, bytes qualifier, struct buffer *out);

#endif
