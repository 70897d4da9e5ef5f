/* See key_time.h. A number that might be a time is one of the time's length that stands alone. */
#include "advice/key_time.h"

#include "advice/thresholds.h"

#include <ctype.h>

enum { HEX_MOST = 16, DIGITS_MOST = 19 };

static size_t digits_at(bytes text)
{
    size_t size = 0;
    while (size < text.size && isdigit(text.data[size]))
        size++;
    return size;
}

static int64_t number_of(const uint8_t *digits, size_t size)
{
    int64_t number = 0;
    for (size_t i = 0; i < size; i++)
        number = 10 * number + (digits[i] - '0');
    return number;
}

static bool parts(uint8_t c)
{
    return c == '-' || c == '/' || c == '_' || c == '.';
}

static bool ends_at(bytes text, size_t size)
{
    return text.size == size || !isalnum(text.data[size]);
}

/* Whether `count` of these units a second have passed at a plausible moment. */
static bool is_moment(uint64_t count, uint64_t a_second, int64_t now_us)
{
    uint64_t seconds = count / a_second;
    uint64_t first = (uint64_t)(FIRST_TIME_US / SECOND_US);
    uint64_t last = (uint64_t)((now_us + TIME_AHEAD_US) / SECOND_US);
    return seconds >= first && seconds <= last;
}

/* --- dates --- */

static bool is_day(const uint8_t *year, const uint8_t *month, const uint8_t *day)
{
    int64_t y = number_of(year, 4), m = number_of(month, 2);
    int64_t d = day == NULL ? 1 : number_of(day, 2);
    return y >= 1970 && y <= 2100 && m >= 1 && m <= 12 && d >= 1 && d <= 31;
}

static bool is_clock(const uint8_t *digits, size_t size)
{
    return number_of(digits, 2) < 24 && (size < 4 || number_of(digits + 2, 2) < 60);
}

/* YYYYMMDD, and digits of the time of day. */
static size_t plain_date(bytes text)
{
    enum { DAY = 8, HOUR = 10, MINUTE = 12, SECOND = 14, MILLISECOND = 17 };
    size_t size = digits_at(text);
    if (size != DAY && size != HOUR && size != MINUTE && size != SECOND && size != MILLISECOND)
        return 0;
    bool is_date = is_day(text.data, text.data + 4, text.data + 6) &&
                   (size == DAY || is_clock(text.data + DAY, size - DAY)) &&
                   (ends_at(text, size) || text.data[size] == 'T');
    return is_date ? size : 0;
}

/* YYYY-MM and YYYY-MM-DD, with any of - / _ . between. */
static size_t parted_date(bytes text)
{
    enum { MONTH = 7, DAY = 10 };
    bytes rest = text.size > 5 ? bytes_from(text, 5) : bytes_make(NULL, 0);
    if (digits_at(text) != 4 || digits_at(rest) != 2 || !parts(text.data[4]))
        return 0;
    bool has_day =
        rest.size > 3 && rest.data[2] == text.data[4] && digits_at(bytes_from(rest, 3)) == 2;
    if (!has_day)
        return is_day(text.data, rest.data, NULL) && ends_at(text, MONTH) ? MONTH : 0;
    bool is_end = ends_at(text, DAY) || text.data[DAY] == 'T';
    return is_day(text.data, rest.data, rest.data + 3) && is_end ? DAY : 0;
}

/* --- counts since 1970 --- */

static const struct unit {
    enum key_time form;
    size_t digits; /* in this age */
    uint64_t a_second;
} units[] = {
    {KEY_TIME_SECONDS, 10, 1},
    {KEY_TIME_MILLIS, 13, 1000},
    {KEY_TIME_MICROS, 16, 1000000},
    {KEY_TIME_NANOS, 19, 1000000000},
};

enum { UNITS = sizeof units / sizeof *units };

static bool is_any_moment(uint64_t count, int64_t now_us)
{
    for (size_t i = 0; i < UNITS; i++)
        if (is_moment(count, units[i].a_second, now_us))
            return true;
    return false;
}

static enum key_time counted(bytes text, int64_t now_us, size_t *size)
{
    *size = digits_at(text);
    if (*size > DIGITS_MOST || !ends_at(text, *size))
        return KEY_TIME_NONE;
    if (*size == DIGITS_MOST && text.data[0] == '9') {
        uint64_t most = INT64_MAX, count = (uint64_t)number_of(text.data + 1, DIGITS_MOST - 1);
        count += 9 * (uint64_t)1000000000 * 1000000000;
        return count <= most && is_any_moment(most - count, now_us) ? KEY_TIME_REVERSED
                                                                    : KEY_TIME_NONE;
    }
    for (size_t i = 0; i < UNITS; i++)
        if (*size == units[i].digits &&
            is_moment((uint64_t)number_of(text.data, *size), units[i].a_second, now_us))
            return units[i].form;
    return KEY_TIME_NONE;
}

