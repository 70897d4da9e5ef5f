/* Expressions: operators by precedence, and what they stand between.
 *
 * From the loosest to the tightest: OR; AND; NOT; comparisons, which do not follow each other; |;
 * ^; &; << >>; + -; * / ||; the signs - + ~; the dot and the subscript. */
#include "sql/syntax/parser_private.h"

enum level {
    LEVEL_OR = 1,
    LEVEL_AND,
    LEVEL_NOT,
    LEVEL_COMPARISON,
    LEVEL_BIT_OR,
    LEVEL_BIT_XOR,
    LEVEL_BIT_AND,
    LEVEL_SHIFT,
    LEVEL_SUM,
    LEVEL_PRODUCT,
    LEVEL_UNARY,
};

static const struct infix {
    const char *symbol;
    enum level level;
    enum ast_operator operator_;
} infixes[] = {
    {"OR", LEVEL_OR, AST_OR},
    {"AND", LEVEL_AND, AST_AND},
    {"=", LEVEL_COMPARISON, AST_EQUAL},
    {"!=", LEVEL_COMPARISON, AST_NOT_EQUAL},
    {"<>", LEVEL_COMPARISON, AST_NOT_EQUAL},
    {"<", LEVEL_COMPARISON, AST_LESS},
    {"<=", LEVEL_COMPARISON, AST_LESS_EQUAL},
    {">", LEVEL_COMPARISON, AST_GREATER},
    {">=", LEVEL_COMPARISON, AST_GREATER_EQUAL},
    {"|", LEVEL_BIT_OR, AST_BIT_OR},
    {"^", LEVEL_BIT_XOR, AST_BIT_XOR},
    {"&", LEVEL_BIT_AND, AST_BIT_AND},
    {"<<", LEVEL_SHIFT, AST_SHIFT_LEFT},
    {">>", LEVEL_SHIFT, AST_SHIFT_RIGHT},
    {"+", LEVEL_SUM, AST_ADD},
    {"-", LEVEL_SUM, AST_SUBTRACT},
    {"*", LEVEL_PRODUCT, AST_MULTIPLY},
    {"/", LEVEL_PRODUCT, AST_DIVIDE},
    {"||", LEVEL_PRODUCT, AST_CONCAT},
};

static status parse_level(struct parser *parser, enum level level, struct ast_expr **out);

static const struct infix *infix_at(const struct parser *parser)
{
    for (size_t i = 0; i < sizeof infixes / sizeof *infixes; i++)
        if (at_symbol(parser, infixes[i].symbol) || at_word(parser, infixes[i].symbol))
            return &infixes[i];
    return NULL;
}

/* --- comparisons in words --- */

static bool at_word_comparison(const struct parser *parser)
{
    return at_word(parser, "LIKE") || at_word(parser, "IN") || at_word(parser, "BETWEEN") ||
           at_word(parser, "IS") || at_word(parser, "NOT");
}

static status parse_quantified_like(struct parser *parser, struct ast_expr *like)
{
    like->kind = AST_LIKE_QUANTIFIED;
    like->quantifier = at_word(parser, "ALL") ? AST_ALL : AST_ANY;
    TRY(parser_advance(parser));
    if (at_word(parser, "UNNEST"))
        return parser_refuse(parser, "LIKE ANY UNNEST");
    TRY(parser_expect_symbol(parser, "("));
    TRY(parse_exprs(parser, &like->operands->next));
    return parser_expect_symbol(parser, ")");
}

static status parse_like(struct parser *parser, struct ast_expr *like)
{
    bool is_quantified =
        at_word(parser, "ANY") || at_word(parser, "SOME") || at_word(parser, "ALL");
    if (is_quantified)
        return parse_quantified_like(parser, like);
    like->kind = AST_BINARY;
    like->operator_ = AST_LIKE;
    return parse_level(parser, LEVEL_BIT_OR, &like->operands->next);
}

static status parse_in(struct parser *parser, struct ast_expr *in)
{
    bool is_unnest;
    TRY(parser_take_word(parser, "UNNEST", &is_unnest));
    in->kind = is_unnest ? AST_IN_UNNEST : AST_IN;
    TRY(parser_expect_symbol(parser, "("));
    if (is_unnest) {
        TRY(parse_expr(parser, &in->operands->next));
    } else if (at_query(parser) && !at_symbol(parser, "(")) {
        in->kind = AST_IN_QUERY;
        TRY(parse_query(parser, &in->query));
    } else {
        TRY(parse_exprs(parser, &in->operands->next));
    }
    return parser_expect_symbol(parser, ")");
}

static status parse_between(struct parser *parser, struct ast_expr *between)
{
    struct ast_expr **low = &between->operands->next;
    between->kind = AST_BETWEEN;
    TRY(parse_level(parser, LEVEL_BIT_OR, low));
    const struct infix *infix = infix_at(parser);
    if (infix != NULL && infix->level == LEVEL_COMPARISON)
        return sql_error(parser->lexer.text, parser->token.at,
                         "Syntax error: Expression in BETWEEN must be parenthesized");
    TRY(parser_expect_word(parser, "AND"));
    return parse_level(parser, LEVEL_BIT_OR, &(*low)->next);
}

