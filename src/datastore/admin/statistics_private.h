/* Declarations that the two halves of statistics share: statistics.c counts, statistics_make.c sums
 * up. */
#ifndef TRESTLE_DATASTORE_ADMIN_STATISTICS_PRIVATE_H
#define TRESTLE_DATASTORE_ADMIN_STATISTICS_PRIVATE_H

#include "datastore/admin/statistics.h"

/* Kinds of the tallies in which entities are counted. */
enum ds_tally_what {
    DS_TALLY_KIND,   /* a namespace's and kind's entities, and all their rows */
    DS_TALLY_VALUES, /* of a kind's property, and of a type */
    DS_TALLY_INDEX,  /* a composite index's rows of a namespace and kind */
};

static inline void ds_amount_add(struct ds_amount *sum, struct ds_amount amount)
{
    sum->count += amount.count;
    sum->bytes += amount.bytes;
}

/* The name of a value's type in statistics: `type` is a Ds__Value__ValueTypeCase. */
const char *ds_statistic_type(int type, bool is_excluded);

#endif
