/* SELECT: in the order in which it is carried out, which is not that of the text.
 *
 *     FROM, WHERE, grouping, HAVING, window functions, QUALIFY, the select list, DISTINCT, ORDER BY
 *
 * All expressions are first bound against FROM's columns; then, if there is a grouping, against its
 * result's (group.c). */
#include "sql/analyze/analyze_private.h"

#include <stdlib.h>
#include <strings.h>

/* What is selected: an expression and its name. */
struct item {
    const struct sql_expr *expr;
    const char *name; /* "": none */
    uint32_t at;
};

struct selection {
    struct analyzer *analyzer;
    const struct ast_select *select;
    struct relation from;
    struct vector items; /* of struct item */
    struct vector aliases;
    struct vector aggregates;
    struct vector windows;
    const struct sql_expr **keys;
    size_t key_count;
    bool is_grouped;
    const struct sql_expr *having;
    const struct sql_expr *qualify;
    struct sql_order *orders;
    size_t order_count;
};

static struct item *items_of(struct selection *selection)
{
    return selection->items.items;
}

static struct binding binding_of(struct selection *selection, const char *clause)
{
    return (struct binding){.analyzer = selection->analyzer,
                            .relation = &selection->from,
                            .clause = clause,
                            .aggregates = &selection->aggregates,
                            .windows = &selection->windows,
                            .named_windows = selection->select->windows};
}

/* One that sees the names of the select list, too. */
static struct binding aliased_binding(struct selection *selection, const char *clause)
{
    struct binding binding = binding_of(selection, clause);
    binding.aliases = selection->aliases.items;
    binding.alias_count = selection->aliases.count;
    return binding;
}

/* --- the select list --- */

static status add_item(struct selection *selection, const struct sql_expr *expr, const char *name,
                       uint32_t at)
{
    if (selection->items.count >= SQL_COLUMN_LIMIT)
        return sql_error(selection->analyzer->analysis->text, at,
                         "A SELECT list has more than %d columns", SQL_COLUMN_LIMIT);
    struct item item = {expr, name, at};
    struct alias alias = {name, expr};
    TRY(vector_add(&selection->items, selection->analyzer->arena, &item, sizeof item));
    return *name == '\0'
               ? status_ok()
               : vector_add(&selection->aliases, selection->analyzer->arena, &alias, sizeof alias);
}

static status find_excepted(const struct selection *selection, const struct ast_item *item,
                            const char *name, bool *is_excepted)
{
    *is_excepted = false;
    for (const struct ast_name *except = item->except; except != NULL && !*is_excepted;
         except = except->next) {
        TRY(count_planning(selection->analyzer, 1));
        *is_excepted = strcasecmp(except->text, name) == 0;
    }
    return status_ok();
}

/* A column of a `*`: left out by EXCEPT, or put in another's place by REPLACE. */
static status add_starred(struct selection *selection, const struct ast_item *item,
                          const struct sql_expr *expr, const char *name)
{
    bool is_excepted;
    TRY(find_excepted(selection, item, name, &is_excepted));
    if (is_excepted)
        return status_ok();
    struct binding binding = binding_of(selection, "SELECT list");
    for (const struct ast_replace *replace = item->replace; replace != NULL;
         replace = replace->next)
        if (strcasecmp(replace->name, name) == 0)
            TRY(bind_expr(&binding, replace->expr, &expr));
    return add_item(selection, expr, name, item->at);
}

static status add_fields(struct selection *selection, const struct ast_item *item,
                         const struct sql_expr *of)
{
    for (size_t i = 0; i < of->type->field_count; i++) {
        const struct sql_expr *field;
        TRY(new_field(selection->analyzer, item->at, of, i, &field));
        TRY(add_starred(selection, item, field, of->type->fields[i].name));
    }
    return status_ok();
}

static bool is_element_struct(const struct relation *from, size_t i)
{
    return from->names[i].is_element && from->operator_->columns[i].type->kind == SQL_STRUCT;
}

/* All columns that have the qualifier (NULL: any). */
static status add_columns(struct selection *selection, const struct ast_item *item,
                          const char *qualifier, size_t *added)
{
    const struct relation *from = &selection->from;
    *added = 0;
    for (size_t i = 0; i < from->operator_->column_count; i++) {
        const struct sql_expr *column;
        bool fits = qualifier == NULL || strcasecmp(from->names[i].qualifier, qualifier) == 0;
        if (!fits || from->names[i].is_hidden)
            continue;
        ++*added;
        TRY(new_column(selection->analyzer, item->at, from->operator_->columns[i].type, i,
                       &column));
        if (is_element_struct(from, i))
            TRY(add_fields(selection, item, column));
        else
            TRY(add_starred(selection, item, column, from->names[i].text));
    }
    return status_ok();
}

