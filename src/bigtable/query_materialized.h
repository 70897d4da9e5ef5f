/* Materialized views in queries: found by name, read as tables.
 *
 * A query names one as it does a table; none is ever read where a query names its source. */
#ifndef TRESTLE_BIGTABLE_QUERY_MATERIALIZED_H
#define TRESTLE_BIGTABLE_QUERY_MATERIALIZED_H

#include "bigtable/query_catalog.h"

/* The view of that id, held by the catalog, and its columns; `*is_there` false if there is none. */
status query_find_materialized(struct query_catalog *catalog, const char *id,
                               struct found_relation *found, bool *is_there);

/* The same of a prepared query. FAILED_PRECONDITION: it has expired, since the view has another
 * query now; NOT_FOUND, in production's words: the view is gone. */
status query_find_prepared_materialized(struct query_catalog *catalog,
                                        const Query__Relation *prepared,
                                        struct found_relation *found);

/* Whether the view that a plan reads, if it reads one, can be read by it. FAILED_PRECONDITION while
 * the view is populated, unless the query says that this will do. */
status query_check_readable(const struct query_catalog *catalog, const struct sql_plan *plan);

#endif
