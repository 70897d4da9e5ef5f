/* See key_time.h. A number that might be a time is one of the time's length that stands alone. */
#include "advisor/key_time.h"

#include "advisor/thresholds.h"

#include <ctype.h>
#include <strings.h>

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

/* Of three letters of a month's English name, in any case; 0: they are of none. */
static int64_t month_named(const uint8_t *name)
{
    enum { MONTHS = 12, LETTERS = 3 };
    static const char names[] = "janfebmaraprmayjunjulaugsepoctnovdec";
    for (size_t month = 0; month < MONTHS; month++)
        if (strncasecmp((const char *)name, names + LETTERS * month, LETTERS) == 0)
            return (int64_t)month + 1;
    return 0;
}

/* The size of a day, or a month, of one or two digits at the front; 0: there is none. */
static size_t short_number(bytes text, int64_t most)
{
    size_t size = digits_at(text);
    int64_t number = size >= 1 && size <= 2 ? number_of(text.data, size) : 0;
    return number >= 1 && number <= most ? size : 0;
}

/* A year of four digits that ends what is at the front; its size or 0. */
static size_t year_at(bytes text)
{
    bool is_year =
        digits_at(text) == 4 && number_of(text.data, 4) >= 1970 && number_of(text.data, 4) <= 2100;
    return is_year && (ends_at(text, 4) || text.data[4] == 'T') ? 4 : 0;
}

/* DD/MM/YYYY, MM/DD/YYYY, and DD-Jan-YYYY, with any of - / _ . between. */
static size_t local_date(bytes text)
{
    enum { DAYS = 31, MONTH_NAME = 3 };
    size_t day = short_number(text, DAYS);
    if (day == 0 || text.size <= day + 1 + MONTH_NAME || !parts(text.data[day]))
        return 0;
    bytes rest = bytes_from(text, day + 1);
    size_t month = month_named(rest.data) > 0 ? MONTH_NAME : short_number(rest, DAYS);
    bool is_parted = month > 0 && rest.size > month + 1 && rest.data[month] == text.data[day];
    size_t year = is_parted ? year_at(bytes_from(rest, month + 1)) : 0;
    return year > 0 ? day + 1 + month + 1 + year : 0;
}

/* YYYY-M-D and YYYY/M/D, with one digit or two; with dots it is a version more often. */
static size_t loose_date(bytes text)
{
    enum { MONTHS = 12, DAYS = 31, YEAR = 4 };
    bool has_year = text.size > YEAR + 1 && digits_at(text) == YEAR &&
                    (text.data[YEAR] == '-' || text.data[YEAR] == '/');
    if (!has_year || number_of(text.data, YEAR) < 1970 || number_of(text.data, YEAR) > 2100)
        return 0;
    size_t month = short_number(bytes_from(text, YEAR + 1), MONTHS);
    size_t day_at = YEAR + 1 + month + 1;
    if (month == 0 || text.size <= day_at || text.data[day_at - 1] != text.data[YEAR])
        return 0;
    size_t day = short_number(bytes_from(text, day_at), DAYS);
    bool is_end = ends_at(text, day_at + day) || text.data[day_at + day] == 'T';
    return day > 0 && is_end ? day_at + day : 0;
}

/* YYYY-Www and YYYYWww. */
static size_t week(bytes text)
{
    bool has_year = digits_at(text) == 4 && text.size > 4;
    size_t at = has_year && text.data[4] == '-' ? 5 : 4;
    if (!has_year || text.size < at + 3 || text.data[at] != 'W')
        return 0;
    bytes rest = bytes_from(text, at + 1);
    bool is_week = digits_at(rest) == 2 && number_of(rest.data, 2) <= 53 &&
                   number_of(text.data, 4) >= 1970 && number_of(text.data, 4) <= 2100;
    return is_week && ends_at(rest, 2) ? at + 3 : 0;
}

/* YYYY-DDD */
static size_t day_of_year(bytes text)
{
    enum { SIZE = 8 };
    bool is_parted = text.size >= SIZE && digits_at(text) == 4 && parts(text.data[4]);
    bytes rest = is_parted ? bytes_from(text, 5) : bytes_make(NULL, 0);
    if (!is_parted || digits_at(rest) != 3 || !ends_at(text, SIZE))
        return 0;
    int64_t day = number_of(rest.data, 3), year = number_of(text.data, 4);
    return day >= 1 && day <= 366 && year >= 1970 && year <= 2100 ? SIZE : 0;
}

/* YYMMDD of a year since 2005, and four or six digits of the time of day behind it. */
static size_t short_date(bytes text, int64_t now_us)
{
    enum { DAY = 6, MINUTE = 10, SECOND = 12 };
    size_t size = digits_at(text);
    if ((size != DAY && size != MINUTE && size != SECOND) || !ends_at(text, size))
        return 0;
    int64_t year = 2000 + number_of(text.data, 2), month = number_of(text.data + 2, 2);
    int64_t day = number_of(text.data + 4, 2);
    bool is_date = year >= 2005 && year <= 1970 + (now_us + TIME_AHEAD_US) / YEAR_US &&
                   month >= 1 && month <= 12 && day >= 1 && day <= 31;
    return is_date && (size == DAY || is_clock(text.data + DAY, size - DAY)) ? size : 0;
}