static status check_names(struct selection *selection, const struct ast_item *item, size_t first)
{
    bytes text = selection->analyzer->analysis->text;
    for (const struct ast_name *except = item->except; except != NULL; except = except->next) {
        bool is_there = false;
        TRY(count_planning(selection->analyzer, selection->from.operator_->column_count));
        for (size_t i = 0; i < selection->from.operator_->column_count && !is_there; i++)
            is_there = strcasecmp(selection->from.names[i].text, except->text) == 0;
        if (!is_there && item->expr == NULL)
            return sql_error(text, except->at, "Column %s in SELECT * EXCEPT list does not exist",
                             except->text);
    }
    for (const struct ast_replace *replace = item->replace; replace != NULL;
         replace = replace->next) {
        bool is_there = false;
        for (size_t i = first; i < selection->items.count && !is_there; i++)
            is_there = strcasecmp(items_of(selection)[i].name, replace->name) == 0;
        if (!is_there)
            return sql_error(text, replace->at, "Column %s in SELECT * REPLACE list does not exist",
                             replace->name);
    }
    if (selection->items.count == first)
        return sql_error(text, item->at, "SELECT * EXCEPT list excludes all columns");
    return status_ok();
}

/* `*`, `t.*`, `a_struct.*` */
static status add_star(struct selection *selection, const struct ast_item *item)
{
    size_t first = selection->items.count;
    size_t added = 0;
    const struct ast_expr *of = item->expr;
    if (selection->from.operator_->kind == SQL_OP_ONE_ROW && of == NULL)
        return sql_error(selection->analyzer->analysis->text, item->at,
                         "SELECT * must have a FROM clause");
    bool may_qualify = of != NULL && of->kind == AST_PATH && of->name->next == NULL;
    if (of == NULL || may_qualify)
        TRY(add_columns(selection, item, of == NULL ? NULL : of->name->text, &added));
    if (of != NULL && added == 0) {
        struct binding binding = binding_of(selection, "SELECT list");
        const struct sql_expr *whole;
        TRY(bind_expr(&binding, of, &whole));
        if (whole->type->kind != SQL_STRUCT)
            return sql_error(selection->analyzer->analysis->text, item->at,
                             "Dot-star is not supported for this type");
        TRY(add_fields(selection, item, whole));
    }
    return check_names(selection, item, first);
}

static status bind_items(struct selection *selection, const struct ast_item *items)
{
    bool has_from = selection->from.operator_->kind != SQL_OP_ONE_ROW;
    struct binding binding =
        binding_of(selection, has_from ? "SELECT list" : "SELECT without FROM clause");
    if (!has_from)
        binding.aggregates = NULL;
    for (const struct ast_item *item = items; item != NULL; item = item->next) {
        const struct sql_expr *expr;
        if (item->is_star) {
            TRY(add_star(selection, item));
            continue;
        }
        TRY(bind_expr(&binding, item->expr, &expr));
        TRY(add_item(selection, expr, item->alias != NULL ? item->alias : implicit_name(item->expr),
                     item->at));
    }
    return status_ok();
}

/* --- grouping --- */

/* An integer literal in GROUP BY or ORDER BY is the place of one in the select list. */
static status bind_ordinal(struct selection *selection, const struct ast_expr *ast,
                           const char *clause, const struct sql_expr **out)
{
    long place = strtol(ast->text, NULL, 0);
    if (place < 1 || (size_t)place > selection->items.count)
        return sql_error(selection->analyzer->analysis->text, ast->at,
                         "%s is out of SELECT column number range: %s", clause, ast->text);
    *out = items_of(selection)[place - 1].expr;
    return status_ok();
}

static bool has_placeholder(const struct sql_expr *expr)
{
    bool has = expr->kind == SQL_AGGREGATED || expr->kind == SQL_WINDOWED;
    for (size_t i = 0; i < expr->arg_count && !has; i++)
        has = has_placeholder(expr->args[i]);
    return has;
}

