/* How many ranges each table is counted by, of those that all tables may have. Private to cluster/.
 *
 * Ranges follow traffic: a table gets them in proportion to the rows that it served lately, and
 * what one cannot use goes to the others. So three tables that are busy among a thousand that are
 * not are counted as finely as if they were alone.
 *
 * Invariants: each table that is counted has one at least, and none more than it may use; beyond
 * the first of each, all together have no more than there are. Pure. */
#ifndef TRESTLE_HEAT_HEAT_BUDGET_H
#define TRESTLE_HEAT_HEAT_BUDGET_H

#include <stddef.h>
#include <stdint.h>

struct heat_claim {
    uint64_t traffic; /* rows that it served lately: any unit, the same for all; 0: it is idle */
    size_t share;     /* what it may have: set by heat_budget_share */
};

/* `all`: of all claims; `most`: of one. An idle one gets 1. */
void heat_budget_share(struct heat_claim *claims, size_t count, size_t all, size_t most);

#endif
