/* A query of the data API: see query.h. */
#include "bigtable/query.h"

#include "bigtable/client_headers.h"
#include "bigtable/default_instance.h"
#include "bigtable/names.h"
#include "bigtable/plan_cache.h"
#include "os/thread.h"
#include "sql/analyze/analyze.h"
#include "sql/plan/materialized.h"
#include "sql/plan/optimize.h"
#include "sql/syntax/parser.h"
#include "sql/time/zone.h"

/* --- turns --- */

static int64_t steady_us(const struct query *query)
{
    return clock_steady_us(cluster_clock(query->catalog.bigtable->cluster));
}

static void begin_turn(struct query_turn *turn)
{
    turn->started_us = steady_us(turn->query);
    turn->cpu_us = -1; /* to ask for it takes longer than many a turn */
}

/* Maybe on another thread than the last. */
void query_begin_turn(struct query *query)
{
    begin_turn(&query->turn);
}

/* One row must not take long, since no other query has a turn on the thread meanwhile. Steps that
 * are counted see to that, except in searches. */
static status check_progress(struct query_turn *turn, int64_t cpu_us)
{
    if (turn->session->progress != turn->progress)
        turn->progress_cpu_us = cpu_us;
    turn->progress = turn->session->progress;
    if (!turn->session->is_searching || cpu_us - turn->progress_cpu_us <= QUERY_MOST_ROW_CPU_US)
        return status_ok();
    return status_make(STATUS_RESOURCE_EXHAUSTED,
                       "The query takes more than %d ms of processor time for one row",
                       QUERY_MOST_ROW_CPU_US / 1000);
}

static status look(void *context, bool *is_turn_over)
{
    struct query_turn *turn = context;
    int64_t taken_us = steady_us(turn->query) - turn->started_us;
    *is_turn_over = taken_us > QUERY_TURN_US;
    if (grpc_call_is_cancelled(turn->query->catalog.call))
        return status_make(STATUS_CANCELLED, "The call was cancelled");
    int64_t cpu_us = thread_cpu_us();
    if (turn->cpu_us < 0)
        turn->cpu_us = turn->progress_cpu_us = cpu_us;
    if (cpu_us - turn->cpu_us > QUERY_MOST_TURN_CPU_US)
        return status_make(STATUS_RESOURCE_EXHAUSTED,
                           "The query takes more than %d s of processor time for putting rows in "
                           "order",
                           QUERY_MOST_TURN_CPU_US / 1000000);
    return check_progress(turn, cpu_us);
}

static void init_turn(struct query_turn *turn, const struct query *query,
                      struct sql_session *session)
{
    *turn = (struct query_turn){.watch = {look, turn}, .query = query, .session = session};
    session->watch = &turn->watch;
    begin_turn(turn);
}

/* --- helpers --- */

/* One that has to wait for its turn behind other queries is not idle. */
static bool submit(void *context, struct task *task)
{
    struct bigtable *bigtable = context;
    return pool_load(bigtable->queries) < bigtable->query_threads &&
           pool_submit(bigtable->queries, task);
}

static status add_turn(const void *query, struct sql_session *session, struct arena *arena)
{
    struct query_turn *turn = arena_alloc(arena, sizeof *turn);
    if (turn == NULL)
        return status_out_of_memory();
    init_turn(turn, query, session);
    return status_ok();
}

/* Of what add_turn gave it. */
static void begin_helping(struct sql_session *session)
{
    begin_turn(session->watch->context);
}

void query_take_helpers(struct query *query)
{
    struct bigtable *bigtable = query->catalog.bigtable;
    query->helpers = (struct sql_helpers){.most = bigtable->query_helpers,
                                          .submit = submit,
                                          .add_turn = add_turn,
                                          .begin_turn = begin_helping,
                                          .context = bigtable,
                                          .query = query};
    query->session.helpers = &query->helpers;
}

/* --- the query --- */

