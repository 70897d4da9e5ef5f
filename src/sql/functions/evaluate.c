/* Evaluation: a walk over the tree of an expression, for each row again. */
#include "base/check.h"
#include "sql/functions/expr.h"
#include "sql/proto_type.h"
#include "sql/work.h"

enum { FEW_ARGS = 6 }; /* that need no memory from the arena */

/* --- calls --- */

/* The lambda of a call, and what its body is evaluated in. */
struct lambda {
    struct sql_frame *frame;
    const struct sql_expr *expr;
};

/* Values that share their parts may be far larger than memory. */
static status check_weight(const struct sql_value *value)
{
    return value->weight <= SQL_WEIGHT_LIMIT
               ? status_ok()
               : status_make(STATUS_RESOURCE_EXHAUSTED, "A value of the query is larger than %d MB",
                             (SQL_WEIGHT_LIMIT >> 20) * SQL_WEIGHT_BYTES);
}

static status apply_lambda(const struct sql_call *call, const struct sql_value *args,
                           struct sql_value *out)
{
    const struct lambda *lambda = call->lambda;
    struct sql_value *arguments = lambda->frame->arguments + lambda->expr->index;
    for (size_t i = 0; i < lambda->expr->arity; i++)
        arguments[i] = args[i];
    TRY(sql_count(lambda->frame->session, 1));
    return sql_evaluate_expr(lambda->expr->args[0], lambda->frame, out);
}

static bool is_known(const struct sql_expr *arg)
{
    return arg->kind == SQL_CONSTANT || arg->kind == SQL_PARAMETER;
}

/* Lets the function do what it can do once, with the arguments that stay the same. */
static status prepare_call(const struct sql_expr *expr, struct sql_frame *frame,
                           struct sql_call_state *state)
{
    state->call = (struct sql_call){.arena = frame->kept,
                                    .type = expr->type,
                                    .types = expr->types,
                                    .session = frame->session,
                                    .apply = apply_lambda};
    if (expr->function->prepare != NULL) {
        struct sql_value *values = arena_alloc(frame->kept, expr->arg_count * sizeof *values);
        const struct sql_value **known = arena_alloc(frame->kept, expr->arg_count * sizeof *known);
        if (values == NULL || known == NULL)
            return status_out_of_memory();
        for (size_t i = 0; i < expr->arg_count; i++) {
            known[i] = is_known(expr->args[i]) ? &values[i] : NULL;
            if (known[i] != NULL)
                TRY(sql_evaluate_expr(expr->args[i], frame, &values[i]));
        }
        TRY(expr->function->prepare(&state->call, known, expr->arg_count));
    }
    state->function = expr->function;
    return status_ok();
}

static status evaluate_args(const struct sql_expr *expr, struct sql_frame *frame,
                            struct sql_value *args, struct lambda *lambda, bool *has_null)
{
    *has_null = false;
    for (size_t i = 0; i < expr->arg_count; i++) {
        if (expr->args[i]->kind == SQL_LAMBDA) {
            *lambda = (struct lambda){frame, expr->args[i]};
            args[i] = sql_of_bool(true);
            continue;
        }
        TRY(sql_evaluate_expr(expr->args[i], frame, &args[i]));
        *has_null = *has_null || args[i].is_null;
    }
    return status_ok();
}

/* What SAFE makes of a failure of the function itself; those of its arguments stay. */
static status made_safe(const struct sql_expr *expr, status result, struct sql_value *out)
{
    if (result.code != STATUS_OUT_OF_RANGE || !expr->is_safe)
        return result;
    status_free(result);
    *out = sql_null();
    return status_ok();
}

/* What goes in and what comes out counts as work. */
static status call_counted(const struct sql_expr *expr, struct sql_frame *frame,
                           struct sql_call_state *state, const struct sql_value *args,
                           struct sql_value *out)
{
    if ((expr->function->flags & SQL_LOOKS_UP) == 0)
        TRY(sql_count(frame->session, sql_weigh(args, expr->arg_count) / SQL_WEIGHT_A_STEP));
    TRY(made_safe(expr, expr->function->evaluate(&state->call, args, expr->arg_count, out), out));
    TRY(check_weight(out));
    return sql_count(frame->session, out->weight / SQL_WEIGHT_A_STEP);
}

