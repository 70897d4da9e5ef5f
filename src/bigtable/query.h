/* A query of the data API, from its text to a plan: what PrepareQuery and ExecuteQuery share. */
#ifndef TRESTLE_BIGTABLE_QUERY_H
#define TRESTLE_BIGTABLE_QUERY_H

#include "bigtable/explain_query.h"
#include "bigtable/query_catalog.h"
#include "sql/plan/plan.h"

/* A prepared query may be executed this long; clients are told less, so that they prepare it again
 * in time. */
enum { QUERY_VALID_MS = 10 * 1000, QUERY_EXPIRES_MS = 40 * 1000 };

/* How long a query runs, by the steady clock, before others that wait have their turn; and how much
 * processor time it may take if it cannot be paused, because it sorts, or is within one row, or
 * plans. Not how long: what others take of the processor is not the query's. */
enum { QUERY_TURN_US = 50 * 1000, QUERY_MOST_TURN_CPU_US = 30 * 1000 * 1000 };

/* Processor time that one row may take in searches: matches of a regular expression of which each
 * reads all of the text, say. */
enum { QUERY_MOST_ROW_CPU_US = 500 * 1000 };

/* Memory that planning may take: a base, and so much for each byte of the text. */
enum { QUERY_ARENA_BASE = 8 << 20, QUERY_ARENA_FACTOR = 256 };

struct kept_plan;

/* What the watch of a session measures: the query's, or one of a thread that helps with it. */
struct query_turn {
    struct sql_watch watch;
    const struct query *query;
    const struct sql_session *session;
    int64_t started_us;      /* steady */
    int64_t cpu_us;          /* the thread's processor time at its first look; -1: none yet */
    uint64_t progress;       /* the session's, at the last look */
    int64_t progress_cpu_us; /* the thread's processor time when it became that */
};

struct query {
    struct query_catalog catalog;
    struct sql_session session;
    struct query_turn turn;
    struct sql_helpers helpers; /* the session's, when it has any: query_take_helpers */
    struct sql_parameter *parameters;
    size_t parameter_count;
    struct kept_plan *kept; /* held: what a prepared query's plan may lie in; NULL: there is none */
    struct sql_plan plan;
    enum query_explain explain;
};

/* Begins a query of the instance. query_free is due whatever follows. INVALID_ARGUMENT, NOT_FOUND
 * for the instance. */
status query_init(struct query *query, struct bigtable *bigtable, struct grpc_call *call,
                  struct arena *arena, const char *instance);
/* A turn on a thread begins, or goes on: what the watch measures. Before whatever may take long. */
void query_begin_turn(struct query *query);
void query_free(struct query *query); /* all zeroes are fine */

/* Threads `query` that have nothing to do help with what is large, as many as there are processors
 * for. The query stays as long as its execution. */
void query_take_helpers(struct query *query);

/* Parses, analyses and plans it; parameters are set. */
status query_plan(struct query *query, const char *text);
/* The same over another catalog, in an arena, whose limit is the plan's. RESOURCE_EXHAUSTED without
 * words if that is too little: query_tell_limit. */
status query_plan_over(struct query *query, const struct sql_catalog *catalog, const char *text,
                       struct arena *arena, struct sql_plan *out);

/* The plan of a token (query_prepared.c), and all that is to be asked before each execution, but
 * for query_catalog_check and query_check_readable. Parameters are set by it, and so is `explain`,
 * and the catalog's `prepared`. `kept` is the token's that was found, or NULL; then it is set.
 * INVALID_ARGUMENT for what is no token, or another instance's; FAILED_PRECONDITION: it has
 * expired.
 */
status query_plan_prepared(struct query *query, bytes token);

/* The columns of its result. */
const struct sql_operator *query_result(const struct query *query);

/* A view that is to be made, or to get another query. */
struct query_view {
    const char *instance; /* full name */
    const char *id;
    const char *text;
    bool is_materialized; /* else logical */
    /* Whose caller is to have the right to read what it reads; NULL: nobody is asked. */
    const struct grpc_call *call;
};

/* Whether its query can be planned by now, and is none of the view itself, be it through others; a
 * materialized one besides, whether it is of tables alone and of a form that can be kept up to
 * date. INVALID_ARGUMENT with the planner's words and place; NOT_FOUND for the instance. Any thread
 * that may block. */
status query_check_view(struct bigtable *bigtable, struct arena *arena,
                        const struct query_view *view);

/* The same, and its plan as it is analysed, in the arena. PERMISSION_DENIED, UNAUTHENTICATED. */
status query_plan_view(struct bigtable *bigtable, struct arena *arena,
                       const struct query_view *view, struct sql_plan *out);

/* The result, but if memory for planning was short, with words that say so. */
status query_tell_limit(status result);

/* --- prepared queries, as clients carry them (query_token.c) --- */

/* In the arena. */
status query_token_write(const struct query *query, const char *text, int64_t expires_us,
                         struct arena *arena, bytes *out);

/* What the token says, and a copy of it, in the plan's arena. INVALID_ARGUMENT for what is none. */
status query_token_read(bytes token, struct kept_plan *out);
/* INVALID_ARGUMENT: it is another instance's. FAILED_PRECONDITION: it has expired. */
status query_token_check(const struct query *query, const Query__PreparedQuery *prepared);

/* The query in a token that may be made up, in the arena; "" if it is none, or without memory. */
const char *query_token_text(bytes token, struct arena *arena);

#endif
