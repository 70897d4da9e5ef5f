/* What the files of the analysis share.
 *
 * A query is bound from the inside out. Each FROM item, each clause, makes an operator of its
 * input's, and a *relation* says under which names its columns are in sight. Expressions are bound
 * against a relation; where aggregates or window functions stand in them, they are collected on
 * the way, and the expression has a placeholder (SQL_AGGREGATED, SQL_WINDOWED) until it is known
 * in which column of the next operator the result will be. */
#ifndef TRESTLE_SQL_ANALYZE_ANALYZE_PRIVATE_H
#define TRESTLE_SQL_ANALYZE_ANALYZE_PRIVATE_H

#include "base/vector.h"
#include "sql/analyze/analyze.h"
#include "sql/plan/window.h"
#include "sql/syntax/error.h"
#include "sql/work.h"

enum { SQL_COLUMN_LIMIT = 10000 }; /* of a SELECT list */

struct analyzer {
    const struct sql_analysis *analysis;
    struct arena *arena;
    const struct sql_relation *table; /* the one that is read; NULL: none yet */
    size_t call_count;
    size_t argument_count; /* of lambdas in one another, at most */
    size_t folded;         /* bytes of constants that were computed */
    unsigned view_depth;
};

/* Counts what planning does over and over, as looking for a name among many: RESOURCE_EXHAUSTED
 * beyond the limit of work.h. */
static inline status count_planning(const struct analyzer *analyzer, uint64_t steps)
{
    return sql_count(analyzer->analysis->session, steps);
}

/* --- relations --- */

struct name {
    const char *text;      /* "": none */
    const char *qualifier; /* the alias of the FROM item; "": none */
    bool is_hidden;        /* not in `*` */
    bool is_element;       /* of UNNEST: the fields of a struct are in sight, too */
};

struct relation {
    const struct sql_operator *operator_;
    const struct name *names; /* as many as the operator has columns */
};

/* --- expressions --- */

struct lambda_scope {
    const struct lambda_scope *outer;
    const struct ast_name *names;
    const struct sql_type *const *types;
    size_t first; /* SQL_ARGUMENT's index of the first */
    size_t count;
};

/* A name that a select list gives to one of its expressions. */
struct alias {
    const char *name;
    const struct sql_expr *expr;
};

/* Where an expression stands, and what it may refer to. */
struct binding {
    struct analyzer *analyzer;
    const struct relation *relation; /* NULL: no columns */
    const struct lambda_scope *lambda;
    const char *clause;        /* "WHERE clause": for errors */
    struct vector *aggregates; /* of struct sql_aggregation; NULL: none are allowed here */
    struct vector *windows;    /* of struct sql_window; the same */
    const struct ast_window *named_windows;
    const struct alias *aliases;
    size_t alias_count;
    bool aliases_win; /* over columns, as in ORDER BY */
    bool in_aggregate;
};

status bind_expr(const struct binding *binding, const struct ast_expr *ast,
                 const struct sql_expr **out);

/* Binds all expressions of a list. */
status bind_exprs(const struct binding *binding, const struct ast_expr *list,
                  const struct sql_expr *const **out, size_t *count);

/* An expression that must be of type BOOL: `… should return type BOOL, but returns INT64`. */
status bind_condition(const struct binding *binding, const struct ast_expr *ast,
                      const struct sql_expr **out);

/* Binds an expression without columns, coerced to the type: LIMIT, the arguments of a table. */
status bind_fixed(struct analyzer *analyzer, const struct ast_expr *ast, const char *clause,
                  const struct sql_type *type, const struct sql_expr **out);

/* bind_type.c */
status bind_type(const struct binding *binding, const struct ast_type *ast,
                 const struct sql_type **out);

/* A type, or the types of expressions with commas between, as messages have them; in the arena. */
const char *type_words(struct analyzer *analyzer, const struct sql_type *type);
const char *types_words(struct analyzer *analyzer, const struct sql_expr *const *exprs,
                        size_t count);

/* bind_special.c: what is neither a call nor an operator. */
status bind_if(const struct binding *binding, const struct ast_expr *ast,
               const struct sql_expr **out);
status bind_coalesce(const struct binding *binding, const struct ast_expr *ast,
                     const struct sql_expr **out);
status bind_case(const struct binding *binding, const struct ast_expr *ast,
                 const struct sql_expr **out);
status bind_cast(const struct binding *binding, const struct ast_expr *ast,
                 const struct sql_expr **out);
status bind_array(const struct binding *binding, const struct ast_expr *ast,
                  const struct sql_expr **out);
status bind_struct(const struct binding *binding, const struct ast_expr *ast,
                   const struct sql_expr **out);