/* The part of the beginning that needs no call. */
static status begin(struct query *query)
{
    struct bigtable *bigtable = query->catalog.bigtable;
    TRY(check_instance_to_list(bigtable, query->catalog.instance));
    query->session.now_us = cluster_wall_us(bigtable->cluster);
    query->session.random = (uint64_t)clock_steady_us(cluster_clock(bigtable->cluster));
    query->session.zones = sql_zones_create();
    return query->session.zones == NULL ? status_out_of_memory() : status_ok();
}

status query_init(struct query *query, struct bigtable *bigtable, struct grpc_call *call,
                  struct arena *arena, const char *instance)
{
    *query = (struct query){0};
    query_catalog_init(&query->catalog, bigtable, call, arena, instance);
    init_turn(&query->turn, query, &query->session);
    TRY(name_check_instance(instance));
    TRY(client_routing_check(call, instance));
    return begin(query);
}

void query_free(struct query *query)
{
    query_catalog_free(&query->catalog);
    sql_zones_destroy(query->session.zones);
    query->session.zones = NULL;
    kept_plan_release(query->kept);
    query->kept = NULL;
}

status query_tell_limit(status result)
{
    if (result.code != STATUS_RESOURCE_EXHAUSTED || result.detail != NULL)
        return result;
    return status_make(STATUS_RESOURCE_EXHAUSTED,
                       "The query has too many parts: planning it takes more memory than its "
                       "length allows");
}

/* What the text is analysed in: a query's own catalog and arena, or others. */
static struct sql_analysis analysis_of(struct query *query, const char *text)
{
    return (struct sql_analysis){.text = bytes_of(text),
                                 .catalog = &query->catalog.catalog,
                                 .parameters = query->parameters,
                                 .parameter_count = query->parameter_count,
                                 .arena = query->catalog.arena,
                                 .session = &query->session};
}

static status analyze(const struct sql_analysis *analysis, struct sql_plan *out)
{
    struct ast_query *tree;
    TRY(sql_parse(analysis->text, analysis->arena, &tree));
    return sql_analyze(analysis, tree, out);
}

static status make_plan(const struct sql_analysis *analysis, struct sql_plan *out)
{
    TRY(analyze(analysis, out));
    return sql_optimize(out, analysis->arena);
}

/* Memory for planning goes by what there is to plan. */
static void give_memory(struct query *query, const char *text)
{
    struct arena *arena = query->catalog.arena;
    arena_set_limit(arena, arena_footprint(arena) + QUERY_ARENA_BASE +
                               strlen(text) * (size_t)QUERY_ARENA_FACTOR);
}

status query_plan(struct query *query, const char *text)
{
    const struct sql_analysis analysis = analysis_of(query, text);
    give_memory(query, text);
    return query_tell_limit(make_plan(&analysis, &query->plan));
}

status query_plan_over(struct query *query, const struct sql_catalog *catalog, const char *text,
                       struct arena *arena, struct sql_plan *out)
{
    struct sql_analysis analysis = analysis_of(query, text);
    analysis.catalog = catalog;
    analysis.arena = arena;
    return make_plan(&analysis, out);
}

static status check_view(struct query *query, const struct query_view *view)
{
    struct sql_analysis analysis = analysis_of(query, view->text);
    analysis.is_view = !view->is_materialized;
    TRY(begin(query));
    give_memory(query, view->text);
    TRY(query_tell_limit(analyze(&analysis, &query->plan)));
    return view->is_materialized ? sql_check_materialized(&query->plan) : status_ok();
}

status query_plan_view(struct bigtable *bigtable, struct arena *arena,
                       const struct query_view *view, struct sql_plan *out)
{
    struct query query = {0};
    query_catalog_init(&query.catalog, bigtable, NULL, arena, view->instance);
    query.catalog.call = view->call;
    query.catalog.defined = view->id;
    query.catalog.only_tables = view->is_materialized;
    status s = check_view(&query, view);
    *out = query.plan;
    query_free(&query);
    return s;
}

status query_check_view(struct bigtable *bigtable, struct arena *arena,
                        const struct query_view *view)
{
    struct sql_plan plan;
    return query_plan_view(bigtable, arena, view, &plan);
}

const struct sql_operator *query_result(const struct query *query)
{
    return query->explain == QUERY_RUN ? query->plan.root : explain_columns();
}
