/* What is muted of a table's, or of a database's, findings, for whoever tells them. */
#ifndef TRESTLE_INTROSPECT_MUTES_H
#define TRESTLE_INTROSPECT_MUTES_H

#include "advisor/advice.h"
#include "cluster/cluster.h"

/* Names the findings that are muted as such; in the arena. */
status mute_findings(struct table *table, struct arena *arena, struct advice *advice);

#endif
