/* What stands between operators: literals, names, what is in parentheses, CASE, CAST and the like,
 * and what follows them: the dot and the subscript. */
#include "sql/syntax/parser_private.h"

#include <strings.h>

static status parse_primary(struct parser *parser, struct ast_expr **out);

/* --- literals --- */

/* One after the other, they are one; strings and bytes do not mix. */
static status parse_text(struct parser *parser, struct ast_expr **out)
{
    enum token_kind kind = parser->token.kind;
    struct buffer joined = {0};
    status result =
        new_expr(parser, kind == TOKEN_STRING ? AST_STRING : AST_BYTES, parser->token.at, out);
    bool touches = false;
    while (status_is_ok(result) && parser->token.kind == kind && !touches) {
        uint32_t end = parser->token.end;
        buffer_append_bytes(&joined, parser->token.text);
        result = parser_advance(parser);
        touches = parser->token.at == end;
    }
    if (status_is_ok(result)) {
        (*out)->literal = arena_copy(parser->arena, buffer_bytes(&joined));
        if (joined.failed || (*out)->literal.data == NULL)
            result = status_out_of_memory();
    }
    buffer_free(&joined);
    bool mixes = parser->token.kind == TOKEN_STRING || parser->token.kind == TOKEN_BYTES;
    if (status_is_ok(result) && mixes)
        result = sql_error(parser->lexer.text, parser->token.at,
                           parser->token.kind != kind
                               ? "Syntax error: string and bytes literals cannot be concatenated"
                               : "Syntax error: concatenated %s literals must be separated by "
                                 "whitespace or comments",
                           kind == TOKEN_STRING ? "string" : "bytes");
    return result;
}

/* Whose spelling is all there is to them. */
static status parse_word_literal(struct parser *parser, enum ast_kind kind, struct ast_expr **out)
{
    TRY(new_expr(parser, kind, parser->token.at, out));
    (*out)->text = arena_string(parser->arena, parser->token.text);
    return (*out)->text == NULL ? status_out_of_memory() : parser_advance(parser);
}

/* DATE '2014-09-27' */
static status parse_typed(struct parser *parser, struct ast_expr **out)
{
    TRY(new_expr(parser, AST_TYPED, parser->token.at, out));
    TRY(parser_word(parser, &(*out)->name));
    return parse_text(parser, &(*out)->operands);
}

static status parse_parameter(struct parser *parser, struct ast_expr **out)
{
    struct ast_name *name;
    if (at_symbol(parser, "?"))
        return sql_error(parser->lexer.text, parser->token.at,
                         "Positional parameters are not supported");
    TRY(new_expr(parser, AST_PARAMETER, parser->token.at, out));
    TRY(parser_advance(parser));
    TRY(parser_word(parser, &name));
    (*out)->text = name->text;
    return status_ok();
}

/* --- date parts --- */

static status parse_part(struct parser *parser, struct ast_part *out)
{
    struct ast_name *name;
    struct ast_name *weekday;
    bool has_weekday = false;
    out->at = parser->token.at;
    TRY(parser_word(parser, &name));
    out->name = name->text;
    if (strcasecmp(name->text, "WEEK") == 0)
        TRY(parser_take_symbol(parser, "(", &has_weekday));
    if (!has_weekday)
        return status_ok();
    TRY(parser_word(parser, &weekday));
    out->weekday = weekday->text;
    return parser_expect_symbol(parser, ")");
}

/* INTERVAL 5 DAY */
static status parse_interval(struct parser *parser, struct ast_expr **out)
{
    TRY(new_expr(parser, AST_INTERVAL, parser->token.at, out));
    TRY(parser_advance(parser));
    TRY(parse_expr(parser, &(*out)->operands));
    TRY(parse_part(parser, &(*out)->part));
    return finish_expr(parser, *out);
}

static status parse_time_zone(struct parser *parser, struct ast_expr **out)
{
    bool has_zone;
    TRY(parser_take_word(parser, "AT", &has_zone));
    if (!has_zone)
        return status_ok();
    TRY(parser_expect_word(parser, "TIME"));
    TRY(parser_expect_word(parser, "ZONE"));
    return parse_expr(parser, out);
}

