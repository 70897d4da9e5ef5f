/* See materialized.h. The plan is a list of operators, subqueries' among them, so that what a view
 * may have once is counted over all of it. */
#include "sql/plan/materialized.h"

#include <ctype.h>
#include <strings.h>

static status refuse(const char *why)
{
    return status_make(STATUS_INVALID_ARGUMENT, "%s", why);
}

/* --- clauses --- */

/* What there is of each; the last found, which is the only one if the view is any. */
struct clauses {
    const struct sql_operator *group;
    const struct sql_operator *sort;
    size_t groups;
    size_t sorts;
    bool has_limit;
    bool is_descending;
};

static bool has_descending(const struct sql_operator *sort)
{
    bool has = false;
    for (size_t i = 0; i < sort->order_count; i++)
        has = has || sort->orders[i].is_descending;
    return has;
}

static struct clauses find_clauses(const struct sql_operator *root)
{
    struct clauses found = {0};
    for (const struct sql_operator *op = root; op != NULL; op = op->input) {
        bool is_group = op->kind == SQL_OP_AGGREGATE && op->is_grouped;
        bool is_sort = op->kind == SQL_OP_SORT;
        found.group = is_group ? op : found.group;
        found.sort = is_sort ? op : found.sort;
        found.groups += is_group;
        found.sorts += is_sort;
        found.has_limit = found.has_limit || op->kind == SQL_OP_LIMIT;
        found.is_descending = found.is_descending || (is_sort && has_descending(op));
    }
    return found;
}

static status check_clauses(const struct clauses *found)
{
    if (found->has_limit)
        return refuse("Limit and offset are not supported in materialized views.");
    if (found->is_descending)
        return refuse("Only ascending order in ORDER BY by is supported in materialized views.");
    if (found->groups + found->sorts == 0)
        return refuse("queries must contain a GROUP BY or ORDER BY clause");
    if (found->groups > 0 && found->sorts > 0)
        return refuse("ORDER BY is not supported with GROUP BY in materialized views.");
    if (found->groups + found->sorts > 1)
        return refuse(
            "This query is not valid. Please ensure that all parts of the query are valid, as per "
            "the requirements listed at https://cloud.google.com/bigtable/docs/reference/sql/"
            "googlesql-reference-overview. In particular, the query must not use multiple GROUP BY "
            "or ORDER BY clauses.");
    return status_ok();
}

/* --- columns --- */

/* Which column of its input a column of an operator is, unchanged; SIZE_MAX: none. */
static size_t input_column(const struct sql_operator *op, size_t column)
{
    bool makes_own = op->kind == SQL_OP_PROJECT || op->kind == SQL_OP_AGGREGATE;
    if (!makes_own)
        return op->input != NULL && column < op->input->column_count ? column : SIZE_MAX;
    bool is_column = column < op->expr_count && op->exprs[column]->kind == SQL_COLUMN;
    return is_column ? op->exprs[column]->index : SIZE_MAX;
}

size_t sql_trace_column(const struct sql_operator *op, size_t column, const struct sql_operator *to)
{
    for (; op != to && column != SIZE_MAX; op = op->input)
        column = input_column(op, column);
    return column;
}

/* Whether the result has that column of an operator; `names`, ended by NULL, are those that it may
 * have there, NULL for any. */
static bool is_selected(const struct sql_operator *root, const struct sql_operator *of,
                        size_t column, const char *const *names)
{
    for (size_t i = 0; i < root->column_count; i++) {
        bool is_named = names == NULL;
        for (size_t k = 0; names != NULL && names[k] != NULL; k++)
            is_named = is_named || strcasecmp(root->columns[i].name, names[k]) == 0;
        if (is_named && !root->columns[i].is_hidden && sql_trace_column(root, i, of) == column)
            return true;
    }
    return false;
}

static bool has_name(const struct sql_operator *root, const char *name)
{
    for (size_t i = 0; i < root->column_count; i++)
        if (!root->columns[i].is_hidden && strcasecmp(root->columns[i].name, name) == 0)
            return true;
    return false;
}

