/* Prepared queries: of a token a plan, which was kept or is made.
 *
 * Whether it was kept makes no difference but in time: plan_cache.h says why. */
#include "bigtable/plan_cache.h"
#include "bigtable/query.h"
#include "sql/plan/optimize.h"

/* As much as planning of any text that long may take. */
static struct kept_plan *create(bytes token)
{
    return kept_plan_create(QUERY_ARENA_BASE + token.size * (size_t)QUERY_ARENA_FACTOR);
}

/* Plans it in its own arena. The catalog's state is given back: what an execution needs of it is
 * asked for anew. */
static status make_plan(struct query *query, struct kept_plan *kept)
{
    const struct query_catalog *asked = &query->catalog;
    struct query_catalog catalog;
    query_catalog_init(&catalog, asked->bigtable, asked->call, kept->arena, asked->instance);
    catalog.prepared = kept->prepared;
    status s =
        query_plan_over(query, &catalog.catalog, kept->prepared->query, kept->arena, &kept->plan);
    kept->found = catalog.found.items;
    kept->found_count = catalog.found.count;
    kept->is_of_token = !catalog.has_asked_for_bundles;
    kept->is_quick =
        status_is_ok(s) && kept->prepared->explain == QUERY_RUN && sql_plan_is_quick(&kept->plan);
    query_catalog_free(&catalog);
    return s;
}

static bool names_materialized(const Query__PreparedQuery *prepared)
{
    for (size_t i = 0; i < prepared->n_relations; i++)
        if (prepared->relations[i]->is_materialized)
            return true;
    return false;
}

/* What the plan is for: no execution alters it. */
static status take_token(struct query *query)
{
    const struct kept_plan *kept = query->kept;
    TRY(query_token_check(query, kept->prepared));
    query->catalog.prepared = kept->prepared;
    query->explain = kept->prepared->explain;
    query->parameters = kept->parameters;
    query->parameter_count = kept->parameter_count;
    return status_ok();
}

static status take_plan(struct query *query)
{
    query->plan = query->kept->plan;
    return query_catalog_again(&query->catalog, query->kept->found, query->kept->found_count);
}

static status plan_anew(struct query *query, bytes token)
{
    struct kept_plan *kept = query->kept = create(token);
    if (kept == NULL)
        return status_out_of_memory();
    TRY(query_token_read(token, kept));
    TRY(take_token(query));
    if (names_materialized(kept->prepared))
        return query_plan(query, kept->prepared->query);
    TRY(make_plan(query, kept));
    TRY(take_plan(query));
    if (kept->is_of_token)
        plan_cache_add(query->catalog.bigtable->plans, kept);
    return status_ok();
}

status query_plan_prepared(struct query *query, bytes token)
{
    if (query->kept == NULL)
        return query_tell_limit(plan_anew(query, token));
    TRY(take_token(query));
    return take_plan(query);
}
