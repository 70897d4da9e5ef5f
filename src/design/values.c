/* See made_table.h: what stands in a part of a key, by kind. */
#include "design/made_table.h"

#include <stdio.h>
#include <time.h>

enum { US_PER_MS = 1000, US_PER_S = 1000 * 1000, NS_PER_US = 1000 };

/* The last step of splitmix64 by Vigna, once for each number. */
uint64_t made_random(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t numbers[] = {seed, a, b, c};
    uint64_t x = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        x += numbers[i] + 0x9e3779b97f4a7c15;
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
        x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
        x ^= x >> 31;
    }
    return x;
}

/* Something that can be spoken, and is no word of any language. */
static void append_word(uint64_t random, struct buffer *out)
{
    static const char consonants[] = "bdfghjklmnprstvwz", vowels[] = "aeiou";
    enum { SYLLABLES = 4, CONSONANTS = sizeof consonants - 1, VOWELS = sizeof vowels - 1 };
    for (size_t i = 0; i < SYLLABLES; i++) {
        buffer_append_byte(out, (uint8_t)consonants[random % CONSONANTS]);
        random /= CONSONANTS;
        buffer_append_byte(out, (uint8_t)vowels[random % VOWELS]);
        random /= VOWELS;
    }
}

static void append_number(const struct design_part *part, uint64_t number, struct buffer *out)
{
    buffer_append_format(out, "%0*llu", (int)part->digits, (unsigned long long)number);
}

/* Any of a range; all of it where there are as many values as that has numbers. */
static uint64_t number_of(const struct design_part *part, uint64_t seed, uint64_t value)
{
    uint64_t span = part->to - part->from + 1;
    if (part->is_rising)
        return part->from + value;
    return part->from + (value < span && span <= MADE_OWNERS_LEAST
                             ? value
                             : made_random(seed, value, 0, 0) % span);
}

/* --- times --- */

static void append_date(enum design_time_form form, int64_t time_us, struct buffer *out)
{
    static const char *const formats[] = {[TIME_DATE] = "%Y-%m-%d",
                                          [TIME_COMPACT] = "%Y%m%d",
                                          [TIME_DATETIME] = "%Y-%m-%dT%H:%M:%SZ"};
    time_t seconds = (time_t)(time_us / US_PER_S);
    struct tm date;
    char text[64];
    gmtime_r(&seconds, &date);
    buffer_append(out, text, strftime(text, sizeof text, formats[form], &date));
}

/* In digits as many as a time of our years has, of which a reversed one is what is missing to the
 * largest. */
static void append_time(const struct design_part *part, int64_t time_us, struct buffer *out)
{
    const uint64_t seconds = (uint64_t)time_us / US_PER_S;
    uint64_t number = seconds, largest = 9999999999;
    switch (part->form) {
    case TIME_HEX:
        buffer_append_format(
            out, "%08llx",
            (unsigned long long)(part->is_reversed ? UINT32_MAX - seconds : seconds));
        return;
    case TIME_MILLISECONDS:
        number = (uint64_t)time_us / US_PER_MS;
        largest = 9999999999999;
        break;
    case TIME_MICROSECONDS:
        number = (uint64_t)time_us;
        largest = 9999999999999999;
        break;
    case TIME_NANOSECONDS:
        number = (uint64_t)time_us * NS_PER_US;
        largest = 9999999999999999999u;
        break;
    case TIME_SECONDS:
        break;
    default:
        append_date(part->form, time_us, out);
        return;
    }
    buffer_append_format(out, "%llu",
                         (unsigned long long)(part->is_reversed ? largest - number : number));
}

/* --- identifiers --- */

static void append_hex(uint64_t seed, uint64_t value, uint64_t digits, struct buffer *out)
{
    enum { DIGITS_A_NUMBER = 16 };
    for (uint64_t i = 0; i < digits; i += DIGITS_A_NUMBER) {
        uint64_t left = digits - i, count = left < DIGITS_A_NUMBER ? left : DIGITS_A_NUMBER;
        char text[DIGITS_A_NUMBER + 1];
        snprintf(text, sizeof text, "%016llx", (unsigned long long)made_random(seed, value, i, 1));
        buffer_append(out, text, count);
    }
}

/* Of version 4, or of 7, which begins with the milliseconds. */
static void append_uuid(const struct design_part *part, uint64_t seed, uint64_t value,
                        int64_t time_us, struct buffer *out)
{
    uint64_t high = made_random(seed, value, 0, 2), low = made_random(seed, value, 1, 2);
    if (part->version == 7)
        high = (uint64_t)time_us / US_PER_MS << 16 | (high & 0xffff);
    high = (high & ~(uint64_t)0xf000) | part->version << 12;
    low = (low >> 2) | (uint64_t)1 << 63;
    buffer_append_format(
        out, "%08llx-%04llx-%04llx-%04llx-%012llx", (unsigned long long)(high >> 32),
        (unsigned long long)(high >> 16 & 0xffff), (unsigned long long)(high & 0xffff),
        (unsigned long long)(low >> 48), (unsigned long long)(low & 0xffffffffffff));
}

static void append_domain(const struct design_part *part, uint64_t random, struct buffer *out)
{
    static const char *const tops[] = {"com", "org", "net", "io"};
    const char *top = tops[random % (sizeof tops / sizeof *tops)];
    if (part->is_reversed)
        buffer_append_format(out, "%s.", top);
    else
        buffer_append_bytes(out, bytes_of("www."));
    append_word(random >> 8, out);
    if (part->is_reversed)
        buffer_append_bytes(out, bytes_of(".www"));
    else
        buffer_append_format(out, ".%s", top);
}

static void append_email(uint64_t random, struct buffer *out)
{
    append_word(random, out);
    buffer_append_byte(out, '.');
    append_word(made_random(random, 1, 0, 0), out);
    buffer_append_bytes(out, bytes_of("@example.com"));
}

static void append_raw(uint64_t seed, uint64_t value, uint64_t size, struct buffer *out)
{
    for (uint64_t i = 0; i < size; i += sizeof(uint64_t)) {
        uint64_t random = made_random(seed, value, i, 3), left = size - i;
        buffer_append(out, &random, left < sizeof random ? left : sizeof random);
    }
}

void made_value(const struct design_part *part, uint64_t seed, uint64_t value, int64_t time_us,
                struct buffer *out)
{
    const uint64_t random = made_random(seed, value, 0, 4);
    switch (part->kind) {
    case PART_CONSTANT:
        buffer_append_bytes(out, bytes_of(part->text));
        break;
    case PART_WORD:
        if (part->words != NULL)
            buffer_append_bytes(out, bytes_of(part->words[value % part->count]));
        else
            append_word(random, out);
        break;
    case PART_NUMBER:
        append_number(part, number_of(part, seed, value), out);
        break;
    case PART_TIME:
        append_time(part, time_us, out);
        break;
    case PART_UUID:
        append_uuid(part, seed, value, time_us, out);
        break;
    case PART_HASH:
        append_hex(seed, value, part->digits, out);
        break;
    case PART_DOMAIN:
        append_domain(part, random, out);
        break;
    case PART_EMAIL:
        append_email(random, out);
        break;
    case PART_PHONE:
        buffer_append_format(out, "+4915%09llu", (unsigned long long)(random % 1000000000));
        break;
    case PART_BYTES:
        append_raw(seed, value, part->size, out);
        break;
    case PART_KINDS:
        break;
    }
}