static status check_key(struct selection *selection, const struct sql_expr *key, uint32_t at)
{
    bytes text = selection->analyzer->analysis->text;
    if (has_placeholder(key))
        return sql_error(text, at, "Aggregate and analytic functions are not allowed in GROUP BY");
    if (sql_type_is_groupable(key->type))
        return status_ok();
    return sql_error(text, at, "Grouping by expressions of type %s is not allowed",
                     type_words(selection->analyzer, key->type));
}

/* A lone name is an alias before it is a column, as in `SELECT '*' AS _key, … GROUP BY _key`; in
 * an expression a column comes first. */
static bool is_lone_name(const struct ast_expr *ast)
{
    return ast->kind == AST_PATH && ast->name->next == NULL;
}

static status bind_keys(struct selection *selection, const struct ast_expr *list)
{
    struct binding binding = aliased_binding(selection, "GROUP BY");
    struct vector keys = {0};
    binding.aggregates = NULL;
    binding.windows = NULL;
    for (; list != NULL; list = list->next) {
        const struct sql_expr *key;
        binding.aliases_win = is_lone_name(list);
        TRY(list->kind == AST_INTEGER ? bind_ordinal(selection, list, "GROUP BY", &key)
                                      : bind_expr(&binding, list, &key));
        TRY(check_key(selection, key, list->at));
        TRY(vector_add(&keys, selection->analyzer->arena, &key, sizeof key));
    }
    selection->keys = keys.items;
    selection->key_count = keys.count;
    return status_ok();
}

static bool has_column(const struct sql_expr *expr)
{
    bool has = expr->kind == SQL_COLUMN;
    for (size_t i = 0; i < expr->arg_count && !has; i++)
        has = has_column(expr->args[i]);
    return has;
}

/* GROUP BY ALL: by all that is selected and is no aggregate. */
static status bind_all_keys(struct selection *selection)
{
    struct vector keys = {0};
    for (size_t i = 0; i < selection->items.count; i++) {
        const struct item *item = &items_of(selection)[i];
        if (has_placeholder(item->expr) || !has_column(item->expr))
            continue;
        TRY(check_key(selection, item->expr, item->at));
        TRY(vector_add(&keys, selection->analyzer->arena, &item->expr, sizeof item->expr));
    }
    selection->keys = keys.items;
    selection->key_count = keys.count;
    return status_ok();
}

/* --- clauses after it --- */

static status bind_clauses(struct selection *selection)
{
    const struct ast_select *select = selection->select;
    if (select->grouping == AST_GROUP_BY)
        TRY(bind_keys(selection, select->group));
    if (select->grouping == AST_GROUP_ALL)
        TRY(bind_all_keys(selection));
    struct binding having = aliased_binding(selection, "HAVING clause");
    having.windows = NULL;
    having.aliases_win = true;
    if (select->having != NULL)
        TRY(bind_condition(&having, select->having, &selection->having));
    struct binding qualify = aliased_binding(selection, "QUALIFY clause");
    qualify.aliases_win = true;
    if (select->qualify != NULL)
        TRY(bind_condition(&qualify, select->qualify, &selection->qualify));
    return status_ok();
}

static status bind_order_list(struct selection *selection, const struct ast_order *list)
{
    struct binding binding = aliased_binding(selection, "ORDER BY clause");
    struct vector orders = {0};
    binding.aliases_win = true;
    for (; list != NULL; list = list->next) {
        const struct sql_expr *expr;
        TRY(list->expr->kind == AST_INTEGER ? bind_ordinal(selection, list->expr, "ORDER BY", &expr)
                                            : bind_expr(&binding, list->expr, &expr));
        TRY(add_order(&binding, list, expr, &orders));
    }
    selection->orders = orders.items;
    selection->order_count = orders.count;
    return status_ok();
}

/* --- operators --- */

/* Applies it to all that is computed after the operator that it stands for. */
static status rewrite_all(struct selection *selection, struct rewrite *rewrite)
{
    struct sql_window *windows = selection->windows.items;
    rewrite->clause = "SELECT list";
    for (size_t i = 0; i < selection->items.count; i++)
        TRY(rewrite_expr(rewrite, items_of(selection)[i].expr, &items_of(selection)[i].expr));
    for (size_t i = 0; i < selection->windows.count && rewrite->is_grouped; i++)
        TRY(rewrite_window(rewrite, &windows[i]));
    rewrite->clause = "HAVING clause";
    if (selection->having != NULL)
        TRY(rewrite_expr(rewrite, selection->having, &selection->having));
    rewrite->clause = "QUALIFY clause";
    if (selection->qualify != NULL)
        TRY(rewrite_expr(rewrite, selection->qualify, &selection->qualify));
    rewrite->clause = "ORDER BY clause";
    for (size_t i = 0; i < selection->order_count; i++)
        TRY(rewrite_expr(rewrite, selection->orders[i].expr, &selection->orders[i].expr));
    return status_ok();
}