/* EXTRACT(part FROM x [AT TIME ZONE z]) */
static status parse_extract(struct parser *parser, struct ast_expr **out)
{
    TRY(new_expr(parser, AST_EXTRACT, parser->token.at, out));
    TRY(parser_advance(parser));
    TRY(parser_expect_symbol(parser, "("));
    TRY(parse_part(parser, &(*out)->part));
    TRY(parser_expect_word(parser, "FROM"));
    TRY(parse_expr(parser, &(*out)->operands));
    TRY(parse_time_zone(parser, &(*out)->operands->next));
    TRY(parser_expect_symbol(parser, ")"));
    return finish_expr(parser, *out);
}

/* --- CASE and CAST --- */

static status parse_case(struct parser *parser, struct ast_expr **out)
{
    bool more = true;
    bool has_else;
    TRY(new_expr(parser, AST_CASE, parser->token.at, out));
    TRY(parser_advance(parser));
    struct ast_expr **next = &(*out)->operands;
    (*out)->has_operand = !at_word(parser, "WHEN");
    if ((*out)->has_operand) {
        TRY(parse_expr(parser, next));
        next = &(*next)->next;
    }
    TRY(parser_expect_word(parser, "WHEN"));
    while (more) {
        TRY(parse_expr(parser, next));
        TRY(parser_expect_word(parser, "THEN"));
        TRY(parse_expr(parser, &(*next)->next));
        next = &(*next)->next->next;
        TRY(parser_take_word(parser, "WHEN", &more));
    }
    TRY(parser_take_word(parser, "ELSE", &has_else));
    (*out)->has_else = has_else;
    if (has_else)
        TRY(parse_expr(parser, next));
    TRY(parser_expect_word(parser, "END"));
    return finish_expr(parser, *out);
}

/* CAST(x AS type [FORMAT f [AT TIME ZONE z]]) */
static status parse_cast(struct parser *parser, struct ast_expr **out)
{
    bool has_format;
    TRY(new_expr(parser, AST_CAST, parser->token.at, out));
    (*out)->is_safe = at_word(parser, "SAFE_CAST");
    TRY(parser_advance(parser));
    TRY(parser_expect_symbol(parser, "("));
    TRY(parse_expr(parser, &(*out)->operands));
    TRY(parser_expect_word(parser, "AS"));
    TRY(parse_type(parser, &(*out)->type));
    TRY(parser_take_word(parser, "FORMAT", &has_format));
    if (has_format) {
        TRY(parse_expr(parser, &(*out)->operands->next));
        TRY(parse_time_zone(parser, &(*out)->operands->next->next));
    }
    TRY(parser_expect_symbol(parser, ")"));
    return finish_expr(parser, *out);
}

/* --- arrays and structs --- */

static status parse_elements(struct parser *parser, struct ast_expr *array)
{
    TRY(parser_expect_symbol(parser, "["));
    if (!at_symbol(parser, "]"))
        TRY(parse_exprs(parser, &array->operands));
    TRY(parser_expect_symbol(parser, "]"));
    return finish_expr(parser, array);
}

static status parse_subquery(struct parser *parser, const char *word, uint32_t at,
                             struct ast_expr **out)
{
    TRY(new_expr(parser, AST_SUBQUERY, at, out));
    (*out)->text = word;
    return parse_parenthesized_query(parser, &(*out)->query);
}

/* ARRAY[…], ARRAY<INT64>[…], ARRAY(SELECT …) */
static status parse_array(struct parser *parser, struct ast_expr **out)
{
    uint32_t at = parser->token.at;
    struct token next;
    TRY(parser_peek(parser, &next));
    if (token_is_symbol(&next, "(")) {
        TRY(parser_advance(parser));
        return parse_subquery(parser, "ARRAY", at, out);
    }
    TRY(new_expr(parser, AST_ARRAY, at, out));
    if (token_is_symbol(&next, "<"))
        TRY(parse_type(parser, &(*out)->type));
    else
        TRY(parser_advance(parser));
    return parse_elements(parser, *out);
}

static status parse_fields(struct parser *parser, struct ast_expr **out)
{
    for (bool more = true; more; out = &(*out)->next) {
        bool has_alias;
        TRY(parse_expr(parser, out));
        TRY(parser_take_word(parser, "AS", &has_alias));
        if (has_alias)
            TRY(parser_identifier(parser, &(*out)->alias));
        TRY(parser_take_symbol(parser, ",", &more));
    }
    return status_ok();
}

