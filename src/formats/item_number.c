/* DynamoDB's numbers: decimal, of 38 digits. See item.h. */
#include "formats/item.h"

#include <limits.h>

/* --- parsing --- */

/* The digits of a number's text, while they are looked at. */
struct mantissa {
    struct item_number *number;
    size_t zeroes; /* seen since the last other digit */
    int32_t power; /* of ten, of what stands before the point */
    bool is_too_long;
    bool has_digits;
};

/* Zeroes wait until another digit shows that they count. */
static void take_digit(struct mantissa *mantissa, char digit, bool is_fraction)
{
    struct item_number *number = mantissa->number;
    bool has_begun = number->count > 0 || digit != '0';
    mantissa->has_digits = true;
    if (has_begun ? !is_fraction : is_fraction)
        mantissa->power += is_fraction ? -1 : 1;
    if (digit == '0') {
        mantissa->zeroes += has_begun;
        return;
    }
    if (number->count + mantissa->zeroes + 1 > ITEM_MOST_DIGITS) {
        mantissa->is_too_long = true;
        return;
    }
    for (; mantissa->zeroes > 0; mantissa->zeroes--)
        number->digits[number->count++] = '0';
    number->digits[number->count++] = digit;
}

static size_t take_digits(bytes text, size_t at, struct mantissa *mantissa, bool is_fraction)
{
    for (; at < text.size && text.data[at] >= '0' && text.data[at] <= '9'; at++)
        take_digit(mantissa, (char)text.data[at], is_fraction);
    return at;
}

/* Takes the power that follows 'e': false if it is no integer. Beyond 9999 it stays there: more
 * than enough. */
static bool take_power(bytes text, size_t *at, int32_t *power)
{
    bool is_negative = *at < text.size && text.data[*at] == '-';
    int32_t value = 0;
    *at += *at < text.size && (text.data[*at] == '-' || text.data[*at] == '+');
    size_t first = *at;
    for (; *at < text.size && text.data[*at] >= '0' && text.data[*at] <= '9'; ++*at)
        value = value > 999 ? 9999 : 10 * value + (text.data[*at] - '0');
    *power += is_negative ? -value : value;
    return *at > first;
}

static bool parse(bytes text, struct mantissa *mantissa)
{
    size_t at = text.size > 0 && (text.data[0] == '-' || text.data[0] == '+');
    mantissa->number->is_negative = at > 0 && text.data[0] == '-';
    at = take_digits(text, at, mantissa, false);
    if (at < text.size && text.data[at] == '.')
        at = take_digits(text, at + 1, mantissa, true);
    if (!mantissa->has_digits)
        return false;
    bool has_power = at < text.size && (text.data[at] == 'e' || text.data[at] == 'E');
    at += has_power;
    return (!has_power || take_power(text, &at, &mantissa->power)) && at == text.size;
}

static status refuse(bytes text, const char *why)
{
    enum { SHOWN = 60 };
    int size = text.size < SHOWN ? (int)text.size : SHOWN;
    return status_make(STATUS_INVALID_ARGUMENT, "%.*s is %s", size, (const char *)text.data, why);
}

status item_number_parse(bytes text, struct item_number *out)
{
    struct mantissa mantissa = {.number = out};
    *out = (struct item_number){0};
    if (!parse(text, &mantissa))
        return refuse(text, "no number");
    if (mantissa.is_too_long)
        return refuse(text, "a number of more than 38 digits");
    if (out->count == 0) {
        out->is_negative = false;
        return status_ok();
    }
    if (mantissa.power - 1 < ITEM_LEAST_POWER || mantissa.power - 1 > ITEM_MOST_POWER)
        return refuse(text, "a number out of range");
    out->power = (int16_t)mantissa.power;
    return status_ok();
}

/* --- writing --- */

static void append_turned(struct buffer *out, uint8_t byte, bool is_negative)
{
    buffer_append_byte(out, is_negative ? (uint8_t)~byte : byte);
}

void item_number_append_ordered(const struct item_number *number, struct buffer *out)
{
    bool is_negative = number->is_negative;
    buffer_append_byte(out, number->count == 0 ? 1 : is_negative ? 0 : 2);
    if (number->count == 0)
        return;
    uint16_t power = (uint16_t)number->power ^ 0x8000u;
    append_turned(out, (uint8_t)(power >> 8), is_negative);
    append_turned(out, (uint8_t)power, is_negative);
    for (size_t i = 0; i < number->count; i += 2) {
        int tens = number->digits[i] - '0';
        int ones = i + 1 < number->count ? number->digits[i + 1] - '0' : 0;
        append_turned(out, (uint8_t)(10 * tens + ones + 1), is_negative);
    }
    append_turned(out, 0, is_negative);
}

static void append_zeroes(struct buffer *out, int count)
{
    for (int i = 0; i < count; i++)
        buffer_append_byte(out, '0');
}

void item_number_append_plain(const struct item_number *number, struct buffer *out)
{
    int count = number->count, power = number->power;
    int whole = power < 0 ? 0 : power > count ? count : power; /* digits before the point */
    if (number->is_negative)
        buffer_append_byte(out, '-');
    if (whole == 0)
        buffer_append_byte(out, '0');
    buffer_append(out, number->digits, (size_t)whole);
    append_zeroes(out, power - whole);
    if (whole == count)
        return;
    buffer_append_byte(out, '.');
    append_zeroes(out, -power);
    buffer_append(out, number->digits + whole, (size_t)(count - whole));
}

bool item_number_to_int64(const struct item_number *number, int64_t *out)
{
    enum { MOST_DIGITS = 19 };
    int64_t value = 0;
    if (number->power > MOST_DIGITS || (number->count > 0 && number->power < number->count))
        return false;
    for (int i = 0; i < number->power; i++) {
        int digit = i < number->count ? number->digits[i] - '0' : 0;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, digit, &value))
            return false;
    }
    /* Negative all the while: there is one number more there. */
    if (!number->is_negative && value == INT64_MIN)
        return false;
    *out = number->is_negative ? value : -value;
    return true;
}
