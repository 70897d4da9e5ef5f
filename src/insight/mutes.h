/* What is muted of a table's, or of a database's, findings, for whoever tells them. */
#ifndef TRESTLE_INSIGHT_MUTES_H
#define TRESTLE_INSIGHT_MUTES_H

#include "advice/advice.h"
#include "cluster/cluster.h"

/* Names the findings that are muted as such; in the arena. */
status mute_findings(struct table *table, struct arena *arena, struct advice *advice);

#endif
