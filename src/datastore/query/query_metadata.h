/* Queries about what there is: the kinds __namespace__, __kind__ and __property__, whose entities
 * are not stored. Their rows are found by going from one text of the row keys to the next.
 *
 * Keys are __namespace__/name (the one without a name: 1), __kind__/name, and of a property
 * __kind__/name/__property__/name; a property that is not only asked for its key has the types that
 * it has, in property_representation. In the past they may show what came later. */
#ifndef TRESTLE_DATASTORE_QUERY_QUERY_METADATA_H
#define TRESTLE_DATASTORE_QUERY_QUERY_METADATA_H

#include "datastore/commit/reading.h"
#include "datastore/query/query_check.h"

struct ds_metadata;

bool ds_is_metadata(const struct ds_query *query);

/* INVALID_ARGUMENT if it asks for more than keys in a range or below an ancestor, in their order.
 */
status ds_metadata_check(const struct ds_query *query);

/* Opens the results of a checked query. All that the arguments point to must outlive them. */
status ds_metadata_open(const struct ds_query *query, struct ds_reading *reading,
                        struct arena *arena, struct ds_metadata **out);
void ds_metadata_close(struct ds_metadata *metadata); /* NULL is fine */

/* The next entity, in `arena`, within the query's range and after its start; `path` is its
 * position. */
status ds_metadata_next(struct ds_metadata *metadata, struct arena *arena, Ds__Entity **entity,
                        bytes *path, bool *found);

#endif