static status aggregate_columns(struct selection *selection, struct sql_operator *aggregate)
{
    const struct sql_aggregation *aggregates = selection->aggregates.items;
    size_t count = selection->key_count + selection->aggregates.count;
    struct sql_column *columns = arena_zalloc(selection->analyzer->arena, count * sizeof *columns);
    if (columns == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        bool is_key = i < selection->key_count;
        columns[i].name = "";
        columns[i].type =
            is_key ? selection->keys[i]->type : aggregates[i - selection->key_count].type;
    }
    aggregate->columns = columns;
    aggregate->column_count = count;
    return status_ok();
}

static status add_grouping(struct selection *selection, const struct sql_operator **operator_)
{
    selection->is_grouped =
        selection->select->grouping != AST_GROUP_NONE || selection->aggregates.count > 0;
    if (!selection->is_grouped)
        return selection->having == NULL
                   ? status_ok()
                   : sql_error(selection->analyzer->analysis->text, selection->having->at,
                               "The HAVING clause requires GROUP BY or aggregation");
    struct sql_operator *aggregate =
        new_operator(selection->analyzer, SQL_OP_AGGREGATE, *operator_);
    if (aggregate == NULL)
        return status_out_of_memory();
    aggregate->exprs = selection->keys;
    aggregate->expr_count = selection->key_count;
    aggregate->aggregates = selection->aggregates.items;
    aggregate->aggregate_count = selection->aggregates.count;
    aggregate->is_grouped = selection->select->grouping != AST_GROUP_NONE;
    TRY(aggregate_columns(selection, aggregate));
    *operator_ = aggregate;
    struct rewrite rewrite = {.analyzer = selection->analyzer,
                              .from = &selection->from,
                              .keys = selection->keys,
                              .key_count = selection->key_count,
                              .is_grouped = true,
                              .windows_from = SIZE_MAX};
    return rewrite_all(selection, &rewrite);
}

static status add_condition(struct selection *selection, const struct sql_expr *condition,
                            const struct sql_operator **operator_)
{
    struct relation relation = {.operator_ = *operator_};
    if (condition != NULL)
        TRY(add_filter(selection->analyzer, condition, &relation));
    *operator_ = relation.operator_;
    return status_ok();
}

