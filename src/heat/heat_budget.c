/* See heat_budget.h. */
#include "heat/heat_budget.h"

#include "base/check.h"

#include <stdbool.h>

/* What is left, and by whose traffic it is shared out. */
struct rest {
    size_t ranges;
    double traffic;
};

static struct rest rest_of(const struct heat_claim *claims, size_t count, size_t all, size_t most)
{
    struct rest rest = {.ranges = all};
    for (size_t i = 0; i < count; i++) {
        size_t taken = claims[i].share;
        rest.ranges -= taken < rest.ranges ? taken : rest.ranges;
        if (taken < most)
            rest.traffic += (double)claims[i].traffic;
    }
    return rest;
}

/* Those whose part is more than they may use are given that, and leave the rest to the others. */
static bool fill_up(struct heat_claim *claims, size_t count, const struct rest *rest, size_t most)
{
    DCHECK(rest->traffic > 0);
    bool is_any_full = false;
    for (size_t i = 0; i < count; i++) {
        double part = (double)rest->ranges * (double)claims[i].traffic / rest->traffic;
        if (claims[i].share < most && (double)claims[i].share + part >= (double)most) {
            claims[i].share = most;
            is_any_full = true;
        }
    }
    return is_any_full;
}

void heat_budget_share(struct heat_claim *claims, size_t count, size_t all, size_t most)
{
    DCHECK(most > 0);
    for (size_t i = 0; i < count; i++)
        claims[i].share = 1;
    struct rest rest = rest_of(claims, count, all, most);
    while (rest.traffic > 0 && fill_up(claims, count, &rest, most))
        rest = rest_of(claims, count, all, most);
    for (size_t i = 0; i < count && rest.traffic > 0; i++)
        if (claims[i].share < most)
            claims[i].share +=
                (size_t)((double)rest.ranges * (double)claims[i].traffic / rest.traffic);
}
