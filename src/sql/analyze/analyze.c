/* Whole queries: see analyze.h. */
#include "sql/analyze/analyze_private.h"

/* --- clauses of a query in parentheses, and of pipes --- */

status analyze_order(struct analyzer *analyzer, const struct ast_order *order,
                     struct relation *relation)
{
    struct binding binding = {
        .analyzer = analyzer, .relation = relation, .clause = "ORDER BY clause"};
    struct sql_operator *sort = new_operator(analyzer, SQL_OP_SORT, relation->operator_);
    if (sort == NULL)
        return status_out_of_memory();
    TRY(bind_orders(&binding, order, &sort->orders, &sort->order_count));
    relation->operator_ = sort;
    return status_ok();
}

status analyze_limit(struct analyzer *analyzer, const struct ast_expr *limit,
                     const struct ast_expr *offset, struct relation *relation)
{
    struct sql_operator *operator_ = new_operator(analyzer, SQL_OP_LIMIT, relation->operator_);
    if (operator_ == NULL)
        return status_out_of_memory();
    TRY(bind_fixed(analyzer, limit, "LIMIT", &sql_int64, &operator_->limit));
    if (offset != NULL)
        TRY(bind_fixed(analyzer, offset, "OFFSET", &sql_int64, &operator_->offset));
    relation->operator_ = operator_;
    return status_ok();
}

static status analyze_body(struct analyzer *analyzer, const struct ast_query *query,
                           struct relation *out)
{
    struct relation from;
    switch (query->body) {
    case AST_BODY_QUERY:
        TRY(analyze_query(analyzer, query->query, out));
        break;
    case AST_BODY_FROM:
        TRY(analyze_from(analyzer, query->from, out));
        break;
    case AST_BODY_SELECT:
        TRY(query->select->from == NULL ? one_row(analyzer, &from)
                                        : analyze_from(analyzer, query->select->from, &from));
        return analyze_select(analyzer, query, query->select, &from, out);
    }
    return query->order == NULL ? status_ok() : analyze_order(analyzer, query->order, out);
}

status analyze_query(struct analyzer *analyzer, const struct ast_query *query, struct relation *out)
{
    TRY(analyze_body(analyzer, query, out));
    if (query->limit != NULL)
        TRY(analyze_limit(analyzer, query->limit, query->offset, out));
    return analyze_pipes(analyzer, query->pipes, out);
}

/* --- the result --- */

/* Leaves out columns that are only there to be ordered by, and the like. It also says where the
 * query's own columns begin: the planner looks up to a projection. */
static status show_visible(struct analyzer *analyzer, struct relation *relation)
{
    const struct sql_operator *input = relation->operator_;
    struct vector exprs = {0};
    struct vector columns = {0};
    for (size_t i = 0; i < input->column_count; i++) {
        const struct sql_expr *column;
        if (relation->names[i].is_hidden)
            continue;
        TRY(new_column(analyzer, 0, input->columns[i].type, i, &column));
        TRY(vector_add(&exprs, analyzer->arena, &column, sizeof column));
        TRY(vector_add(&columns, analyzer->arena, &input->columns[i], sizeof *input->columns));
    }
    struct sql_operator *project = new_operator(analyzer, SQL_OP_PROJECT, input);
    if (project == NULL)
        return status_out_of_memory();
    project->exprs = exprs.items;
    project->expr_count = project->column_count = exprs.count;
    project->columns = columns.items;
    relation->operator_ = project;
    return status_ok();
}

static bool selects_all(const struct ast_query *query)
{
    while (query->body == AST_BODY_QUERY)
        query = query->query;
    const struct ast_item *item = query->body == AST_BODY_SELECT ? query->select->items : NULL;
    while (item != NULL && !item->is_star)
        item = item->next;
    return item != NULL;
}

status sql_analyze(const struct sql_analysis *analysis, const struct ast_query *query,
                   struct sql_plan *out)
{
    struct analyzer analyzer = {.analysis = analysis, .arena = analysis->arena};
    struct relation relation;
    TRY(analyze_query(&analyzer, query, &relation));
    TRY(show_visible(&analyzer, &relation));
    *out = (struct sql_plan){.root = relation.operator_,
                             .parameters = analysis->parameters,
                             .parameter_count = analysis->parameter_count,
                             .call_count = analyzer.call_count,
                             .argument_count = analyzer.argument_count,
                             .table = analyzer.table,
                             .allows_incomplete_views = query->allows_incomplete_views,
                             .selects_all = selects_all(query)};
    return status_ok();
}
