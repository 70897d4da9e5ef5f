/* A table of this process as a source of what the advisor looks at (advisor/gather.h).
 *
 * Beside what a client sees it tells where reads pass over what was deleted, and what was counted
 * by ranges of keys. It reads quietly (cluster/rows.h): nothing of it counts as load. On threads
 * that may block. */
#ifndef TRESTLE_INTROSPECT_TABLE_SOURCE_H
#define TRESTLE_INTROSPECT_TABLE_SOURCE_H

#include "advisor/gather.h"
#include "bigtable/admin_call.h"
#include "cluster/heat/heat_hotspots.h"
#include "google/bigtable/admin/v2/table.pb-c.h"

struct table_source {
    const struct admin_request *request;
    struct table *table;          /* held by the caller */
    const char *instance;         /* whose table it is */
    const BtAdmin__Table *schema; /* once it was read */
    size_t large_rows;            /* that were read whole */
    int64_t since_us;             /* from when on requests are looked at; 0: for an hour */
};

/* Both outlive `*out`. */
void table_source_init(struct table_source *table, struct arena *arena, struct advice_source *out);

/* CANCELLED if the client waits for the answer no more. */
status insight_check_call(const struct admin_request *request);

struct heat_matrix;

/* The time from which on requests are to be looked at: 0 unless the caller says;
 * INVALID_ARGUMENT. */
status insight_read_since(const struct admin_request *request, int64_t *since_us);

/* Reads what a table was asked for since then, or (0) within an hour, by so many ranges of keys; in
 * the arena. */
status table_read_matrix(struct table *table, int64_t since_us, size_t most_ranges,
                         struct arena *arena, struct heat_matrix *out);

/* Reads the hotspots in that, as the advisor sees them; in the arena. `section_of`: see
 * cluster/heat/heat_hotspots.h. `*is_coarse`: a hot part of the table would not have been seen. */
status table_read_hotspots(struct table *table, const struct heat_matrix *matrix,
                           heat_section *section_of, struct arena *arena,
                           struct advice_hotspot **out, size_t *count, bool *is_coarse);

#endif
