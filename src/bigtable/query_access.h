/* Access control for what a query names.
 *
 * access/ admits a caller that may query the instance, or anything in it; here it is asked whether
 * it may read the table or view that its query names. What a view reads is not asked: a caller that
 * may read a view sees what its query shows, without a right to its tables, as with
 * authorized views. */
#ifndef TRESTLE_BIGTABLE_QUERY_ACCESS_H
#define TRESTLE_BIGTABLE_QUERY_ACCESS_H

#include "bigtable/query_catalog.h"

/* What a query names. */
enum query_source { QUERY_TABLE, QUERY_LOGICAL_VIEW, QUERY_MATERIALIZED_VIEW };

/* Whether a query means, by that id, what the server remembers of itself: the same in each
 * instance. No table of a client has such an id. */
bool query_names_own(const char *id);

/* Something that the caller was found to have. */
struct query_demand {
    enum access_permission permission;
    bytes resource;
};

/* Whether the caller may read the table of that id (of the server's own: its metrics), or, if there
 * is none, the view. A refusal does not tell which of them there is. UNAUTHENTICATED,
 * PERMISSION_DENIED. */
status query_access_demand(struct query_catalog *catalog, const char *id, enum query_source source);

/* The same again of all that was asked for: while the query runs, rights may go. Any thread. */
status query_access_again(const struct query_catalog *catalog);

/* Whether the caller may hear of a table, by its full name. */
bool query_access_shows(const struct query_catalog *catalog, const char *table);

#endif