/* STRUCT(1 AS a, 'x'), STRUCT<INT64, STRING>(1, 'x') */
static status parse_struct(struct parser *parser, struct ast_expr **out)
{
    struct token next;
    TRY(parser_peek(parser, &next));
    TRY(new_expr(parser, AST_STRUCT, parser->token.at, out));
    if (token_is_symbol(&next, "<"))
        TRY(parse_type(parser, &(*out)->type));
    else
        TRY(parser_advance(parser));
    TRY(parser_expect_symbol(parser, "("));
    if (!at_symbol(parser, ")"))
        TRY(parse_fields(parser, &(*out)->operands));
    TRY(parser_expect_symbol(parser, ")"));
    return finish_expr(parser, *out);
}

/* (x), the struct (x, y), or a query. */
static status parse_parentheses(struct parser *parser, struct ast_expr **out)
{
    uint32_t at = parser->token.at;
    struct token next;
    TRY(parser_peek(parser, &next));
    if (token_is_word(&next, "SELECT") || token_is_word(&next, "WITH") ||
        token_is_word(&next, "FROM"))
        return parse_subquery(parser, "", at, out);
    TRY(parser_advance(parser));
    struct ast_expr *first;
    TRY(parse_expr(parser, &first));
    bool is_struct;
    TRY(parser_take_symbol(parser, ",", &is_struct));
    if (is_struct) {
        TRY(new_expr(parser, AST_STRUCT, at, out));
        (*out)->operands = first;
        TRY(parse_exprs(parser, &first->next));
        for (struct ast_expr *field = first; field != NULL; field = field->next)
            field->alias = ""; /* only STRUCT(…) names fields after columns */
        TRY(finish_expr(parser, *out));
    } else {
        *out = first;
        first->is_parenthesized = true;
    }
    return parser_expect_symbol(parser, ")");
}

/* --- names and calls --- */

/* Names up to a `.` that is followed by `*`, or by nothing that is a name. */
static status parse_path(struct parser *parser, struct ast_name **out)
{
    struct token next;
    TRY(parser_word(parser, out));
    for (;;) {
        TRY(parser_peek(parser, &next));
        bool is_name = next.kind == TOKEN_IDENTIFIER || next.kind == TOKEN_QUOTED ||
                       next.kind == TOKEN_KEYWORD;
        if (!at_symbol(parser, ".") || !is_name)
            return status_ok();
        TRY(parser_advance(parser));
        out = &(*out)->next;
        TRY(parser_word(parser, out));
    }
}

static status parse_name(struct parser *parser, struct ast_expr **out)
{
    struct ast_name *name;
    uint32_t at = parser->token.at;
    TRY(parse_path(parser, &name));
    if (at_symbol(parser, "("))
        return parse_call(parser, name, out);
    TRY(new_expr(parser, AST_PATH, at, out));
    (*out)->name = name;
    return status_ok();
}

/* --- which of them --- */

typedef status operand_parser(struct parser *parser, struct ast_expr **out);

static status parse_null(struct parser *parser, struct ast_expr **out)
{
    return parse_word_literal(parser, AST_NULL, out);
}

static status parse_true(struct parser *parser, struct ast_expr **out)
{
    return parse_word_literal(parser, AST_TRUE, out);
}

static status parse_false(struct parser *parser, struct ast_expr **out)
{
    return parse_word_literal(parser, AST_FALSE, out);
}

static status parse_exists(struct parser *parser, struct ast_expr **out)
{
    uint32_t at = parser->token.at;
    TRY(parser_advance(parser));
    return parse_subquery(parser, "EXISTS", at, out);
}

