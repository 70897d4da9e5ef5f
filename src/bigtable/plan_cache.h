/* Plans of prepared queries: what is executed many times is parsed and planned once.
 *
 * A plan is found by the token that PrepareQuery gave, byte for byte, and is made of nothing but
 * what the token says: the query, the types of its parameters, the columns of tables and the
 * queries of logical views as they were (query_token.c). So whatever changes later, it is the plan
 * that would be made of the token then, too. What a token does not say is asked at each execution,
 * whether its plan was kept or not (query_prepared.c):
 *
 *     the token is of the instance, and has not expired       query_token_check
 *     the caller may read what the query names                query_catalog_again
 *     the table is the one that has the name now; there is one
 *     a logical view has the query still that it had
 *     the families that are read are there                    query_catalog_check
 *
 * What is made of more than its token is not kept: a plan over a materialized view, whose columns
 * are the view's own, and one with types of a schema bundle.
 *
 * Plans that have expired stay until others need their place. Any thread. */
#ifndef TRESTLE_BIGTABLE_PLAN_CACHE_H
#define TRESTLE_BIGTABLE_PLAN_CACHE_H

#include "bigtable/query_catalog.h"

#include <stdatomic.h>

struct plan_cache;

/* How many plans are kept at most, and the memory that one may have that is. */
enum { PLAN_CACHE_MOST = 128, PLAN_CACHE_MOST_BYTES = 64 << 10 };

/* A plan and the token that it was made of, in an arena of its own. It is not changed any more when
 * it has been added to a cache: executions share it. */
struct kept_plan {
    struct arena *arena;
    bytes token;
    const Query__PreparedQuery *prepared; /* what it says */
    struct sql_parameter *parameters;
    size_t parameter_count;
    struct sql_plan plan;
    const struct found_relation *found; /* what the query names, in the order of being asked for */
    size_t found_count;
    bool is_of_token; /* made of nothing else */
    bool is_quick;    /* sql_plan_is_quick, and to be run */
    atomic_uint holders;
    uint64_t used; /* the cache's: when it was asked for last */
};

/* Without a plan yet, held; its arena hands out `limit` bytes. NULL without memory. */
struct kept_plan *kept_plan_create(size_t limit);
void kept_plan_release(struct kept_plan *plan); /* NULL is fine */

struct plan_cache *plan_cache_create(void);        /* NULL without memory */
void plan_cache_destroy(struct plan_cache *plans); /* NULL is fine */

/* The plan of a token, held; NULL: there is none. */
struct kept_plan *plan_cache_find(struct plan_cache *plans, bytes token);
/* Keeps the plan, which was made of its token alone, unless it is large, or there is one already.
 */
void plan_cache_add(struct plan_cache *plans, struct kept_plan *plan);

#endif