static status add_windows(struct selection *selection, const struct sql_operator **operator_)
{
    if (selection->windows.count == 0)
        return status_ok();
    const struct sql_window *windows = selection->windows.items;
    size_t before = (*operator_)->column_count;
    size_t count = before + selection->windows.count;
    struct sql_operator *window = new_operator(selection->analyzer, SQL_OP_WINDOW, *operator_);
    struct sql_column *columns = arena_zalloc(selection->analyzer->arena, count * sizeof *columns);
    if (window == NULL || columns == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        columns[i] = i < before ? (*operator_)->columns[i]
                                : (struct sql_column){"", windows[i - before].type, false};
    window->columns = columns;
    window->column_count = count;
    window->windows = windows;
    window->window_count = selection->windows.count;
    *operator_ = window;
    struct rewrite rewrite = {
        .analyzer = selection->analyzer, .from = &selection->from, .windows_from = before};
    return rewrite_all(selection, &rewrite);
}

/* Where among the items the expression is; SIZE_MAX: it is not selected. */
static size_t find_item(struct selection *selection, const struct sql_expr *expr)
{
    for (size_t i = 0; i < selection->items.count; i++)
        if (sql_expr_equal(items_of(selection)[i].expr, expr))
            return i;
    return SIZE_MAX;
}

/* The items, and after them, hidden, what is ordered by but not selected. */
static status add_projection(struct selection *selection, const struct sql_operator **operator_)
{
    struct arena *arena = selection->analyzer->arena;
    struct vector exprs = {0};
    struct vector columns = {0};
    for (size_t i = 0; i < selection->items.count; i++) {
        const struct item *item = &items_of(selection)[i];
        struct sql_column column = {item->name, item->expr->type, false};
        TRY(vector_add(&exprs, arena, &item->expr, sizeof item->expr));
        TRY(vector_add(&columns, arena, &column, sizeof column));
    }
    for (size_t i = 0; i < selection->order_count; i++) {
        struct sql_order *order = &selection->orders[i];
        size_t place = find_item(selection, order->expr);
        TRY(count_planning(selection->analyzer, selection->items.count));
        if (place == SIZE_MAX && selection->select->is_distinct)
            return sql_error(selection->analyzer->analysis->text, order->expr->at,
                             "ORDER BY clause expression references an expression which is not "
                             "visible after SELECT DISTINCT");
        if (place == SIZE_MAX) {
            struct sql_column column = {"", order->expr->type, true};
            place = exprs.count;
            TRY(vector_add(&exprs, arena, &order->expr, sizeof order->expr));
            TRY(vector_add(&columns, arena, &column, sizeof column));
        }
        TRY(new_column(selection->analyzer, order->expr->at, order->expr->type, place,
                       &order->expr));
    }
    struct sql_operator *project = new_operator(selection->analyzer, SQL_OP_PROJECT, *operator_);
    if (project == NULL)
        return status_out_of_memory();
    project->exprs = exprs.items;
    project->expr_count = exprs.count;
    project->columns = columns.items;
    project->column_count = columns.count;
    *operator_ = project;
    return status_ok();
}

static status add_sort(struct selection *selection, const struct sql_operator **operator_)
{
    if (selection->select->is_distinct) {
        *operator_ = new_operator(selection->analyzer, SQL_OP_DISTINCT, *operator_);
        if (*operator_ == NULL)
            return status_out_of_memory();
    }
    if (selection->order_count == 0)
        return status_ok();
    struct sql_operator *sort = new_operator(selection->analyzer, SQL_OP_SORT, *operator_);
    if (sort == NULL)
        return status_out_of_memory();
    sort->orders = selection->orders;
    sort->order_count = selection->order_count;
    *operator_ = sort;
    return status_ok();
}

static status check_distinct(struct selection *selection)
{
    for (size_t i = 0; i < selection->items.count && selection->select->is_distinct; i++)
        if (!sql_type_is_groupable(items_of(selection)[i].expr->type))
            return sql_error(selection->analyzer->analysis->text, items_of(selection)[i].at,
                             "Column %s of this type cannot be used in SELECT DISTINCT",
                             items_of(selection)[i].name);
    return status_ok();
}

static status name_columns(struct selection *selection, const struct sql_operator *operator_,
                           struct relation *out)
{
    struct name *names =
        arena_zalloc(selection->analyzer->arena, operator_->column_count * sizeof *names);
    if (names == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < operator_->column_count; i++)
        names[i] = (struct name){.text = operator_->columns[i].name,
                                 .qualifier = "",
                                 .is_hidden = operator_->columns[i].is_hidden};
    *out = (struct relation){operator_, names};
    return status_ok();
}

static status add_operators(struct selection *selection, struct relation *out)
{
    const struct sql_operator *operator_ = selection->from.operator_;
    TRY(add_grouping(selection, &operator_));
    TRY(add_condition(selection, selection->having, &operator_));
    TRY(add_windows(selection, &operator_));
    TRY(add_condition(selection, selection->qualify, &operator_));
    TRY(check_distinct(selection));
    TRY(add_projection(selection, &operator_));
    TRY(add_sort(selection, &operator_));
    return name_columns(selection, operator_, out);
}

static status bind_where(struct selection *selection)
{
    const struct sql_expr *condition;
    struct binding binding = binding_of(selection, "WHERE clause");
    binding.aggregates = NULL;
    binding.windows = NULL;
    if (selection->select->where == NULL)
        return status_ok();
    if (selection->from.operator_->kind == SQL_OP_ONE_ROW)
        return sql_error(selection->analyzer->analysis->text, selection->select->where->at,
                         "Query without FROM clause cannot have a WHERE clause");
    TRY(bind_condition(&binding, selection->select->where, &condition));
    return add_filter(selection->analyzer, condition, &selection->from);
}

status analyze_select(struct analyzer *analyzer, const struct ast_query *query,
                      const struct ast_select *select, const struct relation *from,
                      struct relation *out)
{
    struct selection selection = {.analyzer = analyzer, .select = select, .from = *from};
    if (select->as != NULL)
        return sql_error(analyzer->analysis->text, select->at, "SELECT AS %s is not supported",
                         select->as);
    TRY(bind_where(&selection));
    TRY(bind_items(&selection, select->items));
    TRY(bind_clauses(&selection));
    if (query != NULL)
        TRY(bind_order_list(&selection, query->order));
    return add_operators(&selection, out);
}
