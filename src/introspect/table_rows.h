/* About how many rows a table of this process has.
 *
 * A table of few rows is counted. Of a larger one some stretches are, and how many bytes these
 * take, as stored, says how many rows there are in all. It reads quietly, as table_source.h does,
 * for a second at most. On threads that may block. */
#ifndef TRESTLE_INTROSPECT_TABLE_ROWS_H
#define TRESTLE_INTROSPECT_TABLE_ROWS_H

#include "bigtable/admin_call.h"
#include "cluster/cluster.h"

struct table_rows {
    uint64_t count;
    bool is_exact; /* all of them were counted */
};

/* `starts`: keys of rows all over the table, in order, which stretches begin with; `table_bytes` is
 * what all of it takes, as stored. CANCELLED if the client waits no more. */
status table_count_rows(const struct admin_request *request, struct table *table,
                        const bytes *starts, size_t start_count, uint64_t table_bytes,
                        struct table_rows *out);

#endif
