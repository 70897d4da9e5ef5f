/* What cluster/usage_counts.h has counted of a table, as the advisor sees it. */
#ifndef TRESTLE_INSIGHT_TABLE_USAGE_H
#define TRESTLE_INSIGHT_TABLE_USAGE_H

#include "advice/advice.h"

struct table;

/* In the arena. On threads that may block. */
status table_read_usage(struct table *table, struct arena *arena, struct advice_usage *out);

#endif
