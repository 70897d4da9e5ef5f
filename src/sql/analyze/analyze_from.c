/* FROM: tables, views, queries, UNNEST and UNPACK. */
#include "base/check.h"
#include "sql/analyze/analyze_private.h"
#include "sql/syntax/parser.h"

#include <strings.h>

enum { MOST_VIEWS = 8 }; /* in one another */

/* --- operators --- */

struct sql_operator *new_operator(struct analyzer *analyzer, enum sql_operator_kind kind,
                                  const struct sql_operator *input)
{
    struct sql_operator *operator_ = arena_zalloc(analyzer->arena, sizeof *operator_);
    if (operator_ == NULL)
        return NULL;
    operator_->kind = kind;
    operator_->input = input;
    if (input != NULL) {
        operator_->columns = input->columns;
        operator_->column_count = input->column_count;
    }
    return operator_;
}

status add_filter(struct analyzer *analyzer, const struct sql_expr *condition,
                  struct relation *relation)
{
    struct sql_operator *filter = new_operator(analyzer, SQL_OP_FILTER, relation->operator_);
    if (filter == NULL)
        return status_out_of_memory();
    filter->condition = condition;
    relation->operator_ = filter;
    return status_ok();
}

status one_row(struct analyzer *analyzer, struct relation *out)
{
    *out = (struct relation){.operator_ = new_operator(analyzer, SQL_OP_ONE_ROW, NULL)};
    return out->operator_ == NULL ? status_out_of_memory() : status_ok();
}

/* All columns in sight under this qualifier alone. */
status qualify(struct analyzer *analyzer, const char *qualifier, struct relation *relation)
{
    size_t count = relation->operator_->column_count;
    struct name *names = arena_alloc(analyzer->arena, count * sizeof *names);
    if (names == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        names[i] = relation->names[i];
        names[i].qualifier = qualifier;
    }
    relation->names = names;
    return status_ok();
}

/* --- tables --- */

static const char *const temporal_names[] = {
    "as_of", "after", "after_or_equal", "before", "before_or_equal", "latest_n", "with_history"};

enum { TEMPORAL_LATEST = 5, TEMPORAL_HISTORY = 6, TEMPORAL_COUNT = 7 };

static status bind_history(struct analyzer *analyzer, const struct ast_expr *ast, bool *out)
{
    const struct sql_expr *expr;
    TRY(bind_fixed(analyzer, ast, "with_history", &sql_bool, &expr));
    if (expr->kind != SQL_CONSTANT || expr->constant.is_null)
        return sql_error(analyzer->analysis->text, ast->at,
                         "Argument with_history must be a constant");
    *out = expr->constant.boolean;
    return status_ok();
}

static status bind_temporal(struct analyzer *analyzer, const struct ast_expr *argument,
                            struct sql_temporal *out)
{
    const struct sql_expr **places[] = {&out->as_of,  &out->after,           &out->after_or_equal,
                                        &out->before, &out->before_or_equal, &out->latest_n};
    if (argument->kind != AST_NAMED_ARGUMENT)
        return sql_error(analyzer->analysis->text, argument->at,
                         "Arguments of a table must be named");
    size_t which = 0;
    while (which < TEMPORAL_COUNT && strcasecmp(temporal_names[which], argument->text) != 0)
        which++;
    if (which == TEMPORAL_COUNT)
        return sql_error(analyzer->analysis->text, argument->at,
                         "Named argument %s not found in signature for a table", argument->text);
    if (which == TEMPORAL_HISTORY)
        return bind_history(analyzer, argument->operands, &out->with_history);
    if (*places[which] != NULL)
        return sql_error(analyzer->analysis->text, argument->at, "Duplicate named argument %s",
                         argument->text);
    return bind_fixed(analyzer, argument->operands, temporal_names[which],
                      which == TEMPORAL_LATEST ? &sql_int64 : &sql_timestamp, places[which]);
}

static status check_temporal(struct analyzer *analyzer, const struct ast_from *from,
                             const struct sql_temporal *temporal)
{
    bool has_bounds = temporal->after != NULL || temporal->after_or_equal != NULL ||
                      temporal->before != NULL || temporal->before_or_equal != NULL ||
                      temporal->latest_n != NULL;
    if (has_bounds && !temporal->with_history)
        return sql_error(analyzer->analysis->text, from->at,
                         "after, after_or_equal, before, before_or_equal and latest_n require "
                         "with_history => TRUE");
    if (temporal->as_of != NULL && temporal->with_history)
        return sql_error(analyzer->analysis->text, from->at,
                         "as_of cannot be used with with_history => TRUE");
    return status_ok();
}

