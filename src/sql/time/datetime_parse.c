/* Dates and times read by a format: see datetime_format.h. */
#include "base/utf8.h"
#include "sql/time/datetime_format.h"
#include "sql/time/datetime_parts.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

/* What the last element that told of a day counts in. */
enum day_form { FORM_MONTH, FORM_YEAR_DAY, FORM_WEEK, FORM_ISO_WEEK, FORM_ISO_DAY };

struct reader {
    struct sql_zones *zones;
    bytes text;
    size_t at;
    bool is_date;

    enum day_form form;
    int64_t year, month, day;
    int64_t century, year_of_century; /* -1: not told */
    int64_t day_of_year;
    int64_t week, weekday; /* from the day `first` of the week; 0: Sunday, -1: not told */
    int32_t first;
    int64_t iso_year, iso_week, iso_day;
    int64_t hour, half_day_hour, minute, second, micros;
    bool is_half_day, is_afternoon;
    bool has_epoch;
    int64_t epoch;
    const struct sql_zone *zone;
};

static status failed(const struct reader *reader)
{
    return status_make(STATUS_OUT_OF_RANGE, "Failed to parse input string \"%.*s\"",
                       (int)reader->text.size,
                       reader->text.size == 0 ? "" : (const char *)reader->text.data);
}

static int peek(const struct reader *reader)
{
    return reader->at < reader->text.size ? reader->text.data[reader->at] : -1;
}

static void skip_blanks(struct reader *reader)
{
    while (peek(reader) >= 0 && isspace(peek(reader)))
        reader->at++;
}

/* --- numbers --- */

/* Elements that are numbers. */
static const struct number_element {
    char letter;
    int digits; /* at most */
    int least;
    int most;
} number_elements[] = {
    {'C', 2, 0, 99}, {'d', 2, 1, 31}, {'e', 2, 1, 31},  {'G', 4, 0, 9999}, {'g', 2, 0, 99},
    {'H', 2, 0, 23}, {'I', 2, 1, 12}, {'J', 3, 1, 371}, {'j', 3, 1, 366},  {'k', 2, 0, 23},
    {'l', 2, 1, 12}, {'M', 2, 0, 59}, {'m', 2, 1, 12},  {'S', 2, 0, 60},   {'U', 2, 0, 53},
    {'u', 1, 1, 7},  {'V', 2, 1, 53}, {'W', 2, 0, 53},  {'w', 1, 0, 6},    {'Y', 4, 0, 9999},
    {'y', 2, 0, 99},
};

static const struct number_element *find_number(char letter)
{
    for (size_t i = 0; i < sizeof number_elements / sizeof *number_elements; i++)
        if (number_elements[i].letter == letter)
            return &number_elements[i];
    return NULL;
}

static bool read_digits(struct reader *reader, int most, int64_t *out)
{
    int digits = 0;
    for (*out = 0; digits < most && peek(reader) >= '0' && peek(reader) <= '9'; digits++)
        *out = *out * 10 + (reader->text.data[reader->at++] - '0');
    return digits > 0;
}

static int64_t year_of_two_digits(int64_t digits)
{
    return digits + (digits <= 68 ? 2000 : 1900);
}

static void set_year(struct reader *reader, char letter, int64_t value)
{
    if (letter == 'Y') {
        reader->year = value;
        return;
    }
    if (letter == 'C')
        reader->century = value;
    else
        reader->year_of_century = value;
    int64_t rest = reader->year_of_century < 0 ? 0 : reader->year_of_century;
    reader->year = reader->century < 0 ? year_of_two_digits(rest) : reader->century * 100 + rest;
}

static void set_week(struct reader *reader, char letter, int64_t value)
{
    reader->form = FORM_WEEK;
    reader->week = value;
    reader->first = letter == 'W';
}

static void set_iso(struct reader *reader, char letter, int64_t value)
{
    if (letter == 'J')
        reader->form = FORM_ISO_DAY;
    else if (letter == 'V' || reader->form != FORM_ISO_DAY)
        reader->form = FORM_ISO_WEEK;
    if (letter == 'J')
        reader->iso_day = value;
    else if (letter == 'V')
        reader->iso_week = value;
    else
        reader->iso_year = letter == 'G' ? value : year_of_two_digits(value);
}

static void set_day(struct reader *reader, char letter, int64_t value)
{
    reader->form = letter == 'j' ? FORM_YEAR_DAY : FORM_MONTH;
    if (letter == 'j')
        reader->day_of_year = value;
    else if (letter == 'm')
        reader->month = value;
    else
        reader->day = value;
}

static void set_time(struct reader *reader, char letter, int64_t value)
{
    if (letter == 'M')
        reader->minute = value;
    else if (letter == 'S')
        reader->second = value;
    else if (letter == 'H' || letter == 'k')
        reader->hour = value;
    else
        reader->half_day_hour = value;
    if (letter != 'M' && letter != 'S')
        reader->is_half_day = letter == 'I' || letter == 'l';
    if (letter == 'S')
        reader->micros = 0;
}

