/* Pipe syntax: FROM t |> WHERE … |> AGGREGATE … */
#include "sql/syntax/parser_private.h"

static status parse_pipe_select(struct parser *parser, struct ast_pipe *pipe)
{
    pipe->kind = AST_PIPE_SELECT;
    TRY(parser_node(parser, sizeof *pipe->select, (void **)&pipe->select));
    pipe->select->at = pipe->at;
    TRY(parser_take_word(parser, "DISTINCT", &pipe->select->is_distinct));
    return parse_items(parser, &pipe->select->items);
}

static status parse_pipe_extend(struct parser *parser, struct ast_pipe *pipe)
{
    pipe->kind = AST_PIPE_EXTEND;
    return parse_items(parser, &pipe->items);
}

/* SET a = x, b = y */
static status parse_pipe_set(struct parser *parser, struct ast_pipe *pipe)
{
    struct ast_replace **set = &pipe->replace;
    pipe->kind = AST_PIPE_SET;
    for (bool more = true; more; set = &(*set)->next) {
        TRY(parser_node(parser, sizeof **set, (void **)set));
        (*set)->at = parser->token.at;
        TRY(parser_identifier(parser, &(*set)->name));
        TRY(parser_expect_symbol(parser, "="));
        TRY(parse_expr(parser, &(*set)->expr));
        TRY(parser_take_symbol(parser, ",", &more));
    }
    return status_ok();
}

static status parse_pipe_drop(struct parser *parser, struct ast_pipe *pipe)
{
    pipe->kind = AST_PIPE_DROP;
    return parser_names(parser, &pipe->names);
}

/* RENAME a AS b, c AS d */
static status parse_pipe_rename(struct parser *parser, struct ast_pipe *pipe)
{
    pipe->kind = AST_PIPE_RENAME;
    return parse_replacements(parser, &pipe->replace);
}

static status parse_pipe_as(struct parser *parser, struct ast_pipe *pipe)
{
    pipe->kind = AST_PIPE_AS;
    if (!at_identifier(parser))
        return parser_unexpected(parser);
    return parser_word(parser, &pipe->names);
}

static status parse_pipe_where(struct parser *parser, struct ast_pipe *pipe)
{
    pipe->kind = AST_PIPE_WHERE;
    return parse_expr(parser, &pipe->expr);
}

static status parse_pipe_limit(struct parser *parser, struct ast_pipe *pipe)
{
    pipe->kind = AST_PIPE_LIMIT;
    return parse_limit(parser, &pipe->limit, &pipe->offset);
}

/* x AS a DESC, …: what is grouped by, and of those that say it, in which order they come. */
static status parse_pipe_groups(struct parser *parser, struct ast_pipe *pipe)
{
    struct ast_expr **group = &pipe->group;
    struct ast_order **order = &pipe->order;
    for (bool more = true; more; group = &(*group)->next) {
        TRY(parse_expr(parser, group));
        TRY(parser_alias(parser, &(*group)->alias));
        TRY(parse_order(parser, *group, order));
        if ((*order)->is_said || pipe->groups_are_ordered)
            order = &(*order)->next;
        else
            *order = NULL;
        TRY(parser_take_symbol(parser, ",", &more));
    }
    return status_ok();
}

static status parse_pipe_aggregate(struct parser *parser, struct ast_pipe *pipe)
{
    bool has_groups;
    pipe->kind = AST_PIPE_AGGREGATE;
    if (!at_word(parser, "GROUP"))
        TRY(parse_items(parser, &pipe->items));
    TRY(parser_take_word(parser, "GROUP", &has_groups));
    if (!has_groups)
        return status_ok();
    TRY(parser_take_word(parser, "AND", &pipe->groups_are_ordered));
    if (pipe->groups_are_ordered)
        TRY(parser_expect_word(parser, "ORDER"));
    TRY(parser_expect_word(parser, "BY"));
    return parse_pipe_groups(parser, pipe);
}

static status parse_pipe_order(struct parser *parser, struct ast_pipe *pipe)
{
    pipe->kind = AST_PIPE_ORDER;
    TRY(parser_expect_word(parser, "BY"));
    return parse_orders(parser, &pipe->order);
}

static status parse_pipe_distinct(struct parser *parser, struct ast_pipe *pipe)
{
    (void)parser;
    pipe->kind = AST_PIPE_DISTINCT;
    return status_ok();
}

static status parse_pipe_join(struct parser *parser, struct ast_pipe *pipe, bool *is_join)
{
    *is_join = at_word(parser, "CROSS") || at_word(parser, "LEFT") || at_word(parser, "INNER") ||
               at_word(parser, "JOIN");
    if (!*is_join)
        return status_ok();
    pipe->kind = AST_PIPE_JOIN; /* with what came before as its left side */
    TRY(parser_node(parser, sizeof *pipe->from, (void **)&pipe->from));
    pipe->from->at = pipe->at;
    return parse_joins(parser, &pipe->from);
}

static status parse_pipe(struct parser *parser, struct ast_pipe *pipe)
{
    static const struct {
        const char *word;
        status (*parse)(struct parser *parser, struct ast_pipe *pipe);
    } kinds[] = {
        {"SELECT", parse_pipe_select},
        {"EXTEND", parse_pipe_extend},
        {"SET", parse_pipe_set},
        {"DROP", parse_pipe_drop},
        {"RENAME", parse_pipe_rename},
        {"AS", parse_pipe_as},
        {"WHERE", parse_pipe_where},
        {"LIMIT", parse_pipe_limit},
        {"AGGREGATE", parse_pipe_aggregate},
        {"ORDER", parse_pipe_order},
        {"DISTINCT", parse_pipe_distinct},
    };
    bool is_join;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (at_word(parser, kinds[i].word)) {
            TRY(parser_advance(parser));
            return kinds[i].parse(parser, pipe);
        }
    TRY(parse_pipe_join(parser, pipe, &is_join));
    return is_join ? status_ok() : parser_unexpected(parser);
}

status parse_pipes(struct parser *parser, struct ast_pipe **out)
{
    bool more;
    for (;; out = &(*out)->next) {
        TRY(parser_take_symbol(parser, "|>", &more));
        if (!more)
            return status_ok();
        TRY(parser_node(parser, sizeof **out, (void **)out));
        (*out)->at = parser->token.at;
        TRY(parse_pipe(parser, *out));
    }
}
