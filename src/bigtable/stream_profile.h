/* Which app profiles may read change streams: those that name one cluster, whose stream it is. */
#ifndef TRESTLE_BIGTABLE_STREAM_PROFILE_H
#define TRESTLE_BIGTABLE_STREAM_PROFILE_H

#include "bigtable/services.h"

/* Whether a reader of the table's stream may have the profile ("": the default one), and which
 * cluster's changes he is told of: that which the profile routes to, else the first of the
 * instance. Memory from the arena. NOT_FOUND; FAILED_PRECONDITION if it routes to several, or to
 * Data Boost. */
status stream_profile_check(const struct bigtable *bigtable, const char *table, const char *profile,
                            struct arena *arena, const char **cluster_id);

#endif
