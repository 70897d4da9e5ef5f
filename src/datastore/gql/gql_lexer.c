/* From GQL's text to tokens: see gql_private.h. Of what could begin here the longest is read. */
#include "datastore/gql/gql_private.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

const char *const gql_images[GQL_KINDS] = {
    [GQL_AGGREGATE] = "aggregate",
    [GQL_ANCESTOR] = "ancestor",
    [GQL_AND] = "and",
    [GQL_AS] = "as",
    [GQL_ASC] = "asc",
    [GQL_AVG] = "avg",
    [GQL_BY] = "by",
    [GQL_CONTAINS] = "contains",
    [GQL_COUNT] = "count",
    [GQL_COUNT_UP_TO] = "count_up_to",
    [GQL_DESC] = "desc",
    [GQL_DESCENDANT] = "descendant",
    [GQL_DISTINCT] = "distinct",
    [GQL_FALSE] = "false",
    [GQL_FROM] = "from",
    [GQL_HAS] = "has",
    [GQL_IN] = "in",
    [GQL_IS] = "is",
    [GQL_LIMIT] = "limit",
    [GQL_NOT] = "not",
    [GQL_NULL] = "null",
    [GQL_OFFSET] = "offset",
    [GQL_ON] = "on",
    [GQL_OR] = "or",
    [GQL_ORDER] = "order",
    [GQL_SELECT] = "select",
    [GQL_SUM] = "sum",
    [GQL_TRUE] = "true",
    [GQL_WHERE] = "where",
    [GQL_FIRST] = "first",
    [GQL_OVER] = "over",
    [GQL_EQUAL] = "=",
    [GQL_NOT_EQUAL] = "!=",
    [GQL_LESS] = "<",
    [GQL_LESS_OR_EQUAL] = "<=",
    [GQL_GREATER] = ">",
    [GQL_GREATER_OR_EQUAL] = ">=",
    [GQL_OPEN] = "(",
    [GQL_CLOSE] = ")",
    [GQL_COMMA] = ",",
    [GQL_DOT] = ".",
    [GQL_STAR] = "*",
    [GQL_PLUS] = "+",
};

static const char *const reserved[] = {
    "all",    "any",   "between", "binary",   "child", "cursor", "div",
    "exists", "group", "having",  "join",     "like",  "mod",    "parent",
    "regexp", "rlike", "subset",  "superset", "xor",
};

static int peek(const struct gql_lexer *lexer, size_t at)
{
    return at < lexer->text.size ? lexer->text.data[at] : -1;
}

static bool same_word(bytes text, const char *word)
{
    return text.size == strlen(word) && strncasecmp((const char *)text.data, word, text.size) == 0;
}

bool gql_is_word(const struct gql_token *token, const char *word)
{
    return token->kind == GQL_NAME && same_word(token->image, word);
}

static size_t after_digits(const struct gql_lexer *lexer, size_t at)
{
    while (isdigit(peek(lexer, at)))
        at++;
    return at;
}

/* --- names --- */

/* A binding's name has nothing beyond ASCII in it; a kind's may have what is within 16 bits. */
static bool begins_name(int c, bool is_binding)
{
    return isalpha(c) || c == '_' || c == '$' || (!is_binding && c >= 0x80 && c < 0xf0);
}

static size_t after_name(const struct gql_lexer *lexer, size_t at, bool is_binding)
{
    while (begins_name(peek(lexer, at), is_binding) || isdigit(peek(lexer, at)))
        at++;
    return at;
}

static enum gql_kind word_kind(bytes word)
{
    for (enum gql_kind kind = GQL_AGGREGATE; kind <= GQL_WHERE; kind++)
        if (same_word(word, gql_images[kind]))
            return kind;
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
        if (same_word(word, reserved[i]))
            return GQL_RESERVED;
    return GQL_NAME;
}

static status read_binding(struct gql_lexer *lexer, struct gql_token *token)
{
    size_t name = token->at + 1;
    token->kind = GQL_POSITIONAL_BINDING;
    lexer->at = after_digits(lexer, name);
    if (lexer->at == name && begins_name(peek(lexer, name), true)) {
        token->kind = GQL_NAMED_BINDING;
        lexer->at = after_name(lexer, name, true);
    }
    return lexer->at > name ? status_ok() : gql_lexical_error(lexer->text, token->at, name);
}

/* --- numbers --- */

/* The end of the exponent that begins here; `at` if none does. */
static size_t after_exponent(const struct gql_lexer *lexer, size_t at)
{
    size_t digits = at + 1;
    if (tolower(peek(lexer, at)) != 'e')
        return at;
    if (peek(lexer, digits) == '+' || peek(lexer, digits) == '-')
        digits++;
    return isdigit(peek(lexer, digits)) ? after_digits(lexer, digits) : at;
}

/* False, and nothing is read, if none begins here. */
static bool read_number(struct gql_lexer *lexer, struct gql_token *token)
{
    int first = peek(lexer, token->at);
    size_t whole = token->at + (first == '+' || first == '-');
    size_t at = after_digits(lexer, whole);
    bool has_point = peek(lexer, at) == '.' && (at > whole || isdigit(peek(lexer, at + 1)));
    if (at == whole && !has_point)
        return false;
    if (has_point)
        at = after_digits(lexer, at + 1);
    lexer->at = after_exponent(lexer, at);
    token->kind = has_point || lexer->at > at ? GQL_DOUBLE : GQL_INTEGER;
    return true;
}

