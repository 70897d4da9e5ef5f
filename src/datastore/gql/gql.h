/* GQL: queries as text, and the values bound in them. docs/reference/datastore-gql.md has the
 * grammar.
 *
 * The result is the message that a client would have sent instead of the text. Only the text and
 * its bindings are judged here: whether such a query may run is not. */
#ifndef TRESTLE_DATASTORE_GQL_GQL_H
#define TRESTLE_DATASTORE_GQL_GQL_H

#include "datastore/model/key.h"
#include "google/datastore/v1/datastore.pb-c.h"

/* Of parentheses, and of arrays, in one another: so that what comes out is no deeper than a
 * message may be that a client sends (LIMIT_MESSAGE_DEPTH). */
enum { DS_GQL_NESTING_LIMIT = 20 };

/* Just one of the two is set. */
struct ds_gql {
    Ds__Query *query;
    Ds__AggregationQuery *aggregation;
};

/* `database` and `name_space` ("" is the one without a name) are those of keys in the text that
 * say none. The result is the arena's, and shares with `gql` the values bound; a binding with
 * several sites is one value in several filters. INVALID_ARGUMENT, with the place, if the text is
 * no query, holds a literal where none is allowed, or does not fit its bindings. */
status ds_gql_parse(const Ds__GqlQuery *gql, const struct ds_database *database,
                    const char *name_space, struct arena *arena, struct ds_gql *out);

/* The query of a request, as text or not. A query of the request itself is handed on as it is.
 * INVALID_ARGUMENT if there is none, or one that is for the other method. */
status ds_query_of_request(const Ds__RunQueryRequest *request, const struct ds_database *database,
                           struct arena *arena, Ds__Query **out);
status ds_query_of_aggregation_request(const Ds__RunAggregationQueryRequest *request,
                                       const struct ds_database *database, struct arena *arena,
                                       Ds__AggregationQuery **out);

#endif
