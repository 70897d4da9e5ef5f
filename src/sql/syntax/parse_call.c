/* Calls: arguments of all kinds, what aggregates may have beside them, and windows. */
#include "sql/syntax/parser_private.h"

/* --- arguments --- */

static bool is_name(const struct token *token)
{
    return token->kind == TOKEN_IDENTIFIER || token->kind == TOKEN_QUOTED;
}

/* Whether what comes is (a, b) ->, without taking it. */
static status at_lambda_list(const struct parser *parser, bool *out)
{
    struct parser ahead = *parser;
    *out = false;
    if (!at_symbol(parser, "("))
        return status_ok();
    do {
        TRY(parser_advance(&ahead));
        if (!at_identifier(&ahead))
            return status_ok();
        TRY(parser_advance(&ahead));
    } while (at_symbol(&ahead, ","));
    if (!at_symbol(&ahead, ")"))
        return status_ok();
    TRY(parser_advance(&ahead));
    *out = at_symbol(&ahead, "->");
    return status_ok();
}

/* e -> body, or (e, i) -> body */
static status parse_lambda(struct parser *parser, struct ast_expr **out)
{
    TRY(new_expr(parser, AST_LAMBDA, parser->token.at, out));
    if (at_symbol(parser, "(")) {
        TRY(parser_advance(parser));
        TRY(parser_names(parser, &(*out)->name));
        TRY(parser_expect_symbol(parser, ")"));
    } else {
        TRY(parser_word(parser, &(*out)->name));
    }
    TRY(parser_expect_symbol(parser, "->"));
    TRY(parse_expr(parser, &(*out)->operands));
    return finish_expr(parser, *out);
}

/* name => value */
static status parse_named_argument(struct parser *parser, struct ast_expr **out)
{
    TRY(new_expr(parser, AST_NAMED_ARGUMENT, parser->token.at, out));
    TRY(parser_identifier(parser, &(*out)->text));
    TRY(parser_expect_symbol(parser, "=>"));
    TRY(parse_expr(parser, &(*out)->operands));
    return finish_expr(parser, *out);
}

static status parse_argument(struct parser *parser, struct ast_expr **out)
{
    struct token next;
    bool is_lambda;
    TRY(parser_peek(parser, &next));
    TRY(at_lambda_list(parser, &is_lambda));
    if (is_lambda || (is_name(&parser->token) && token_is_symbol(&next, "->")))
        return parse_lambda(parser, out);
    if (is_name(&parser->token) && token_is_symbol(&next, "=>"))
        return parse_named_argument(parser, out);
    return parse_expr(parser, out);
}

status parse_arguments(struct parser *parser, struct ast_expr **out)
{
    for (bool more = true; more; out = &(*out)->next) {
        TRY(parse_argument(parser, out));
        TRY(parser_take_symbol(parser, ",", &more));
    }
    return status_ok();
}

/* --- what an aggregate may have after them --- */

static status parse_nulls(struct parser *parser, enum ast_nulls *out)
{
    bool ignores, respects = false;
    TRY(parser_take_word(parser, "IGNORE", &ignores));
    if (!ignores)
        TRY(parser_take_word(parser, "RESPECT", &respects));
    if (!ignores && !respects)
        return status_ok();
    *out = ignores ? AST_NULLS_IGNORE : AST_NULLS_RESPECT;
    return parser_expect_word(parser, "NULLS");
}

/* HAVING MAX x, HAVING MIN x */
static status parse_having(struct parser *parser, struct ast_call *call)
{
    bool is_there, is_max;
    TRY(parser_take_word(parser, "HAVING", &is_there));
    if (!is_there)
        return status_ok();
    TRY(parser_take_word(parser, "MAX", &is_max));
    if (!is_max)
        TRY(parser_expect_word(parser, "MIN"));
    call->having = is_max ? AST_HAVING_MAX : AST_HAVING_MIN;
    return parse_expr(parser, &call->having_operand);
}

static status parse_modifiers(struct parser *parser, struct ast_call *call)
{
    bool has_order, has_limit;
    TRY(parse_nulls(parser, &call->nulls));
    TRY(parse_having(parser, call));
    TRY(parser_take_word(parser, "ORDER", &has_order));
    if (has_order) {
        TRY(parser_expect_word(parser, "BY"));
        TRY(parse_orders(parser, &call->order));
    }
    TRY(parser_take_word(parser, "LIMIT", &has_limit));
    return has_limit ? parse_expr(parser, &call->limit) : status_ok();
}

static status parse_over(struct parser *parser, struct ast_call *call)
{
    bool is_there;
    TRY(parser_take_word(parser, "OVER", &is_there));
    if (!is_there)
        return status_ok();
    if (at_symbol(parser, "("))
        return parse_window(parser, &call->over);
    TRY(parser_node(parser, sizeof *call->over, (void **)&call->over));
    call->over->at = parser->token.at;
    return parser_identifier(parser, &call->over->base);
}