static status check_group(const struct sql_operator *root, const struct sql_operator *group)
{
    static const char *const hints[] = {"_key", "_timestamp", NULL};
    for (size_t i = 0; i < group->expr_count; i++) {
        if (!is_selected(root, group, i, NULL))
            return refuse("every GROUP BY column must be selected in the final query");
        if (has_name(root, "_key") && !is_selected(root, group, i, hints))
            return refuse("queries that provide a _key hint must only group by _key (and "
                          "optionally _timestamp). Use a different column name if you want to "
                          "create a composite key.");
    }
    return status_ok();
}

/* Whether a column of an operator is the table's key. */
static bool is_source_key(const struct sql_operator *op, size_t column)
{
    const struct sql_operator *scan = op;
    while (scan->input != NULL)
        scan = scan->input;
    size_t slot = sql_trace_column(op, column, scan);
    return scan->kind == SQL_OP_SCAN && slot != SIZE_MAX &&
           scan->scan->slots[slot].kind == SQL_SLOT_KEY;
}

static status check_sort(const struct sql_operator *root, const struct sql_operator *sort)
{
    bool has_key = false;
    for (size_t i = 0; i < sort->order_count; i++) {
        const struct sql_expr *by = sort->orders[i].expr;
        if (by->kind != SQL_COLUMN || !is_selected(root, sort, by->index, NULL))
            return refuse("every ORDER BY column must be selected in the final query");
        has_key = has_key || is_source_key(sort, by->index);
    }
    return has_key ? status_ok()
                   : refuse("queries must select and order by the unmodified _key column from the "
                            "source table");
}

/* --- functions --- */

static status name_function(const char *kind, const char *name)
{
    char lower[64] = "";
    for (size_t i = 0; i + 1 < sizeof lower && name[i] != '\0'; i++)
        lower[i] = (char)tolower((unsigned char)name[i]);
    return status_make(STATUS_INVALID_ARGUMENT,
                       "Only %s functions are supported in materialized views (GoogleSQL:%s is not "
                       "%s)",
                       kind, lower, kind);
}

static status check_expr(const struct sql_expr *expr)
{
    if (expr == NULL)
        return status_ok();
    if (expr->function != NULL && (expr->function->flags & (SQL_VOLATILE | SQL_STABLE)) != 0)
        return name_function("immutable", expr->function->name);
    for (size_t i = 0; i < expr->arg_count; i++)
        TRY(check_expr(expr->args[i]));
    return status_ok();
}

static status check_exprs(const struct sql_expr *const *exprs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        TRY(check_expr(exprs[i]));
    return status_ok();
}

/* Whichever value is chosen, or comes first, may be another one next time. */
static status check_stable(const struct sql_aggregation *aggregation)
{
    static const char *const unstable[] = {"ANY_VALUE", "ARRAY_AGG", "ARRAY_CONCAT_AGG",
                                           "STRING_AGG"};
    for (size_t i = 0; i < sizeof unstable / sizeof *unstable; i++)
        if (strcmp(aggregation->function->name, unstable[i]) == 0)
            return name_function("stable", unstable[i]);
    return status_ok();
}

static status not_supported(const char *what)
{
    return status_make(STATUS_INVALID_ARGUMENT, "%s is not supported in materialized views.", what);
}

static bool is_kept(const char *function)
{
    static const char *const kept[] = {"$count_star",
                                       "COUNT",
                                       "SUM",
                                       "AVG",
                                       "MIN",
                                       "MAX",
                                       "BIT_AND",
                                       "BIT_OR",
                                       "BIT_XOR",
                                       "HLL_COUNT.INIT",
                                       "HLL_COUNT.MERGE",
                                       "HLL_COUNT.MERGE_PARTIAL"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strcmp(kept[i], function) == 0)
            return true;
    return false;
}

static status check_aggregate(const struct sql_aggregation *aggregation)
{
    TRY(check_stable(aggregation));
    if (!is_kept(aggregation->function->name))
        return not_supported(aggregation->function->name);
    if (aggregation->is_distinct)
        return not_supported("DISTINCT");
    if (aggregation->having != NULL)
        return not_supported("HAVING");
    return check_exprs(aggregation->args, aggregation->arg_count);
}

/* --- what can be kept --- */

