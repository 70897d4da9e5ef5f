/* From a query's tree to a plan: names, types, coercions, and all errors that need no data. */
#ifndef TRESTLE_SQL_ANALYZE_ANALYZE_H
#define TRESTLE_SQL_ANALYZE_ANALYZE_H

#include "sql/plan/plan.h"
#include "sql/syntax/ast.h"

struct sql_analysis {
    bytes text; /* of the query: errors count lines in it */
    const struct sql_catalog *catalog;
    const struct sql_parameter *parameters;
    size_t parameter_count;
    struct arena *arena;         /* the plan's */
    struct sql_session *session; /* in which constants are folded; CURRENT_TIMESTAMP is not */
    bool is_view;                /* VIEW_PARAMETERS may be used */
};

/* INVALID_ARGUMENT with GoogleSQL's words, UNIMPLEMENTED never: what is not there is refused by
 * name. */
status sql_analyze(const struct sql_analysis *analysis, const struct ast_query *query,
                   struct sql_plan *out);

#endif
