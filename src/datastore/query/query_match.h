/* Whether an entity is a result of a query, and where in the order: what indexes say, from the
 * entity itself. Two things want it: reading in the past, where an index row may not have been
 * there, and going on from a cursor, where an entity with several positions may have come before.
 */
#ifndef TRESTLE_DATASTORE_QUERY_QUERY_MATCH_H
#define TRESTLE_DATASTORE_QUERY_QUERY_MATCH_H

#include "datastore/query/query_check.h"

struct ds_match {
    bool is_first; /* the position is that of the result; of a projection with its values */
    bytes types;   /* then: of the position's values (ds_value_type), a byte for each order */
};

/* `position` is one that a branch gave for the entity's key. The arena is for what is made. */
status ds_query_match(const struct ds_query *query, const Ds__Entity *entity, bytes position,
                      struct arena *arena, struct ds_match *out);

#endif
