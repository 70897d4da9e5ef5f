/* String, bytes and identifier literals: see literal.h. */
#include "sql/syntax/literal.h"

#include "base/utf8.h"
#include "sql/syntax/error.h"

#include <ctype.h>

struct reader {
    bytes text;
    uint32_t from; /* of the whole literal */
    uint32_t at;
    enum literal_kind kind;
    bool is_raw;
    bool is_triple;
    uint8_t quote;
    struct buffer out;
};

static int byte_at(bytes text, uint32_t at)
{
    return at < text.size ? text.data[at] : -1;
}

/* --- how it begins --- */

/* How many of the letters b and r, at most one of each, come before a quote. */
static uint32_t prefix_size(bytes text, uint32_t at)
{
    bool has_b = false;
    bool has_r = false;
    for (uint32_t size = 0; size <= 2; size++) {
        int c = byte_at(text, at + size);
        if (c == '\'' || c == '"')
            return size;
        bool *seen = c == 'b' || c == 'B' ? &has_b : c == 'r' || c == 'R' ? &has_r : NULL;
        if (seen == NULL || *seen)
            break;
        *seen = true;
    }
    return UINT32_MAX;
}

bool literal_starts(bytes text, uint32_t at)
{
    return byte_at(text, at) == '`' || prefix_size(text, at) != UINT32_MAX;
}

static void read_opening(struct reader *reader)
{
    if (byte_at(reader->text, reader->at) == '`') {
        reader->kind = LITERAL_IDENTIFIER;
        reader->quote = '`';
        reader->at++;
        return;
    }
    uint32_t prefix = prefix_size(reader->text, reader->at);
    for (uint32_t end = reader->at + prefix; reader->at < end; reader->at++) {
        int letter = tolower(reader->text.data[reader->at]);
        if (letter == 'b')
            reader->kind = LITERAL_BYTES;
        else
            reader->is_raw = true;
    }
    reader->quote = reader->text.data[reader->at];
    reader->is_triple = byte_at(reader->text, reader->at + 1) == reader->quote &&
                        byte_at(reader->text, reader->at + 2) == reader->quote;
    reader->at += reader->is_triple ? 3 : 1;
}

/* --- what is in it --- */

static bool at_closing(const struct reader *reader)
{
    for (uint32_t i = 0; i < (reader->is_triple ? 3u : 1u); i++)
        if (byte_at(reader->text, reader->at + i) != reader->quote)
            return false;
    return true;
}

static status bad_escape(const struct reader *reader, uint32_t size)
{
    uint32_t left = (uint32_t)reader->text.size - reader->at;
    return sql_error(reader->text, reader->at, "Syntax error: Illegal escape sequence: %.*s",
                     (int)(size < left ? size : left),
                     (const char *)reader->text.data + reader->at);
}

