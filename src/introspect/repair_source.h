/* Where RepairTable gets rows from: what knows of backups (backup/repairer.h) is above this
 * folder. */
#ifndef TRESTLE_INTROSPECT_REPAIR_SOURCE_H
#define TRESTLE_INTROSPECT_REPAIR_SOURCE_H

#include "cluster/cluster.h"

struct repair_order {
    struct table *table; /* claimed (table_claim_repair), unless it is a trial */
    const char *place;
    const char *backup; /* empty: the newest that will do */
    bool is_trial;      /* only tells */
    /* As table_repair_options.lost, of each range before it is filled, in words that say what comes
     * from where; `count` rows, or large cells, come. */
    status (*tell)(void *context, const struct lost_rows *lost, uint64_t count);
    bool (*goes_on)(void *context); /* false: CANCELLED, until a range is filled */
    void *context;
    /* As table_repair_options.heal, for a table in which rows follow from others. */
    status (*heal)(void *context, const struct given_up *ranges, size_t count);
    void *heal_context;
};

/* The backup that was taken. */
struct repair_former {
    char name[64]; /* empty: nothing was out of service */
    int64_t instant_us;
};

/* `repair` NULL: there are none here. */
struct repair_source {
    /* Blocks for as long as it takes to get the table's files from the place. */
    status (*repair)(void *context, const struct repair_order *order, struct repair_former *former);
    void *context;
};

#endif
