/* The tokens of JSON (RFC 8259). See json_text.h. */
#include "wire/json_text.h"

#include "base/utf8.h"
#include "wire/json.h"

#include <endian.h>

enum { FIRST_HIGH_SURROGATE = 0xd800, FIRST_LOW_SURROGATE = 0xdc00, AFTER_SURROGATES = 0xe000 };

static void skip_space(struct json_reader *reader)
{
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t' ||
                                        *reader->at == '\n' || *reader->at == '\r'))
        reader->at++;
}

enum json_kind json_peek(struct json_reader *reader)
{
    skip_space(reader);
    if (reader->at == reader->end)
        return JSON_BAD;
    switch (*reader->at) {
    case 'n':
        return JSON_NULL;
    case 'f':
        return JSON_FALSE;
    case 't':
        return JSON_TRUE;
    case '"':
        return JSON_STRING;
    case '[':
        return JSON_ARRAY;
    case '{':
        return JSON_OBJECT;
    default:
        return *reader->at == '-' || (*reader->at >= '0' && *reader->at <= '9') ? JSON_NUMBER
                                                                                : JSON_BAD;
    }
}

bool json_take(struct json_reader *reader, char byte)
{
    skip_space(reader);
    if (reader->at == reader->end || *reader->at != (uint8_t)byte)
        return false;
    reader->at++;
    return true;
}

/* --- numbers --- */

static const uint8_t *skip_digits(const uint8_t *at, const uint8_t *end)
{
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

/* Where the number that begins at `at` ends; NULL if none begins there. */
static const uint8_t *number_end(const uint8_t *at, const uint8_t *end)
{
    at += at < end && *at == '-';
    const uint8_t *digits = at;
    at = skip_digits(at, end);
    if (at == digits || (*digits == '0' && at - digits > 1))
        return NULL;
    if (at < end && *at == '.') {
        digits = ++at;
        at = skip_digits(at, end);
        if (at == digits)
            return NULL;
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < end && (*at == '+' || *at == '-');
        digits = at;
        at = skip_digits(at, end);
        if (at == digits)
            return NULL;
    }
    return at;
}

bool json_is_number(bytes text)
{
    return text.size > 0 && number_end(text.data, text.data + text.size) == text.data + text.size;
}

/* --- strings --- */

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The four digits after "\u"; -1 if they are none. */
static int32_t read_hex(const uint8_t *at, const uint8_t *end)
{
    int32_t value = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_value(at[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* What follows "\u", of which there may be a second for the low surrogate; NULL if it is wrong. */
static const uint8_t *unescape_code(const uint8_t *at, const uint8_t *end, struct buffer *out)
{
    int32_t code = read_hex(at, end);
    if (code < 0 || (code >= FIRST_LOW_SURROGATE && code < AFTER_SURROGATES))
        return NULL;
    at += 4;
    if (code >= FIRST_HIGH_SURROGATE && code < FIRST_LOW_SURROGATE) {
        if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
            return NULL;
        int32_t low = read_hex(at + 2, end);
        if (low < FIRST_LOW_SURROGATE || low >= AFTER_SURROGATES)
            return NULL;
        code = 0x10000 + ((code - FIRST_HIGH_SURROGATE) << 10) + (low - FIRST_LOW_SURROGATE);
        at += 6;
    }
    utf8_append(out, (uint32_t)code);
    return at;
}

/* What follows a backslash. */
static const uint8_t *unescape_one(const uint8_t *at, const uint8_t *end, struct buffer *out)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (at == end)
        return NULL;
    if (*at == 'u')
        return unescape_code(at + 1, end, out);
    const char *letter = *at == '\0' ? NULL : strchr(letters, *at);
    if (letter == NULL)
        return NULL;
    buffer_append_byte(out, (uint8_t)meanings[letter - letters]);
    return at + 1;
}

bool json_unescape(bytes text, struct buffer *out)
{
    if (text.size == 0)
        return true;
    if (!utf8_is_valid(text))
        return false;
    const uint8_t *at = text.data, *end = text.data + text.size;
    while (at < end) {
        const uint8_t *escape = memchr(at, '\\', (size_t)(end - at));
        buffer_append(out, at, (size_t)((escape == NULL ? end : escape) - at));
        if (escape == NULL)
            return true;
        at = unescape_one(escape + 1, end, out);
        if (at == NULL)
            return false;
    }
    return true;
}

/* Of eight bytes in a word, the first of which is its lowest: a bit in the first one that is a
 * control character, a quote or a backslash, and none below it; 0 if there is none. */
static uint64_t find_special(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u, highest = 0x80 * ones;
    uint64_t quote = word ^ ones * '"', backslash = word ^ ones * '\\';
    return (((word - ones * ' ') & ~word) | ((quote - ones) & ~quote) |
            ((backslash - ones) & ~backslash)) &
           highest;
}

static bool is_special(uint8_t byte)
{
    return byte < ' ' || byte == '"' || byte == '\\';
}

/* The first special byte, else the end. What is in between is passed a word at a time: most of what
 * an import reads is the inside of strings. */
static const uint8_t *next_special(const uint8_t *at, const uint8_t *end)
{
    for (uint64_t word; end - at >= (ptrdiff_t)sizeof word; at += sizeof word) {
        memcpy(&word, at, sizeof word);
        uint64_t found = find_special(le64toh(word));
        if (found != 0)
            return at + __builtin_ctzll(found) / 8;
    }
    while (at < end && !is_special(*at))
        at++;
    return at;
}

/* The string's end, at its second quote; NULL without one, or if a control character comes first.
 */
static const uint8_t *string_end(const uint8_t *at, const uint8_t *end)
{
    for (at = next_special(at, end); at < end; at = next_special(at, end)) {
        if (*at == '"')
            return at;
        if (*at != '\\' || end - at < 2)
            return NULL;
        at += 2;
    }
    return NULL;
}

void json_encode_string(bytes text, struct buffer *out)
{
    buffer_append_byte(out, '"');
    size_t plain = 0; /* where what is not written yet begins */
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>')
            continue;
        buffer_append(out, text.data + plain, i - plain);
        plain = i + 1;
        if (c == '"' || c == '\\')
            buffer_append_format(out, "\\%c", c);
        else if (c == '\n')
            buffer_append(out, "\\n", 2);
        else
            buffer_append_format(out, "\\u%04x", c);
    }
    buffer_append_bytes(out, bytes_from(text, plain));
    buffer_append_byte(out, '"');
}

void json_encode_shown(bytes text, struct buffer *out)
{
    if (utf8_is_valid(text)) {
        json_encode_string(text, out);
        return;
    }
    struct buffer shown = {0};
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < 0x80)
            buffer_append_byte(&shown, text.data[i]);
        else
            buffer_append_format(&shown, "\\x%02x", text.data[i]);
    }
    out->failed |= shown.failed;
    json_encode_string(buffer_bytes(&shown), out);
    buffer_free(&shown);
}