static status call_prepared(const struct sql_expr *expr, struct sql_frame *frame,
                            struct sql_call_state *state, struct sql_value *out)
{
    struct sql_value few[FEW_ARGS];
    struct sql_value *args = expr->arg_count <= FEW_ARGS
                                 ? few
                                 : arena_alloc(frame->arena, expr->arg_count * sizeof *args);
    struct lambda lambda = {0};
    bool has_null;
    if (args == NULL)
        return status_out_of_memory();
    TRY(evaluate_args(expr, frame, args, &lambda, &has_null));
    *out = sql_null();
    if (has_null && (expr->function->flags & SQL_TAKES_NULLS) == 0)
        return status_ok();
    state->call.arena = frame->arena;
    state->call.lambda = &lambda;
    status result = call_counted(expr, frame, state, args, out);
    state->call.lambda = NULL;
    return result;
}

static status prepare_and_call(const struct sql_expr *expr, struct sql_frame *frame,
                               struct sql_call_state *state, struct sql_value *out)
{
    status result = state->function == NULL ? prepare_call(expr, frame, state) : status_ok();
    return status_is_ok(result) ? call_prepared(expr, frame, state, out)
                                : made_safe(expr, result, out);
}

static status evaluate_call(const struct sql_expr *expr, struct sql_frame *frame,
                            struct sql_value *out)
{
    TRY(sql_count(frame->session, 1));
    if (frame->calls != NULL)
        return prepare_and_call(expr, frame, &frame->calls[expr->call], out);
    struct sql_call_state state = {0};
    status result = prepare_and_call(expr, frame, &state, out);
    sql_calls_release(&state, 1);
    return result;
}

void sql_calls_release(struct sql_call_state *calls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (calls[i].call.prepared != NULL && calls[i].function != NULL &&
            calls[i].function->release != NULL)
            calls[i].function->release(calls[i].call.prepared);
}

/* --- what does not need all of its arguments --- */

/* AND ends at the first FALSE, OR at the first TRUE; else NULL wins. */
static status evaluate_logical(const struct sql_expr *expr, struct sql_frame *frame,
                               struct sql_value *out)
{
    bool end = expr->kind == SQL_OR;
    *out = sql_of_bool(!end);
    for (size_t i = 0; i < expr->arg_count; i++) {
        struct sql_value value;
        TRY(sql_evaluate_expr(expr->args[i], frame, &value));
        if (value.is_null) {
            *out = value;
        } else if (value.boolean == end) {
            *out = value;
            break;
        }
    }
    return status_ok();
}

static status evaluate_if(const struct sql_expr *expr, struct sql_frame *frame,
                          struct sql_value *out)
{
    for (size_t i = 0; i + 1 < expr->arg_count; i += 2) {
        struct sql_value condition;
        TRY(sql_evaluate_expr(expr->args[i], frame, &condition));
        if (!condition.is_null && condition.boolean)
            return sql_evaluate_expr(expr->args[i + 1], frame, out);
    }
    return sql_evaluate_expr(expr->args[expr->arg_count - 1], frame, out);
}

static status evaluate_case(const struct sql_expr *expr, struct sql_frame *frame,
                            struct sql_value *out)
{
    struct sql_value operand;
    TRY(sql_evaluate_expr(expr->args[0], frame, &operand));
    for (size_t i = 1; i + 1 < expr->arg_count; i += 2) {
        struct sql_value value;
        TRY(sql_evaluate_expr(expr->args[i], frame, &value));
        TRY(sql_count(frame->session, 1 + (operand.weight + value.weight) / SQL_WEIGHT_A_STEP));
        struct sql_value equal = sql_value_equals(expr->types[0], &operand, &value);
        if (!equal.is_null && equal.boolean)
            return sql_evaluate_expr(expr->args[i + 1], frame, out);
    }
    return sql_evaluate_expr(expr->args[expr->arg_count - 1], frame, out);
}

static status evaluate_coalesce(const struct sql_expr *expr, struct sql_frame *frame,
                                struct sql_value *out)
{
    *out = sql_null();
    for (size_t i = 0; i < expr->arg_count && out->is_null; i++)
        TRY(sql_evaluate_expr(expr->args[i], frame, out));
    return status_ok();
}

