/* EXPLAIN: a plan in words, the last operator first. */
#include "sql/aggregate.h"
#include "sql/optimize.h"
#include "sql/proto_type.h"

#include <strings.h>

/* --- expressions --- */

static void append_list(struct buffer *out, const struct sql_expr *expr, size_t from,
                        const char *between)
{
    for (size_t i = from; i < expr->arg_count; i++) {
        buffer_append_format(out, "%s", i == from ? "" : between);
        sql_expr_append(out, expr->args[i]);
    }
}

/* Operators between their operands; NULL for what is a function. */
static const char *infix(const char *name)
{
    static const char *const words[][2] = {
        {"$equal", " = "},       {"$not_equal", " != "},   {"$less", " < "},
        {"$less_equal", " <= "}, {"$greater", " > "},      {"$greater_equal", " >= "},
        {"$add", " + "},         {"$subtract", " - "},     {"$multiply", " * "},
        {"$divide", " / "},      {"$concat", " || "},      {"$like", " LIKE "},
        {"$bit_and", " & "},     {"$bit_or", " | "},       {"$bit_xor", " ^ "},
        {"$shift_left", " << "}, {"$shift_right", " >> "}, {"$is_distinct", " IS DISTINCT FROM "},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i][0], name) == 0)
            return words[i][1];
    return NULL;
}

static void append_call(struct buffer *out, const struct sql_expr *expr)
{
    const char *name = expr->function->name;
    const char *between = infix(name);
    bool is_subscript = strstr(name, "_at") != NULL || strstr(name, "offset") != NULL ||
                        strstr(name, "ordinal") != NULL || strcmp(name, "$map_key") == 0;
    if (name[0] == '$' && is_subscript) {
        sql_expr_append(out, expr->args[0]);
        buffer_append_format(out, "[");
        append_list(out, expr, 1, ", ");
        buffer_append_format(out, "]");
        return;
    }
    if (between == NULL)
        buffer_append_format(out, "%s%s", expr->is_safe ? "SAFE." : "",
                             name[0] == '$' ? name + 1 : name);
    buffer_append_format(out, "(");
    append_list(out, expr, 0, between == NULL ? ", " : between);
    if (strcmp(name, "CAST") == 0) {
        buffer_append_format(out, " AS ");
        sql_type_append(out, expr->type);
    }
    buffer_append_format(out, ")");
}

static void append_joined(struct buffer *out, const struct sql_expr *expr, const char *before,
                          const char *between)
{
    buffer_append_format(out, "%s(", before);
    append_list(out, expr, 0, between);
    buffer_append_format(out, ")");
}

void sql_expr_append(struct buffer *out, const struct sql_expr *expr)
{
    switch (expr->kind) {
    case SQL_CONSTANT:
        sql_value_append_literal(out, expr->type, &expr->constant);
        break;
    case SQL_PARAMETER:
        buffer_append_format(out, "@%zu", expr->index + 1);
        break;
    case SQL_COLUMN:
        buffer_append_format(out, "$%zu", expr->index + 1);
        break;
    case SQL_ARGUMENT:
        buffer_append_format(out, "e%zu", expr->index + 1);
        break;
    case SQL_CALL:
        append_call(out, expr);
        break;
    case SQL_AND:
        append_joined(out, expr, "", " AND ");
        break;
    case SQL_OR:
        append_joined(out, expr, "", " OR ");
        break;
    case SQL_IF:
        append_joined(out, expr, "IF", ", ");
        break;
    case SQL_CASE:
        append_joined(out, expr, "CASE", ", ");
        break;
    case SQL_COALESCE:
        append_joined(out, expr, "COALESCE", ", ");
        break;
    case SQL_ITEMS:
        append_joined(out, expr, expr->type->kind == SQL_ARRAY ? "ARRAY" : "STRUCT", ", ");
        break;
    case SQL_FIELD:
        append_list(out, expr, 0, "");
        buffer_append_format(out, ".%s", expr->args[0]->type->fields[expr->index].name);
        break;
    case SQL_PROTO_FIELD:
        append_list(out, expr, 0, "");
        buffer_append_format(out, ".%u", expr->field->number);
        break;
    case SQL_LAMBDA:
        buffer_append_format(out, "e%zu -> ", expr->index + 1);
        append_list(out, expr, 0, "");
        break;
    case SQL_AGGREGATED:
    case SQL_WINDOWED:
        break;
    }
}

/* --- operators --- */

static void append_exprs(struct buffer *out, const char *what, const struct sql_expr *const *exprs,
                         size_t count)
{
    buffer_append_format(out, "%s", count == 0 ? "" : what);
    for (size_t i = 0; i < count; i++) {
        buffer_append_format(out, "%s", i == 0 ? " " : ", ");
        sql_expr_append(out, exprs[i]);
    }
}

