/* Errors of a text that is no GQL query: production's words, which its parser generator has made;
 * where they are not known, `words: "token" at line 1, column 2.` See gql_private.h. */
#include "datastore/gql/gql_private.h"

#include "base/utf8.h"

enum { MOST_SHOWN = 200 }; /* bytes of the query's text */

struct place {
    size_t line, column;
};

/* Both are counted from 1, columns in characters; the end is where the last character is. */
static struct place place_of(bytes text, size_t at)
{
    struct place place = {.line = 1, .column = 1};
    if (text.size == 0)
        return (struct place){0};
    if (at >= text.size)
        for (at = text.size - 1; at > 0 && (text.data[at] & 0xc0) == 0x80;)
            at--;
    for (size_t i = 0; i < at; i++) {
        if (text.data[i] == '\n')
            place = (struct place){.line = place.line + 1, .column = 1};
        else
            place.column += (text.data[i] & 0xc0) != 0x80;
    }
    return place;
}

/* The first of the bytes, but no part of a character. */
static bytes shown(bytes image)
{
    size_t size = image.size;
    if (size > MOST_SHOWN)
        for (size = MOST_SHOWN; size > 0 && (image.data[size] & 0xc0) == 0x80;)
            size--;
    return bytes_make(image.data, size);
}

static void append_unit(struct buffer *out, uint32_t unit)
{
    static const char plain[] = "btnfr\"'\\";
    static const char special[] = "\b\t\n\f\r\"'\\";
    const char *found = unit > 0 && unit < 0x80 ? strchr(special, (int)unit) : NULL;
    if (found != NULL)
        buffer_append_format(out, "\\%c", plain[found - special]);
    else if (unit < 0x20 || unit > 0x7e)
        buffer_append_format(out, "\\u%04x", (unsigned)unit);
    else
        buffer_append_byte(out, (uint8_t)unit);
}

/* Appends the text as in a string of Java's, whose characters have 16 bits. */
static void append_escaped(struct buffer *out, bytes text)
{
    for (size_t at = 0; at < text.size;) {
        uint32_t code = utf8_next(text, &at);
        if (code < 0x10000) {
            append_unit(out, code);
        } else {
            append_unit(out, 0xd800 + ((code - 0x10000) >> 10));
            append_unit(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
        }
    }
}

static status invalid(struct buffer *words)
{
    status s = words->failed ? status_out_of_memory()
                             : status_make(STATUS_INVALID_ARGUMENT, "%.*s", (int)words->size,
                                           (const char *)words->data);
    buffer_free(words);
    return s;
}

status gql_lexical_error(bytes text, size_t from, size_t at)
{
    struct buffer words = {0};
    struct place place = place_of(text, at);
    buffer_append_format(
        &words, "Lexical error at line %zu, column %zu.  Encountered: ", place.line, place.column);
    if (at < text.size) {
        size_t end = at;
        uint32_t code = utf8_next(text, &end);
        buffer_append_format(&words, "\"");
        append_escaped(&words, bytes_make(text.data + at, end - at));
        buffer_append_format(&words, "\" (%u), ", (unsigned)code);
    } else {
        buffer_append_format(&words, "<EOF> ");
    }
    buffer_append_format(&words, "after : \"");
    append_escaped(&words, shown(bytes_make(text.data + from, at - from)));
    buffer_append_format(&words, "\"");
    return invalid(&words);
}

static void append_kind(struct buffer *out, enum gql_kind kind)
{
    static const char *const names[GQL_KINDS] = {
        [GQL_END] = "<EOF>",
        [GQL_INTEGER] = "<INTEGER>",
        [GQL_DOUBLE] = "<DOUBLE>",
        [GQL_SINGLE_QUOTED] = "<SINGLE_QUOTE_STRING>",
        [GQL_DOUBLE_QUOTED] = "<DOUBLE_QUOTE_STRING>",
        [GQL_NAME] = "<UNQUOTED_NAME>",
        [GQL_QUOTED_NAME] = "<QUOTED_NAME>",
        [GQL_NAMED_BINDING] = "<NAMED_BINDING_SITE>",
        [GQL_POSITIONAL_BINDING] = "<NUMBERED_BINDING_SITE>",
    };
    if (names[kind] != NULL)
        buffer_append_format(out, "%s", names[kind]);
    else
        buffer_append_format(out, "\"%s\"", gql_images[kind]);
    buffer_append_format(out, " ...\n    ");
}

status gql_unexpected(const struct gql_parser *parser)
{
    const struct gql_token *token = &parser->token;
    struct buffer words = {0};
    struct place place = place_of(parser->lexer.text, token->at);
    buffer_append_format(&words, "Encountered \"");
    if (token->kind == GQL_END)
        buffer_append_format(&words, "<EOF>");
    else
        append_escaped(&words, shown(token->image));
    bool is_one = (parser->expected & (parser->expected - 1)) == 0;
    buffer_append_format(&words, "\" at line %zu, column %zu.\nWas expecting%s:\n    ", place.line,
                         place.column, is_one ? "" : " one of");
    for (enum gql_kind kind = GQL_END; kind < GQL_KINDS; kind++)
        if ((parser->expected >> kind & 1) != 0)
            append_kind(&words, kind);
    return invalid(&words);
}

status gql_refuse(bytes text, const struct gql_token *token, const char *words)
{
    struct place place = place_of(text, token->at);
    bytes image = shown(token->image);
    return status_make(STATUS_INVALID_ARGUMENT, "%s: \"%.*s\" at line %zu, column %zu.", words,
                       (int)image.size, (const char *)image.data, place.line, place.column);
}
