/* One aggregate of one group: see aggregate.h.
 *
 * Rows go straight to the function, unless something must be known of all of them first: DISTINCT,
 * ORDER BY, LIMIT and HAVING hold them until the end. */
#include "sql/run/aggregate.h"

#include <stdlib.h>

#include "base/vector.h"
#include "sql/work.h"

struct held {
    struct sql_value *args;
    struct sql_value *keys; /* of the order */
    size_t at;
};

struct accumulated {
    struct vector rows;    /* of struct held */
    struct sql_value best; /* of HAVING */
    bool has_best;
};

static bool must_hold(const struct sql_aggregation *aggregation)
{
    return aggregation->is_distinct || aggregation->order_count > 0 || aggregation->limit != NULL ||
           aggregation->having != NULL;
}

static status begin(struct sql_accumulator *accumulator, const struct sql_aggregation *aggregation,
                    const struct sql_aggregate *function, struct sql_frame *frame,
                    struct arena *arena)
{
    *accumulator = (struct sql_accumulator){.aggregation = aggregation, .function = function};
    accumulator->call = (struct sql_call){.arena = arena,
                                          .type = aggregation->type,
                                          .types = aggregation->types,
                                          .session = frame->session};
    accumulator->state = arena_zalloc(arena, function->state_size);
    if (must_hold(aggregation))
        accumulator->held = arena_zalloc(arena, sizeof *accumulator->held);
    bool failed =
        accumulator->state == NULL || (must_hold(aggregation) && accumulator->held == NULL);
    return failed ? status_out_of_memory() : status_ok();
}

status sql_accumulator_begin(struct sql_accumulator *accumulator,
                             const struct sql_aggregation *aggregation, struct sql_frame *frame,
                             struct arena *arena)
{
    return begin(accumulator, aggregation, aggregation->function, frame, arena);
}

/* --- parts --- */

static const struct sql_aggregate *function_in_parts(const struct sql_aggregation *aggregation)
{
    const struct sql_aggregate *function = aggregation->function;
    return function->in_parts == NULL ? function : function->in_parts;
}

bool sql_aggregation_has_parts(const struct sql_aggregation *aggregation)
{
    return !must_hold(aggregation) && function_in_parts(aggregation)->merge != NULL;
}

status sql_accumulator_begin_part(struct sql_accumulator *accumulator,
                                  const struct sql_aggregation *aggregation,
                                  struct sql_frame *frame, struct arena *arena)
{
    return begin(accumulator, aggregation, function_in_parts(aggregation), frame, arena);
}

status sql_accumulator_merge(struct sql_accumulator *accumulator,
                             const struct sql_accumulator *later)
{
    return accumulator->function->merge(&accumulator->call, accumulator->state, later->state);
}

/* --- rows that are held --- */

/* Whether the row is among those of the greatest (or least) value so far; a better one empties
 * what is held. NULLs never are. */
static status passes_having(struct sql_accumulator *accumulator, struct sql_frame *frame,
                            bool *passes)
{
    const struct sql_aggregation *aggregation = accumulator->aggregation;
    struct accumulated *held = accumulator->held;
    struct sql_value value;
    *passes = true;
    if (aggregation->having == NULL)
        return status_ok();
    TRY(sql_evaluate_expr(aggregation->having, frame, &value));
    *passes = !value.is_null;
    if (value.is_null)
        return status_ok();
    int order =
        held->has_best ? sql_value_compare(aggregation->having->type, &value, &held->best) : 0;
    bool is_better = !held->has_best || (aggregation->having_is_max ? order > 0 : order < 0);
    *passes = is_better || order == 0;
    if (!is_better)
        return status_ok();
    held->rows.count = 0;
    held->has_best = true;
    return sql_value_copy(aggregation->having->type, &value, accumulator->call.arena, &held->best);
}

