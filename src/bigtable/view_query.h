/* The query of a logical or a materialized view. */
#ifndef TRESTLE_BIGTABLE_VIEW_QUERY_H
#define TRESTLE_BIGTABLE_VIEW_QUERY_H

#include "base/status.h"

/* Whether it may be a query at all: not empty, and begins as one does. INVALID_ARGUMENT. */
status view_query_check(const char *query);

#endif