static status parse_in_parentheses(struct parser *parser, struct ast_expr *expr)
{
    TRY(parser_expect_symbol(parser, "("));
    TRY(parser_take_symbol(parser, "*", &expr->call->is_star));
    if (!expr->call->is_star && !at_symbol(parser, ")")) {
        TRY(parser_take_word(parser, "DISTINCT", &expr->call->is_distinct));
        TRY(parse_arguments(parser, &expr->operands));
        TRY(parse_modifiers(parser, expr->call));
    }
    return parser_expect_symbol(parser, ")");
}

status parse_call(struct parser *parser, struct ast_name *name, struct ast_expr **out)
{
    TRY(new_expr(parser, AST_CALL, name->at, out));
    (*out)->name = name;
    TRY(parser_node(parser, sizeof *(*out)->call, (void **)&(*out)->call));
    TRY(parse_in_parentheses(parser, *out));
    TRY(parse_over(parser, (*out)->call));
    return finish_expr(parser, *out);
}

/* --- orders --- */

static status parse_direction(struct parser *parser, struct ast_order *order)
{
    bool is_ascending, has_nulls, is_first;
    TRY(parser_take_word(parser, "ASC", &is_ascending));
    if (!is_ascending)
        TRY(parser_take_word(parser, "DESC", &order->is_descending));
    order->is_said = is_ascending || order->is_descending;
    TRY(parser_take_word(parser, "NULLS", &has_nulls));
    if (!has_nulls)
        return status_ok();
    TRY(parser_take_word(parser, "FIRST", &is_first));
    order->nulls = is_first ? AST_NULLS_FIRST : AST_NULLS_LAST;
    order->is_said = true;
    return is_first ? status_ok() : parser_expect_word(parser, "LAST");
}

status parse_order(struct parser *parser, struct ast_expr *expr, struct ast_order **out)
{
    TRY(parser_node(parser, sizeof **out, (void **)out));
    (*out)->expr = expr;
    (*out)->at = expr->at;
    return parse_direction(parser, *out);
}

status parse_orders(struct parser *parser, struct ast_order **out)
{
    for (bool more = true; more; out = &(*out)->next) {
        struct ast_expr *expr;
        TRY(parse_expr(parser, &expr));
        TRY(parse_order(parser, expr, out));
        TRY(parser_take_symbol(parser, ",", &more));
    }
    return status_ok();
}

/* --- windows --- */

static status parse_bound(struct parser *parser, struct ast_bound *bound)
{
    bool is_unbounded, is_current, is_preceding;
    TRY(parser_take_word(parser, "UNBOUNDED", &is_unbounded));
    TRY(parser_take_word(parser, "CURRENT", &is_current));
    if (is_current) {
        bound->kind = AST_CURRENT_ROW;
        return parser_expect_word(parser, "ROW");
    }
    if (!is_unbounded)
        TRY(parse_expr(parser, &bound->offset));
    TRY(parser_take_word(parser, "PRECEDING", &is_preceding));
    if (is_preceding)
        bound->kind = is_unbounded ? AST_UNBOUNDED_PRECEDING : AST_PRECEDING;
    else
        bound->kind = is_unbounded ? AST_UNBOUNDED_FOLLOWING : AST_FOLLOWING;
    return is_preceding ? status_ok() : parser_expect_word(parser, "FOLLOWING");
}

/* ROWS BETWEEN 1 PRECEDING AND CURRENT ROW; with one bound, the current row is the other. */
static status parse_frame(struct parser *parser, struct ast_window *window)
{
    bool is_rows, is_range, has_both;
    TRY(parser_take_word(parser, "ROWS", &is_rows));
    TRY(parser_take_word(parser, "RANGE", &is_range));
    if (!is_rows && !is_range)
        return status_ok();
    window->frame = is_rows ? AST_FRAME_ROWS : AST_FRAME_RANGE;
    window->end.kind = AST_CURRENT_ROW;
    TRY(parser_take_word(parser, "BETWEEN", &has_both));
    TRY(parse_bound(parser, &window->start));
    if (!has_both)
        return status_ok();
    TRY(parser_expect_word(parser, "AND"));
    return parse_bound(parser, &window->end);
}

status parse_window(struct parser *parser, struct ast_window **out)
{
    bool has_partition, has_order;
    TRY(parser_node(parser, sizeof **out, (void **)out));
    (*out)->at = parser->token.at;
    TRY(parser_expect_symbol(parser, "("));
    if (at_identifier(parser))
        TRY(parser_identifier(parser, &(*out)->base));
    TRY(parser_take_word(parser, "PARTITION", &has_partition));
    if (has_partition) {
        TRY(parser_expect_word(parser, "BY"));
        TRY(parse_exprs(parser, &(*out)->partition));
    }
    TRY(parser_take_word(parser, "ORDER", &has_order));
    if (has_order) {
        TRY(parser_expect_word(parser, "BY"));
        TRY(parse_orders(parser, &(*out)->order));
    }
    TRY(parse_frame(parser, *out));
    return parser_expect_symbol(parser, ")");
}
