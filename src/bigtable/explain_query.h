/* EXPLAIN: instead of a query's rows, what it does.
 *
 * Asked for by the header `trestle-explain` of PrepareQuery, which is ours: `plan`, or `analyze`,
 * which runs the query and says what it read. The result is a column of STRINGs, `plan`, a line
 * each; so that every client can show it. */
#ifndef TRESTLE_BIGTABLE_EXPLAIN_QUERY_H
#define TRESTLE_BIGTABLE_EXPLAIN_QUERY_H

#include "sql/run/execute.h"
#include "wire/grpc.h"

/* Kept in prepared queries: numbers stay. */
enum query_explain { QUERY_RUN = 0, QUERY_PLAN = 1, QUERY_ANALYZE = 2 };

/* The explanation that the call's header asks for. INVALID_ARGUMENT for another word. Loop's
 * thread. */
status explain_asked(struct grpc_call *call, enum query_explain *out);

/* The columns of what is answered. */
const struct sql_operator *explain_columns(void);

/* A query that has run to its end. */
struct explained_run {
    uint64_t rows; /* of its result */
    int64_t taken_us;
};

/* Appends the plan, and what the run read; NULL: there was none. Lines. */
status explain_words(struct sql_execution *execution, const struct explained_run *run,
                     struct buffer *out);

/* Appends the answer's rows to a batch: the plan, and what the run read; NULL: there was none. */
status explain_query(struct sql_execution *execution, const struct explained_run *run,
                     struct buffer *batch);

#endif
