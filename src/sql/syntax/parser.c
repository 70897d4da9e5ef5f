/* What the parser's files share, and types: see parser_private.h. */
#include "base/utf8.h"
#include "sql/syntax/parser_private.h"

#include <stdio.h>

/* --- tokens --- */

status parser_advance(struct parser *parser)
{
    return lexer_next(&parser->lexer, &parser->token);
}

status parser_peek(const struct parser *parser, struct token *out)
{
    struct lexer ahead = parser->lexer;
    return lexer_next(&ahead, out);
}

status parser_take_word(struct parser *parser, const char *word, bool *taken)
{
    *taken = at_word(parser, word);
    return *taken ? parser_advance(parser) : status_ok();
}

status parser_take_symbol(struct parser *parser, const char *symbol, bool *taken)
{
    *taken = at_symbol(parser, symbol);
    return *taken ? parser_advance(parser) : status_ok();
}

status parser_expect_word(struct parser *parser, const char *word)
{
    if (at_word(parser, word))
        return parser_advance(parser);
    char what[64];
    snprintf(what, sizeof what, "keyword %s", word);
    return parser_expected(parser, what);
}

status parser_expect_symbol(struct parser *parser, const char *symbol)
{
    if (at_symbol(parser, symbol))
        return parser_advance(parser);
    char what[8];
    snprintf(what, sizeof what, "\"%s\"", symbol);
    return parser_expected(parser, what);
}

/* --- errors --- */

static status complain(const struct parser *parser, const char *before, const char *expected,
                       const char *between)
{
    struct buffer token = {0};
    token_describe(&parser->token, parser->lexer.text, &token);
    buffer_append_byte(&token, '\0');
    status error = token.failed
                       ? status_out_of_memory()
                       : sql_error(parser->lexer.text, parser->token.at, "Syntax error: %s%s%s%s",
                                   before, expected, between, (const char *)token.data);
    buffer_free(&token);
    return error;
}

status parser_unexpected(const struct parser *parser)
{
    return complain(parser, "Unexpected ", "", "");
}

status parser_expected(const struct parser *parser, const char *what)
{
    return complain(parser, "Expected ", what, " but got ");
}

status parser_refuse(const struct parser *parser, const char *what)
{
    return sql_error(parser->lexer.text, parser->token.at, "%s is not supported", what);
}

static status too_deep(const struct parser *parser, uint32_t at)
{
    return sql_error(parser->lexer.text, at, "Syntax error: The query is nested too deeply");
}

status parser_enter(struct parser *parser)
{
    if (parser->nesting >= SQL_NESTING_LIMIT)
        return too_deep(parser, parser->token.at);
    parser->nesting++;
    return status_ok();
}

/* --- nodes --- */