/* Of reserved words that an operand may begin with. */
static operand_parser *keyword_parser(const struct parser *parser)
{
    static const struct {
        const char *word;
        operand_parser *parse;
    } words[] = {
        {"NULL", parse_null},         {"TRUE", parse_true},   {"FALSE", parse_false},
        {"CASE", parse_case},         {"CAST", parse_cast},   {"EXTRACT", parse_extract},
        {"INTERVAL", parse_interval}, {"ARRAY", parse_array}, {"STRUCT", parse_struct},
        {"EXISTS", parse_exists},     {"IF", parse_name},     {"LEFT", parse_name},
        {"RIGHT", parse_name},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (at_word(parser, words[i].word))
            return words[i].parse;
    return NULL;
}

static status parse_word(struct parser *parser, struct ast_expr **out)
{
    struct token next;
    if (parser->token.kind == TOKEN_KEYWORD) {
        operand_parser *parse = keyword_parser(parser);
        return parse == NULL ? parser_unexpected(parser) : parse(parser, out);
    }
    TRY(parser_peek(parser, &next));
    if (at_word(parser, "SAFE_CAST") && token_is_symbol(&next, "("))
        return parse_cast(parser, out);
    if (parser->token.kind == TOKEN_IDENTIFIER && next.kind == TOKEN_STRING)
        return parse_typed(parser, out);
    return parse_name(parser, out);
}

static status parse_primary(struct parser *parser, struct ast_expr **out)
{
    switch (parser->token.kind) {
    case TOKEN_INTEGER:
        return parse_word_literal(parser, AST_INTEGER, out);
    case TOKEN_FLOAT:
        return parse_word_literal(parser, AST_FLOAT, out);
    case TOKEN_STRING:
    case TOKEN_BYTES:
        return parse_text(parser, out);
    case TOKEN_IDENTIFIER:
    case TOKEN_QUOTED:
    case TOKEN_KEYWORD:
        return parse_word(parser, out);
    default:
        break;
    }
    if (at_symbol(parser, "("))
        return parse_parentheses(parser, out);
    if (at_symbol(parser, "@") || at_symbol(parser, "?"))
        return parse_parameter(parser, out);
    if (!at_symbol(parser, "["))
        return parser_unexpected(parser);
    TRY(new_expr(parser, AST_ARRAY, parser->token.at, out));
    return parse_elements(parser, *out);
}

/* --- what follows them --- */

/* x.name */
static status parse_dot(struct parser *parser, struct ast_expr **operand)
{
    struct ast_expr *dot;
    struct ast_name *name;
    TRY(parser_advance(parser));
    TRY(new_expr(parser, AST_DOT, parser->token.at, &dot));
    TRY(parser_word(parser, &name));
    dot->text = name->text;
    dot->operands = *operand;
    *operand = dot;
    return finish_expr(parser, dot);
}

/* OFFSET(i) and its like, of which the word is taken; else `*kind` is AST_SUBSCRIPT_BARE. */
static status parse_subscript_kind(struct parser *parser, enum ast_subscript *kind)
{
    static const char *const words[] = {[AST_SUBSCRIPT_OFFSET] = "OFFSET",
                                        [AST_SUBSCRIPT_ORDINAL] = "ORDINAL",
                                        [AST_SUBSCRIPT_SAFE_OFFSET] = "SAFE_OFFSET",
                                        [AST_SUBSCRIPT_SAFE_ORDINAL] = "SAFE_ORDINAL",
                                        [AST_SUBSCRIPT_KEY] = "KEY",
                                        [AST_SUBSCRIPT_SAFE_KEY] = "SAFE_KEY"};
    struct token next;
    *kind = AST_SUBSCRIPT_BARE;
    TRY(parser_peek(parser, &next));
    for (enum ast_subscript i = AST_SUBSCRIPT_OFFSET; i <= AST_SUBSCRIPT_SAFE_KEY; i++)
        if (at_word(parser, words[i]) && token_is_symbol(&next, "("))
            *kind = i;
    return *kind == AST_SUBSCRIPT_BARE ? status_ok() : parser_advance(parser);
}

/* x[i], x[OFFSET(i)] */
static status parse_subscript(struct parser *parser, struct ast_expr **operand)
{
    struct ast_expr *subscript;
    TRY(new_expr(parser, AST_SUBSCRIPT, parser->token.at, &subscript));
    TRY(parser_advance(parser));
    subscript->operands = *operand;
    TRY(parse_subscript_kind(parser, &subscript->subscript));
    TRY(parse_expr(parser, &(*operand)->next)); /* with its parentheses, if it has a word */
    TRY(parser_expect_symbol(parser, "]"));
    *operand = subscript;
    return finish_expr(parser, subscript);
}

status parse_postfix(struct parser *parser, struct ast_expr **out)
{
    struct token next;
    TRY(parse_primary(parser, out));
    for (;;) {
        TRY(parser_peek(parser, &next));
        bool is_star = token_is_symbol(&next, "*");
        if (at_symbol(parser, ".") && !is_star)
            TRY(parse_dot(parser, out));
        else if (at_symbol(parser, "["))
            TRY(parse_subscript(parser, out));
        else
            return status_ok();
    }
}
