/* EXPLAIN: a plan in words, the last operator first.
 *
 * Columns are called as the query calls them, as far as they have names; those of a scan by what
 * they are. What has no name is $1, $2 and so on, by its place among the columns of the operator
 * below. */
#include "sql/plan/optimize.h"
#include "sql/plan/window.h"
#include "sql/proto_type.h"
#include "sql/run/aggregate.h"

#include <strings.h>

enum { RANGES_SHOWN = 10 };

struct words {
    struct buffer *out;
    const struct sql_plan *plan;
    const struct sql_operator *of; /* whose columns the expressions refer to */
    unsigned depth;
};

static void append_expr(const struct words *words, const struct sql_expr *expr);

/* --- columns --- */

static void append_slot(const struct words *words, const struct sql_scan_plan *scan, size_t index)
{
    const struct sql_slot *slot = &scan->slots[index];
    switch (slot->kind) {
    case SQL_SLOT_CELL:
    case SQL_SLOT_TIMESTAMP:
        buffer_append_format(words->out, "%s", words->of->columns[index].name);
        break;
    case SQL_SLOT_KEY:
        buffer_append_format(words->out, "_key");
        break;
    case SQL_SLOT_KEY_PART:
        buffer_append_format(words->out, "%s", words->of->columns[index].name);
        break;
    case SQL_SLOT_FAMILY:
        buffer_append_bytes(words->out, slot->family);
        break;
    case SQL_SLOT_COLUMN:
        buffer_append_bytes(words->out, slot->family);
        buffer_append_format(words->out, "[");
        append_expr(words, slot->qualifier);
        buffer_append_format(words->out, "]");
        break;
    }
}

/* Whether the operator hands on this column of its input, at the same place. */
static bool passes_on(const struct sql_operator *operator_, size_t index)
{
    switch (operator_->kind) {
    case SQL_OP_FILTER:
    case SQL_OP_DISTINCT:
    case SQL_OP_SORT:
    case SQL_OP_LIMIT:
        return true;
    case SQL_OP_UNNEST:
    case SQL_OP_UNPACK:
    case SQL_OP_WINDOW:
        return index < operator_->input->column_count;
    default:
        return false;
    }
}

/* What an operator's column is called: its name, or its place. */
static void append_label(struct buffer *out, const struct sql_operator *maker, size_t index)
{
    const char *name = maker->columns[index].name;
    if (name[0] != '\0')
        buffer_append_format(out, "%s", name);
    else
        buffer_append_format(out, "$%zu", index + 1);
}

static void append_column(const struct words *words, size_t index)
{
    const struct sql_operator *maker = words->of;
    while (passes_on(maker, index))
        maker = maker->input;
    if (maker->kind == SQL_OP_SCAN)
        append_slot(&(struct words){words->out, words->plan, maker, 0}, maker->scan, index);
    else
        append_label(words->out, maker, index);
}

/* --- expressions --- */

static void append_list(const struct words *words, const struct sql_expr *expr, size_t from,
                        const char *between)
{
    for (size_t i = from; i < expr->arg_count; i++) {
        buffer_append_format(words->out, "%s", i == from ? "" : between);
        append_expr(words, expr->args[i]);
    }
}

/* How an operator is written: what stands before, after the first operand, between the others, and
 * behind. */
struct notation {
    const char *name;
    const char *before;
    const char *after_first;
    const char *between;
    const char *behind;
};

static const struct notation notations[] = {
    {"$equal", "(", " = ", "", ")"},
    {"$not_equal", "(", " != ", "", ")"},
    {"$less", "(", " < ", "", ")"},
    {"$less_equal", "(", " <= ", "", ")"},
    {"$greater", "(", " > ", "", ")"},
    {"$greater_equal", "(", " >= ", "", ")"},
    {"$is_distinct", "(", " IS DISTINCT FROM ", "", ")"},
    {"$between", "(", " BETWEEN ", " AND ", ")"},
    {"$in", "(", " IN (", ", ", "))"},
    {"$in_array", "(", " IN UNNEST(", "", "))"},
    {"$like", "(", " LIKE ", "", ")"},
    {"$like_any", "(", " LIKE ANY (", ", ", "))"},
    {"$like_all", "(", " LIKE ALL (", ", ", "))"},
    {"$not", "(NOT ", "", "", ")"},
    {"$is_null", "(", "", "", " IS NULL)"},
    {"$is_unknown", "(", "", "", " IS UNKNOWN)"},
    {"$is_true", "(", "", "", " IS TRUE)"},
    {"$is_false", "(", "", "", " IS FALSE)"},
    {"$negate", "(-", "", "", ")"},
    {"$add", "(", " + ", "", ")"},
    {"$subtract", "(", " - ", "", ")"},
    {"$multiply", "(", " * ", "", ")"},
    {"$divide", "(", " / ", "", ")"},
    {"$concat", "(", " || ", "", ")"},
    {"$bit_not", "(~", "", "", ")"},
    {"$bit_and", "(", " & ", "", ")"},
    {"$bit_or", "(", " | ", "", ")"},
    {"$bit_xor", "(", " ^ ", "", ")"},
    {"$shift_left", "(", " << ", "", ")"},
    {"$shift_right", "(", " >> ", "", ")"},
    {"$map_at", "", "[", "", "]"},
    {"$map_key", "", "[KEY(", "", ")]"},
    {"$array_offset", "", "[", "", "]"},
    {"$array_ordinal", "", "[ORDINAL(", "", ")]"},
    {"$safe_offset", "", "[SAFE_OFFSET(", "", ")]"},
    {"$safe_ordinal", "", "[SAFE_ORDINAL(", "", ")]"},
    {"$extract", "EXTRACT(", " FROM ", " AT TIME ZONE ", ")"},
};

