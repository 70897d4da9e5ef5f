/* Pipe syntax: each operator makes a relation of the one before. */
#include "sql/analyze/analyze_private.h"

#include <strings.h>

/* --- projections of a relation --- */

/* Columns that a projection is put together of. */
struct projection {
    struct vector exprs;
    struct vector columns;
    struct vector names;
};

static status project_expr(struct analyzer *analyzer, struct projection *projection,
                           const struct sql_expr *expr, const struct name *name)
{
    struct sql_column column = {name->text, expr->type, name->is_hidden};
    TRY(vector_add(&projection->exprs, analyzer->arena, &expr, sizeof expr));
    TRY(vector_add(&projection->columns, analyzer->arena, &column, sizeof column));
    return vector_add(&projection->names, analyzer->arena, name, sizeof *name);
}

static status project_column(struct analyzer *analyzer, struct projection *projection,
                             const struct relation *relation, size_t index)
{
    const struct sql_expr *column;
    TRY(new_column(analyzer, 0, relation->operator_->columns[index].type, index, &column));
    return project_expr(analyzer, projection, column, &relation->names[index]);
}

static status end_projection(struct analyzer *analyzer, struct projection *projection,
                             struct relation *relation)
{
    struct sql_operator *project = new_operator(analyzer, SQL_OP_PROJECT, relation->operator_);
    if (project == NULL)
        return status_out_of_memory();
    project->exprs = projection->exprs.items;
    project->expr_count = projection->exprs.count;
    project->columns = projection->columns.items;
    project->column_count = projection->columns.count;
    *relation = (struct relation){project, projection->names.items};
    return status_ok();
}

/* --- SELECT and AGGREGATE: by way of an ordinary SELECT --- */

static status pipe_select(struct analyzer *analyzer, const struct ast_pipe *pipe,
                          struct relation *relation)
{
    struct relation from = *relation;
    return analyze_select(analyzer, NULL, pipe->select, &from, relation);
}

/* SELECT groups, aggregates GROUP BY groups ORDER BY … */
static status pipe_aggregate(struct analyzer *analyzer, const struct ast_pipe *pipe,
                             struct relation *relation)
{
    struct relation from = *relation;
    struct ast_select select = {.at = pipe->at, .group = pipe->group};
    struct ast_query query = {.at = pipe->at, .order = pipe->order};
    struct ast_item **item = &select.items;
    select.grouping = pipe->group == NULL ? AST_GROUP_NONE : AST_GROUP_BY;
    for (struct ast_expr *group = pipe->group; group != NULL; group = group->next) {
        *item = arena_zalloc(analyzer->arena, sizeof **item);
        if (*item == NULL)
            return status_out_of_memory();
        **item = (struct ast_item){.at = group->at, .expr = group, .alias = group->alias};
        item = &(*item)->next;
    }
    *item = pipe->items;
    return analyze_select(analyzer, &query, &select, &from, relation);
}

/* --- EXTEND, SET, DROP, RENAME --- */

static status pipe_extend(struct analyzer *analyzer, const struct ast_pipe *pipe,
                          struct relation *relation)
{
    struct ast_item all = {.at = pipe->at, .is_star = true, .next = pipe->items};
    struct ast_select select = {.at = pipe->at, .items = &all};
    struct relation from = *relation;
    TRY(analyze_select(analyzer, NULL, &select, &from, relation));
    return status_ok();
}

static status check_column(struct analyzer *analyzer, const struct relation *relation,
                           const char *name, uint32_t at)
{
    for (size_t i = 0; i < relation->operator_->column_count; i++)
        if (strcasecmp(relation->names[i].text, name) == 0)
            return status_ok();
    return sql_error(analyzer->analysis->text, at, "Unrecognized name: %s", name);
}

static status pipe_set(struct analyzer *analyzer, const struct ast_pipe *pipe,
                       struct relation *relation)
{
    struct binding binding = {.analyzer = analyzer, .relation = relation, .clause = "SET"};
    struct projection projection = {0};
    for (const struct ast_replace *set = pipe->replace; set != NULL; set = set->next)
        TRY(check_column(analyzer, relation, set->name, set->at));
    for (size_t i = 0; i < relation->operator_->column_count; i++) {
        const struct ast_replace *set = pipe->replace;
        while (set != NULL && strcasecmp(set->name, relation->names[i].text) != 0)
            set = set->next;
        if (set == NULL) {
            TRY(project_column(analyzer, &projection, relation, i));
            continue;
        }
        const struct sql_expr *expr;
        TRY(bind_expr(&binding, set->expr, &expr));
        TRY(project_expr(analyzer, &projection, expr, &relation->names[i]));
    }
    return end_projection(analyzer, &projection, relation);
}

static bool is_listed(const struct ast_name *names, const char *name)
{
    for (; names != NULL; names = names->next)
        if (strcasecmp(names->text, name) == 0)
            return true;
    return false;
}