status bind_subscript(const struct binding *binding, const struct ast_expr *ast,
                      const struct sql_expr **out);

/* bind_name.c */

/* a.b.c, with its dots. In the arena. */
status join_names(struct analyzer *analyzer, const struct ast_name *name, char **out);

/* The name that an expression has by itself: that of the column or field that it is; "": none. */
const char *implicit_name(const struct ast_expr *expr);

status bind_path(const struct binding *binding, const struct ast_expr *ast,
                 const struct sql_expr **out);
status bind_field(const struct binding *binding, const struct sql_expr *of, const char *name,
                  uint32_t at, const struct sql_expr **out);
status bind_parameter(const struct binding *binding, const struct ast_expr *ast,
                      const struct sql_expr **out);

/* bind_proto.c */
status bind_proto_field(const struct binding *binding, const struct sql_expr *of, const char *name,
                        uint32_t at, const struct sql_expr **out);
status bind_named_type(const struct binding *binding, const struct ast_name *name,
                       const struct sql_type **out);

/* bind_literal.c */
status bind_literal(const struct binding *binding, const struct ast_expr *ast,
                    const struct sql_expr **out);
status bind_negative(const struct binding *binding, const struct ast_expr *ast, bool *is_literal,
                     const struct sql_expr **out);

/* bind_call.c */
status bind_call(const struct binding *binding, const struct ast_expr *ast,
                 const struct sql_expr **out);
status bind_extract(const struct binding *binding, const struct ast_expr *ast,
                    const struct sql_expr **out);

/* bind_call.c: the arguments of a function of the name, not yet coerced. */
struct argument;
status bind_arguments(const struct binding *binding, const char *name, const struct ast_expr *list,
                      struct argument **out, size_t *count);

/* bind_aggregate.c */
bool is_aggregate_function(const char *name);
status make_aggregation(const struct binding *binding, const struct ast_expr *ast, const char *name,
                        struct sql_aggregation *out);
status bind_orders(const struct binding *binding, const struct ast_order *list,
                   const struct sql_order **out, size_t *count);
/* Adds an order by the expression, which is what `ast` says it is. */
status add_order(const struct binding *binding, const struct ast_order *ast,
                 const struct sql_expr *expr, struct vector *orders);
status bind_aggregate(const struct binding *binding, const struct ast_expr *ast, const char *name,
                      bool *is_aggregate, const struct sql_expr **out);

/* bind_window.c */
bool is_window_function(const char *name);
status bind_window(const struct binding *binding, const struct ast_expr *ast, const char *name,
                   const struct sql_expr **out);

/* --- making expressions --- */

struct sql_expr *new_bound(struct analyzer *analyzer, enum sql_expr_kind kind, uint32_t at,
                           const struct sql_type *type); /* NULL without memory */

/* With these arguments, which are kept; fills in their types. */
status set_args(struct analyzer *analyzer, struct sql_expr *expr,
                const struct sql_expr *const *args, size_t count);

status new_constant(struct analyzer *analyzer, uint32_t at, const struct sql_type *type,
                    struct sql_value value, const struct sql_expr **out);
status new_column(struct analyzer *analyzer, uint32_t at, const struct sql_type *type, size_t index,
                  const struct sql_expr **out);

status new_field(struct analyzer *analyzer, uint32_t at, const struct sql_expr *of, size_t index,
                 const struct sql_expr **out);
status new_cast(struct analyzer *analyzer, const struct sql_expr *expr, const struct sql_type *to,
                bool is_safe, const struct sql_expr **out);

/* A constant in place of a call of nothing but constants, if it has a value. */
const struct sql_expr *fold_constant(struct analyzer *analyzer, const struct sql_expr *expr);

/* Whether both compute the same, for GROUP BY. */
bool sql_expr_equal(const struct sql_expr *a, const struct sql_expr *b);

/* --- coercion: coerce.c --- */

/* NULL and [] as they are written: without a type of their own until it is known what they are for.
 */
static inline bool is_null_literal(const struct sql_expr *expr)
{
    return expr->kind == SQL_CONSTANT && expr->is_literal && expr->constant.is_null;
}

static inline bool is_empty_literal(const struct sql_expr *expr)
{
    return expr->kind == SQL_ITEMS && expr->is_literal && expr->arg_count == 0;
}

/* The cost of having the expression as the type; -1: it cannot be. */
int coercion_cost(const struct sql_expr *expr, const struct sql_type *to);

/* The expression as the type, which it can be. INVALID_ARGUMENT "Could not cast literal …". */
status coerce(const struct binding *binding, const struct sql_expr *expr, const struct sql_type *to,
              const struct sql_expr **out);