/* --- quotes --- */

/* The characters that may stand behind a backslash, and what they then stand for. */
static const char escapes[] = "\\0bnrtZ'\"`%_";
static const char escaped[] = "\\\0\b\n\r\t\x1a'\"`%_";

static status skip_quoted(struct gql_lexer *lexer, size_t from)
{
    int quote = peek(lexer, from);
    for (size_t at = from + 1;; at++) {
        int c = peek(lexer, at);
        if (c == quote) {
            if (peek(lexer, at + 1) != quote) {
                lexer->at = at + 1;
                return status_ok();
            }
            at++;
        } else if (c == '\\') {
            at++;
            c = peek(lexer, at);
            if (c <= 0 || strchr(escapes, c) == NULL)
                return gql_lexical_error(lexer->text, from, at);
        } else if (c < 0 || c == '\n') {
            return gql_lexical_error(lexer->text, from, at);
        }
    }
}

/* Writes the text that the image stands for to `to`, without the quotes. As in MySQL, a backslash
 * stays before the two characters that mean something in patterns. */
static size_t unquote(bytes image, char *to)
{
    size_t size = 0;
    for (size_t i = 1; i + 1 < image.size; i++) {
        char c = (char)image.data[i];
        if (image.data[i] == image.data[0]) {
            i++;
        } else if (c == '\\') {
            char next = (char)image.data[++i];
            if (next == '%' || next == '_')
                to[size++] = '\\';
            c = escaped[strchr(escapes, next) - escapes];
        }
        to[size++] = c;
    }
    to[size] = '\0';
    return size;
}

/* Reads what skip_quoted went over. */
static status read_quoted(struct gql_lexer *lexer, struct gql_token *token)
{
    char *text = arena_alloc(lexer->arena, token->image.size);
    if (text == NULL)
        return status_out_of_memory();
    size_t size = unquote(token->image, text);
    if (strlen(text) < size)
        return gql_refuse(lexer->text, token, "Null characters are not supported");
    if (token->kind == GQL_QUOTED_NAME && size == 0)
        return gql_refuse(lexer->text, token, "A name must not be empty");
    token->text = text;
    return status_ok();
}

/* --- tokens --- */

static status read_symbol(struct gql_lexer *lexer, struct gql_token *token)
{
    size_t longest = 0;
    for (enum gql_kind kind = GQL_EQUAL; kind <= GQL_PLUS; kind++) {
        bytes image = bytes_of(gql_images[kind]);
        if (image.size > longest && bytes_start_with(bytes_from(lexer->text, token->at), image)) {
            longest = image.size;
            token->kind = kind;
        }
    }
    lexer->at = token->at + longest;
    if (longest > 0)
        return status_ok();
    int first = peek(lexer, token->at);
    bool is_begun = first == '!' || first == '-'; /* of what is longer */
    return gql_lexical_error(lexer->text, token->at, token->at + is_begun);
}

static status read_token(struct gql_lexer *lexer, struct gql_token *token)
{
    int c = peek(lexer, token->at);
    if (c == '\'' || c == '"' || c == '`') {
        token->kind = c == '`' ? GQL_QUOTED_NAME : c == '"' ? GQL_DOUBLE_QUOTED : GQL_SINGLE_QUOTED;
        return skip_quoted(lexer, token->at);
    }
    if (c == '@')
        return read_binding(lexer, token);
    if (begins_name(c, false)) {
        token->kind = GQL_NAME;
        lexer->at = after_name(lexer, token->at, false);
        return status_ok();
    }
    return read_number(lexer, token) ? status_ok() : read_symbol(lexer, token);
}

/* Reads the text that the token stands for, as a string. */
static status read_text(struct gql_lexer *lexer, struct gql_token *token)
{
    bool is_binding = token->kind == GQL_NAMED_BINDING || token->kind == GQL_POSITIONAL_BINDING;
    if (token->kind == GQL_NAME)
        token->kind = word_kind(token->image);
    if (token->kind == GQL_SINGLE_QUOTED || token->kind == GQL_DOUBLE_QUOTED ||
        token->kind == GQL_QUOTED_NAME)
        return read_quoted(lexer, token);
    if (token->kind != GQL_NAME && token->kind != GQL_INTEGER && token->kind != GQL_DOUBLE &&
        !is_binding)
        return status_ok();
    token->text = arena_string(lexer->arena, bytes_from(token->image, is_binding ? 1 : 0));
    return token->text == NULL ? status_out_of_memory() : status_ok();
}

status gql_next(struct gql_lexer *lexer, struct gql_token *out)
{
    while (peek(lexer, lexer->at) > 0 && strchr(" \t\n\r\f", peek(lexer, lexer->at)) != NULL)
        lexer->at++;
    *out = (struct gql_token){.kind = GQL_END, .at = lexer->at};
    if (lexer->at == lexer->text.size)
        return status_ok();
    TRY(read_token(lexer, out));
    out->image = bytes_make(lexer->text.data + out->at, lexer->at - out->at);
    return read_text(lexer, out);
}
