/* From a query's text to its tokens: see lexer.h. */
#include "sql/syntax/lexer.h"

#include "sql/syntax/error.h"
#include "sql/syntax/literal.h"

#include <ctype.h>
#include <strings.h>

/* Words that are no identifiers, sorted. */
static const char *const reserved[] = {
    "ALL",
    "AND",
    "ANY",
    "ARRAY",
    "AS",
    "ASC",
    "ASSERT_ROWS_MODIFIED",
    "AT",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COLLATE",
    "CONTAINS",
    "CREATE",
    "CROSS",
    "CUBE",
    "CURRENT",
    "DEFAULT",
    "DEFINE",
    "DESC",
    "DISTINCT",
    "ELSE",
    "END",
    "ENUM",
    "ESCAPE",
    "EXCEPT",
    "EXCLUDE",
    "EXISTS",
    "EXTRACT",
    "FALSE",
    "FETCH",
    "FOLLOWING",
    "FOR",
    "FROM",
    "FULL",
    "GROUP",
    "GROUPING",
    "GROUPS",
    "HASH",
    "HAVING",
    "IF",
    "IGNORE",
    "IN",
    "INNER",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOIN",
    "LATERAL",
    "LEFT",
    "LIKE",
    "LIMIT",
    "LOOKUP",
    "MERGE",
    "NATURAL",
    "NEW",
    "NO",
    "NOT",
    "NULL",
    "NULLS",
    "OF",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "PRECEDING",
    "PROTO",
    "QUALIFY",
    "RANGE",
    "RECURSIVE",
    "RESPECT",
    "RIGHT",
    "ROLLUP",
    "ROWS",
    "SELECT",
    "SET",
    "SOME",
    "STRUCT",
    "TABLESAMPLE",
    "THEN",
    "TO",
    "TREAT",
    "TRUE",
    "UNBOUNDED",
    "UNION",
    "UNNEST",
    "USING",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
    "WITHIN",
};

/* Longest first. */
static const char *const symbols[] = {
    "<<", ">>", "<=", ">=", "<>", "!=", "||", "|>", "->", "=>", "@{", "(", ")", "[", "]", "{", "}",
    ",",  ".",  "+",  "-",  "*",  "/",  "=",  "<",  ">",  "&",  "^",  "|", "~", "@", ":", ";", "?",
};

static bool same_word(bytes text, const char *word)
{
    return text.size == strlen(word) && strncasecmp((const char *)text.data, word, text.size) == 0;
}

static bool is_reserved(bytes text)
{
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (same_word(text, reserved[i]))
            return true;
    return false;
}

bool token_is_word(const struct token *token, const char *word)
{
    return (token->kind == TOKEN_KEYWORD || token->kind == TOKEN_IDENTIFIER) &&
           same_word(token->text, word);
}

bool token_is_symbol(const struct token *token, const char *symbol)
{
    return token->kind == TOKEN_SYMBOL && same_word(token->text, symbol);
}

static void describe_keyword(bytes text, struct buffer *out)
{
    buffer_append_format(out, "keyword ");
    for (size_t i = 0; i < text.size; i++)
        buffer_append_byte(out, (uint8_t)toupper(text.data[i]));
}

void token_describe(const struct token *token, bytes text, struct buffer *out)
{
    static const char *const names[] = {
        [TOKEN_END] = "end of statement",
        [TOKEN_IDENTIFIER] = "identifier ",
        [TOKEN_QUOTED] = "identifier ",
        [TOKEN_KEYWORD] = "",
        [TOKEN_INTEGER] = "integer literal ",
        [TOKEN_FLOAT] = "floating point literal ",
        [TOKEN_STRING] = "string literal ",
        [TOKEN_BYTES] = "bytes literal ",
        [TOKEN_SYMBOL] = "",
    };
    int size = (int)(token->end - token->at);
    const char *written = (const char *)text.data + token->at;
    buffer_append_format(out, "%s", names[token->kind]);
    if (token->kind == TOKEN_KEYWORD)
        describe_keyword(token->text, out);
    else if (token->kind == TOKEN_QUOTED || token->kind == TOKEN_STRING ||
             token->kind == TOKEN_BYTES)
        buffer_append(out, written, (size_t)size); /* it has quotes of its own */
    else if (token->kind != TOKEN_END)
        buffer_append_format(out, "\"%.*s\"", size, written);
}

/* --- reading --- */

static int peek(const struct lexer *lexer, uint32_t ahead)
{
    return lexer->at + ahead < lexer->text.size ? lexer->text.data[lexer->at + ahead] : -1;
}

static bool starts(const struct lexer *lexer, const char *with)
{
    return bytes_start_with(bytes_from(lexer->text, lexer->at), bytes_of(with));
}

static bool is_word_byte(int c)
{
    return c == '_' || (c > 0 && c < 0x80 && isalnum(c));
}

/* Of white space: the ASCII kinds, and U+00A0, U+1680, U+2000 … U+200A, U+2028, U+2029, U+202F,
 * U+205F, U+3000. */