static void append_orders(struct buffer *out, const struct sql_operator *sort)
{
    for (size_t i = 0; i < sort->order_count; i++) {
        buffer_append_format(out, "%s", i == 0 ? " by " : ", ");
        sql_expr_append(out, sort->orders[i].expr);
        buffer_append_format(out, "%s", sort->orders[i].is_descending ? " DESC" : "");
    }
    if (sort->limit != NULL) {
        buffer_append_format(out, ", first ");
        sql_expr_append(out, sort->limit);
    }
}

static void append_slot(struct buffer *out, const struct sql_scan_plan *scan, size_t index)
{
    const struct sql_slot *slot = &scan->slots[index];
    buffer_append_format(out, "%s$%zu = ", index == 0 ? "" : ", ", index + 1);
    switch (slot->kind) {
    case SQL_SLOT_KEY:
        buffer_append_format(out, "_key");
        break;
    case SQL_SLOT_KEY_PART:
        buffer_append_format(out, "part %zu of _key", slot->part + 1);
        break;
    case SQL_SLOT_FAMILY:
        buffer_append_bytes(out, slot->family);
        break;
    case SQL_SLOT_COLUMN:
        buffer_append_bytes(out, slot->family);
        buffer_append_format(out, "[");
        sql_expr_append(out, slot->qualifier);
        buffer_append_format(out, "]");
        break;
    }
}

static void append_scan(struct buffer *out, const struct sql_scan_plan *scan)
{
    buffer_append_format(out, "SCAN %s%s: ", scan->table->name,
                         scan->is_reversed ? " reversed" : "");
    for (size_t i = 0; i < scan->slot_count; i++)
        append_slot(out, scan, i);
    if (scan->row_limit != NULL) {
        buffer_append_format(out, "; at most ");
        sql_expr_append(out, scan->row_limit);
        buffer_append_format(out, " rows");
    }
    if (scan->condition != NULL) {
        buffer_append_format(out, "; keys from ");
        sql_expr_append(out, scan->condition);
    }
}

static void append_aggregates(struct buffer *out, const struct sql_operator *operator_)
{
    for (size_t i = 0; i < operator_->aggregate_count; i++) {
        const struct sql_aggregation *aggregation = &operator_->aggregates[i];
        const char *name = aggregation->function->name;
        buffer_append_format(out, "%s%s(", i == 0 ? " " : ", ", name[0] == '$' ? "COUNT" : name);
        append_exprs(out, aggregation->is_distinct ? "DISTINCT" : "", aggregation->args,
                     aggregation->arg_count);
        buffer_append_format(out, ")");
    }
    append_exprs(out, " by", operator_->exprs, operator_->expr_count);
}

static void append_operator(struct buffer *out, const struct sql_operator *operator_)
{
    static const char *const names[] = {
        [SQL_OP_ONE_ROW] = "ONE ROW",     [SQL_OP_SCAN] = "",
        [SQL_OP_FILTER] = "FILTER ",      [SQL_OP_PROJECT] = "PROJECT",
        [SQL_OP_UNNEST] = "UNNEST",       [SQL_OP_UNPACK] = "UNPACK",
        [SQL_OP_AGGREGATE] = "AGGREGATE", [SQL_OP_DISTINCT] = "DISTINCT",
        [SQL_OP_SORT] = "SORT",           [SQL_OP_LIMIT] = "LIMIT ",
        [SQL_OP_WINDOW] = "WINDOW"};
    buffer_append_format(out, "%s", names[operator_->kind]);
    if (operator_->kind == SQL_OP_SCAN)
        append_scan(out, operator_->scan);
    if (operator_->kind == SQL_OP_FILTER)
        sql_expr_append(out, operator_->condition);
    if (operator_->kind == SQL_OP_PROJECT || operator_->kind == SQL_OP_UNNEST)
        append_exprs(out, "", operator_->exprs, operator_->expr_count);
    if (operator_->kind == SQL_OP_AGGREGATE)
        append_aggregates(out, operator_);
    if (operator_->kind == SQL_OP_SORT)
        append_orders(out, operator_);
    if (operator_->kind == SQL_OP_LIMIT)
        sql_expr_append(out, operator_->limit);
    buffer_append_byte(out, '\n');
}

void sql_explain(const struct sql_plan *plan, struct buffer *out)
{
    unsigned depth = 0;
    for (const struct sql_operator *operator_ = plan->root; operator_ != NULL;
         operator_ = operator_->input, depth++) {
        buffer_append_format(out, "%*s", (int)(2 * depth), "");
        append_operator(out, operator_);
    }
}
