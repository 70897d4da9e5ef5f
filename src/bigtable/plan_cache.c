/* See plan_cache.h.
 *
 * Invariants
 *  1. A plan lies in one of the WAYS places that its token's first bytes name: these are the
 *     token's fingerprint, so plans are spread over all. The one that was asked for longest ago
 *     gives way.
 *  2. The cache holds what lies in it; `lock` guards the places and each plan's `used`. */
#include "bigtable/plan_cache.h"

#include "base/check.h"

#include <pthread.h>
#include <stdlib.h>

enum { WAYS = 4, SETS = PLAN_CACHE_MOST / WAYS };

struct plan_cache {
    pthread_mutex_t lock;
    uint64_t asked; /* how often so far */
    struct kept_plan *places[SETS][WAYS];
};

/* --- plans --- */

struct kept_plan *kept_plan_create(size_t limit)
{
    struct arena *arena = arena_create(limit);
    struct kept_plan *plan = arena == NULL ? NULL : arena_zalloc(arena, sizeof *plan);
    if (plan == NULL) {
        arena_destroy(arena);
        return NULL;
    }
    plan->arena = arena;
    atomic_init(&plan->holders, 1);
    return plan;
}

void kept_plan_release(struct kept_plan *plan)
{
    if (plan != NULL && atomic_fetch_sub(&plan->holders, 1) == 1)
        arena_destroy(plan->arena);
}

/* --- the cache --- */

struct plan_cache *plan_cache_create(void)
{
    struct plan_cache *plans = calloc(1, sizeof *plans);
    if (plans != NULL)
        pthread_mutex_init(&plans->lock, NULL);
    return plans;
}

void plan_cache_destroy(struct plan_cache *plans)
{
    if (plans == NULL)
        return;
    for (size_t i = 0; i < PLAN_CACHE_MOST; i++)
        kept_plan_release(plans->places[i / WAYS][i % WAYS]);
    pthread_mutex_destroy(&plans->lock);
    free(plans);
}

static struct kept_plan **set_of(struct plan_cache *plans, bytes token)
{
    uint64_t hash = 0;
    memcpy(&hash, token.data, token.size < sizeof hash ? token.size : sizeof hash);
    return plans->places[hash % SETS];
}

/* With the lock held. */
static struct kept_plan *look_for(struct plan_cache *plans, bytes token)
{
    struct kept_plan **set = set_of(plans, token);
    DCHECK(check_is_held(&plans->lock));
    for (size_t i = 0; i < WAYS; i++)
        if (set[i] != NULL && bytes_equal(set[i]->token, token))
            return set[i];
    return NULL;
}

struct kept_plan *plan_cache_find(struct plan_cache *plans, bytes token)
{
    if (token.size == 0)
        return NULL;
    pthread_mutex_lock(&plans->lock);
    struct kept_plan *plan = look_for(plans, token);
    if (plan != NULL) {
        plan->used = ++plans->asked;
        atomic_fetch_add(&plan->holders, 1);
    }
    pthread_mutex_unlock(&plans->lock);
    return plan;
}

/* A place of the set that is free, or whose plan gives way. */
static struct kept_plan **place_in(struct kept_plan **set)
{
    struct kept_plan **oldest = set;
    for (size_t i = 0; i < WAYS; i++) {
        if (set[i] == NULL)
            return &set[i];
        if (set[i]->used < (*oldest)->used)
            oldest = &set[i];
    }
    return oldest;
}

void plan_cache_add(struct plan_cache *plans, struct kept_plan *plan)
{
    struct kept_plan *former = NULL;
    DCHECK(plan->is_of_token && plan->token.size > 0);
    if (arena_footprint(plan->arena) > PLAN_CACHE_MOST_BYTES)
        return;
    pthread_mutex_lock(&plans->lock);
    if (look_for(plans, plan->token) == NULL) {
        struct kept_plan **place = place_in(set_of(plans, plan->token));
        former = *place;
        *place = plan;
        plan->used = ++plans->asked;
        atomic_fetch_add(&plan->holders, 1);
    }
    pthread_mutex_unlock(&plans->lock);
    kept_plan_release(former);
}
