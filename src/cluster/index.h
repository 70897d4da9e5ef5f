/* The cluster's tables by name. Private to cluster/. */
#ifndef TRESTLE_CLUSTER_INDEX_H
#define TRESTLE_CLUSTER_INDEX_H

#include "cluster/cluster_private.h"

/* Makes room for one more, so that index_add cannot fail. With admin held, as for the next. */
status index_make_room(struct cluster *cluster);

/* Adds a table under its name, which must be free, and takes the reference. */
void index_add(struct cluster *cluster, struct table *table);

/* Takes a table out; the reference goes to the caller. */
void index_remove(struct cluster *cluster, struct table *table);

/* The table, retained; NULL if there is none of that name. Any thread, as for the next ones. */
struct table *index_find(struct cluster *cluster, bytes name);

/* The same by its id. Looks at all. */
struct table *index_find_id(struct cluster *cluster, uint64_t id);

/* All tables whose names start with the prefix, retained, by name. `*out` is to be freed, and on
 * failure NULL, with a count of 0. */
status index_find_all(struct cluster *cluster, bytes prefix, struct table ***out, size_t *count);

/* Whether it is not one that the server keeps for itself. */
bool index_is_users(const struct table *table);

/* How many names start with the prefix. */
size_t index_count(struct cluster *cluster, bytes prefix);

#endif
