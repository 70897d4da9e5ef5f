/* What a query does: operators that hand rows to each other.
 *
 * A row is an array of values; each operator says how many, and of what types (`columns`). Its
 * expressions refer to the columns of its input. The tree is made by analysis (analyze.h) in the
 * plainest form, rewritten by the planner (optimize.h), and run by execute.h. It is immutable
 * then, in the arena of the prepared query. */
#ifndef TRESTLE_SQL_PLAN_PLAN_H
#define TRESTLE_SQL_PLAN_PLAN_H

#include "sql/catalog.h"
#include "sql/functions/expr.h"

struct sql_column {
    const char *name; /* "": none */
    const struct sql_type *type;
    bool is_hidden; /* not in `*`, nor in the result */
};

enum sql_operator_kind {
    SQL_OP_ONE_ROW,   /* SELECT without FROM: one row without columns */
    SQL_OP_SCAN,      /* scan */
    SQL_OP_FILTER,    /* condition */
    SQL_OP_PROJECT,   /* exprs */
    SQL_OP_UNNEST,    /* exprs[0], an array: the input's columns, the element, and its offset */
    SQL_OP_UNPACK,    /* the input's columns, histories as values, and `_timestamp` */
    SQL_OP_AGGREGATE, /* exprs: keys; aggregates. Columns: keys, then aggregates */
    SQL_OP_DISTINCT,
    SQL_OP_SORT,   /* orders; `limit` too, if it is set: the first rows only */
    SQL_OP_LIMIT,  /* limit, offset */
    SQL_OP_WINDOW, /* windows: the input's columns, then theirs */
};

/* A column of a scan. */
enum sql_slot_kind {
    SQL_SLOT_KEY,
    SQL_SLOT_KEY_PART,  /* part: of the key schema */
    SQL_SLOT_FAMILY,    /* a map of the family's columns */
    SQL_SLOT_COLUMN,    /* a column's newest value, or its history: fam['q'] */
    SQL_SLOT_CELL,      /* a typed value of a materialized view: of `family`, `cell` */
    SQL_SLOT_TIMESTAMP, /* of a materialized view's version: sql_relation_has_versions */
};

struct sql_slot {
    enum sql_slot_kind kind;
    const struct sql_type *type;
    size_t part;
    bytes family;
    const struct sql_expr *qualifier; /* fixed: of SQL_SLOT_COLUMN */
    bytes cell;
};

/* t(with_history => …, …): each a fixed expression, or NULL. */
struct sql_temporal {
    bool with_history;
    const struct sql_expr *as_of;
    const struct sql_expr *after;
    const struct sql_expr *after_or_equal;
    const struct sql_expr *before;
    const struct sql_expr *before_or_equal;
    const struct sql_expr *latest_n;
};

struct sql_scan_plan {
    const struct sql_relation *table;
    const struct sql_slot *slots; /* the operator's columns */
    size_t slot_count;
    struct sql_temporal temporal;
    /* The planner's. Only rows for which `condition` (of the slots) is TRUE are of use; others may
     * come. */
    const struct sql_expr *condition; /* NULL: none */
    const struct sql_expr *row_limit; /* fixed; NULL: unknown */
    bool is_reversed;
};

struct sql_order {
    const struct sql_expr *expr;
    bool is_descending;
    bool nulls_last;
};

struct sql_aggregation {
    const struct sql_aggregate *function;
    const struct sql_expr *const *args;
    const struct sql_type *const *types;
    size_t arg_count;
    const struct sql_type *type;
    bool is_distinct;
    bool ignores_nulls;
    const struct sql_expr *having; /* NULL: none */
    bool having_is_max;
    const struct sql_order *orders;
    size_t order_count;
    const struct sql_expr *limit; /* fixed; NULL: none */
};

struct sql_operator {
    enum sql_operator_kind kind;
    const struct sql_operator *input; /* NULL for ONE_ROW and SCAN */
    const struct sql_column *columns;
    size_t column_count;
    const struct sql_scan_plan *scan;
    const struct sql_expr *condition;
    const struct sql_expr *const *exprs;
    size_t expr_count;
    bool is_outer;   /* UNNEST: a row without elements stays, with NULL */
    bool has_offset; /* UNNEST */
    const struct sql_aggregation *aggregates;
    size_t aggregate_count;
    bool is_grouped; /* AGGREGATE: without, there is one row, even of none */
    const struct sql_order *orders;
    size_t order_count;
    const struct sql_expr *limit; /* fixed; NULL: none */
    const struct sql_expr *offset;
    const struct sql_window *windows; /* window.h */
    size_t window_count;
};

struct sql_parameter {
    const char *name;
    const struct sql_type *type;
};

/* A query that can be executed. */
struct sql_plan {
    const struct sql_operator *root;
    const struct sql_parameter *parameters; /* as declared; SQL_PARAMETER's index */
    size_t parameter_count;
    size_t call_count;                /* all that an sql_expr.call counts */
    size_t argument_count;            /* of lambdas in one another, at most */
    const struct sql_relation *table; /* that is read; NULL: none */
    /* A materialized view may be read before it is populated: @{allow_incomplete_view = true}. */
    bool allows_incomplete_views;
    bool selects_all; /* the result is that of a `*` */
};

#endif
