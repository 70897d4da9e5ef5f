/* What instances of several clusters, which replicate, are refused in production, and here: those
 * rules that hold whether the clusters are one copy, as one process serves them, or several. */
#ifndef TRESTLE_BIGTABLE_REPLICATED_H
#define TRESTLE_BIGTABLE_REPLICATED_H

#include "control/control.h"
#include "google/bigtable/admin/v2/instance.pb-c.h"
#include "row/schema.h"

/* Whether the instance has two clusters or more. RESOURCE_EXHAUSTED without memory. */
status instance_is_replicated(struct control *control, const char *instance, bool *out);

/* Within the edit in which the instance gets this cluster: FAILED_PRECONDITION, in production's
 * words, if it has another one at its location. */
status check_zone_is_free(struct control *control, struct arena *arena,
                          const BtAdmin__Cluster *cluster);

/* The refusal of a zone that has a cluster of the instance already. */
status zone_is_taken(void);

/* Whether the profile's routing lets single-row transactions through: single-cluster routing that
 * says so. */
bool profile_allows_transactions(const BtAdmin__AppProfile *profile);

/* A replicated family's garbage-collection rule of ages alone may become stricter, not laxer: what
 * one cluster has collected by it may be in another one still, and would come back. NULL: no rule.
 * FAILED_PRECONDITION, in production's words. */
status check_age_is_not_relaxed(bytes family, const struct gc_rule *before,
                                const struct gc_rule *after);

#endif
