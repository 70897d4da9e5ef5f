/* What the schema advisor says of a Datastore database: its entities and indexes are read where
 * they lie (docs/internals/datastore-layout.md), since no client sees the rows of an index. */
#ifndef TRESTLE_INTROSPECT_DATABASE_ADVICE_H
#define TRESTLE_INTROSPECT_DATABASE_ADVICE_H

#include "bigtable/admin_call.h"
#include "trestle/insight/v1/insight.pb-c.h"

/* `name`: projects/P/databases/D. What it finds is of the request's arena. NOT_FOUND. Blocks for a
 * few seconds at most. */
status advise_on_database(const struct admin_request *request, const char *name,
                          Insight__TableAdvice **out);

#endif