/* ARRAY<STRUCT<timestamp TIMESTAMP, value V>> */
static const struct sql_type *history_of(struct arena *arena, const struct sql_type *value)
{
    struct sql_field *fields = arena_alloc(arena, 2 * sizeof *fields);
    if (fields == NULL)
        return NULL;
    fields[0] = (struct sql_field){"timestamp", &sql_timestamp};
    fields[1] = (struct sql_field){"value", value};
    const struct sql_type *cell = sql_struct_of(arena, fields, 2);
    return cell == NULL ? NULL : sql_array_of(arena, cell);
}

/* With its history, a family's values are arrays. */
static const struct sql_type *column_type(struct arena *arena,
                                          const struct sql_table_column *column, bool with_history)
{
    if (column->kind != SQL_COLUMN_FAMILY || !with_history)
        return column->type;
    const struct sql_type *history = history_of(arena, column->type->element);
    return history == NULL ? NULL : sql_map_of(arena, column->type->key, history);
}

static status scan_columns(struct analyzer *analyzer, struct sql_scan_plan *scan,
                           struct sql_operator *operator_, struct name *names)
{
    const struct sql_relation *table = scan->table;
    struct sql_slot *slots = arena_zalloc(analyzer->arena, table->column_count * sizeof *slots);
    struct sql_column *columns =
        arena_alloc(analyzer->arena, table->column_count * sizeof *columns);
    static const enum sql_slot_kind kinds[] = {[SQL_COLUMN_KEY] = SQL_SLOT_KEY,
                                               [SQL_COLUMN_KEY_PART] = SQL_SLOT_KEY_PART,
                                               [SQL_COLUMN_FAMILY] = SQL_SLOT_FAMILY,
                                               [SQL_COLUMN_CELL] = SQL_SLOT_CELL,
                                               [SQL_COLUMN_TIMESTAMP] = SQL_SLOT_TIMESTAMP};
    if (slots == NULL || columns == NULL)
        return status_out_of_memory();
    size_t parts = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        const struct sql_table_column *column = &table->columns[i];
        const struct sql_type *type =
            column_type(analyzer->arena, column, scan->temporal.with_history);
        if (type == NULL)
            return status_out_of_memory();
        slots[i] = (struct sql_slot){.kind = kinds[column->kind], .type = type};
        slots[i].part = column->kind == SQL_COLUMN_KEY_PART ? parts++ : 0;
        if (table->is_materialized)
            slots[i].part = column->part;
        bool is_cell = column->kind == SQL_COLUMN_CELL;
        slots[i].family = is_cell ? column->family : bytes_of(column->name);
        slots[i].cell = column->qualifier;
        columns[i] = (struct sql_column){column->name, type, column->is_hidden};
        names[i] =
            (struct name){.text = column->name, .qualifier = "", .is_hidden = column->is_hidden};
    }
    scan->slots = slots;
    scan->slot_count = operator_->column_count = table->column_count;
    operator_->columns = columns;
    return status_ok();
}

static status analyze_scan(struct analyzer *analyzer, const struct ast_from *from,
                           const struct sql_relation *table, struct relation *out)
{
    struct sql_scan_plan *scan = arena_zalloc(analyzer->arena, sizeof *scan);
    struct sql_operator *operator_ = new_operator(analyzer, SQL_OP_SCAN, NULL);
    struct name *names = arena_alloc(analyzer->arena, table->column_count * sizeof *names);
    if (scan == NULL || operator_ == NULL || names == NULL)
        return status_out_of_memory();
    if (analyzer->table != NULL)
        return sql_error(analyzer->analysis->text, from->at,
                         "A query can read one table only: joins are not supported");
    if (table->is_materialized && from->has_arguments)
        return sql_error(analyzer->analysis->text, from->at, "A view takes no arguments");
    analyzer->table = scan->table = table;
    for (const struct ast_expr *argument = from->arguments; argument != NULL;
         argument = argument->next)
        TRY(bind_temporal(analyzer, argument, &scan->temporal));
    TRY(check_temporal(analyzer, from, &scan->temporal));
    TRY(scan_columns(analyzer, scan, operator_, names));
    operator_->scan = scan;
    *out = (struct relation){operator_, names};
    return status_ok();
}

/* --- views --- */