static enum key_time date_at(bytes text, size_t *size)
{
    *size = plain_date(text);
    if (*size == 0)
        *size = parted_date(text);
    if (*size > 0)
        return KEY_TIME_DATE;
    *size = local_date(text);
    if (*size > 0)
        return KEY_TIME_LOCAL_DATE;
    *size = loose_date(text);
    if (*size > 0)
        return KEY_TIME_LOOSE_DATE;
    *size = week(text);
    if (*size > 0)
        return KEY_TIME_WEEK;
    *size = day_of_year(text);
    return *size > 0 ? KEY_TIME_YEAR_DAY : KEY_TIME_NONE;
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

/* The digits at the start of the first `size` bytes, up to 19, which may be more than an int64_t
 * has. */
static uint64_t count_of(bytes text, size_t size)
{
    size_t digits = digits_at(bytes_make(text.data, size));
    if (digits > DIGITS_MOST)
        digits = DIGITS_MOST;
    return digits == 0
               ? 0
               : 10 * (uint64_t)number_of(text.data, digits - 1) + text.data[digits - 1] - '0';
}

/* INT64_MAX, or as many nines as there are digits, less a count. Ten digits are any number's. */
static bool is_reversed(uint64_t count, size_t size, int64_t now_us)
{
    uint64_t most = INT64_MAX, nines = 0;
    for (size_t i = 0; i < size; i++)
        nines = 10 * nines + 9;
    if (size == DIGITS_MOST && count <= most && is_any_moment(most - count, now_us))
        return true;
    for (size_t i = 1; i < UNITS; i++)
        if (size == units[i].digits && is_moment(nines - count, units[i].a_second, now_us))
            return true;
    return false;
}

bool key_time_is_snowflake(bytes key, int64_t now_us, int64_t *at_us)
{
    enum { DIGITS_LEAST = 17, OTHER_BITS = 22 };
    const uint64_t first_ms = 1288834974657; /* November 2010 */
    size_t size = digits_at(key);
    if (size < DIGITS_LEAST || size > DIGITS_MOST || !ends_at(key, size))
        return false;
    uint64_t ms = (count_of(key, size) >> OTHER_BITS) + first_ms;
    *at_us = (int64_t)ms * 1000;
    return is_moment(ms, 1000, now_us);
}

static enum key_time counted(bytes text, int64_t now_us, size_t *size)
{
    int64_t at_us;
    *size = digits_at(text);
    if (*size > DIGITS_MOST || !ends_at(text, *size))
        return KEY_TIME_NONE;
    uint64_t count = count_of(text, *size);
    for (size_t i = 0; i < UNITS; i++)
        if (*size == units[i].digits && is_moment(count, units[i].a_second, now_us))
            return units[i].form;
    if (is_reversed(count, *size, now_us))
        return KEY_TIME_REVERSED;
    return key_time_is_snowflake(text, now_us, &at_us) ? KEY_TIME_SNOWFLAKE : KEY_TIME_NONE;
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

static size_t hex_digits_at(bytes text)
{
    size_t size = 0;
    while (size < text.size && isxdigit(text.data[size]))
        size++;
    return size;
}

/* Seconds to nanoseconds in hexadecimal digits that stand alone, with zeroes in front or without.
 */
static size_t hex_count(bytes text, int64_t now_us)
{
    enum { LEAST = 8 };
    uint64_t number;
    size_t size = hex_digits_at(text);
    bool is_one = size >= LEAST && size <= HEX_MOST && ends_at(text, size) &&
                  hex_number(text, size, &number) && is_any_moment(number, now_us);
    return is_one ? size : 0;
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
    enum key_time form = date_at(key, size);
    if (form == KEY_TIME_NONE)
        form = counted(key, now_us, size);
    if (form != KEY_TIME_NONE)
        return form;
    *size = short_date(key, now_us);
    if (*size > 0)
        return KEY_TIME_SHORT_DATE;
    *size = hex_count(key, now_us);
    if (*size > 0)
        return KEY_TIME_HEX;
    *size = sizeof(uint64_t);
    return is_binary(key, now_us) ? KEY_TIME_BINARY : identifier(key, now_us, size);
}

uint64_t key_time_rank(bytes key, enum key_time form, size_t size)
{
    uint64_t number = 0;
    if (form == KEY_TIME_BINARY)
        for (size_t i = 0; i < sizeof number; i++)
            number = number << 8 | key.data[i];
    else if (form == KEY_TIME_HEX)
        hex_number(key, size, &number);
    else
        number = count_of(key, size);
    return form == KEY_TIME_REVERSED ? UINT64_MAX - number : number;
}

/* --- days --- */

/* The number at `*at` or behind it, of `most` digits at most. */
static int64_t next_number(bytes text, size_t *at, size_t most)
{
    size_t size = 0;
    while (*at < text.size && !isdigit(text.data[*at]))
        ++*at;
    while (size < most && *at + size < text.size && isdigit(text.data[*at + size]))
        size++;
    int64_t number = number_of(text.data + *at, size);
    *at += size;
    return number;
}

/* Since the first of March of the year 0, with which leap years end. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    enum { FEBRUARY = 2, AHEAD = 9, BEHIND = 3, DAYS_OF_FIVE = 153 };
    year -= month <= FEBRUARY;
    month += month <= FEBRUARY ? AHEAD : -BEHIND;
    return 365 * year + year / 4 - year / 100 + year / 400 + (DAYS_OF_FIVE * month + 2) / 5 + day -
           1;
}

struct local_date {
    int64_t first;
    int64_t second; /* a month's name counts as the second */
    int64_t year;
    bool is_named;
};

static struct local_date read_local_date(bytes date)
{
    size_t at = 0;
    struct local_date out = {.first = next_number(date, &at, 2)};
    out.is_named = at + 1 < date.size && isalpha(date.data[at + 1]);
    out.second = out.is_named ? month_named(date.data + at + 1) : next_number(date, &at, 2);
    out.year = next_number(date, &at, 4);
    return out;
}

bool key_time_is_month_first(bytes key, enum key_time form, size_t size)
{
    enum { MONTHS = 12 };
    if (form != KEY_TIME_LOCAL_DATE)
        return false;
    return read_local_date(bytes_make(key.data, size)).second > MONTHS;
}

static int64_t local_day(bytes date, enum key_time_reading reading)
{
    struct local_date local = read_local_date(date);
    bool is_turned = reading == KEY_TIME_MONTH_FIRST && !local.is_named;
    return is_turned ? days_of(local.year, local.first, local.second)
                     : days_of(local.year, local.second, local.first);
}

int64_t key_time_day(bytes key, enum key_time form, size_t size, enum key_time_reading reading)
{
    enum { WEEK_DAYS = 7 };
    const bytes date = bytes_make(key.data, size);
    size_t at = 0;
    if (form < KEY_TIME_DATE || form > KEY_TIME_YEAR_DAY)
        return 0;
    if (form == KEY_TIME_LOCAL_DATE)
        return local_day(date, reading);
    int64_t year = next_number(date, &at, 4);
    if (form == KEY_TIME_WEEK)
        return days_of(year, 1, 1) + WEEK_DAYS * (next_number(date, &at, 2) - 1);
    if (form == KEY_TIME_YEAR_DAY)
        return days_of(year, 1, 1) + next_number(date, &at, 3) - 1;
    int64_t month = next_number(date, &at, 2), day = next_number(date, &at, 2);
    return days_of(year, month, day == 0 ? 1 : day);
}

bool key_time_is_ahead(bytes key, enum key_time form, size_t size, enum key_time_reading reading,
                       int64_t now_us)
{
    int64_t day = key_time_day(key, form, size, reading);
    if (day > 0)
        return day > days_of(1970, 1, 1) + now_us / DAY_US + 1;
    uint64_t number = key_time_rank(key, form, size);
    for (size_t i = 0; i < UNITS; i++)
        if ((form == units[i].form || form == KEY_TIME_BINARY) &&
            is_moment(number, units[i].a_second, now_us))
            return number / units[i].a_second > (uint64_t)((now_us + DAY_US) / SECOND_US);
    return false;
}

bool key_time_is_in_order(enum key_time form)
{
    return form != KEY_TIME_LOCAL_DATE && form != KEY_TIME_LOOSE_DATE;
}

bool key_time_is_count(enum key_time form)
{
    return form == KEY_TIME_SHORT_DATE || (form >= KEY_TIME_SECONDS && form <= KEY_TIME_BINARY);
}

bool key_time_is_doubtful(enum key_time form)
{
    return form == KEY_TIME_SECONDS || form == KEY_TIME_SHORT_DATE || form == KEY_TIME_HEX;
}

const char *key_time_name(enum key_time form)
{
    static const char *const names[] = {
        [KEY_TIME_NONE] = "no time",
        [KEY_TIME_DATE] = "a date",
        [KEY_TIME_LOCAL_DATE] = "a date whose order is not that of keys",
        [KEY_TIME_LOOSE_DATE] = "a date whose order is not that of keys",
        [KEY_TIME_WEEK] = "a week",
        [KEY_TIME_YEAR_DAY] = "a day of a year",
        [KEY_TIME_SHORT_DATE] = "a date of six digits",
        [KEY_TIME_SECONDS] = "seconds since 1970",
        [KEY_TIME_MILLIS] = "milliseconds since 1970",
        [KEY_TIME_MICROS] = "microseconds since 1970",
        [KEY_TIME_NANOS] = "nanoseconds since 1970",
        [KEY_TIME_REVERSED] = "a reversed time",
        [KEY_TIME_HEX] = "a time in hexadecimal digits",
        [KEY_TIME_SNOWFLAKE] = "a snowflake, an id that begins with its time",
        [KEY_TIME_BINARY] = "a time of eight bytes",
        [KEY_TIME_UUID] = "a UUID of version 7, which is a time",
        [KEY_TIME_ULID] = "a ULID, which is a time",
        [KEY_TIME_OBJECT_ID] = "an ObjectId, which is a time",
    };
    return names[form];
}