static const struct notation *notation_of(const char *name)
{
    for (size_t i = 0; i < sizeof notations / sizeof *notations; i++)
        if (strcmp(notations[i].name, name) == 0)
            return &notations[i];
    return NULL;
}

static void append_noted(const struct words *words, const struct notation *notation,
                         const struct sql_expr *expr)
{
    buffer_append_format(words->out, "%s", notation->before);
    for (size_t i = 0; i < expr->arg_count; i++) {
        buffer_append_format(words->out, "%s",
                             i == 0   ? ""
                             : i == 1 ? notation->after_first
                                      : notation->between);
        append_expr(words, expr->args[i]);
    }
    buffer_append_format(words->out, "%s", notation->behind);
}

static void append_call(const struct words *words, const struct sql_expr *expr)
{
    const char *name = expr->function->name;
    const struct notation *notation = notation_of(name);
    if (notation != NULL) {
        append_noted(words, notation, expr);
        return;
    }
    buffer_append_format(words->out, "%s%s(", expr->is_safe ? "SAFE." : "", name);
    append_list(words, expr, 0, ", ");
    if (strcmp(name, "CAST") == 0) {
        buffer_append_format(words->out, " AS ");
        sql_type_append(words->out, expr->type);
    }
    buffer_append_format(words->out, ")");
}

static void append_joined(const struct words *words, const struct sql_expr *expr,
                          const char *before, const char *between)
{
    buffer_append_format(words->out, "%s(", before);
    append_list(words, expr, 0, between);
    buffer_append_format(words->out, ")");
}

static void append_expr(const struct words *words, const struct sql_expr *expr)
{
    switch (expr->kind) {
    case SQL_CONSTANT:
        sql_value_append_literal(words->out, expr->type, &expr->constant);
        break;
    case SQL_PARAMETER:
        buffer_append_format(words->out, "@%s", words->plan->parameters[expr->index].name);
        break;
    case SQL_COLUMN:
        append_column(words, expr->index);
        break;
    case SQL_ARGUMENT:
        buffer_append_format(words->out, "e%zu", expr->index + 1);
        break;
    case SQL_CALL:
        append_call(words, expr);
        break;
    case SQL_AND:
        append_joined(words, expr, "", " AND ");
        break;
    case SQL_OR:
        append_joined(words, expr, "", " OR ");
        break;
    case SQL_IF:
        append_joined(words, expr, "IF", ", ");
        break;
    case SQL_CASE:
        append_joined(words, expr, "CASE", ", ");
        break;
    case SQL_COALESCE:
        append_joined(words, expr, "COALESCE", ", ");
        break;
    case SQL_ITEMS:
        append_joined(words, expr, expr->type->kind == SQL_ARRAY ? "ARRAY" : "STRUCT", ", ");
        break;
    case SQL_FIELD:
        append_list(words, expr, 0, "");
        buffer_append_format(words->out, ".%s", expr->args[0]->type->fields[expr->index].name);
        break;
    case SQL_PROTO_FIELD:
        append_list(words, expr, 0, "");
        buffer_append_format(words->out, ".%u", expr->field->number);
        break;
    case SQL_LAMBDA:
        buffer_append_format(words->out, "e%zu -> ", expr->index + 1);
        append_list(words, expr, 0, "");
        break;
    case SQL_AGGREGATED:
    case SQL_WINDOWED:
        break;
    }
}

/* --- operators --- */

static void append_exprs(const struct words *words, const char *before,
                         const struct sql_expr *const *exprs, size_t count)
{
    buffer_append_format(words->out, "%s", count == 0 ? "" : before);
    for (size_t i = 0; i < count; i++) {
        buffer_append_format(words->out, "%s", i == 0 ? "" : ", ");
        append_expr(words, exprs[i]);
    }
}