/* --- values --- */

static bool take_word(struct json_reader *reader, const char *word)
{
    bytes left = bytes_make(reader->at, (size_t)(reader->end - reader->at));
    if (!bytes_start_with(left, bytes_of(word)))
        return false;
    reader->at += strlen(word);
    return true;
}

enum json_kind json_take_scalar(struct json_reader *reader, bytes *text)
{
    enum json_kind kind = json_peek(reader);
    const uint8_t *start = reader->at, *end;
    bool is_taken = false;
    switch (kind) {
    case JSON_NULL:
        is_taken = take_word(reader, "null");
        break;
    case JSON_FALSE:
        is_taken = take_word(reader, "false");
        break;
    case JSON_TRUE:
        is_taken = take_word(reader, "true");
        break;
    case JSON_NUMBER:
        end = number_end(start, reader->end);
        is_taken = end != NULL;
        reader->at = is_taken ? end : start;
        break;
    case JSON_STRING:
        end = string_end(start + 1, reader->end);
        if (end == NULL)
            return JSON_BAD;
        *text = bytes_make(start + 1, (size_t)(end - start - 1));
        reader->at = end + 1;
        return JSON_STRING;
    default:
        break;
    }
    *text = bytes_make(start, (size_t)(reader->at - start));
    return is_taken ? kind : JSON_BAD;
}

static bool skip_members(struct json_reader *reader, bool have_names, char close, unsigned depth)
{
    bytes name;
    if (json_take(reader, close))
        return true;
    do {
        if (have_names &&
            (json_take_scalar(reader, &name) != JSON_STRING || !json_take(reader, ':')))
            return false;
        if (!json_skip(reader, depth))
            return false;
    } while (json_take(reader, ','));
    return json_take(reader, close);
}

bool json_skip(struct json_reader *reader, unsigned depth)
{
    bytes text;
    enum json_kind kind = json_peek(reader);
    if (kind != JSON_ARRAY && kind != JSON_OBJECT)
        return json_take_scalar(reader, &text) != JSON_BAD;
    if (depth == 0)
        return false;
    reader->at++;
    return skip_members(reader, kind == JSON_OBJECT, kind == JSON_OBJECT ? '}' : ']', depth - 1);
}
