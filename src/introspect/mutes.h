/* Which findings of a table, or of a database, are muted, for the pages that tell findings. */
#ifndef TRESTLE_INTROSPECT_MUTES_H
#define TRESTLE_INTROSPECT_MUTES_H

#include "advisor/advice.h"
#include "cluster/cluster.h"

/* Names the findings that are muted as such; in the arena. */
status mute_findings(struct table *table, struct arena *arena, struct advice *advice);

#endif
