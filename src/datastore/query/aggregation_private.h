/* Declarations that aggregation.c and aggregation_plan.c share. */
#ifndef TRESTLE_DATASTORE_QUERY_AGGREGATION_PRIVATE_H
#define TRESTLE_DATASTORE_QUERY_AGGREGATION_PRIVATE_H

#include "datastore/query/aggregation.h"

struct ds_value_list {
    const Ds__Value **values;
    size_t count;
};

/* The values of the property that the entity has in the index, ascending. In the arena. */
status ds_aggregated_values(const Ds__Entity *entity, const struct ds_aggregated *property,
                            struct arena *arena, struct ds_value_list *out);

#endif
