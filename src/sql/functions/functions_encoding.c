/* Bytes as text in hexadecimal, base 32 and base 64, and back; digests of bytes. */
#include "os/digest.h"
#include "sql/functions/fingerprint.h"
#include "sql/functions/function_tables.h"
#include "sql/text.h"

/* --- hexadecimal --- */

static status to_hex(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    (void)count;
    static const char digits[] = "0123456789abcdef";
    bytes text = args[0].text;
    uint8_t *hex = arena_alloc(call->arena, 2 * text.size);
    if (hex == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < text.size; i++) {
        hex[2 * i] = (uint8_t)digits[text.data[i] >> 4];
        hex[2 * i + 1] = (uint8_t)digits[text.data[i] & 0xf];
    }
    *out = sql_of_text(bytes_make(hex, 2 * text.size));
    return status_ok();
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    uint8_t letter = c | 0x20;
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* An odd number of digits has a 0 before it. */
static status from_hex(const struct sql_call *call, const struct sql_value *args, size_t count,
                       struct sql_value *out)
{
    (void)count;
    bytes text = args[0].text;
    size_t size = (text.size + 1) / 2, skipped = text.size % 2;
    uint8_t *result = arena_zalloc(call->arena, size);
    if (result == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < text.size; i++) {
        int digit = hex_digit(text.data[i]);
        if (digit < 0)
            return status_make(STATUS_OUT_OF_RANGE,
                               "Failed to decode invalid hexadecimal string due to character at "
                               "position %zu: %.*s",
                               i + 1, (int)utf8_size(text.data[i]), (const char *)text.data + i);
        uint8_t *byte = &result[(i + skipped) / 2];
        *byte = (uint8_t)(*byte << 4 | digit);
    }
    *out = sql_of_text(bytes_make(result, size));
    return status_ok();
}

/* --- base 32 and base 64 (RFC 4648) --- */

struct base {
    const char *name;
    const char *digits;
    unsigned bits;  /* of a digit */
    unsigned group; /* digits that make whole bytes together */
};

static const struct base base32 = {"base32", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 5, 8};
static const struct base base64 = {
    "base64", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 6, 4};

static status encode(const struct sql_call *call, const struct base *base, bytes text,
                     struct sql_value *out)
{
    struct buffer result = {.budget = call->session->budget};
    unsigned held = 0, held_bits = 0;
    for (size_t i = 0; i < text.size; i++) {
        held = (held << 8 | text.data[i]) & 0xffff;
        for (held_bits += 8; held_bits >= base->bits; held_bits -= base->bits) {
            unsigned digit = held >> (held_bits - base->bits) & ((1U << base->bits) - 1);
            buffer_append_byte(&result, (uint8_t)base->digits[digit]);
        }
    }
    if (held_bits > 0) {
        unsigned digit = held << (base->bits - held_bits) & ((1U << base->bits) - 1);
        buffer_append_byte(&result, (uint8_t)base->digits[digit]);
    }
    while (result.size % base->group != 0 && !result.failed)
        buffer_append_byte(&result, '=');
    return text_result(call, &result, out);
}

static status to_base32(const struct sql_call *call, const struct sql_value *args, size_t count,
                        struct sql_value *out)
{
    (void)count;
    return encode(call, &base32, args[0].text, out);
}

static status to_base64(const struct sql_call *call, const struct sql_value *args, size_t count,
                        struct sql_value *out)
{
    (void)count;
    return encode(call, &base64, args[0].text, out);
}

/* Takes the `=` at the end away. They may be left out, but if there are any, they must fill up the
 * last group. */
static bool strip_padding(const struct base *base, bytes *text)
{
    size_t size = text->size;
    while (size > 0 && text->data[size - 1] == '=')
        size--;
    size_t padding = text->size - size;
    bool fits = padding == 0 || (padding < base->group && text->size % base->group == 0);
    text->size = size;
    return fits;
}

/* Digits at the end that do not make a byte must be as few as encoding leaves. */
static bool decode_digits(const struct base *base, bytes text, struct buffer *out)
{
    unsigned held = 0, held_bits = 0;
    for (size_t i = 0; i < text.size; i++) {
        const char *digit = text.data[i] == '\0' ? NULL : strchr(base->digits, (char)text.data[i]);
        if (digit == NULL)
            return false;
        held = (held << base->bits | (unsigned)(digit - base->digits)) & 0xffff;
        held_bits += base->bits;
        if (held_bits >= 8) {
            held_bits -= 8;
            buffer_append_byte(out, (uint8_t)(held >> held_bits));
        }
    }
    return held_bits < base->bits;
}

static status decode(const struct sql_call *call, const struct base *base, bytes text,
                     struct sql_value *out)
{
    struct buffer result = {.budget = call->session->budget};
    if (strip_padding(base, &text) && decode_digits(base, text, &result))
        return text_result(call, &result, out);
    buffer_free(&result);
    return status_make(STATUS_OUT_OF_RANGE, "Failed to decode invalid %s string", base->name);
}

static status from_base32(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)count;
    return decode(call, &base32, args[0].text, out);
}

static status from_base64(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)count;
    return decode(call, &base64, args[0].text, out);
}

/* --- digests --- */

static status digest(const struct sql_call *call, const struct sql_value *args,
                     enum digest_kind kind, struct sql_value *out)
{
    size_t size;
    uint8_t *result = arena_alloc(call->arena, DIGEST_MOST_BYTES);
    if (result == NULL)
        return status_out_of_memory();
    TRY(digest_compute(kind, args[0].text, result, &size));
    *out = sql_of_text(bytes_make(result, size));
    return status_ok();
}

static status md5(const struct sql_call *call, const struct sql_value *args, size_t count,
                  struct sql_value *out)
{
    (void)count;
    return digest(call, args, DIGEST_MD5, out);
}

static status sha1(const struct sql_call *call, const struct sql_value *args, size_t count,
                   struct sql_value *out)
{
    (void)count;
    return digest(call, args, DIGEST_SHA1, out);
}

static status sha256(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    (void)count;
    return digest(call, args, DIGEST_SHA256, out);
}

static status sha512(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    (void)count;
    return digest(call, args, DIGEST_SHA512, out);
}

static status fingerprint(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64((int64_t)farm_fingerprint(args[0].text));
    return status_ok();
}

const struct sql_function sql_encoding_functions[] = {
    {"TO_HEX", "STRING(BYTES)", to_hex},
    {"FROM_HEX", "BYTES(STRING)", from_hex},
    {"TO_BASE32", "STRING(BYTES)", to_base32},
    {"FROM_BASE32", "BYTES(STRING)", from_base32},
    {"TO_BASE64", "STRING(BYTES)", to_base64},
    {"FROM_BASE64", "BYTES(STRING)", from_base64},
    {"MD5", "BYTES(STRING)", md5},
    {"MD5", "BYTES(BYTES)", md5},
    {"SHA1", "BYTES(STRING)", sha1},
    {"SHA1", "BYTES(BYTES)", sha1},
    {"SHA256", "BYTES(STRING)", sha256},
    {"SHA256", "BYTES(BYTES)", sha256},
    {"SHA512", "BYTES(STRING)", sha512},
    {"SHA512", "BYTES(BYTES)", sha512},
    {"FARM_FINGERPRINT", "INT64(STRING)", fingerprint},
    {"FARM_FINGERPRINT", "INT64(BYTES)", fingerprint},
    {0},
};
