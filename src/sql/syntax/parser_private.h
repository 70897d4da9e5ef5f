/* What the parser's files share: the place in the text, and how tokens are taken.
 *
 * A function that parses something leaves the parser at the first token after it. It is recursive
 * descent with one token in hand; where one is not enough, parser_peek looks further. */
#ifndef TRESTLE_SQL_SYNTAX_PARSER_PRIVATE_H
#define TRESTLE_SQL_SYNTAX_PARSER_PRIVATE_H

#include "sql/syntax/error.h"
#include "sql/syntax/lexer.h"
#include "sql/syntax/parser.h"

struct parser {
    struct lexer lexer; /* after `token` */
    struct token token; /* the one in hand */
    struct arena *arena;
    uint32_t nesting;
    bool allows_incomplete_views; /* a hint that was met says so */
};

/* --- tokens --- */

static inline bool at_word(const struct parser *parser, const char *word)
{
    return token_is_word(&parser->token, word);
}

static inline bool at_symbol(const struct parser *parser, const char *symbol)
{
    return token_is_symbol(&parser->token, symbol);
}

static inline bool at_identifier(const struct parser *parser)
{
    return parser->token.kind == TOKEN_IDENTIFIER || parser->token.kind == TOKEN_QUOTED;
}

status parser_advance(struct parser *parser);

/* The token after the one in hand. */
status parser_peek(const struct parser *parser, struct token *out);

/* Takes the word or symbol if it is there: `*taken` says so. */
status parser_take_word(struct parser *parser, const char *word, bool *taken);
status parser_take_symbol(struct parser *parser, const char *symbol, bool *taken);

/* Takes it, or fails: `Expected keyword BY but got …`, `Expected ")" but got …`. */
status parser_expect_word(struct parser *parser, const char *word);
status parser_expect_symbol(struct parser *parser, const char *symbol);

/* `Syntax error: Unexpected …`, `Syntax error: Expected … but got …`. */
status parser_unexpected(const struct parser *parser);
status parser_expected(const struct parser *parser, const char *what);

/* `… is not supported [at …]`, at the token in hand. */
status parser_refuse(const struct parser *parser, const char *what);

/* Goes one level deeper; the caller leaves it by `parser->nesting--`. INVALID_ARGUMENT if that is
 * too deep. */
status parser_enter(struct parser *parser);

/* --- names --- */

status parser_identifier(struct parser *parser, const char **out);

/* [AS] alias, if there is one: else NULL. */
status parser_alias(struct parser *parser, const char **out);

/* Any word, also a reserved one, as after a dot. */
status parser_word(struct parser *parser, struct ast_name **out);

/* a, b, c */
status parser_names(struct parser *parser, struct ast_name **out);

/* --- what refers to each other --- */

status parse_expr(struct parser *parser, struct ast_expr **out);
status parse_exprs(struct parser *parser, struct ast_expr **out);   /* a, b, c */
status parse_postfix(struct parser *parser, struct ast_expr **out); /* what operators join */
status parse_type(struct parser *parser, struct ast_type **out);
status parse_query(struct parser *parser, struct ast_query **out);
status parse_parenthesized_query(struct parser *parser, struct ast_query **out);
status parse_orders(struct parser *parser, struct ast_order **out); /* after ORDER BY */
status parse_order(struct parser *parser, struct ast_expr *expr, struct ast_order **out);
status parse_window(struct parser *parser, struct ast_window **out); /* in parentheses */

/* Whether a query begins here: SELECT, FROM, WITH, or one in parentheses. */
bool at_query(const struct parser *parser);

status parse_arguments(struct parser *parser, struct ast_expr **out);

/* Parses a call: a name, or a word that is a function's, with parentheses. */
status parse_call(struct parser *parser, struct ast_name *name, struct ast_expr **out);

/* --- queries --- */

status parse_items(struct parser *parser, struct ast_item **out);
status parse_select(struct parser *parser, struct ast_select **out);
status parse_from(struct parser *parser, struct ast_from **out);
status parse_joins(struct parser *parser, struct ast_from **from);
status parse_limit(struct parser *parser, struct ast_expr **limit, struct ast_expr **offset);
status parse_pipes(struct parser *parser, struct ast_pipe **out);
status parse_replacements(struct parser *parser, struct ast_replace **out);

/* --- nodes --- */

/* Zeroed; in the arena. */
status parser_node(struct parser *parser, size_t size, void **out);

status new_expr(struct parser *parser, enum ast_kind kind, uint32_t at, struct ast_expr **out);

/* Ends an expression whose operands are all there: INVALID_ARGUMENT if it is too deep. */
status finish_expr(struct parser *parser, struct ast_expr *expr);

/* A hint, if there is one. */
status parse_hint(struct parser *parser);

#endif