/* Expressions that become the operator's columns, with what these are called, unless it is the
 * same. */
static void append_made(const struct words *words, const struct sql_operator *operator_,
                        const char *before)
{
    buffer_append_format(words->out, "%s", operator_->expr_count == 0 ? "" : before);
    for (size_t i = 0; i < operator_->expr_count; i++) {
        struct buffer expr = {0}, label = {0};
        append_expr(&(struct words){&expr, words->plan, words->of, 0}, operator_->exprs[i]);
        append_label(&label, operator_, i);
        buffer_append_format(words->out, "%s", i == 0 ? "" : ", ");
        buffer_append_bytes(words->out, buffer_bytes(&expr));
        if (!bytes_equal(buffer_bytes(&expr), buffer_bytes(&label))) {
            buffer_append_format(words->out, " AS ");
            buffer_append_bytes(words->out, buffer_bytes(&label));
        }
        words->out->failed |= expr.failed || label.failed;
        buffer_free(&expr);
        buffer_free(&label);
    }
}

static void append_orders(const struct words *words, const struct sql_order *orders, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buffer_append_format(words->out, "%s", i == 0 ? "" : ", ");
        append_expr(words, orders[i].expr);
        buffer_append_format(words->out, "%s", orders[i].is_descending ? " DESC" : "");
    }
}

static void append_sort(const struct words *words, const struct sql_operator *sort)
{
    buffer_append_format(words->out, "SORT by ");
    append_orders(words, sort->orders, sort->order_count);
    if (sort->limit != NULL) {
        buffer_append_format(words->out, ", first ");
        append_expr(words, sort->limit);
    }
}

static void append_aggregation(const struct words *words, const struct sql_aggregation *aggregation)
{
    const char *name = aggregation->function->name;
    buffer_append_format(words->out, "%s(%s", name[0] == '$' ? "COUNT" : name,
                         aggregation->is_distinct ? "DISTINCT " : "");
    if (name[0] == '$')
        buffer_append_format(words->out, "*");
    append_exprs(words, "", aggregation->args, aggregation->arg_count);
    buffer_append_format(words->out, ")");
}

static void append_aggregates(const struct words *words, const struct sql_operator *operator_)
{
    buffer_append_format(words->out, "AGGREGATE ");
    for (size_t i = 0; i < operator_->aggregate_count; i++) {
        buffer_append_format(words->out, "%s", i == 0 ? "" : ", ");
        append_aggregation(words, &operator_->aggregates[i]);
        buffer_append_format(words->out, " AS ");
        append_label(words->out, operator_, operator_->expr_count + i);
    }
    append_made(words, operator_, operator_->aggregate_count == 0 ? "by " : " by ");
}

static void append_windows(const struct words *words, const struct sql_operator *operator_)
{
    buffer_append_format(words->out, "WINDOW");
    for (size_t i = 0; i < operator_->window_count; i++) {
        const struct sql_window *window = &operator_->windows[i];
        buffer_append_format(words->out, "%s", i == 0 ? " over (" : ", (");
        append_exprs(words, "partition by ", window->partition, window->partition_count);
        if (window->order_count > 0)
            buffer_append_format(words->out, "%sorder by ", window->partition_count > 0 ? " " : "");
        append_orders(words, window->orders, window->order_count);
        buffer_append_format(words->out, ")");
    }
}

static void append_limit(const struct words *words, const struct sql_operator *operator_)
{
    buffer_append_format(words->out, "LIMIT ");
    append_expr(words, operator_->limit);
    if (operator_->offset != NULL) {
        buffer_append_format(words->out, " after ");
        append_expr(words, operator_->offset);
    }
}

/* --- scans --- */

static void begin_line(const struct words *words)
{
    buffer_append_format(words->out, "\n%*s", (int)(2 * words->depth + 2), "");
}

static void append_range(struct buffer *out, const struct sql_key_range *range)
{
    struct sql_value from = sql_of_text(range->from), to = sql_of_text(range->to);
    bool is_point = sql_key_range_is_point(range);
    buffer_append_format(out, is_point ? "" : "[");
    sql_value_append_literal(out, &sql_bytes, &from);
    if (is_point)
        return;
    buffer_append_format(out, ", ");
    if (range->to.size > 0)
        sql_value_append_literal(out, &sql_bytes, &to);
    buffer_append_format(out, ")");
}

