/* Which of the ranges that there may be go to which table, from second to second: by traffic
 * (heat_budget.h), and so that tables without requests keep theirs as long as no other table needs
 * them. Private to cluster/, and to maintenance's thread. */
#ifndef TRESTLE_CLUSTER_HEAT_HEAT_ALLOT_H
#define TRESTLE_CLUSTER_HEAT_HEAT_ALLOT_H

#include <stdbool.h>
#include <stddef.h>

struct table;

enum { HEAT_MOST_IN_ALL = 4096 }; /* ranges of all counted tables, except for one of each */

/* Has each choose its ranges, if that is due. `ends_window`: one has ended. Returns how many they
 * have then. Without memory no table chooses. */
size_t heat_allot(struct table *const *tables, size_t count, bool ends_window);

#endif