/* A view's query sees nothing of the one around it, and its errors have its own places. */
static status analyze_view(struct analyzer *analyzer, const struct ast_from *from,
                           const struct sql_relation *view, struct relation *out)
{
    struct ast_query *query;
    struct sql_analysis analysis = *analyzer->analysis;
    analysis.text = bytes_of(view->view_query);
    analysis.parameter_count = 0;
    analysis.is_view = true;
    if (from->has_arguments)
        return sql_error(analyzer->analysis->text, from->at, "A view takes no arguments");
    if (analyzer->view_depth >= MOST_VIEWS)
        return sql_error(analyzer->analysis->text, from->at,
                         "Views are defined by each other too deeply at %s", view->name);
    TRY(sql_parse(analysis.text, analyzer->arena, &query));
    struct analyzer inner = *analyzer;
    inner.analysis = &analysis;
    inner.view_depth++;
    TRY(analyze_query(&inner, query, out));
    analyzer->table = inner.table;
    analyzer->call_count = inner.call_count;
    analyzer->argument_count = inner.argument_count;
    analyzer->folded = inner.folded;
    return status_ok();
}

static void visit_name(void *context, const char *name)
{
    suggest(context, name);
}

static status table_not_found(struct analyzer *analyzer, const struct ast_from *from,
                              const char *name)
{
    const struct sql_catalog *catalog = analyzer->analysis->catalog;
    struct suggestion suggestion = {.wanted = name};
    catalog->names(catalog->context, visit_name, &suggestion);
    const char *quote = strchr(name, '-') == NULL ? "" : "`";
    return sql_error(analyzer->analysis->text, from->at, "Table not found: %s%s%s%s%s%s", quote,
                     name, quote, suggestion.best == NULL ? "" : "; Did you mean ",
                     suggestion.best == NULL ? "" : suggestion.best,
                     suggestion.best == NULL ? "" : "?");
}

static status analyze_table(struct analyzer *analyzer, const struct ast_from *from,
                            struct relation *out)
{
    const struct sql_catalog *catalog = analyzer->analysis->catalog;
    const struct sql_relation *found;
    char *name;
    TRY(join_names(analyzer, from->name, &name));
    TRY(catalog->find(catalog->context, name, analyzer->view_depth > 0, analyzer->arena, &found));
    if (found == NULL)
        return table_not_found(analyzer, from, name);
    if (found->view_query != NULL)
        TRY(analyze_view(analyzer, from, found, out));
    else
        TRY(analyze_scan(analyzer, from, found, out));
    return qualify(analyzer, from->alias == NULL ? name : from->alias, out);
}

/* --- UNPACK --- */

/* Whether the type is that of a column's cells: see history_of. */
static bool is_history(const struct sql_type *type)
{
    return type->kind == SQL_ARRAY && type->element->kind == SQL_STRUCT &&
           type->element->field_count == 2 &&
           type->element->fields[0].type->kind == SQL_TIMESTAMP &&
           strcasecmp(type->element->fields[0].name, "timestamp") == 0 &&
           strcasecmp(type->element->fields[1].name, "value") == 0;
}

static const struct sql_type *unpacked_type(struct arena *arena, const struct sql_type *type,
                                            bool *is_packed)
{
    bool is_map = type->kind == SQL_MAP && is_history(type->element);
    *is_packed = *is_packed || is_map || is_history(type);
    if (is_map)
        return sql_map_of(arena, type->key, type->element->element->fields[1].type);
    return is_history(type) ? type->element->fields[1].type : type;
}

static status unpack_columns(struct analyzer *analyzer, const struct relation *input,
                             struct sql_column *columns, struct name *names, bool *is_packed)
{
    size_t count = input->operator_->column_count;
    *is_packed = false;
    for (size_t i = 0; i < count; i++) {
        columns[i] = input->operator_->columns[i];
        columns[i].type = unpacked_type(analyzer->arena, columns[i].type, is_packed);
        names[i] = input->names[i];
        if (columns[i].type == NULL)
            return status_out_of_memory();
    }
    columns[count] = (struct sql_column){"_timestamp", &sql_timestamp, false};
    names[count] = (struct name){.text = "_timestamp", .qualifier = ""};
    return status_ok();
}

static status analyze_unpack(struct analyzer *analyzer, const struct ast_from *from,
                             struct relation *out)
{
    struct relation input;
    bool is_packed;
    if (strcasecmp(from->name->text, "UNPACK") != 0 || from->name->next != NULL)
        return sql_error(analyzer->analysis->text, from->at, "Table-valued function not found: %s",
                         from->name->text);
    TRY(analyze_query(analyzer, from->query, &input));
    size_t count = input.operator_->column_count;
    struct sql_operator *unpack = new_operator(analyzer, SQL_OP_UNPACK, input.operator_);
    struct sql_column *columns = arena_alloc(analyzer->arena, (count + 1) * sizeof *columns);
    struct name *names = arena_alloc(analyzer->arena, (count + 1) * sizeof *names);
    if (unpack == NULL || columns == NULL || names == NULL)
        return status_out_of_memory();
    TRY(unpack_columns(analyzer, &input, columns, names, &is_packed));
    if (!is_packed)
        return sql_error(analyzer->analysis->text, from->at,
                         "UNPACK expects a query over a table with_history => TRUE");
    unpack->columns = columns;
    unpack->column_count = count + 1;
    *out = (struct relation){unpack, names};
    return qualify(analyzer, from->alias == NULL ? "" : from->alias, out);
}

