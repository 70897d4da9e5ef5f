/* See view_statement.h. */
#include "advisor/view_statement.h"

enum { ID_MOST = 60 /* bytes of a name that go into the view's */ };

static bool is_of_id(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

static void append_as_id(bytes text, struct buffer *out)
{
    size_t size = text.size < ID_MOST ? text.size : ID_MOST;
    for (size_t i = 0; i < size; i++)
        buffer_append_byte(out, is_of_id(text.data[i]) ? text.data[i] : '-');
}

/* Bytes as a literal that GoogleSQL reads as they are. */
static void append_literal(bytes text, struct buffer *out)
{
    buffer_append_format(out, "b'");
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        bool is_plain = c >= ' ' && c < 0x7f && c != '\'' && c != '\\';
        buffer_append_format(out, is_plain ? "%c" : "\\x%02x", c);
    }
    buffer_append_format(out, "'");
}

static bool is_quotable(bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!is_of_id(text.data[i]))
            return false;
    return text.size > 0;
}

void view_statement_append(const char *table, bytes family, bytes qualifier, struct buffer *out)
{
    bytes id = bytes_of(table);
    if (!is_quotable(id) || !is_quotable(family))
        return;
    buffer_append_format(out, "CREATE MATERIALIZED VIEW `");
    append_as_id(id, out);
    buffer_append_format(out, "-by-");
    append_as_id(qualifier, out);
    buffer_append_format(out, "` AS SELECT `%.*s`[", (int)family.size, (const char *)family.data);
    append_literal(qualifier, out);
    buffer_append_format(out, "] AS value, _key AS source FROM `%s` ORDER BY value, source", table);
}
