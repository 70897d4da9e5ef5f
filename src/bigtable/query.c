/* A query of the data API: see query.h. */
#include "bigtable/query.h"

#include "bigtable/client_headers.h"
#include "bigtable/default_instance.h"
#include "bigtable/names.h"
#include "sql/analyze.h"
#include "sql/materialized.h"
#include "sql/optimize.h"
#include "sql/parser.h"
#include "sql/zone.h"

/* What needs no call. */
static status begin(struct query *query)
{
    struct bigtable *bigtable = query->catalog.bigtable;
    TRY(check_instance_to_list(bigtable, query->catalog.instance));
    query->session.now_us = cluster_now_us(bigtable->cluster);
    query->session.random = (uint64_t)clock_steady_us(cluster_clock(bigtable->cluster));
    query->session.zones = sql_zones_create();
    return query->session.zones == NULL ? status_out_of_memory() : status_ok();
}

status query_init(struct query *query, struct bigtable *bigtable, struct grpc_call *call,
                  struct arena *arena, const char *instance)
{
    *query = (struct query){0};
    query_catalog_init(&query->catalog, bigtable, call, arena, instance);
    TRY(name_check_instance(instance));
    TRY(client_routing_check(call, instance));
    return begin(query);
}

void query_free(struct query *query)
{
    query_catalog_free(&query->catalog);
    sql_zones_destroy(query->session.zones);
    query->session.zones = NULL;
}

static status analyze(struct query *query, const char *text, bool is_view)
{
    struct arena *arena = query->catalog.arena;
    struct ast_query *tree;
    struct sql_analysis analysis = {.text = bytes_of(text),
                                    .catalog = &query->catalog.catalog,
                                    .parameters = query->parameters,
                                    .parameter_count = query->parameter_count,
                                    .arena = arena,
                                    .session = &query->session,
                                    .is_view = is_view};
    TRY(sql_parse(analysis.text, arena, &tree));
    return sql_analyze(&analysis, tree, &query->plan);
}

status query_plan(struct query *query, const char *text)
{
    TRY(analyze(query, text, false));
    return sql_optimize(&query->plan, query->catalog.arena);
}

static status check_view(struct query *query, const struct query_view *view)
{
    TRY(begin(query));
    TRY(analyze(query, view->text, !view->is_materialized));
    return view->is_materialized ? sql_check_materialized(&query->plan) : status_ok();
}

status query_check_view(struct bigtable *bigtable, struct arena *arena,
                        const struct query_view *view)
{
    struct query query = {0};
    query_catalog_init(&query.catalog, bigtable, NULL, arena, view->instance);
    query.catalog.defined = view->id;
    query.catalog.only_tables = view->is_materialized;
    status s = check_view(&query, view);
    query_free(&query);
    return s;
}

const struct sql_operator *query_result(const struct query *query)
{
    return query->explain == QUERY_RUN ? query->plan.root : explain_columns();
}
