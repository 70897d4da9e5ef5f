/* How the text of a field becomes bytes, and back. See fields.h. */
#include "formats/fields.h"
#include "formats/item.h"
#include "wire/grpc_text.h"
#include "wire/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORD = 8, US_PER_MS = 1000, US_PER_S = 1000 * 1000, NANOS_PER_MS = 1000 * 1000 };

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

/* --- from text --- */

static status keep_word(uint64_t word, struct arena *arena, bytes *out)
{
    uint8_t *to = arena_alloc(arena, WORD);
    if (to == NULL)
        return status_out_of_memory();
    for (int i = 0; i < WORD; i++)
        to[i] = (uint8_t)(word >> (56 - 8 * i));
    *out = bytes_make(to, WORD);
    return status_ok();
}

static status from_int64(bytes text, struct arena *arena, bytes *out)
{
    struct item_number number;
    int64_t integer;
    status s = item_number_parse(text, &number);
    bool is_integer = status_is_ok(s) && item_number_to_int64(&number, &integer);
    status_free(s);
    return is_integer ? keep_word((uint64_t)integer, arena, out)
                      : INVALID("is no integer of 64 bits");
}

/* What strtod takes besides, hexadecimal numbers and white space, is not taken. */
static bool may_be_double(bytes text)
{
    static const char *const names[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bytes_equal(text, bytes_of(names[i])))
            return true;
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == '\0' || strchr("0123456789+-.eE", text.data[i]) == NULL)
            return false;
    return text.size > 0;
}

static status from_double(bytes text, struct arena *arena, bytes *out)
{
    char *end, *copy = arena_string(arena, text);
    uint64_t word;
    if (copy == NULL)
        return status_out_of_memory();
    double number = strtod(copy, &end);
    if (!may_be_double(text) || *end != '\0')
        return INVALID("is no number");
    memcpy(&word, &number, WORD);
    return keep_word(word, arena, out);
}

static status from_base64(bytes text, struct arena *arena, bytes *out)
{
    size_t size;
    uint8_t *to = arena_alloc(arena, base64_decoded_most(text.size));
    if (to == NULL)
        return status_out_of_memory();
    if (!base64_decode(text, to, &size))
        return INVALID("is not base64");
    *out = bytes_make(to, size);
    return status_ok();
}

static int hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static status from_hex(bytes text, struct arena *arena, bytes *out)
{
    uint8_t *to = arena_alloc(arena, text.size / 2);
    if (to == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i + 1 < text.size; i += 2) {
        int high = hex_digit(text.data[i]), low = hex_digit(text.data[i + 1]);
        if (high < 0 || low < 0)
            return INVALID("has something that is no hexadecimal digit");
        to[i / 2] = (uint8_t)(high << 4 | low);
    }
    *out = bytes_make(to, text.size / 2);
    return text.size % 2 == 0 ? status_ok() : INVALID("has an odd number of hexadecimal digits");
}

status field_to_bytes(enum field_type type, bytes text, struct arena *arena, bytes *out)
{
    switch (type) {
    case FIELD_INT64:
        return from_int64(text, arena, out);
    case FIELD_DOUBLE:
        return from_double(text, arena, out);
    case FIELD_BASE64:
        return from_base64(text, arena, out);
    case FIELD_HEX:
        return from_hex(text, arena, out);
    case FIELD_STRING:
        break;
    }
    *out = text;
    return status_ok();
}

/* --- to text --- */

static status take_word(bytes value, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < value.size && i < WORD; i++)
        *out = *out << 8 | value.data[i];
    return value.size == WORD ? status_ok() : INVALID("has %zu bytes, and its type 8", value.size);
}

static status to_int64(bytes value, struct buffer *out)
{
    uint64_t word;
    TRY(take_word(value, &word));
    buffer_append_format(out, "%" PRId64, (int64_t)word);
    return status_ok();
}

/* As few digits as give the number back. */
static status to_double(bytes value, struct buffer *out)
{
    enum { DIGITS_LEAST = 15, DIGITS_MOST = 17 };
    char text[40];
    uint64_t word;
    double number;
    TRY(take_word(value, &word));
    memcpy(&number, &word, WORD);
    if (number != number) {
        buffer_append_bytes(out, bytes_of("NaN"));
        return status_ok();
    }
    for (int digits = DIGITS_LEAST; digits <= DIGITS_MOST; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    bool is_infinite = strstr(text, "inf") != NULL;
    buffer_append_bytes(out, bytes_of(!is_infinite   ? text
                                      : number < 0.0 ? "-Infinity"
                                                     : "Infinity"));
    return status_ok();
}

static void to_base64(bytes value, struct buffer *out)
{
    base64_encode(value, out);
    buffer_append(out, "==", (3 - value.size % 3) % 3);
}

static void to_hex(bytes value, struct buffer *out)
{
    for (size_t i = 0; i < value.size; i++)
        buffer_append_format(out, "%02x", value.data[i]);
}

status field_to_text(enum field_type type, bytes value, struct buffer *out)
{
    switch (type) {
    case FIELD_INT64:
        return to_int64(value, out);
    case FIELD_DOUBLE:
        return to_double(value, out);
    case FIELD_BASE64:
        to_base64(value, out);
        return status_ok();
    case FIELD_HEX:
        to_hex(value, out);
        return status_ok();
    case FIELD_STRING:
        break;
    }
    buffer_append_bytes(out, value);
    return status_ok();
}

/* --- times --- */

static bool time_of_number(const struct item_number *number, int64_t *us)
{
    const int64_t seconds_end = 100000000000, ms_end = 1000 * seconds_end;
    struct item_number scaled = *number;
    int64_t whole;
    if (number->is_negative || number->power > 18)
        return false;
    if (!item_number_to_int64(&scaled, &whole)) { /* decimals: of seconds, or less */
        struct buffer plain = {0};
        item_number_append_plain(number, &plain);
        buffer_append_byte(&plain, '\0');
        double value = plain.failed ? -1 : strtod((const char *)plain.data, NULL);
        buffer_free(&plain);
        if (value < 0 || value >= (double)seconds_end)
            return false;
        *us = (int64_t)(value * 1000 + 0.5) * US_PER_MS;
        return true;
    }
    *us = whole < seconds_end ? whole * US_PER_S
          : whole < ms_end    ? whole * US_PER_MS
                              : whole / US_PER_MS * US_PER_MS;
    return true;
}

bool field_to_time(bytes text, int64_t *us)
{
    struct item_number number;
    int64_t seconds;
    int32_t nanos;
    status s = item_number_parse(text, &number);
    bool is_number = status_is_ok(s);
    status_free(s);
    if (is_number)
        return time_of_number(&number, us);
    if (!json_parse_timestamp(text, &seconds, &nanos) || seconds < 0)
        return false;
    *us = seconds * US_PER_S + nanos / NANOS_PER_MS * US_PER_MS;
    return true;
}
