/* Timestamps (RFC 3339) and durations ("1.500s") as protobuf's JSON has them. See json_private.h.
 */
#include "wire/json_private.h"

enum { BILLION = 1000000000, NANO_DIGITS = 9, SECONDS_A_DAY = 86400 };

/* From year 1 to the end of year 9999, in seconds since 1970. */
#define FIRST_SECOND  (-62135596800)
#define LAST_SECOND   253402300799
#define MOST_DURATION 315576000000 /* 10,000 years */

/* --- days --- */

/* Days since 1970-01-01 of a date of the Gregorian calendar. Years are counted from March, so that
 * the day that is added in leap years is a year's last. */
static int64_t days_of_date(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t month_from_march = month <= 2 ? month + 9 : month - 3;
    int64_t day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    return y * 365 + y / 4 - y / 100 + y / 400 + day_of_year - 719468;
}

/* The other way round, for days of the years 1 to 9999. */
static void date_of_days(int64_t days, int *year, int *month, int *day)
{
    int64_t d = days + 719468;
    int64_t era = d / 146097, day_of_era = d % 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month_from_march = (5 * day_of_year + 2) / 153;
    *day = (int)(day_of_year - (153 * month_from_march + 2) / 5 + 1);
    *month = (int)(month_from_march < 10 ? month_from_march + 3 : month_from_march - 9);
    *year = (int)(year_of_era + era * 400 + (*month <= 2));
}

static int days_of_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && is_leap);
}

/* --- reading --- */

static bool take_byte(bytes *text, char byte)
{
    if (text->size == 0 || text->data[0] != (uint8_t)byte)
        return false;
    *text = bytes_from(*text, 1);
    return true;
}

static bool is_digit(bytes text)
{
    return text.size > 0 && text.data[0] >= '0' && text.data[0] <= '9';
}

/* Exactly `count` digits. */
static bool take_number(bytes *text, int count, int *value)
{
    *value = 0;
    for (int i = 0; i < count; i++) {
        if (!is_digit(*text))
            return false;
        *value = *value * 10 + (text->data[0] - '0');
        *text = bytes_from(*text, 1);
    }
    return true;
}

/* ".5" and the like; nothing is 0. */
static bool take_fraction(bytes *text, int32_t *nanos)
{
    int count = 0;
    *nanos = 0;
    if (!take_byte(text, '.'))
        return true;
    for (; is_digit(*text) && count < NANO_DIGITS; count++) {
        *nanos = *nanos * 10 + (text->data[0] - '0');
        *text = bytes_from(*text, 1);
    }
    bool is_fraction = count > 0 && !is_digit(*text);
    for (; count < NANO_DIGITS; count++)
        *nanos *= 10;
    return is_fraction;
}

/* "Z", or how far the clock is ahead of it. */
static bool take_zone(bytes *text, int *ahead)
{
    int hours, minutes;
    *ahead = 0;
    if (take_byte(text, 'Z') || take_byte(text, 'z'))
        return true;
    int sign = take_byte(text, '-') ? -1 : 1;
    if ((sign > 0 && !take_byte(text, '+')) || !take_number(text, 2, &hours) ||
        !take_byte(text, ':') || !take_number(text, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *ahead = sign * (hours * 3600 + minutes * 60);
    return true;
}

static bool take_date(bytes *text, int64_t *days)
{
    int year, month, day;
    if (!take_number(text, 4, &year) || !take_byte(text, '-') || !take_number(text, 2, &month) ||
        !take_byte(text, '-') || !take_number(text, 2, &day))
        return false;
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > days_of_month(year, month))
        return false;
    *days = days_of_date(year, month, day);
    return true;
}

static bool take_clock(bytes *text, int *seconds)
{
    int hour, minute, second;
    if (!take_number(text, 2, &hour) || !take_byte(text, ':') || !take_number(text, 2, &minute) ||
        !take_byte(text, ':') || !take_number(text, 2, &second))
        return false;
    *seconds = hour * 3600 + minute * 60 + second;
    return hour < 24 && minute < 60 && second < 60;
}

bool json_parse_timestamp(bytes text, int64_t *seconds, int32_t *nanos)
{
    int64_t days;
    int clock, ahead;
    if (!take_date(&text, &days) || !(take_byte(&text, 'T') || take_byte(&text, 't')) ||
        !take_clock(&text, &clock) || !take_fraction(&text, nanos) || !take_zone(&text, &ahead))
        return false;
    *seconds = days * SECONDS_A_DAY + clock - ahead;
    return text.size == 0 && *seconds >= FIRST_SECOND && *seconds <= LAST_SECOND;
}

bool json_parse_duration(bytes text, int64_t *seconds, int32_t *nanos)
{
    bool is_negative = take_byte(&text, '-');
    *seconds = 0;
    if (!is_digit(text))
        return false;
    while (is_digit(text)) {
        *seconds = *seconds * 10 + (text.data[0] - '0');
        text = bytes_from(text, 1);
        if (*seconds > MOST_DURATION)
            return false;
    }
    if (!take_fraction(&text, nanos) || !take_byte(&text, 's') || text.size > 0)
        return false;
    if (is_negative) {
        *seconds = -*seconds;
        *nanos = -*nanos;
    }
    return true;
}

/* --- writing --- */

static void write_fraction(int32_t nanos, struct buffer *out)
{
    if (nanos == 0)
        return;
    if (nanos % 1000000 == 0)
        buffer_append_format(out, ".%03d", nanos / 1000000);
    else if (nanos % 1000 == 0)
        buffer_append_format(out, ".%06d", nanos / 1000);
    else
        buffer_append_format(out, ".%09d", nanos);
}

static int32_t within(int32_t nanos)
{
    return nanos < 0 || nanos >= BILLION ? 0 : nanos;
}

void json_write_timestamp(int64_t seconds, int32_t nanos, struct buffer *out)
{
    if (seconds < FIRST_SECOND)
        seconds = FIRST_SECOND;
    if (seconds > LAST_SECOND)
        seconds = LAST_SECOND;
    int64_t days = (seconds - FIRST_SECOND) / SECONDS_A_DAY + FIRST_SECOND / SECONDS_A_DAY;
    int clock = (int)(seconds - days * SECONDS_A_DAY);
    int year, month, day;
    date_of_days(days, &year, &month, &day);
    buffer_append_format(out, "\"%04d-%02d-%02dT%02d:%02d:%02d", year, month, day, clock / 3600,
                         clock / 60 % 60, clock % 60);
    write_fraction(within(nanos), out);
    buffer_append(out, "Z\"", 2);
}

void json_write_duration(int64_t seconds, int32_t nanos, struct buffer *out)
{
    bool is_negative = seconds < 0 || nanos < 0;
    uint64_t size = seconds < 0 ? 0 - (uint64_t)seconds : (uint64_t)seconds;
    buffer_append_format(out, "\"%s%llu", is_negative ? "-" : "", (unsigned long long)size);
    write_fraction(within(nanos == INT32_MIN ? 0 : nanos < 0 ? -nanos : nanos), out);
    buffer_append(out, "s\"", 2);
}