/* A number of `digits` digits of the base (8 or 16); -1 if they are not there. */
static int64_t digits_at(const struct reader *reader, uint32_t at, uint32_t digits, int base)
{
    int64_t number = 0;
    for (uint32_t i = 0; i < digits; i++) {
        int c = byte_at(reader->text, at + i);
        if (c < 0 || !isxdigit(c) || (base == 8 && (c < '0' || c > '7')))
            return -1;
        number = number * base + (isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
    }
    return number;
}

/* An escape of a number: `skip` bytes, then the digits. */
static status read_number(struct reader *reader, uint32_t skip, uint32_t digits, int base)
{
    bool is_code_point = digits >= 4;
    int64_t number = digits_at(reader, reader->at + skip, digits, base);
    bool is_surrogate = number >= 0xd800 && number <= 0xdfff;
    if (number < 0 || number > (is_code_point ? UTF8_LAST : 0xff) || is_surrogate ||
        (is_code_point && reader->kind == LITERAL_BYTES))
        return bad_escape(reader, skip + digits);
    if (reader->kind == LITERAL_BYTES)
        buffer_append_byte(&reader->out, (uint8_t)number);
    else
        utf8_append(&reader->out, (uint32_t)number);
    reader->at += skip + digits;
    return status_ok();
}

static status read_escape(struct reader *reader)
{
    static const char letters[] = "abfnrtv\\?\"'`";
    static const char meanings[] = "\a\b\f\n\r\t\v\\?\"'`";
    int c = byte_at(reader->text, reader->at + 1);
    const char *letter = c <= 0 ? NULL : strchr(letters, c);
    if (letter != NULL) {
        buffer_append_byte(&reader->out, (uint8_t)meanings[letter - letters]);
        reader->at += 2;
        return status_ok();
    }
    switch (c) {
    case 'x':
    case 'X':
        return read_number(reader, 2, 2, 16);
    case 'u':
        return read_number(reader, 2, 4, 16);
    case 'U':
        return read_number(reader, 2, 8, 16);
    default:
        return c >= '0' && c <= '7' ? read_number(reader, 1, 3, 8) : bad_escape(reader, 2);
    }
}

static status unclosed(const struct reader *reader)
{
    static const char *const names[] = {"string", "bytes", "identifier"};
    return sql_error(reader->text, reader->from, "Syntax error: Unclosed %s%s%s literal",
                     reader->is_triple ? "triple-quoted " : "", reader->is_raw ? "raw " : "",
                     names[reader->kind]);
}

/* One byte as it stands, or two of a raw literal's escape; the end of a line is one \n. */
static status read_plain(struct reader *reader)
{
    int c = byte_at(reader->text, reader->at);
    if (c < 0 || ((c == '\n' || c == '\r') && !reader->is_triple))
        return unclosed(reader);
    if (c == '\r') {
        reader->at += byte_at(reader->text, reader->at + 1) == '\n';
        c = '\n';
    }
    buffer_append_byte(&reader->out, (uint8_t)c);
    reader->at++;
    return status_ok();
}

static status read_next(struct reader *reader)
{
    bool is_escape = byte_at(reader->text, reader->at) == '\\';
    if (is_escape && !reader->is_raw && reader->at + 1 < reader->text.size)
        return read_escape(reader);
    TRY(read_plain(reader));
    return is_escape ? read_plain(reader) : status_ok();
}

static status check(const struct reader *reader)
{
    if (reader->kind == LITERAL_IDENTIFIER && reader->out.size == 0)
        return sql_error(reader->text, reader->from, "Syntax error: Invalid empty identifier");
    if (reader->kind == LITERAL_IDENTIFIER &&
        memchr(reader->out.data, '\0', reader->out.size) != NULL)
        return sql_error(reader->text, reader->from,
                         "Syntax error: Identifiers must not contain NUL");
    return status_ok();
}

static status read_all(struct reader *reader)
{
    read_opening(reader);
    while (!at_closing(reader))
        TRY(read_next(reader));
    reader->at += reader->is_triple ? 3 : 1;
    return check(reader);
}

status literal_read(bytes text, uint32_t at, struct arena *arena, struct literal *out)
{
    struct reader reader = {.text = text, .from = at, .at = at};
    status result = read_all(&reader);
    *out = (struct literal){.kind = reader.kind, .end = reader.at};
    if (status_is_ok(result)) {
        out->value = arena_copy(arena, buffer_bytes(&reader.out));
        if (reader.out.failed || out->value.data == NULL)
            result = status_out_of_memory();
    }
    buffer_free(&reader.out);
    return result;
}

/* --- and back --- */

static void append_byte(struct buffer *out, uint8_t byte, bool is_bytes)
{
    static const char controls[] = "\t\n\r";
    static const char letters[] = "tnr";
    const char *control = byte == 0 ? NULL : strchr(controls, byte);
    if (control != NULL)
        buffer_append_format(out, "\\%c", letters[control - controls]);
    else if (byte == '"' || byte == '\\')
        buffer_append_format(out, "\\%c", byte);
    else if (byte < ' ' || byte == 0x7f || (is_bytes && byte > 0x7f))
        buffer_append_format(out, "\\x%02x", byte);
    else
        buffer_append_byte(out, byte);
}

void literal_append_string(struct buffer *out, bytes value)
{
    buffer_append_byte(out, '"');
    for (size_t i = 0; i < value.size; i++)
        append_byte(out, value.data[i], false);
    buffer_append_byte(out, '"');
}

void literal_append_bytes(struct buffer *out, bytes value)
{
    buffer_append_format(out, "b\"");
    for (size_t i = 0; i < value.size; i++)
        append_byte(out, value.data[i], true);
    buffer_append_byte(out, '"');
}
