/* See grpc_text.h. */
#include "wire/grpc_text.h"

#include <stdio.h>

/* How long a unit is, in nanoseconds; 0 if there is no such unit. */
static int64_t unit_ns(uint8_t unit)
{
    switch (unit) {
    case 'H':
        return 3600 * INT64_C(1000000000);
    case 'M':
        return 60 * INT64_C(1000000000);
    case 'S':
        return 1000000000;
    case 'm':
        return 1000000;
    case 'u':
        return 1000;
    case 'n':
        return 1;
    default:
        return 0;
    }
}

bool grpc_timeout_parse(bytes text, int64_t *timeout_us)
{
    enum { MOST_DIGITS = 8 };
    *timeout_us = 0;
    if (text.size < 2 || text.size > MOST_DIGITS + 1)
        return false;
    int64_t number = 0;
    for (size_t i = 0; i < text.size - 1; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        number = number * 10 + (text.data[i] - '0');
    }
    int64_t unit = unit_ns(text.data[text.size - 1]);
    if (unit == 0)
        return false;
    *timeout_us = unit >= 1000 ? number * (unit / 1000) : (number + 999) / 1000;
    return true;
}

void grpc_timeout_format(int64_t timeout_us, char text[GRPC_TIMEOUT_TEXT_SIZE])
{
    static const struct {
        int64_t us;
        char name;
    } units[] = {{1, 'u'}, {1000, 'm'}, {1000000, 'S'}, {60 * INT64_C(1000000), 'M'}};
    const int64_t limit = 100000000; /* eight digits */
    size_t unit = 0;
    while (unit < 3 && timeout_us / units[unit].us >= limit - 1)
        unit++;
    int64_t number = timeout_us / units[unit].us + (timeout_us % units[unit].us != 0);
    if (number >= limit)
        number = limit - 1;
    snprintf(text, GRPC_TIMEOUT_TEXT_SIZE, "%d%c", (int)number, units[unit].name);
}

void grpc_percent_encode(bytes message, struct buffer *out)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < message.size; i++) {
        uint8_t c = message.data[i];
        bool is_edge = i == 0 || i + 1 == message.size; /* a blank there is no part of a header */
        if (c > (is_edge ? ' ' : ' ' - 1) && c <= '~' && c != '%') {
            buffer_append_byte(out, c);
            continue;
        }
        const char escaped[3] = {'%', digits[c >> 4], digits[c & 15]};
        buffer_append(out, escaped, sizeof escaped);
    }
}

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20; /* to lower case */
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void grpc_percent_decode(bytes text, struct buffer *out)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '%' && text.size - i > 2) {
            int high = hex_value(text.data[i + 1]);
            int low = hex_value(text.data[i + 2]);
            if (high >= 0 && low >= 0) {
                buffer_append_byte(out, (uint8_t)(high << 4 | low));
                i += 2;
                continue;
            }
        }
        buffer_append_byte(out, text.data[i]);
    }
}

bool grpc_parameter_next(bytes *rest, bytes *key, bytes *value)
{
    if (rest->size == 0)
        return false;
    const uint8_t *end = memchr(rest->data, '&', rest->size);
    size_t size = end == NULL ? rest->size : (size_t)(end - rest->data);
    const uint8_t *equals = size == 0 ? NULL : memchr(rest->data, '=', size);
    size_t key_size = equals == NULL ? size : (size_t)(equals - rest->data);
    *key = bytes_make(rest->data, key_size);
    *value = bytes_make(rest->data + key_size, size - key_size);
    if (equals != NULL)
        *value = bytes_from(*value, 1);
    *rest = bytes_from(*rest, end == NULL ? size : size + 1);
    return true;
}

/* Three bytes become four digits; fewer, at the end, become one more than they are. */
static void encode(bytes b, const char digits[64], struct buffer *out)
{
    uint8_t *to = buffer_reserve(out, b.size / 3 * 4 + 4);
    if (to == NULL)
        return;
    for (size_t i = 0; i < b.size; i += 3) {
        size_t left = b.size - i;
        uint32_t word = (uint32_t)b.data[i] << 16;
        if (left > 1)
            word |= (uint32_t)b.data[i + 1] << 8;
        if (left > 2)
            word |= b.data[i + 2];
        for (unsigned k = 0; k < 4; k++)
            to[k] = (uint8_t)digits[word >> (18 - 6 * k) & 63];
        to += left > 2 ? 4 : left + 1;
    }
    out->size = (size_t)(to - out->data);
}

#define LETTERS_AND_NUMBERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

void base64_encode(bytes b, struct buffer *out)
{
    encode(b, LETTERS_AND_NUMBERS "+/", out);
}

void base64url_encode(bytes b, struct buffer *out)
{
    encode(b, LETTERS_AND_NUMBERS "-_", out);
}

static int base64_value(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

bool base64_decode(bytes text, uint8_t *to, size_t *size)
{
    *size = 0;
    if (text.size % 4 == 0)
        for (int padding = 0; padding < 2 && text.size > 0; padding++)
            if (text.data[text.size - 1] == '=')
                text.size--;
    if (text.size % 4 == 1)
        return false;
    uint32_t word = 0;
    for (size_t i = 0; i < text.size; i++) {
        int value = base64_value(text.data[i]);
        if (value < 0)
            return false;
        word = word << 6 | (uint32_t)value;
        if (i % 4 != 0) /* after the second, third and fourth digit a byte is whole */
            to[(*size)++] = (uint8_t)(word >> (6 - 2 * (i % 4)));
    }
    return true;
}
