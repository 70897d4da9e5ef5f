/* What cluster/usage_counts.h has counted of a table, as the advisor sees it. */
#ifndef TRESTLE_INTROSPECT_TABLE_USAGE_H
#define TRESTLE_INTROSPECT_TABLE_USAGE_H

#include "advisor/advice.h"

struct table;

/* Reads the usage, into the arena. `since_us`: as of usage_look. On threads that may block. */
status table_read_usage(struct table *table, int64_t since_us, struct arena *arena,
                        struct advice_usage *out);

#endif