/* --- values of parts --- */

static status evaluate_field(const struct sql_expr *expr, struct sql_frame *frame,
                             struct sql_value *out)
{
    struct sql_value whole;
    TRY(sql_evaluate_expr(expr->args[0], frame, &whole));
    *out = whole.is_null ? sql_null() : whole.items[expr->index];
    return status_ok();
}

static status evaluate_proto_field(const struct sql_expr *expr, struct sql_frame *frame,
                                   struct sql_value *out)
{
    struct sql_value message;
    TRY(sql_evaluate_expr(expr->args[0], frame, &message));
    *out = sql_null();
    TRY(sql_count(frame->session, 1 + message.weight / SQL_WEIGHT_A_STEP));
    return message.is_null ? status_ok()
                           : sql_proto_field_read(expr->field, message.text, frame->arena, out);
}

static status evaluate_items(const struct sql_expr *expr, struct sql_frame *frame,
                             struct sql_value *out)
{
    struct sql_value *items = arena_alloc(frame->arena, expr->arg_count * sizeof *items);
    if (items == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < expr->arg_count; i++)
        TRY(sql_evaluate_expr(expr->args[i], frame, &items[i]));
    *out = sql_of_items(items, expr->arg_count);
    TRY(sql_count(frame->session, expr->arg_count / SQL_WEIGHT_A_STEP));
    return check_weight(out);
}

status sql_evaluate_expr(const struct sql_expr *expr, struct sql_frame *frame,
                         struct sql_value *out)
{
    switch (expr->kind) {
    case SQL_CONSTANT:
        *out = expr->constant;
        return status_ok();
    case SQL_PARAMETER:
        *out = frame->parameters[expr->index];
        return status_ok();
    case SQL_COLUMN:
        *out = frame->row[expr->index];
        return status_ok();
    case SQL_ARGUMENT:
        *out = frame->arguments[expr->index];
        return status_ok();
    case SQL_CALL:
        return evaluate_call(expr, frame, out);
    case SQL_AND:
    case SQL_OR:
        return evaluate_logical(expr, frame, out);
    case SQL_IF:
        return evaluate_if(expr, frame, out);
    case SQL_CASE:
        return evaluate_case(expr, frame, out);
    case SQL_COALESCE:
        return evaluate_coalesce(expr, frame, out);
    case SQL_FIELD:
        return evaluate_field(expr, frame, out);
    case SQL_PROTO_FIELD:
        return evaluate_proto_field(expr, frame, out);
    case SQL_ITEMS:
        return evaluate_items(expr, frame, out);
    case SQL_LAMBDA:
    case SQL_AGGREGATED:
    case SQL_WINDOWED:
        break;
    }
    CHECK(!"an expression that has no value of its own");
    return status_ok();
}

/* --- what can be known beforehand --- */

static bool is_free_of(const struct sql_expr *expr, unsigned flags, bool takes_parameters)
{
    switch (expr->kind) {
    case SQL_COLUMN:
    case SQL_ARGUMENT:
    case SQL_LAMBDA:
    case SQL_AGGREGATED:
    case SQL_WINDOWED:
        return false;
    case SQL_PARAMETER:
        return takes_parameters;
    default:
        break;
    }
    if (expr->kind == SQL_CALL && (expr->function->flags & flags) != 0)
        return false;
    for (size_t i = 0; i < expr->arg_count; i++)
        if (!is_free_of(expr->args[i], flags, takes_parameters))
            return false;
    return true;
}

bool sql_expr_is_constant(const struct sql_expr *expr)
{
    return is_free_of(expr, SQL_VOLATILE | SQL_STABLE, false);
}

bool sql_expr_is_fixed(const struct sql_expr *expr)
{
    return is_free_of(expr, SQL_VOLATILE, true);
}

status sql_evaluate_constant(const struct sql_expr *expr, struct arena *arena,
                             struct sql_session *session, struct sql_value *out)
{
    struct sql_value none = sql_null(); /* not used: the expression is constant */
    struct sql_frame frame = {.row = &none,
                              .parameters = &none,
                              .arguments = &none,
                              .session = session,
                              .arena = arena,
                              .kept = arena};
    return sql_evaluate_expr(expr, &frame, out);
}
