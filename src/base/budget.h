/* A budget bounds memory that grows in several places at once: arenas and buffers that were given
 * one ask it before they take more from the system, and tell it what they have freed. A NULL budget
 * bounds nothing. */
#ifndef TRESTLE_BASE_BUDGET_H
#define TRESTLE_BASE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

struct budget {
    /* Whether so many bytes may be taken; may block. */
    bool (*take)(struct budget *budget, size_t size);
    void (*give_back)(struct budget *budget, size_t size);
};

static inline bool budget_take(struct budget *budget, size_t size)
{
    return budget == NULL || budget->take(budget, size);
}

static inline void budget_give_back(struct budget *budget, size_t size)
{
    if (budget != NULL)
        budget->give_back(budget, size);
}

#endif