/* A literal of the type in place of another. The same error. */
status cast_literal(const struct binding *binding, const struct sql_expr *expr,
                    const struct sql_type *to, const struct sql_expr **out);

/* The type that all can be, by the rules of supertypes; NULL: none. */
const struct sql_type *common_type(const struct sql_expr *const *exprs, size_t count);

/* --- resolution: resolve.c --- */

/* An argument of a call, before it is known which function it is. */
struct argument {
    const struct ast_expr *ast;
    const struct sql_expr *expr;         /* NULL: a lambda */
    bool is_part;                        /* `expr` is a constant: enum sql_part */
    const struct sql_expr *bound_lambda; /* by the signature tried last */
};

/* A function's or aggregate's signature that fits. */
struct resolved {
    const struct sql_type *type;        /* of the result */
    const struct sql_expr *const *args; /* coerced */
    size_t arg_count;
};

/* Whether the signature fits, and at what cost. With `out`, lambdas are bound, too; what they
 * return may yet not fit. */
status match_signature(const struct binding *binding, const char *signature,
                       struct argument *arguments, size_t count, bool *fits, int *cost,
                       struct resolved *out);

/* Whether some signature of the function has, at that place, a date part. */
bool signature_has_part(const char *signature, size_t index);

/* The call of a function or an operator. INVALID_ARGUMENT "No matching signature for …" */
status resolve_function(const struct binding *binding, const char *name, uint32_t at,
                        struct argument *arguments, size_t count, bool is_safe,
                        const struct sql_expr **out);

/* The same of bound arguments: for operators. */
status resolve_operator(const struct binding *binding, const char *name, uint32_t at,
                        const struct sql_expr *const *args, size_t count,
                        const struct sql_expr **out);

/* The next row with the name, counted from `*row`, which moves on; NULL: no more. */
const struct sql_function *function_at(const char *name, size_t *row);
const struct sql_aggregate *aggregate_at(const char *name, size_t *row);
/* INVALID_ARGUMENT "No matching signature for …": a macro for the same reason as sql_error. */
#define no_matching_signature(binding, name, at, arguments, count)                                 \
    status_with(STATUS_INVALID_ARGUMENT, no_matching_detail(binding, name, at, arguments, count))
struct status_detail *no_matching_detail(const struct binding *binding, const char *name,
                                         uint32_t at, const struct argument *arguments,
                                         size_t count);

/* "; Did you mean x?" if a candidate is near enough. Call for each; then append. */
struct suggestion {
    const char *wanted;
    const char *best;
    size_t distance;
};
void suggest(struct suggestion *suggestion, const char *candidate);

/* --- after grouping: group.c --- */

/* An operator's result in place of what it was computed from. */
struct rewrite {
    struct analyzer *analyzer;
    const struct relation *from; /* of the columns that are no longer there: for errors */
    const char *clause;
    const struct sql_expr *const *keys; /* are the first columns now; aggregates come after them */
    size_t key_count;
    bool is_grouped;     /* other columns are not there any more */
    size_t windows_from; /* where the window functions' columns begin; SIZE_MAX: not yet known */
};

status rewrite_expr(const struct rewrite *rewrite, const struct sql_expr *expr,
                    const struct sql_expr **out);
status rewrite_window(const struct rewrite *rewrite, struct sql_window *window);

/* --- queries --- */

status one_row(struct analyzer *analyzer, struct relation *out);
status qualify(struct analyzer *analyzer, const char *qualifier, struct relation *relation);

status analyze_query(struct analyzer *analyzer, const struct ast_query *query,
                     struct relation *out);
status analyze_from(struct analyzer *analyzer, const struct ast_from *from, struct relation *out);
status analyze_join(struct analyzer *analyzer, const struct ast_from *join,
                    const struct relation *left, struct relation *out);
status analyze_select(struct analyzer *analyzer, const struct ast_query *query,
                      const struct ast_select *select, const struct relation *from,
                      struct relation *out);
status analyze_pipes(struct analyzer *analyzer, const struct ast_pipe *pipes,
                     struct relation *relation);
status analyze_order(struct analyzer *analyzer, const struct ast_order *order,
                     struct relation *relation);
status analyze_limit(struct analyzer *analyzer, const struct ast_expr *limit,
                     const struct ast_expr *offset, struct relation *relation);

/* An operator over the relation's; `columns` as its input's unless they are set. */
struct sql_operator *new_operator(struct analyzer *analyzer, enum sql_operator_kind kind,
                                  const struct sql_operator *input);

/* The same names over another operator: a filter, a sort. */
status add_filter(struct analyzer *analyzer, const struct sql_expr *condition,
                  struct relation *relation);

#endif
