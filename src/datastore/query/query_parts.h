/* Parts of a conjunction's positions, with what it says of each, in the direction of the order: for
 * plans (query_plan.h). */
#ifndef TRESTLE_DATASTORE_QUERY_QUERY_PARTS_H
#define TRESTLE_DATASTORE_QUERY_QUERY_PARTS_H

#include "datastore/query/query_plan.h"

/* Makes a part for each order of the query, and one for the path. In the arena. */
status ds_parts_make(const struct ds_query *query, const struct ds_conjunction *conjunction,
                     struct arena *arena, const struct ds_part **out);

/* A copy of what was made, which is freed. */
status ds_plan_keep(struct arena *arena, struct buffer *made, bytes *out);

#endif
