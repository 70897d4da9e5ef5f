/* A query of the data API: see query.h. */
#include "bigtable/query.h"

#include "bigtable/client_headers.h"
#include "bigtable/default_instance.h"
#include "bigtable/names.h"
#include "sql/analyze.h"
#include "sql/optimize.h"
#include "sql/parser.h"
#include "sql/zone.h"

status query_init(struct query *query, struct bigtable *bigtable, struct grpc_call *call,
                  struct arena *arena, const char *instance)
{
    *query = (struct query){0};
    query_catalog_init(&query->catalog, bigtable, call, arena, instance);
    TRY(name_check_instance(instance));
    TRY(client_routing_check(call, instance));
    TRY(check_instance_to_list(bigtable, instance));
    query->session.now_us = cluster_now_us(bigtable->cluster);
    query->session.random = (uint64_t)clock_steady_us(cluster_clock(bigtable->cluster));
    query->session.zones = sql_zones_create();
    return query->session.zones == NULL ? status_out_of_memory() : status_ok();
}

void query_free(struct query *query)
{
    query_catalog_free(&query->catalog);
    sql_zones_destroy(query->session.zones);
    query->session.zones = NULL;
}

status query_plan(struct query *query, const char *text)
{
    struct arena *arena = query->catalog.arena;
    struct ast_query *tree;
    struct sql_analysis analysis = {.text = bytes_of(text),
                                    .catalog = &query->catalog.catalog,
                                    .parameters = query->parameters,
                                    .parameter_count = query->parameter_count,
                                    .arena = arena,
                                    .session = &query->session};
    TRY(sql_parse(analysis.text, arena, &tree));
    TRY(sql_analyze(&analysis, tree, &query->plan));
    return sql_optimize(&query->plan, arena);
}

const struct sql_operator *query_result(const struct query *query)
{
    return query->explain == QUERY_RUN ? query->plan.root : explain_columns();
}