static status parse_is(struct parser *parser, struct ast_expr *is)
{
    static const char *const predicates[] = {"NULL", "TRUE", "FALSE", "UNKNOWN"};
    TRY(parser_take_word(parser, "NOT", &is->is_not));
    for (enum ast_predicate i = AST_IS_NULL; i <= AST_IS_UNKNOWN; i++)
        if (at_word(parser, predicates[i])) {
            is->kind = AST_IS;
            is->predicate = i;
            return parser_advance(parser);
        }
    if (!at_word(parser, "DISTINCT"))
        return parser_unexpected(parser);
    is->kind = AST_IS_DISTINCT;
    TRY(parser_advance(parser));
    TRY(parser_expect_word(parser, "FROM"));
    return parse_level(parser, LEVEL_BIT_OR, &is->operands->next);
}

static status parse_word_comparison(struct parser *parser, struct ast_expr *left,
                                    struct ast_expr **out)
{
    bool is_like = false;
    bool is_in = false;
    bool is_between = false;
    TRY(new_expr(parser, AST_BINARY, left->at, out));
    (*out)->operands = left;
    if (at_word(parser, "IS")) {
        TRY(parser_advance(parser));
        return parse_is(parser, *out);
    }
    TRY(parser_take_word(parser, "NOT", &(*out)->is_not));
    TRY(parser_take_word(parser, "LIKE", &is_like));
    if (is_like)
        return parse_like(parser, *out);
    TRY(parser_take_word(parser, "IN", &is_in));
    if (is_in)
        return parse_in(parser, *out);
    TRY(parser_take_word(parser, "BETWEEN", &is_between));
    return is_between ? parse_between(parser, *out) : parser_unexpected(parser);
}

/* --- operators --- */

/* More operands of AND or OR, as long as it is the same one. */
static status parse_chain(struct parser *parser, const struct infix *infix, struct ast_expr *chain)
{
    struct ast_expr *last = chain->operands;
    bool more = true;
    while (more) {
        TRY(parse_level(parser, infix->level + 1, &last->next));
        last = last->next;
        TRY(parser_take_word(parser, infix->symbol, &more));
    }
    return status_ok();
}

static status parse_infix(struct parser *parser, const struct infix *infix, struct ast_expr *left,
                          struct ast_expr **out)
{
    TRY(new_expr(parser, AST_BINARY, left->at, out));
    (*out)->operator_ = infix->operator_;
    (*out)->operands = left;
    TRY(parser_advance(parser));
    if (infix->level <= LEVEL_AND)
        return parse_chain(parser, infix, *out);
    return parse_level(parser, infix->level + 1, &left->next);
}

static status parse_not(struct parser *parser, struct ast_expr **out)
{
    TRY(parser_enter(parser));
    TRY(new_expr(parser, AST_UNARY, parser->token.at, out));
    (*out)->operator_ = AST_NOT;
    TRY(parser_advance(parser));
    TRY(parse_level(parser, LEVEL_NOT, &(*out)->operands));
    parser->nesting--;
    return finish_expr(parser, *out);
}

static status parse_unary(struct parser *parser, struct ast_expr **out)
{
    bool is_minus = at_symbol(parser, "-");
    if (!is_minus && !at_symbol(parser, "+") && !at_symbol(parser, "~"))
        return parse_postfix(parser, out);
    TRY(parser_enter(parser));
    TRY(new_expr(parser, AST_UNARY, parser->token.at, out));
    (*out)->operator_ = is_minus ? AST_NEGATE : at_symbol(parser, "+") ? AST_PLUS : AST_BIT_NOT;
    TRY(parser_advance(parser));
    TRY(parse_unary(parser, &(*out)->operands));
    parser->nesting--;
    return finish_expr(parser, *out);
}

/* An expression of operators that bind at least as tightly as the level. */
static status parse_level(struct parser *parser, enum level level, struct ast_expr **out)
{
    struct ast_expr *left;
    bool is_compared = false; /* comparisons do not follow each other */
    bool is_not = level <= LEVEL_NOT && at_word(parser, "NOT");
    TRY(is_not ? parse_not(parser, &left) : parse_unary(parser, &left));
    for (;;) {
        const struct infix *infix = infix_at(parser);
        bool in_words = infix == NULL && at_word_comparison(parser);
        enum level here = infix != NULL ? infix->level : LEVEL_COMPARISON;
        if ((infix == NULL && !in_words) || here < level)
            break;
        if (here == LEVEL_COMPARISON && is_compared)
            return parser_unexpected(parser);
        struct ast_expr *whole;
        TRY(in_words ? parse_word_comparison(parser, left, &whole)
                     : parse_infix(parser, infix, left, &whole));
        TRY(finish_expr(parser, whole));
        is_compared = here == LEVEL_COMPARISON;
        left = whole;
    }
    *out = left;
    return status_ok();
}

status parse_expr(struct parser *parser, struct ast_expr **out)
{
    TRY(parser_enter(parser));
    TRY(parse_level(parser, LEVEL_OR, out));
    parser->nesting--;
    return status_ok();
}

status parse_exprs(struct parser *parser, struct ast_expr **out)
{
    for (bool more = true; more; out = &(*out)->next) {
        TRY(parse_expr(parser, out));
        TRY(parser_take_symbol(parser, ",", &more));
    }
    return status_ok();
}
