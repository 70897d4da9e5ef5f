/* Expressions whose names and types are known: what analysis makes of the parser's, and evaluation
 * runs.
 *
 * An expression is a tree in the arena of the prepared query, immutable, and shared by all that
 * execute it. All coercions are explicit: the types of a call's arguments are those its function
 * expects. */
#ifndef TRESTLE_SQL_FUNCTIONS_EXPR_H
#define TRESTLE_SQL_FUNCTIONS_EXPR_H

#include "sql/function.h"

enum sql_expr_kind {
    SQL_CONSTANT,    /* constant */
    SQL_PARAMETER,   /* index: of the query's parameters */
    SQL_COLUMN,      /* index: of the values of the row that the operator is given */
    SQL_ARGUMENT,    /* index: of the arguments of the lambdas around it, outermost first */
    SQL_CALL,        /* function, args */
    SQL_AND,         /* args: two or more; FALSE ends it */
    SQL_OR,          /* args; TRUE ends it */
    SQL_IF,          /* args: condition, value, condition, value, …, else */
    SQL_CASE,        /* args: operand, value, result, …, else; compared by args[0]'s equality */
    SQL_COALESCE,    /* args: the first that is not NULL */
    SQL_FIELD,       /* args: a struct; index */
    SQL_PROTO_FIELD, /* args: a message; field */
    SQL_ITEMS,       /* args: the elements of an array, the fields of a struct */
    SQL_LAMBDA, /* args: the body; index: of its first argument; only as an argument of a call */
    SQL_AGGREGATED, /* index: during analysis alone, see analyze_private.h */
    SQL_WINDOWED,
};

struct sql_expr {
    enum sql_expr_kind kind;
    uint32_t at; /* where it stands in the query */
    const struct sql_type *type;
    const struct sql_expr *const *args;
    const struct sql_type *const *types; /* of args */
    size_t arg_count;
    struct sql_value constant;
    size_t index;
    size_t arity; /* of a lambda */
    const struct sql_function *function;
    const struct sql_proto_field *field; /* proto_type.h */
    size_t call; /* number of the call among the query's: its place in sql_frame.calls */
    bool is_safe;
    bool is_literal; /* written as one: coerces more freely. NULL then has no type of its own */
};

/* A call of one execution, with what its function prepared. */
struct sql_call_state {
    struct sql_call call;
    const struct sql_function *function; /* NULL: not yet called */
};

/* What an expression is evaluated in: of one execution, one thread. */
struct sql_frame {
    const struct sql_value *row; /* columns */
    const struct sql_value *parameters;
    struct sql_value *arguments;  /* of lambdas: as many as are ever nested in the query */
    struct sql_call_state *calls; /* by sql_expr.call; NULL: nothing is kept between calls */
    struct sql_session *session;
    struct arena *arena; /* for results; emptied by the frame's maker */
    struct arena *kept;  /* for what is prepared: as long as `calls` */
};

/* Ends what calls prepared. */
void sql_calls_release(struct sql_call_state *calls, size_t count);

/* The value, in the frame's arena or in what the expression refers to. The error names no place:
 * production's does not either. */
status sql_evaluate_expr(const struct sql_expr *expr, struct sql_frame *frame,
                         struct sql_value *out);

/* The value of a constant expression, outside of an execution; in the arena. */
status sql_evaluate_constant(const struct sql_expr *expr, struct arena *arena,
                             struct sql_session *session, struct sql_value *out);

/* Whether the value is the same for all rows of all executions; of one execution. */
bool sql_expr_is_constant(const struct sql_expr *expr);
bool sql_expr_is_fixed(const struct sql_expr *expr);

/* A copy of the expression in which some parts are others: `map` is asked for each node, from the
 * top, and sets *out to what takes its place, or leaves it NULL. Parts that stay are shared. */
typedef status sql_expr_mapper(void *context, const struct sql_expr *expr,
                               const struct sql_expr **out);
status sql_expr_map(const struct sql_expr *expr, struct arena *arena, sql_expr_mapper *map,
                    void *context, const struct sql_expr **out);

#endif
