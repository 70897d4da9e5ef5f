/* Scans of SQL over a table of the cluster (sql/catalog.h): for queries, and for the upkeep of
 * views, so that both see the same of a row.
 *
 * A row is there for SQL if it has any cell, but a query needs only some columns. So what is read
 * is those columns, and one other cell of a row that has none of them. Where times are asked for, a
 * row is there if it has a cell of these times; then a filter chooses, and reads more. */
#ifndef TRESTLE_VIEWS_SCAN_H
#define TRESTLE_VIEWS_SCAN_H

#include "base/budget.h"
#include "cluster/cluster.h"
#include "sql/catalog.h"

/* A value that is loaded alone takes so many times its size: the block that it is in, and what the
 * store makes of that (bigtable/value_turn.h). */
enum { VIEW_SCAN_COPIES = 2 };

struct view_scan_spec {
    struct table *table; /* held by the caller as long as the scan lives */
    const struct sql_scan_spec *sql;
    /* Nobody asked for the rows: as in scan_spec (cluster/rows.h). */
    bool is_background;
    /* Large values are left in the store until it is known that the query needs them, and are read
     * one by one. */
    bool defers_values;
    struct budget *budget; /* of values; NULL: not counted */
    /* Looked at for each row: whether the caller must not wait for the disk, nor read a row that
     * has large values (sql_scan.must_wait). Then nobody counts values. NULL: it may. */
    const bool *must_not_wait;
    /* More than so many bytes of what is needed of a row: it is too large, and none of its large
     * values is read. 0: no bound but the largest row's. With `defers_values`. */
    uint64_t most_row_bytes;
    /* Asked before each row: OK, or why the scan ends. NULL: never asked. */
    status (*go_on)(void *context);
    /* Told of a row that is too large: OK passes it over. */
    status (*too_large)(void *context, bytes row_key);
    void *context;
};

/* `arena`: for the scan itself; the rows have their own memory. */
status view_scan_open(const struct view_scan_spec *spec, struct arena *arena,
                      struct sql_scan **out);

#endif