/* --- UNNEST --- */

static status not_array(struct analyzer *analyzer, const struct ast_from *from,
                        const struct sql_type *type)
{
    return sql_error(analyzer->analysis->text, from->expr->at,
                     "Values referenced in UNNEST must be arrays. UNNEST contains expression of "
                     "type %s",
                     type_words(analyzer, type));
}

/* The left side's columns, then the element, then perhaps its offset. */
static status unnest_columns(struct analyzer *analyzer, const struct ast_from *from,
                             const struct relation *left, struct sql_operator *unnest,
                             struct relation *out)
{
    size_t count = left->operator_->column_count;
    size_t all = count + 1 + from->has_offset;
    struct sql_column *columns = arena_alloc(analyzer->arena, all * sizeof *columns);
    struct name *names = arena_alloc(analyzer->arena, all * sizeof *names);
    if (columns == NULL || names == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        columns[i] = left->operator_->columns[i];
        names[i] = left->names[i];
    }
    const char *alias = from->alias == NULL ? "" : from->alias;
    columns[count] = (struct sql_column){alias, unnest->exprs[0]->type->element, false};
    names[count] = (struct name){.text = alias, .qualifier = "", .is_element = true};
    if (from->has_offset) {
        columns[count + 1] = (struct sql_column){from->offset_alias, &sql_int64, false};
        names[count + 1] = (struct name){.text = from->offset_alias, .qualifier = ""};
    }
    unnest->columns = columns;
    unnest->column_count = all;
    *out = (struct relation){unnest, names};
    return status_ok();
}

static status analyze_unnest(struct analyzer *analyzer, const struct ast_from *from,
                             const struct relation *left, bool is_outer, struct relation *out)
{
    struct binding binding = {.analyzer = analyzer, .relation = left, .clause = "UNNEST"};
    struct sql_operator *unnest = new_operator(analyzer, SQL_OP_UNNEST, left->operator_);
    const struct sql_expr **exprs = arena_alloc(analyzer->arena, sizeof *exprs);
    if (unnest == NULL || exprs == NULL)
        return status_out_of_memory();
    exprs[0] = NULL;
    TRY(bind_expr(&binding, from->expr, &exprs[0]));
    CHECK(exprs[0] != NULL);
    if (exprs[0]->type->kind != SQL_ARRAY)
        return not_array(analyzer, from, exprs[0]->type);
    unnest->exprs = exprs;
    unnest->expr_count = 1;
    unnest->is_outer = is_outer;
    unnest->has_offset = from->has_offset;
    return unnest_columns(analyzer, from, left, unnest, out);
}

status analyze_join(struct analyzer *analyzer, const struct ast_from *join,
                    const struct relation *left, struct relation *out)
{
    const struct sql_expr *on;
    bool is_left = join->join == AST_JOIN_LEFT;
    if (join->right->kind != AST_FROM_UNNEST)
        return sql_error(analyzer->analysis->text, join->right->at, "Joins are not supported");
    if (is_left && join->on != NULL && join->on->kind != AST_TRUE)
        return sql_error(analyzer->analysis->text, join->on->at,
                         "LEFT JOIN UNNEST with a condition is not supported");
    TRY(analyze_unnest(analyzer, join->right, left, is_left, out));
    if (join->on == NULL || is_left)
        return status_ok();
    struct binding binding = {.analyzer = analyzer, .relation = out, .clause = "ON clause"};
    TRY(bind_condition(&binding, join->on, &on));
    return add_filter(analyzer, on, out);
}

status analyze_from(struct analyzer *analyzer, const struct ast_from *from, struct relation *out)
{
    struct relation left = {0};
    switch (from->kind) {
    case AST_FROM_TABLE:
        return analyze_table(analyzer, from, out);
    case AST_FROM_UNPACK:
        return analyze_unpack(analyzer, from, out);
    case AST_FROM_QUERY:
        TRY(analyze_query(analyzer, from->query, out));
        return qualify(analyzer, from->alias == NULL ? "" : from->alias, out);
    case AST_FROM_UNNEST:
        TRY(one_row(analyzer, &left));
        return analyze_unnest(analyzer, from, &left, false, out);
    case AST_FROM_JOIN:
        break;
    }
    TRY(analyze_from(analyzer, from->left, &left));
    return analyze_join(analyzer, from, &left, out);
}
