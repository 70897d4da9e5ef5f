/* See sql_statements.h. */
#include "cmd/sql/sql_statements.h"

#include <stdio.h>
#include <strings.h>

/* --- words --- */

static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* A comment's size at the start of the text; 0: it begins with none. */
static size_t comment_size(bytes text)
{
    bool is_line = text.size > 0 &&
                   (text.data[0] == '#' || (text.size > 1 && memcmp(text.data, "--", 2) == 0));
    if (is_line) {
        const uint8_t *end = memchr(text.data, '\n', text.size);
        return end == NULL ? text.size : (size_t)(end - text.data) + 1;
    }
    if (text.size < 2 || memcmp(text.data, "/*", 2) != 0)
        return 0;
    const uint8_t *end = memmem(text.data + 2, text.size - 2, "*/", 2);
    return end == NULL ? text.size : (size_t)(end - text.data) + 2;
}

static void skip_blanks(bytes *rest)
{
    for (;;) {
        size_t size = comment_size(*rest);
        if (size == 0 && rest->size > 0 && is_blank(rest->data[0]))
            size = 1;
        if (size == 0)
            return;
        *rest = bytes_from(*rest, size);
    }
}

static bool is_word(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Names of resources have dots and hyphens besides. */
static bool is_of_name(uint8_t c)
{
    return is_word(c) || c == '-' || c == '.';
}

static bytes take_while(bytes *rest, bool (*is_part)(uint8_t c))
{
    size_t size = 0;
    while (size < rest->size && is_part(rest->data[size]))
        size++;
    bytes word = bytes_make(rest->data, size);
    *rest = bytes_from(*rest, size);
    return word;
}

/* Takes the word if it comes next. */
static bool take_keyword(bytes *rest, const char *keyword)
{
    bytes after = *rest;
    skip_blanks(&after);
    bytes word = take_while(&after, is_word);
    if (word.size != strlen(keyword) ||
        strncasecmp((const char *)word.data, keyword, word.size) != 0)
        return false;
    *rest = after;
    return true;
}

static bool take_sign(bytes *rest, char sign)
{
    bytes after = *rest;
    skip_blanks(&after);
    if (after.size == 0 || after.data[0] != (uint8_t)sign)
        return false;
    *rest = bytes_from(after, 1);
    return true;
}

/* All of them, or none. */
static bool take_keywords(bytes *rest, const char *const *keywords)
{
    bytes after = *rest;
    for (; *keywords != NULL; keywords++)
        if (!take_keyword(&after, *keywords))
            return false;
    *rest = after;
    return true;
}

static status expected(const char *what)
{
    return status_make(STATUS_INVALID_ARGUMENT, "Syntax error: expected %s", what);
}

/* --- statements --- */

static status read_name(bytes *rest, struct arena *arena, const char **out)
{
    bytes name;
    if (take_sign(rest, '`')) {
        const uint8_t *end = rest->size == 0 ? NULL : memchr(rest->data, '`', rest->size);
        if (end == NULL)
            return expected("a closing `");
        name = bytes_make(rest->data, (size_t)(end - rest->data));
        *rest = bytes_from(*rest, name.size + 1);
    } else {
        skip_blanks(rest);
        name = take_while(rest, is_of_name);
    }
    if (name.size == 0)
        return expected("the name of a materialized view");
    *out = arena_string(arena, name);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static status read_options(bytes *rest, struct sql_words *out)
{
    if (!take_keyword(rest, "OPTIONS"))
        return status_ok();
    if (!take_sign(rest, '(') || !take_keyword(rest, "deletion_protection") ||
        !take_sign(rest, '='))
        return expected("OPTIONS (deletion_protection = TRUE)");
    out->is_protected = take_keyword(rest, "TRUE");
    if ((!out->is_protected && !take_keyword(rest, "FALSE")) || !take_sign(rest, ')'))
        return expected("TRUE or FALSE, and a closing parenthesis");
    return status_ok();
}

static status read_create(bytes text, bytes rest, struct arena *arena, struct sql_words *out)
{
    static const char *const lenient[] = {"IF", "NOT", "EXISTS", NULL};
    out->is_lenient = take_keywords(&rest, lenient);
    TRY(read_name(&rest, arena, &out->name));
    TRY(read_options(&rest, out));
    if (!take_keyword(&rest, "AS"))
        return expected("AS and a query");
    skip_blanks(&rest);
    if (rest.size == 0)
        return expected("a query behind AS");
    out->query_at = (size_t)(rest.data - text.data);
    out->query = arena_string(arena, rest);
    return out->query == NULL ? status_out_of_memory() : status_ok();
}

static status read_drop(bytes rest, struct arena *arena, struct sql_words *out)
{
    static const char *const lenient[] = {"IF", "EXISTS", NULL};
    out->is_lenient = take_keywords(&rest, lenient);
    TRY(read_name(&rest, arena, &out->name));
    skip_blanks(&rest);
    return rest.size == 0 ? status_ok() : expected("the end behind the name");
}

status sql_words_read(bytes text, struct arena *arena, struct sql_words *out)
{
    static const char *const create[] = {"CREATE", "MATERIALIZED", "VIEW", NULL};
    static const char *const drop[] = {"DROP", "MATERIALIZED", "VIEW", NULL};
    bytes rest = text;
    *out = (struct sql_words){.kind = STATEMENT_QUERY};
    if (take_keywords(&rest, create)) {
        out->kind = STATEMENT_CREATE_VIEW;
        return read_create(text, rest, arena, out);
    }
    if (take_keywords(&rest, drop)) {
        out->kind = STATEMENT_DROP_VIEW;
        return read_drop(rest, arena, out);
    }
    return status_ok();
}

/* --- places --- */

/* Lines and characters before a place: both begin at 1. */
static void find_place(bytes text, size_t at, unsigned *line, unsigned *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < at; i++) {
        bool is_within = (text.data[i] & 0xc0) == 0x80; /* a character of UTF-8 */
        *column += !is_within;
        if (text.data[i] == '\n') {
            ++*line;
            *column = 1;
        }
    }
}

status sql_words_place_error(bytes text, size_t query_at, status error)
{
    const char *said = status_message(error);
    const char *place = strstr(said, " [at ");
    unsigned line, column, first_line, first_column;
    int read = 0;
    if (place == NULL || sscanf(place, " [at %u:%u]%n", &line, &column, &read) != 2 || read == 0)
        return error;
    find_place(text, query_at, &first_line, &first_column);
    if (line == 1)
        column += first_column - 1;
    status moved = status_make(error.code, "%.*s [at %u:%u]%s", (int)(place - said), said,
                               first_line + line - 1, column, place + read);
    status_free(error);
    return moved;
}