static uint32_t space_size(const struct lexer *lexer)
{
    static const char *const wide[] = {"\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\xa8",
                                       "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f",
                                       "\xe3\x80\x80"};
    int c = peek(lexer, 0);
    if (c == ' ' || (c >= '\b' && c <= '\r'))
        return 1;
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (starts(lexer, wide[i]))
            return (uint32_t)strlen(wide[i]);
    bool is_quad = starts(lexer, "\xe2\x80") && peek(lexer, 2) >= 0x80 && peek(lexer, 2) <= 0x8a;
    return is_quad ? 3 : 0;
}

static void skip_line(struct lexer *lexer)
{
    while (lexer->at < lexer->text.size && peek(lexer, 0) != '\n' && peek(lexer, 0) != '\r')
        lexer->at++;
}

static status skip_comment(struct lexer *lexer)
{
    uint32_t from = lexer->at;
    for (lexer->at += 2; lexer->at < lexer->text.size; lexer->at++)
        if (starts(lexer, "*/")) {
            lexer->at += 2;
            return status_ok();
        }
    return sql_error(lexer->text, from, "Syntax error: Unclosed comment");
}

static status skip_blanks(struct lexer *lexer)
{
    for (;;) {
        uint32_t blank = space_size(lexer);
        if (blank > 0)
            lexer->at += blank;
        else if (starts(lexer, "--") || starts(lexer, "#"))
            skip_line(lexer);
        else if (starts(lexer, "/*"))
            TRY(skip_comment(lexer));
        else
            return status_ok();
    }
}

static void skip_digits(struct lexer *lexer)
{
    while (peek(lexer, 0) >= '0' && peek(lexer, 0) <= '9')
        lexer->at++;
}

/* The exponent of a float, if there is a whole one. */
static bool skip_exponent(struct lexer *lexer)
{
    int first = peek(lexer, 0);
    bool is_signed = peek(lexer, 1) == '+' || peek(lexer, 1) == '-';
    if ((first != 'e' && first != 'E') || !isdigit(peek(lexer, is_signed ? 2 : 1)))
        return false;
    lexer->at += is_signed ? 2 : 1;
    skip_digits(lexer);
    return true;
}

static status read_number(struct lexer *lexer, struct token *token)
{
    token->kind = TOKEN_INTEGER;
    if (starts(lexer, "0x") || starts(lexer, "0X")) {
        for (lexer->at += 2; isxdigit(peek(lexer, 0));)
            lexer->at++;
    } else {
        skip_digits(lexer);
        if (peek(lexer, 0) == '.') {
            lexer->at++;
            skip_digits(lexer);
            token->kind = TOKEN_FLOAT;
        }
        if (skip_exponent(lexer))
            token->kind = TOKEN_FLOAT;
    }
    if (is_word_byte(peek(lexer, 0)))
        return sql_error(lexer->text, lexer->at,
                         "Syntax error: Missing whitespace between literal and alias");
    return status_ok();
}

static status read_symbol(struct lexer *lexer, struct token *token)
{
    token->kind = TOKEN_SYMBOL;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (starts(lexer, symbols[i])) {
            lexer->at += (uint32_t)strlen(symbols[i]);
            return status_ok();
        }
    return sql_error(lexer->text, lexer->at, "Syntax error: Illegal input character \"%s%.*s\"",
                     peek(lexer, 0) < ' ' ? "\\" : "", 1,
                     (const char *)lexer->text.data + lexer->at);
}

static status read_quoted(struct lexer *lexer, struct token *token)
{
    struct literal literal;
    TRY(literal_read(lexer->text, lexer->at, lexer->arena, &literal));
    static const enum token_kind kinds[] = {[LITERAL_STRING] = TOKEN_STRING,
                                            [LITERAL_BYTES] = TOKEN_BYTES,
                                            [LITERAL_IDENTIFIER] = TOKEN_QUOTED};
    token->kind = kinds[literal.kind];
    token->text = literal.value;
    lexer->at = literal.end;
    return status_ok();
}

static void read_word(struct lexer *lexer, struct token *token)
{
    while (is_word_byte(peek(lexer, 0)))
        lexer->at++;
    token->text = bytes_make(lexer->text.data + token->at, lexer->at - token->at);
    token->kind = is_reserved(token->text) ? TOKEN_KEYWORD : TOKEN_IDENTIFIER;
}

status lexer_next(struct lexer *lexer, struct token *out)
{
    TRY(skip_blanks(lexer));
    *out = (struct token){.kind = TOKEN_END, .at = lexer->at, .end = lexer->at};
    int c = peek(lexer, 0);
    if (c < 0)
        return status_ok();
    if (literal_starts(lexer->text, lexer->at))
        TRY(read_quoted(lexer, out));
    else if (isdigit(c) || (c == '.' && isdigit(peek(lexer, 1))))
        TRY(read_number(lexer, out));
    else if (is_word_byte(c))
        read_word(lexer, out);
    else
        TRY(read_symbol(lexer, out));
    out->end = lexer->at;
    if (out->text.data == NULL)
        out->text = bytes_make(lexer->text.data + out->at, out->end - out->at);
    return status_ok();
}
