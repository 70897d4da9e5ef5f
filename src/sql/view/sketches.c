/* HLL_COUNT: see aggregate.h. */
#include "sql/view/aggregate.h"

const struct view_aggregate_kind view_sketches[] = {{0}};