static void set_number(struct reader *reader, char letter, int64_t value)
{
    if (strchr("CYy", letter) != NULL)
        set_year(reader, letter, value);
    else if (strchr("UW", letter) != NULL)
        set_week(reader, letter, value);
    else if (strchr("uw", letter) != NULL)
        reader->weekday = value % 7;
    else if (strchr("GgJV", letter) != NULL)
        set_iso(reader, letter, value);
    else if (strchr("dejm", letter) != NULL)
        set_day(reader, letter, value);
    else
        set_time(reader, letter, value);
}

static bool read_fraction(struct reader *reader, int digits)
{
    int64_t unit = MICROS_PER_SECOND / 10;
    if (digits == 0 || peek(reader) != '.')
        return true;
    reader->at++;
    for (int i = 0; (digits == ALL_DIGITS || i < digits) && isdigit(peek(reader)); i++, unit /= 10)
        reader->micros += unit * (reader->text.data[reader->at++] - '0');
    return true;
}

static bool read_number(struct reader *reader, const struct number_element *number,
                        const struct format_element *element)
{
    int64_t value;
    skip_blanks(reader);
    if (!read_digits(reader, number->digits, &value) || value < number->least ||
        value > number->most)
        return false;
    set_number(reader, number->letter, value);
    return number->letter != 'S' || read_fraction(reader, element->digits);
}

/* --- words --- */

/* The number of the name, in full or its first three letters; -1: there is none. */
static int read_name(struct reader *reader, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        for (size_t size = strlen(names[i]);; size = 3) {
            if (size <= reader->text.size - reader->at &&
                strncasecmp((const char *)reader->text.data + reader->at, names[i], size) == 0) {
                reader->at += size;
                return i;
            }
            if (size == 3)
                break;
        }
    return -1;
}

static bool read_weekday(struct reader *reader)
{
    int found = reader->at == reader->text.size ? -1 : read_name(reader, sql_weekday_names, 7);
    if (found >= 0)
        reader->weekday = found;
    return found >= 0;
}

static bool read_month(struct reader *reader)
{
    int found = reader->at == reader->text.size ? -1 : read_name(reader, sql_month_names, 12);
    if (found >= 0)
        set_day(reader, 'm', found + 1);
    return found >= 0;
}

static bool read_half_day(struct reader *reader)
{
    static const char *const halves[] = {"AM ", "PM "}; /* their first two letters */
    for (int i = 0; i < 2; i++)
        if (reader->text.size - reader->at >= 2 &&
            strncasecmp((const char *)reader->text.data + reader->at, halves[i], 2) == 0) {
            reader->is_afternoon = i == 1;
            reader->at += 2;
            return true;
        }
    return false;
}

/* --- zones and seconds since 1970 --- */

static bool read_epoch(struct reader *reader)
{
    bool is_negative = peek(reader) == '-';
    reader->at += is_negative;
    reader->has_epoch = read_digits(reader, 12, &reader->epoch);
    reader->epoch = is_negative ? -reader->epoch : reader->epoch;
    return reader->has_epoch;
}

/* +0530, +05:30, +5, Z */
static status read_offset(struct reader *reader)
{
    int64_t hours = 0, minutes = 0;
    char name[16];
    int sign = peek(reader);
    if (sign == 'Z' || sign == 'z') {
        reader->at++;
        return sql_zone_find(reader->zones, bytes_of("UTC"), &reader->zone);
    }
    if (sign != '+' && sign != '-')
        return failed(reader);
    reader->at++;
    if (!read_digits(reader, 2, &hours))
        return failed(reader);
    reader->at += peek(reader) == ':';
    read_digits(reader, 2, &minutes);
    snprintf(name, sizeof name, "%c%02d:%02d", sign, (int)hours, (int)minutes);
    return sql_zone_find(reader->zones, bytes_of(name), &reader->zone);
}

static status read_zone_name(struct reader *reader)
{
    size_t from = reader->at;
    while (peek(reader) >= 0 && !isspace(peek(reader)))
        reader->at++;
    if (reader->at == from)
        return failed(reader);
    return sql_zone_find(reader->zones, bytes_make(reader->text.data + from, reader->at - from),
                         &reader->zone);
}

/* --- formats --- */

/* A character that stands for itself. */
static status read_character(struct reader *reader, bytes expected)
{
    bytes rest = bytes_from(reader->text, reader->at);
    if (rest.size == 0)
        return failed(reader);
    reader->at += expected.size;
    if (bytes_start_with(rest, expected))
        return status_ok();
    return status_make(STATUS_OUT_OF_RANGE,
                       "Mismatch between format character '%.*s' and string character '%.*s'",
                       (int)expected.size, (const char *)expected.data,
                       (int)utf8_size(rest.data[0]), (const char *)rest.data);
}

static bool read_word(struct reader *reader, char letter)
{
    switch (letter) {
    case 'A':
    case 'a':
        return read_weekday(reader);
    case 'B':
    case 'b':
    case 'h':
        return read_month(reader);
    case 'P':
    case 'p':
        return read_half_day(reader);
    case 's':
        return read_epoch(reader);
    case 'n':
    case 't':
        skip_blanks(reader);
        return true;
    default:
        return false;
    }
}

