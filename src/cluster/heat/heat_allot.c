/* See heat_allot.h. */
#include "cluster/heat/heat_allot.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "heat/heat_budget.h"

#include <stdlib.h>

struct allotment {
    struct table *const *tables;
    struct heat_claim *claims; /* of each */
    bool *is_done;             /* it has chosen */
    size_t count;
    size_t taken; /* by all of them */
};

static void note_claims(struct allotment *allotment)
{
    for (size_t i = 0; i < allotment->count; i++) {
        allotment->claims[i].traffic = heat_table_traffic(allotment->tables[i]);
        allotment->taken += heat_table_ranges(allotment->tables[i]);
    }
    heat_budget_share(allotment->claims, allotment->count, HEAT_MOST_IN_ALL, HEAT_MOST_RANGES);
}

static size_t left_for(const struct allotment *allotment, size_t own)
{
    DCHECK(own <= allotment->taken);
    size_t others = allotment->taken - own;
    return others < HEAT_MOST_IN_ALL ? HEAT_MOST_IN_ALL - others : 0;
}

/* How many ranges busy tables are to have beyond those that they have. */
static size_t lacking(const struct allotment *allotment)
{
    size_t lacking = 0;
    for (size_t i = 0; i < allotment->count; i++)
        if (allotment->claims[i].traffic > 0)
            lacking += heat_table_lacks(allotment->tables[i], allotment->claims[i].share);
    return lacking;
}

static void let_idle_ones_give_up(struct allotment *allotment, size_t lacking)
{
    for (size_t i = 0; i < allotment->count && lacking > left_for(allotment, 0); i++) {
        size_t own = heat_table_ranges(allotment->tables[i]);
        if (allotment->claims[i].traffic > 0 || own <= 1)
            continue;
        heat_table_give_up(allotment->tables[i]);
        allotment->taken -= own - heat_table_ranges(allotment->tables[i]);
    }
}

/* Table `i` may keep ranges that no other table needs. */
static size_t most_for(const struct allotment *allotment, size_t i, bool must_fit)
{
    DCHECK(allotment->claims[i].share > 0);
    size_t own = heat_table_ranges(allotment->tables[i]), left = left_for(allotment, own);
    size_t share = allotment->claims[i].share;
    size_t most = own > share && !must_fit ? HEAT_MOST_RANGES : share;
    most = most > left ? left : most;
    return most == 0 ? 1 : most;
}

/* Tables that have too many ranges come first: the others may take them then. */
static void choose(struct allotment *allotment, bool have_too_many, bool must_fit, bool ends_window)
{
    for (size_t i = 0; i < allotment->count; i++) {
        struct table *table = allotment->tables[i];
        size_t own = heat_table_ranges(table);
        if (allotment->is_done[i] || (have_too_many && own <= allotment->claims[i].share))
            continue;
        heat_table_choose(table, most_for(allotment, i, must_fit), must_fit, ends_window);
        allotment->is_done[i] = true;
        allotment->taken += heat_table_ranges(table);
        allotment->taken -= own;
    }
}

static void allot(struct allotment *allotment, bool ends_window)
{
    note_claims(allotment);
    size_t lack = lacking(allotment);
    let_idle_ones_give_up(allotment, lack);
    bool must_fit = lack > left_for(allotment, 0);
    choose(allotment, true, must_fit, ends_window);
    choose(allotment, false, must_fit, ends_window);
}

size_t heat_allot(struct table *const *tables, size_t count, bool ends_window)
{
    struct allotment allotment = {.tables = tables,
                                  .count = count,
                                  .claims = calloc(count + 1, sizeof *allotment.claims),
                                  .is_done = calloc(count + 1, sizeof *allotment.is_done)};
    if (allotment.claims != NULL && allotment.is_done != NULL)
        allot(&allotment, ends_window);
    free(allotment.claims);
    free(allotment.is_done);
    return allotment.taken;
}