static status check_kinds(const struct sql_operator *root, bool is_grouped)
{
    bool is_above_group = is_grouped;
    for (const struct sql_operator *op = root; op != NULL; op = op->input) {
        is_above_group = is_above_group && op->kind != SQL_OP_AGGREGATE;
        if (op->kind == SQL_OP_DISTINCT)
            return not_supported("DISTINCT");
        if (op->kind == SQL_OP_WINDOW)
            return not_supported("OVER");
        if (op->kind == SQL_OP_FILTER && is_above_group)
            return not_supported("HAVING");
        if (op->kind == SQL_OP_UNNEST && is_above_group)
            return not_supported("UNNEST of what is grouped");
    }
    return status_ok();
}

static bool is_cell_type(const struct sql_type *type)
{
    switch (type->kind) {
    case SQL_BOOL:
    case SQL_INT64:
    case SQL_FLOAT64:
    case SQL_STRING:
    case SQL_BYTES:
    case SQL_TIMESTAMP:
        return true;
    default:
        return false;
    }
}

/* A column family of the source, whole. */
static bool is_family(const struct sql_operator *root, size_t column)
{
    const struct sql_type *type = root->columns[column].type;
    const struct sql_operator *scan = root;
    while (scan->input != NULL)
        scan = scan->input;
    size_t slot = sql_trace_column(root, column, scan);
    return type->kind == SQL_MAP && is_cell_type(type->element) && scan->kind == SQL_OP_SCAN &&
           slot != SIZE_MAX && scan->scan->slots[slot].kind == SQL_SLOT_FAMILY;
}

static status refuse_type(const char *what, const struct sql_type *type)
{
    struct buffer name = {0};
    sql_type_append(&name, type);
    buffer_append_byte(&name, '\0');
    status refused = status_make(STATUS_INVALID_ARGUMENT,
                                 "%s of type %s are not supported in materialized views.", what,
                                 name.failed ? "this" : (const char *)name.data);
    buffer_free(&name);
    return refused;
}

static status check_columns(const struct sql_operator *root)
{
    for (size_t i = 0; i < root->column_count; i++)
        if (!root->columns[i].is_hidden && !is_cell_type(root->columns[i].type) &&
            !is_family(root, i))
            return refuse_type("Columns", root->columns[i].type);
    return status_ok();
}

static status check_key(const struct sql_type *type)
{
    bool is_number = type->kind == SQL_INT64 || type->kind == SQL_TIMESTAMP;
    return sql_is_text(type) || is_number ? status_ok()
                                          : refuse_type("GROUP BY and ORDER BY columns", type);
}

static status check_keys(const struct clauses *found)
{
    for (size_t i = 0; found->group != NULL && i < found->group->expr_count; i++)
        TRY(check_key(found->group->exprs[i]->type));
    for (size_t i = 0; found->sort != NULL && i < found->sort->order_count; i++)
        TRY(check_key(found->sort->orders[i].expr->type));
    return status_ok();
}

static status check_kept(const struct sql_operator *root, const struct clauses *found)
{
    TRY(check_kinds(root, found->group != NULL));
    TRY(check_keys(found));
    return check_columns(root);
}

/* t(after => …): times must not move either. */
static status check_temporal(const struct sql_temporal *temporal)
{
    const struct sql_expr *const times[] = {temporal->as_of,    temporal->after,
                                            temporal->before,   temporal->after_or_equal,
                                            temporal->latest_n, temporal->before_or_equal};
    return check_exprs(times, sizeof times / sizeof *times);
}

static status check_operator(const struct sql_operator *op)
{
    if (op->scan != NULL)
        TRY(check_temporal(&op->scan->temporal));
    TRY(check_expr(op->condition));
    TRY(check_exprs(op->exprs, op->expr_count));
    for (size_t i = 0; i < op->aggregate_count; i++)
        TRY(check_aggregate(&op->aggregates[i]));
    for (size_t i = 0; i < op->order_count; i++)
        TRY(check_expr(op->orders[i].expr));
    return status_ok();
}

status sql_check_materialized(const struct sql_plan *plan)
{
    struct clauses found = find_clauses(plan->root);
    for (const struct sql_operator *op = plan->root; op != NULL; op = op->input)
        TRY(check_operator(op));
    TRY(check_clauses(&found));
    if (plan->selects_all)
        return not_supported("SELECT *");
    TRY(found.group != NULL ? check_group(plan->root, found.group)
                            : check_sort(plan->root, found.sort));
    return check_kept(plan->root, &found);
}