static void append_ranges(const struct words *words, const struct sql_scan_spec *reading)
{
    bool is_all = reading->range_count == 1 && reading->ranges[0].from.size == 0 &&
                  reading->ranges[0].to.size == 0;
    begin_line(words);
    buffer_append_format(words->out, is_all                      ? "keys: all"
                                     : reading->range_count == 0 ? "keys: none"
                                                                 : "keys: ");
    for (size_t i = 0; !is_all && i < reading->range_count && i < RANGES_SHOWN; i++) {
        buffer_append_format(words->out, "%s", i == 0 ? "" : ", ");
        append_range(words->out, &reading->ranges[i]);
    }
    if (reading->range_count > RANGES_SHOWN)
        buffer_append_format(words->out, " and %zu more", reading->range_count - RANGES_SHOWN);
}

static void append_times(const struct words *words, const struct sql_temporal *temporal)
{
    const struct {
        const char *name;
        const struct sql_expr *time;
    } bounds[] = {{"as of", temporal->as_of},           {"after", temporal->after},
                  {"from", temporal->after_or_equal},   {"before", temporal->before},
                  {"up to", temporal->before_or_equal}, {"newest", temporal->latest_n}};
    if (temporal->with_history) {
        begin_line(words);
        buffer_append_format(words->out, "with history");
    }
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        if (bounds[i].time == NULL)
            continue;
        begin_line(words);
        buffer_append_format(words->out, "%s ", bounds[i].name);
        append_expr(words, bounds[i].time);
    }
}

/* `reading` is NULL before it begins: then there are conditions instead of ranges. */
static void append_scan(const struct words *words, const struct sql_operator *operator_,
                        const struct sql_scan_spec *reading)
{
    const struct sql_scan_plan *scan = operator_->scan;
    const struct words own = {words->out, words->plan, operator_, words->depth};
    buffer_append_format(own.out, "SCAN %s%s", scan->table->name,
                         scan->is_reversed ? ", from the last row" : "");
    begin_line(&own);
    buffer_append_format(own.out, scan->slot_count == 0 ? "reads: that rows are there" : "reads: ");
    for (size_t i = 0; i < scan->slot_count; i++) {
        buffer_append_format(own.out, "%s", i == 0 ? "" : ", ");
        append_slot(&own, scan, i);
    }
    append_times(&own, &scan->temporal);
    if (reading != NULL) {
        append_ranges(&own, reading);
    } else if (scan->condition != NULL) {
        begin_line(&own);
        buffer_append_format(own.out, "keys: of ");
        append_expr(&own, scan->condition);
    }
    if (scan->row_limit != NULL) {
        begin_line(&own);
        buffer_append_format(own.out, "rows: at most ");
        append_expr(&own, scan->row_limit);
    }
}

/* --- the plan --- */

static void append_operator(const struct words *words, const struct sql_operator *operator_,
                            const struct sql_explained *explained)
{
    switch (operator_->kind) {
    case SQL_OP_ONE_ROW:
        buffer_append_format(words->out, "ONE ROW");
        break;
    case SQL_OP_SCAN:
        append_scan(words, operator_, explained->reading);
        break;
    case SQL_OP_FILTER:
        buffer_append_format(words->out, "FILTER ");
        append_expr(words, operator_->condition);
        break;
    case SQL_OP_PROJECT:
        buffer_append_format(words->out, "PROJECT");
        append_made(words, operator_, " ");
        break;
    case SQL_OP_UNNEST:
        buffer_append_format(words->out, operator_->is_outer ? "LEFT UNNEST" : "UNNEST");
        append_exprs(words, " ", operator_->exprs, operator_->expr_count);
        break;
    case SQL_OP_UNPACK:
        buffer_append_format(words->out, "UNPACK");
        break;
    case SQL_OP_AGGREGATE:
        append_aggregates(words, operator_);
        break;
    case SQL_OP_DISTINCT:
        buffer_append_format(words->out, "DISTINCT");
        break;
    case SQL_OP_SORT:
        append_sort(words, operator_);
        break;
    case SQL_OP_LIMIT:
        append_limit(words, operator_);
        break;
    case SQL_OP_WINDOW:
        append_windows(words, operator_);
        break;
    }
    if (operator_ == explained->divided) {
        begin_line(words);
        buffer_append_format(words->out, "in %zu parts of the table, by several threads",
                             explained->parts);
    }
    if (explained->times != NULL) {
        const struct sql_operator_time *time = &explained->times[words->depth];
        begin_line(words);
        buffer_append_format(words->out, "gave: %llu rows in %.6f s",
                             (unsigned long long)time->rows, (double)time->ns / 1e9);
    }
    buffer_append_byte(words->out, '\n');
}

void sql_explain(const struct sql_explained *explained, struct buffer *out)
{
    struct words words = {.out = out, .plan = explained->plan};
    for (const struct sql_operator *operator_ = words.plan->root; operator_ != NULL;
         operator_ = operator_->input, words.depth++) {
        words.of = operator_->input;
        buffer_append_format(out, "%*s", (int)(2 * words.depth), "");
        append_operator(&words, operator_, explained);
    }
}