status parser_node(struct parser *parser, size_t size, void **out)
{
    *out = arena_zalloc(parser->arena, size);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

status new_expr(struct parser *parser, enum ast_kind kind, uint32_t at, struct ast_expr **out)
{
    TRY(parser_node(parser, sizeof **out, (void **)out));
    (*out)->kind = kind;
    (*out)->at = at;
    return status_ok();
}

status finish_expr(struct parser *parser, struct ast_expr *expr)
{
    uint16_t deepest = 0;
    for (const struct ast_expr *operand = expr->operands; operand != NULL; operand = operand->next)
        if (operand->depth > deepest)
            deepest = operand->depth;
    if (deepest >= SQL_DEPTH_LIMIT)
        return too_deep(parser, expr->at);
    expr->depth = deepest + 1;
    return status_ok();
}

/* --- names --- */

status parser_identifier(struct parser *parser, const char **out)
{
    if (!at_identifier(parser))
        return parser_unexpected(parser);
    *out = arena_string(parser->arena, parser->token.text);
    return *out == NULL ? status_out_of_memory() : parser_advance(parser);
}

status parser_alias(struct parser *parser, const char **out)
{
    bool is_said;
    *out = NULL;
    TRY(parser_take_word(parser, "AS", &is_said));
    return is_said || at_identifier(parser) ? parser_identifier(parser, out) : status_ok();
}

status parser_word(struct parser *parser, struct ast_name **out)
{
    if (!at_identifier(parser) && parser->token.kind != TOKEN_KEYWORD)
        return parser_unexpected(parser);
    TRY(parser_node(parser, sizeof **out, (void **)out));
    (*out)->at = parser->token.at;
    (*out)->text = arena_string(parser->arena, parser->token.text);
    return (*out)->text == NULL ? status_out_of_memory() : parser_advance(parser);
}

status parser_names(struct parser *parser, struct ast_name **out)
{
    for (bool more = true; more; out = &(*out)->next) {
        if (!at_identifier(parser))
            return parser_unexpected(parser);
        TRY(parser_word(parser, out));
        TRY(parser_take_symbol(parser, ",", &more));
    }
    return status_ok();
}

/* --- types --- */

/* The end of a type's list. `>>` closes two: one of them is left in hand. */
static status expect_greater(struct parser *parser)
{
    if (!at_symbol(parser, ">>"))
        return parser_expect_symbol(parser, ">");
    parser->token.at++;
    parser->token.text = bytes_from(parser->token.text, 1);
    return status_ok();
}

/* A field of a struct has a name if two words follow each other. */
static status parse_field(struct parser *parser, struct ast_type **out)
{
    const char *name = "";
    struct token next;
    TRY(parser_peek(parser, &next));
    bool is_named =
        at_identifier(parser) &&
        (next.kind == TOKEN_IDENTIFIER || next.kind == TOKEN_QUOTED || next.kind == TOKEN_KEYWORD);
    if (is_named)
        TRY(parser_identifier(parser, &name));
    TRY(parse_type(parser, out));
    (*out)->field = name;
    return status_ok();
}

static status parse_type_parts(struct parser *parser, struct ast_type *type)
{
    struct ast_type **part = &type->parts;
    TRY(parser_advance(parser));
    TRY(parser_expect_symbol(parser, "<"));
    bool more = !at_symbol(parser, ">") || type->kind != AST_TYPE_STRUCT;
    for (; more; part = &(*part)->next) {
        TRY(type->kind == AST_TYPE_STRUCT ? parse_field(parser, part) : parse_type(parser, part));
        TRY(parser_take_symbol(parser, ",", &more));
    }
    return expect_greater(parser);
}

static status parse_type_name(struct parser *parser, struct ast_type *type)
{
    if (!at_identifier(parser))
        return parser_unexpected(parser);
    struct ast_name **name = &type->name;
    for (bool more = true; more; name = &(*name)->next) {
        TRY(parser_word(parser, name));
        TRY(parser_take_symbol(parser, ".", &more));
    }
    return status_ok();
}

static enum ast_type_kind type_kind(const struct parser *parser)
{
    if (at_word(parser, "ARRAY"))
        return AST_TYPE_ARRAY;
    if (at_word(parser, "STRUCT"))
        return AST_TYPE_STRUCT;
    return at_word(parser, "MAP") ? AST_TYPE_MAP : AST_TYPE_NAMED;
}

status parse_type(struct parser *parser, struct ast_type **out)
{
    TRY(parser_enter(parser));
    TRY(parser_node(parser, sizeof **out, (void **)out));
    (*out)->kind = type_kind(parser);
    (*out)->at = parser->token.at;
    (*out)->field = "";
    TRY((*out)->kind == AST_TYPE_NAMED ? parse_type_name(parser, *out)
                                       : parse_type_parts(parser, *out));
    parser->nesting--;
    return status_ok();
}

/* --- from the outside --- */

static status begin(struct parser *parser)
{
    bytes text = parser->lexer.text;
    if (text.size > SQL_QUERY_SIZE_LIMIT)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "The query has %zu bytes, more than the %d that one may have", text.size,
                           SQL_QUERY_SIZE_LIMIT);
    if (!utf8_is_valid(text))
        return status_make(STATUS_INVALID_ARGUMENT,
                           "Query string contains invalid UTF-8: it must be valid UTF-8");
    return parser_advance(parser);
}

static status expect_end(struct parser *parser)
{
    return parser->token.kind == TOKEN_END ? status_ok() : parser_expected(parser, "end of input");
}

static status not_supported(const struct parser *parser, struct token at, const char *what)
{
    return sql_error(parser->lexer.text, at.at, "Statement not supported: %s", what);
}

/* CREATE [OR REPLACE] [MATERIALIZED] VIEW, or of something else. */
static status refuse_create(struct parser *parser)
{
    struct token create = parser->token;
    bool is_or, is_materialized;
    TRY(parser_advance(parser));
    TRY(parser_take_word(parser, "OR", &is_or));
    if (is_or && at_word(parser, "REPLACE"))
        TRY(parser_advance(parser));
    TRY(parser_take_word(parser, "MATERIALIZED", &is_materialized));
    if (!at_word(parser, "VIEW"))
        return not_supported(parser, create, "CreateTableStatement");
    return not_supported(parser, create,
                         is_materialized ? "CreateMaterializedViewStatement"
                                         : "CreateViewStatement");
}

/* Statements that are none of ours, as GoogleSQL calls them. */
static status check_is_query(struct parser *parser)
{
    static const char *const others[][2] = {
        {"INSERT", "InsertStatement"},     {"UPDATE", "UpdateStatement"},
        {"DELETE", "DeleteStatement"},     {"MERGE", "MergeStatement"},
        {"DROP", "DropStatement"},         {"ALTER", "AlterTableStatement"},
        {"TRUNCATE", "TruncateStatement"}, {"EXPLAIN", "ExplainStatement"},
        {"GRANT", "GrantStatement"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (at_word(parser, others[i][0]))
            return not_supported(parser, parser->token, others[i][1]);
    if (at_word(parser, "CREATE"))
        return refuse_create(parser);
    return at_query(parser) ? status_ok() : parser_unexpected(parser);
}

status sql_parse(bytes text, struct arena *arena, struct ast_query **out)
{
    struct parser parser = {.lexer = {.text = text, .arena = arena}, .arena = arena};
    bool ends;
    TRY(begin(&parser));
    TRY(parse_hint(&parser));
    TRY(check_is_query(&parser));
    TRY(parse_query(&parser, out));
    (*out)->allows_incomplete_views = parser.allows_incomplete_views;
    TRY(parser_take_symbol(&parser, ";", &ends));
    return expect_end(&parser);
}

status sql_parse_type(bytes text, struct arena *arena, struct ast_type **out)
{
    struct parser parser = {.lexer = {.text = text, .arena = arena}, .arena = arena};
    TRY(begin(&parser));
    TRY(parse_type(&parser, out));
    return expect_end(&parser);
}