static bool is_binary(bytes key, int64_t now_us)
{
    uint64_t count = 0;
    if (key.size < sizeof count || key.data[0] != 0)
        return false;
    for (size_t i = 0; i < sizeof count; i++)
        count = count << 8 | key.data[i];
    return is_any_moment(count, now_us);
}

/* --- identifiers --- */

/* `size` hexadecimal digits; false if there are not so many. */
static bool hex_number(bytes text, size_t size, uint64_t *number)
{
    *number = 0;
    if (text.size < size || size > HEX_MOST)
        return false;
    for (size_t i = 0; i < size; i++) {
        int c = tolower(text.data[i]);
        if (!isxdigit(c))
            return false;
        *number = *number << 4 | (uint64_t)(isdigit(c) ? c - '0' : c - 'a' + 10);
    }
    return true;
}

/* 018f3c5e-7b2a-7… */
static bool is_uuid(bytes key, int64_t now_us)
{
    enum { SIZE = 36 };
    uint64_t high, low;
    return key.size >= SIZE && ends_at(key, SIZE) && key.data[8] == '-' && key.data[13] == '-' &&
           key.data[14] == '7' && hex_number(key, 8, &high) &&
           hex_number(bytes_from(key, 9), 4, &low) && is_moment(high << 16 | low, 1000, now_us);
}

/* 26 digits of Crockford's base 32, of which the first ten are milliseconds. */
static bool is_ulid(bytes key, int64_t now_us)
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    enum { SIZE = 26, OF_TIME = 10 };
    uint64_t millis = 0;
    bool has_letters = false;
    if (key.size < SIZE || !ends_at(key, SIZE))
        return false;
    for (size_t i = 0; i < SIZE; i++) {
        int c = toupper(key.data[i]);
        const char *digit = c == 0 ? NULL : strchr(digits, c);
        if (digit == NULL)
            return false;
        has_letters |= isalpha(c) != 0;
        if (i < OF_TIME)
            millis = millis << 5 | (uint64_t)(digit - digits);
    }
    return has_letters && is_moment(millis, 1000, now_us);
}

static bool is_object_id(bytes key, int64_t now_us)
{
    enum { SIZE = 24 };
    uint64_t seconds, rest;
    return key.size >= SIZE && ends_at(key, SIZE) && hex_number(key, 8, &seconds) &&
           hex_number(bytes_from(key, 8), HEX_MOST, &rest) && is_moment(seconds, 1, now_us);
}

static enum key_time identifier(bytes key, int64_t now_us, size_t *size)
{
    enum { UUID_SIZE = 36, ULID_SIZE = 26, OBJECT_ID_SIZE = 24 };
    *size = UUID_SIZE;
    if (is_uuid(key, now_us))
        return KEY_TIME_UUID;
    *size = ULID_SIZE;
    if (is_ulid(key, now_us))
        return KEY_TIME_ULID;
    *size = OBJECT_ID_SIZE;
    return is_object_id(key, now_us) ? KEY_TIME_OBJECT_ID : KEY_TIME_NONE;
}

enum key_time key_time_at(bytes key, int64_t now_us, size_t *size)
{
    *size = plain_date(key);
    if (*size == 0)
        *size = parted_date(key);
    if (*size > 0)
        return KEY_TIME_DATE;
    enum key_time form = counted(key, now_us, size);
    if (form != KEY_TIME_NONE)
        return form;
    *size = sizeof(uint64_t);
    return is_binary(key, now_us) ? KEY_TIME_BINARY : identifier(key, now_us, size);
}

const char *key_time_name(enum key_time form)
{
    static const char *const names[] = {
        [KEY_TIME_NONE] = "no time",
        [KEY_TIME_DATE] = "a date",
        [KEY_TIME_SECONDS] = "seconds since 1970",
        [KEY_TIME_MILLIS] = "milliseconds since 1970",
        [KEY_TIME_MICROS] = "microseconds since 1970",
        [KEY_TIME_NANOS] = "nanoseconds since 1970",
        [KEY_TIME_REVERSED] = "a reversed time",
        [KEY_TIME_BINARY] = "a time of eight bytes",
        [KEY_TIME_UUID] = "a UUID of version 7, which is a time",
        [KEY_TIME_ULID] = "a ULID, which is a time",
        [KEY_TIME_OBJECT_ID] = "an ObjectId, which is a time",
    };
    return names[form];
}
