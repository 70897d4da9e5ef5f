/* Window functions: what OVER asks for. */
#ifndef TRESTLE_SQL_PLAN_WINDOW_H
#define TRESTLE_SQL_PLAN_WINDOW_H

#include "sql/functions/expr.h"

struct sql_aggregation;
struct sql_order;

enum sql_bound_place {
    SQL_FRAME_UNBOUNDED_PRECEDING,
    SQL_FRAME_PRECEDING,
    SQL_FRAME_CURRENT,
    SQL_FRAME_FOLLOWING,
    SQL_FRAME_UNBOUNDED_FOLLOWING,
};

struct sql_frame_bound {
    enum sql_bound_place place;
    const struct sql_expr *offset; /* fixed: of PRECEDING and FOLLOWING */
};

enum sql_window_kind {
    SQL_WINDOW_AGGREGATE, /* aggregation */
    SQL_WINDOW_ROW_NUMBER,
    SQL_WINDOW_RANK,
    SQL_WINDOW_DENSE_RANK,
    SQL_WINDOW_PERCENT_RANK,
    SQL_WINDOW_CUME_DIST,
    SQL_WINDOW_NTILE,
    SQL_WINDOW_FIRST_VALUE,
    SQL_WINDOW_LAST_VALUE,
    SQL_WINDOW_NTH_VALUE,
    SQL_WINDOW_LEAD,
    SQL_WINDOW_LAG,
    SQL_WINDOW_PERCENTILE_CONT,
    SQL_WINDOW_PERCENTILE_DISC,
};

/* One call with OVER; its result is a column of the operator. */
struct sql_window {
    enum sql_window_kind kind;
    const struct sql_type *type;
    const struct sql_expr *const *args;
    size_t arg_count;
    const struct sql_aggregation *aggregation;
    bool ignores_nulls;
    const struct sql_expr *const *partition;
    size_t partition_count;
    const struct sql_order *orders;
    size_t order_count;
    bool is_range; /* else by rows */
    struct sql_frame_bound start;
    struct sql_frame_bound end;
};

/* Names of the functions that need OVER; NULL behind the last. */
const char *sql_window_function_name(size_t index);

#endif