static status read_format(struct reader *reader, bytes format);

static status read_element(struct reader *reader, const struct format_element *element, bytes text)
{
    const char *expansion = format_element_expansion(element->letter);
    const struct number_element *number = find_number(element->letter);
    if (element->letter == '\0')
        return status_make(STATUS_OUT_OF_RANGE, "Format string cannot end with a single '%%'");
    if (reader->is_date && format_element_is_time(element->letter))
        return status_make(STATUS_OUT_OF_RANGE,
                           "Invalid format: %.*s is not allowed for the DATE type", (int)text.size,
                           (const char *)text.data);
    if (element->letter == '%')
        return read_character(reader, bytes_of("%"));
    if (expansion != NULL)
        return read_format(reader, bytes_of(expansion));
    if (element->letter == 'z')
        return read_offset(reader);
    if (element->letter == 'Z')
        return read_zone_name(reader);
    bool is_read =
        number != NULL ? read_number(reader, number, element) : read_word(reader, element->letter);
    return is_read ? status_ok() : failed(reader);
}

static status read_format(struct reader *reader, bytes format)
{
    for (size_t at = 0; at < format.size;) {
        if (format.data[at] == '%') {
            struct format_element element = format_element_at(format, at);
            TRY(read_element(reader, &element, bytes_make(format.data + at, element.size)));
            at += element.size;
        } else if (isspace(format.data[at])) {
            skip_blanks(reader);
            at++;
        } else {
            size_t size = utf8_size(format.data[at]);
            TRY(read_character(reader, bytes_make(format.data + at, size)));
            at += size;
        }
    }
    return status_ok();
}

/* --- the day and the time --- */

static bool day_of_weeks(const struct reader *reader, int64_t *days)
{
    int64_t january = days_of_civil((struct civil_date){(int32_t)reader->year, 1, 1});
    int64_t weekday = reader->weekday < 0 ? reader->first : reader->weekday;
    *days = week_start(january + 6, reader->first) + (reader->week - 1) * 7 +
            floor_mod(weekday - reader->first, 7);
    return civil_of_days(*days).year == reader->year;
}

static bool day_of_iso_weeks(const struct reader *reader, int64_t *days)
{
    int64_t weekday = reader->weekday < 0 ? 0 : floor_mod(reader->weekday - 1, 7);
    *days =
        iso_year_start((int32_t)reader->iso_year) +
        (reader->form == FORM_ISO_DAY ? reader->iso_day - 1 : (reader->iso_week - 1) * 7 + weekday);
    return iso_year(*days) == reader->iso_year;
}

static bool day_of(const struct reader *reader, int64_t *days)
{
    struct civil_date date = {(int32_t)reader->year, 1, 1};
    switch (reader->form) {
    case FORM_YEAR_DAY:
        *days = days_of_civil(date) + reader->day_of_year - 1;
        return civil_of_days(*days).year == date.year;
    case FORM_WEEK:
        return day_of_weeks(reader, days);
    case FORM_ISO_WEEK:
    case FORM_ISO_DAY:
        return day_of_iso_weeks(reader, days);
    default:
        date.month = (int32_t)reader->month;
        date.day = (int32_t)reader->day;
        *days = days_of_civil(date);
        return is_civil(date);
    }
}

/* Seconds since 1970 win over all else. */
static bool moment_of(const struct reader *reader, int64_t *timestamp_us)
{
    int64_t days;
    if (reader->has_epoch) {
        *timestamp_us = reader->epoch * MICROS_PER_SECOND;
        return is_timestamp_in_range(*timestamp_us);
    }
    if (!day_of(reader, &days))
        return false;
    int64_t hour = reader->is_half_day
                       ? reader->half_day_hour % 12 + (reader->is_afternoon ? 12 : 0)
                       : reader->hour;
    int64_t seconds = hour * 3600 + reader->minute * 60 + reader->second;
    *timestamp_us = sql_zone_moment(reader->zone, days * MICROS_PER_DAY +
                                                      seconds * MICROS_PER_SECOND + reader->micros);
    return is_timestamp_in_range(*timestamp_us);
}

status datetime_read(struct sql_zones *zones, bytes format, bytes text, const struct sql_zone *zone,
                     bool is_date, int64_t *timestamp_us)
{
    struct reader reader = {.zones = zones,
                            .text = text,
                            .is_date = is_date,
                            .zone = zone,
                            .year = 1970,
                            .month = 1,
                            .day = 1,
                            .century = -1,
                            .year_of_century = -1,
                            .weekday = -1,
                            .iso_year = 1970,
                            .iso_week = 1};
    skip_blanks(&reader);
    TRY(read_format(&reader, format));
    skip_blanks(&reader);
    if (reader.at < text.size)
        return status_make(
            STATUS_OUT_OF_RANGE, "Illegal non-space trailing data '%.*s' in string \"%.*s\"",
            (int)utf8_size(text.data[reader.at]), (const char *)text.data + reader.at,
            (int)text.size, (const char *)text.data);
    return moment_of(&reader, timestamp_us) ? status_ok() : failed(&reader);
}