static status copy_all(const struct sql_type *const *types, const struct sql_value *values,
                       size_t count, struct arena *arena, struct sql_value **out)
{
    *out = arena_alloc(arena, count * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        TRY(sql_value_copy(types[i], &values[i], arena, &(*out)[i]));
    return status_ok();
}

static status order_keys(struct sql_accumulator *accumulator, struct sql_frame *frame,
                         struct sql_value **out)
{
    const struct sql_aggregation *aggregation = accumulator->aggregation;
    struct arena *arena = accumulator->call.arena;
    *out = arena_alloc(arena, aggregation->order_count * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < aggregation->order_count; i++) {
        struct sql_value value;
        TRY(sql_evaluate_expr(aggregation->orders[i].expr, frame, &value));
        TRY(sql_value_copy(aggregation->orders[i].expr->type, &value, arena, &(*out)[i]));
    }
    return status_ok();
}

static status hold_row(struct sql_accumulator *accumulator, struct sql_frame *frame,
                       const struct sql_value *args)
{
    const struct sql_aggregation *aggregation = accumulator->aggregation;
    struct accumulated *held = accumulator->held;
    bool passes;
    TRY(passes_having(accumulator, frame, &passes));
    if (!passes)
        return status_ok();
    struct held row = {.at = held->rows.count};
    TRY(copy_all(aggregation->types, args, aggregation->arg_count, accumulator->call.arena,
                 &row.args));
    TRY(order_keys(accumulator, frame, &row.keys));
    return vector_add(&held->rows, accumulator->call.arena, &row, sizeof row);
}

status sql_accumulator_add(struct sql_accumulator *accumulator, struct sql_frame *frame)
{
    const struct sql_aggregation *aggregation = accumulator->aggregation;
    struct sql_value *args = arena_alloc(frame->arena, aggregation->arg_count * sizeof *args);
    if (args == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < aggregation->arg_count; i++)
        TRY(sql_evaluate_expr(aggregation->args[i], frame, &args[i]));
    TRY(sql_work(frame->session, 1 + sql_weigh(args, aggregation->arg_count) / SQL_WEIGHT_A_STEP));
    if (aggregation->ignores_nulls && aggregation->arg_count > 0 && args[0].is_null)
        return status_ok();
    if (accumulator->held != NULL)
        return hold_row(accumulator, frame, args);
    return accumulator->function->add(&accumulator->call, accumulator->state, args,
                                      aggregation->arg_count);
}

/* --- the end --- */

int sql_compare_orders(const struct sql_order *orders, size_t count, const struct sql_value *a,
                       const struct sql_value *b)
{
    for (size_t i = 0; i < count; i++) {
        bool is_null = a[i].is_null || b[i].is_null;
        int order = sql_value_compare(orders[i].expr->type, &a[i], &b[i]);
        bool turns = is_null ? orders[i].nulls_last : orders[i].is_descending;
        if (order != 0)
            return turns ? -order : order;
    }
    return 0;
}

static int compare_distinct(const void *a, const void *b, void *context)
{
    const struct sql_aggregation *aggregation = context;
    const struct held *left = a;
    const struct held *right = b;
    int order = sql_value_compare(aggregation->types[0], &left->args[0], &right->args[0]);
    return order != 0 ? order : (left->at > right->at) - (left->at < right->at);
}

static int compare_held(const void *a, const void *b, void *context)
{
    const struct sql_aggregation *aggregation = context;
    const struct held *left = a;
    const struct held *right = b;
    int order =
        sql_compare_orders(aggregation->orders, aggregation->order_count, left->keys, right->keys);
    return order != 0 ? order : (left->at > right->at) - (left->at < right->at);
}

/* Keeps the first row of each value, in the order of their coming. */
static status leave_distinct(const struct sql_aggregation *aggregation, struct accumulated *held,
                             struct sql_session *session)
{
    struct held *rows = held->rows.items;
    size_t kept = 0;
    TRY(sql_sort(rows, held->rows.count, sizeof *rows, compare_distinct,
                 (void *)(uintptr_t)aggregation, session));
    for (size_t i = 0; i < held->rows.count; i++)
        if (kept == 0 || sql_value_compare(aggregation->types[0], &rows[kept - 1].args[0],
                                           &rows[i].args[0]) != 0)
            rows[kept++] = rows[i];
    held->rows.count = kept;
    return status_ok();
}

static status limit_of(const struct sql_aggregation *aggregation, struct sql_frame *frame,
                       size_t *out)
{
    struct sql_value limit;
    *out = SIZE_MAX;
    if (aggregation->limit == NULL)
        return status_ok();
    TRY(sql_evaluate_expr(aggregation->limit, frame, &limit));
    if (limit.is_null || limit.int64 < 0)
        return status_make(STATUS_OUT_OF_RANGE,
                           "LIMIT in an aggregate must not be negative or NULL");
    *out = (size_t)limit.int64;
    return status_ok();
}

static status add_held(struct sql_accumulator *accumulator, struct sql_frame *frame)
{
    const struct sql_aggregation *aggregation = accumulator->aggregation;
    struct accumulated *held = accumulator->held;
    size_t limit;
    TRY(limit_of(aggregation, frame, &limit));
    if (held->rows.count == 0)
        return status_ok();
    if (aggregation->is_distinct)
        TRY(leave_distinct(aggregation, held, frame->session));
    struct held *rows = held->rows.items;
    TRY(sql_sort(rows, held->rows.count, sizeof *rows, compare_held, (void *)(uintptr_t)aggregation,
                 frame->session));
    for (size_t i = 0; i < held->rows.count && i < limit; i++)
        TRY(accumulator->function->add(&accumulator->call, accumulator->state, rows[i].args,
                                       aggregation->arg_count));
    return status_ok();
}

status sql_accumulator_finish(struct sql_accumulator *accumulator, struct sql_frame *frame,
                              struct sql_value *out)
{
    if (accumulator->held != NULL)
        TRY(add_held(accumulator, frame));
    return accumulator->function->finish(&accumulator->call, accumulator->state, out);
}
