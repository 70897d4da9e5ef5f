/* Scans of SQL over the table that a query reads: views/scan.h does it. */
#include "bigtable/query_catalog.h"
#include "bigtable/row_error.h"
#include "bigtable/value_turn.h"
#include "cluster/ranges.h"
#include "views/scan.h"

_Static_assert(VIEW_SCAN_COPIES == VALUE_TURN_COPIES, "the store makes as many of each value");

static status go_on(void *context)
{
    const struct query_catalog *catalog = context;
    return grpc_call_is_cancelled(catalog->call)
               ? status_make(STATUS_CANCELLED, "The call was cancelled")
               : status_ok();
}

static status too_large(void *context, bytes row_key)
{
    const struct query_catalog *catalog = context;
    return row_too_large(row_key, table_name(catalog->table));
}

status query_scan_open(void *context, const struct sql_relation *relation,
                       const struct sql_scan_spec *spec, struct arena *arena, struct sql_scan **out)
{
    (void)relation; /* a query reads one table */
    struct query_catalog *catalog = context;
    return view_scan_open(
        &(struct view_scan_spec){.table = catalog->table,
                                 .sql = spec,
                                 .defers_values = catalog->budget != NULL || catalog->must_not_wait,
                                 .budget = catalog->budget,
                                 .must_not_wait = &catalog->must_not_wait,
                                 .go_on = go_on,
                                 .too_large = too_large,
                                 .context = catalog},
        arena, out);
}

status query_scan_divide(void *context, const struct sql_relation *relation,
                         const struct sql_key_range *range, size_t most, struct arena *arena,
                         bytes **borders, size_t *count)
{
    (void)relation; /* a query reads one table */
    const struct query_catalog *catalog = context;
    return table_divide(catalog->table, range->from, range->to, most, arena, borders, count);
}
