/* What of the advisor's findings about a table is not to be told any more, and why: at most one
 * entry for each rule. Kept with the table's records of the catalog: it goes with the table, and
 * comes back with it. Whether a rule of that name exists is not known here. */
#ifndef TRESTLE_CLUSTER_MUTES_H
#define TRESTLE_CLUSTER_MUTES_H

#include "cluster/cluster.h"

enum {
    MUTES_MOST = 256,
    MUTE_RULE_MOST = 64,      /* bytes */
    MUTE_REASON_MOST = 1024,  /* bytes */
    MUTE_PRINCIPAL_MOST = 256 /* bytes; what is longer is cut */
};

struct mute {
    const char *rule;
    const char *reason;
    const char *principal; /* who muted it; empty: not known */
    int64_t since_us;      /* since 1970 */
};

/* In the order of their rules; in the arena. May wait for the disk. */
status table_read_mutes(struct table *table, struct arena *arena, struct mute **out, size_t *count);

/* Durable on return, in place of the entry of the same rule. INVALID_ARGUMENT for what is empty or
 * too long, or a reason that is no UTF-8; RESOURCE_EXHAUSTED past MUTES_MOST; NOT_FOUND if the
 * table has been deleted. Blocks. */
status table_mute(struct table *table, const struct mute *mute);

/* Durable on return. NOT_FOUND if there is none of that rule. Blocks. */
status table_unmute(struct table *table, const char *rule);

#endif