static status pipe_drop(struct analyzer *analyzer, const struct ast_pipe *pipe,
                        struct relation *relation)
{
    struct projection projection = {0};
    for (const struct ast_name *name = pipe->names; name != NULL; name = name->next)
        TRY(check_column(analyzer, relation, name->text, name->at));
    for (size_t i = 0; i < relation->operator_->column_count; i++)
        if (!is_listed(pipe->names, relation->names[i].text))
            TRY(project_column(analyzer, &projection, relation, i));
    if (projection.exprs.count == 0)
        return sql_error(analyzer->analysis->text, pipe->at, "DROP leaves no columns");
    return end_projection(analyzer, &projection, relation);
}

/* The new name of a column; its own, if it keeps it. */
static const char *renamed(const struct ast_pipe *pipe, const char *name)
{
    for (const struct ast_replace *rename = pipe->replace; rename != NULL; rename = rename->next)
        if (strcasecmp(rename->expr->name->text, name) == 0)
            return rename->name;
    return name;
}

static status pipe_rename(struct analyzer *analyzer, const struct ast_pipe *pipe,
                          struct relation *relation)
{
    struct projection projection = {0};
    for (const struct ast_replace *rename = pipe->replace; rename != NULL; rename = rename->next) {
        const struct ast_expr *from = rename->expr;
        if (from->kind != AST_PATH || from->name->next != NULL)
            return sql_error(analyzer->analysis->text, from->at, "RENAME takes columns");
        TRY(check_column(analyzer, relation, from->name->text, from->at));
    }
    for (size_t i = 0; i < relation->operator_->column_count; i++) {
        struct name name = relation->names[i];
        const struct sql_expr *column;
        name.text = renamed(pipe, name.text);
        TRY(new_column(analyzer, pipe->at, relation->operator_->columns[i].type, i, &column));
        TRY(project_expr(analyzer, &projection, column, &name));
    }
    return end_projection(analyzer, &projection, relation);
}

/* --- the others --- */

static status pipe_as(struct analyzer *analyzer, const struct ast_pipe *pipe,
                      struct relation *relation)
{
    return qualify(analyzer, pipe->names->text, relation);
}

static status pipe_where(struct analyzer *analyzer, const struct ast_pipe *pipe,
                         struct relation *relation)
{
    struct binding binding = {.analyzer = analyzer, .relation = relation, .clause = "WHERE clause"};
    const struct sql_expr *condition;
    TRY(bind_condition(&binding, pipe->expr, &condition));
    return add_filter(analyzer, condition, relation);
}

static status pipe_limit(struct analyzer *analyzer, const struct ast_pipe *pipe,
                         struct relation *relation)
{
    return analyze_limit(analyzer, pipe->limit, pipe->offset, relation);
}

static status pipe_order(struct analyzer *analyzer, const struct ast_pipe *pipe,
                         struct relation *relation)
{
    return analyze_order(analyzer, pipe->order, relation);
}

static status pipe_distinct(struct analyzer *analyzer, const struct ast_pipe *pipe,
                            struct relation *relation)
{
    struct ast_item all = {.at = pipe->at, .is_star = true};
    const struct ast_select select = {.at = pipe->at, .is_distinct = true, .items = &all};
    struct relation from = *relation;
    return analyze_select(analyzer, NULL, &select, &from, relation);
}

/* A chain of joins whose first left side is what came before the pipe. */
static status pipe_joins(struct analyzer *analyzer, const struct ast_from *from,
                         struct relation *relation)
{
    if (from->kind != AST_FROM_JOIN)
        return status_ok();
    TRY(pipe_joins(analyzer, from->left, relation));
    struct relation left = *relation;
    return analyze_join(analyzer, from, &left, relation);
}

static status pipe_join(struct analyzer *analyzer, const struct ast_pipe *pipe,
                        struct relation *relation)
{
    return pipe_joins(analyzer, pipe->from, relation);
}

status analyze_pipes(struct analyzer *analyzer, const struct ast_pipe *pipes,
                     struct relation *relation)
{
    static status (*const kinds[])(struct analyzer * analyzer, const struct ast_pipe *pipe,
                                   struct relation *relation) = {
        [AST_PIPE_SELECT] = pipe_select,
        [AST_PIPE_EXTEND] = pipe_extend,
        [AST_PIPE_SET] = pipe_set,
        [AST_PIPE_DROP] = pipe_drop,
        [AST_PIPE_RENAME] = pipe_rename,
        [AST_PIPE_AS] = pipe_as,
        [AST_PIPE_WHERE] = pipe_where,
        [AST_PIPE_LIMIT] = pipe_limit,
        [AST_PIPE_AGGREGATE] = pipe_aggregate,
        [AST_PIPE_ORDER] = pipe_order,
        [AST_PIPE_DISTINCT] = pipe_distinct,
        [AST_PIPE_JOIN] = pipe_join,
    };
    for (; pipes != NULL; pipes = pipes->next)
        TRY(kinds[pipes->kind](analyzer, pipes, relation));
    return status_ok();
}
