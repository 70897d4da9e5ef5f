/* Dates and times written in a format: see datetime_format.h. */
#include "sql/time/datetime_format.h"

#include "sql/time/datetime_parts.h"

#include <ctype.h>
#include <stdio.h>

const char *const sql_weekday_names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                         "Thursday", "Friday", "Saturday"};
const char *const sql_month_names[] = {"January",   "February", "March",    "April",
                                       "May",       "June",     "July",     "August",
                                       "September", "October",  "November", "December"};

/* --- elements --- */

static char byte_at(bytes format, size_t at)
{
    return at < format.size ? (char)format.data[at] : '\0';
}

struct format_element format_element_at(bytes format, size_t at)
{
    struct format_element element = {.letter = byte_at(format, at + 1), .size = 2};
    char digits = byte_at(format, at + 2), after = byte_at(format, at + 3);
    if ((element.letter != 'E' && element.letter != 'O') || digits == '\0') {
        element.size = element.letter == '\0' ? format.size - at : element.size;
        return element;
    }
    element.is_extended = element.letter == 'E';
    bool has_digits = (isdigit((unsigned char)digits) || digits == '*') && after == 'S';
    if (element.is_extended && (has_digits || (digits == '4' && after == 'Y'))) {
        element.digits = digits == '*' ? ALL_DIGITS : digits - '0';
        element.letter = after;
        element.size = 4;
        return element;
    }
    element.letter = digits;
    element.size = 3;
    return element;
}

const char *format_element_expansion(char letter)
{
    switch (letter) {
    case 'c':
        return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x':
        return "%m/%d/%y";
    case 'F':
        return "%Y-%m-%d";
    case 'R':
        return "%H:%M";
    case 'r':
        return "%I:%M:%S %p";
    case 'T':
    case 'X':
        return "%H:%M:%S";
    default:
        return NULL;
    }
}

bool format_element_is_time(char letter)
{
    return letter != '\0' && strchr("cHIklMPpRrSsTXZz", letter) != NULL;
}

/* --- writing --- */

struct writer {
    struct buffer *out;
    const struct datetime *datetime;
    int64_t days;    /* as the zone's clocks show it */
    int64_t seconds; /* of the day */
    int64_t micros;  /* of the second */
};

static int64_t half_day_hour(const struct writer *writer)
{
    int64_t hour = writer->seconds / 3600 % 12;
    return hour == 0 ? 12 : hour;
}

static int64_t date_number(const struct writer *writer, char letter)
{
    int64_t days = writer->days, year = date_part(days, SQL_PART_YEAR);
    switch (letter) {
    case 'C':
        return floor_div(year, 100);
    case 'd':
    case 'e':
        return date_part(days, SQL_PART_DAY);
    case 'G':
        return iso_year(days);
    case 'g':
        return floor_mod(iso_year(days), 100);
    case 'J':
        return days - iso_year_start(iso_year(days)) + 1;
    case 'j':
        return day_of_year(days);
    case 'm':
        return date_part(days, SQL_PART_MONTH);
    case 'Q':
        return date_part(days, SQL_PART_QUARTER);
    case 'U':
        return date_part(days, SQL_PART_WEEK);
    case 'u':
        return weekday_of_days(days) == 0 ? 7 : weekday_of_days(days);
    case 'V':
        return date_part(days, SQL_PART_ISOWEEK);
    case 'W':
        return date_part(days, SQL_PART_WEEK_MONDAY);
    case 'w':
        return weekday_of_days(days);
    case 'y':
        return floor_mod(year, 100);
    default: /* Y */
        return year;
    }
}

static int64_t number(const struct writer *writer, char letter)
{
    switch (letter) {
    case 'H':
    case 'k':
        return writer->seconds / 3600;
    case 'I':
    case 'l':
        return half_day_hour(writer);
    case 'M':
        return writer->seconds / 60 % 60;
    case 'S':
        return writer->seconds % 60;
    case 's':
        return floor_div(writer->datetime->timestamp_us, MICROS_PER_SECOND);
    default:
        return date_number(writer, letter);
    }
}

static bool append_number(const struct writer *writer, char letter)
{
    long long value;
    int width = strchr("CdgHIMmSUVWy", letter) != NULL ? 2
                : strchr("Jj", letter) != NULL         ? 3
                : strchr("ekl", letter) != NULL        ? -2 /* with blanks */
                : strchr("GQsuwY", letter) != NULL     ? 1
                                                       : 0;
    if (width == 0)
        return false;
    value = number(writer, letter);
    if (width < 0)
        buffer_append_format(writer->out, "%*lld", -width, value);
    else
        buffer_append_format(writer->out, "%0*lld", width, value);
    return true;
}

/* Digits of the fraction: so many, or without zeros at the end. */
static void append_fraction(const struct writer *writer, int digits)
{
    char text[ALL_DIGITS + 1];
    int size;
    snprintf(text, sizeof text, "%06lld000", (long long)writer->micros);
    for (size = digits == ALL_DIGITS ? 6 : digits; digits == ALL_DIGITS && size > 0; size--)
        if (text[size - 1] != '0')
            break;
    if (size > 0)
        buffer_append_format(writer->out, ".%.*s", size, text);
}

/* -0800, -08:00, UTC-8, UTC+5:30 */
static void append_zone(const struct writer *writer, const struct format_element *element)
{
    int32_t offset = writer->datetime->offset;
    char sign = offset < 0 ? '-' : '+';
    int32_t hours = (offset < 0 ? -offset : offset) / 3600;
    int32_t minutes = (offset < 0 ? -offset : offset) / 60 % 60;
    if (element->letter == 'z') {
        buffer_append_format(writer->out, "%c%02d%s%02d", sign, hours,
                             element->is_extended ? ":" : "", minutes);
        return;
    }
    buffer_append_format(writer->out, "UTC");
    if (hours != 0 || minutes != 0)
        buffer_append_format(writer->out, "%c%d", sign, hours);
    if (minutes != 0)
        buffer_append_format(writer->out, ":%02d", minutes);
}

static bool append_word(const struct writer *writer, char letter)
{
    const char *weekday = sql_weekday_names[weekday_of_days(writer->days)];
    const char *month = sql_month_names[date_part(writer->days, SQL_PART_MONTH) - 1];
    bool is_morning = writer->seconds < 12 * 3600;
    switch (letter) {
    case 'A':
        buffer_append_format(writer->out, "%s", weekday);
        return true;
    case 'a':
        buffer_append_format(writer->out, "%.3s", weekday);
        return true;
    case 'B':
        buffer_append_format(writer->out, "%s", month);
        return true;
    case 'b':
    case 'h':
        buffer_append_format(writer->out, "%.3s", month);
        return true;
    case 'n':
    case 't':
        buffer_append_byte(writer->out, letter == 'n' ? '\n' : '\t');
        return true;
    case 'P':
        buffer_append_format(writer->out, is_morning ? "am" : "pm");
        return true;
    case 'p':
        buffer_append_format(writer->out, is_morning ? "AM" : "PM");
        return true;
    case '%':
        buffer_append_byte(writer->out, '%');
        return true;
    default:
        return false;
    }
}

static void append_format(const struct writer *writer, bytes format);

static bool append_element(const struct writer *writer, const struct format_element *element)
{
    const char *expansion = format_element_expansion(element->letter);
    if (element->letter == '\0' ||
        (writer->datetime->is_date && format_element_is_time(element->letter)))
        return false;
    if (expansion != NULL) {
        append_format(writer, bytes_of(expansion));
        return true;
    }
    if (element->letter == 'z' || element->letter == 'Z') {
        append_zone(writer, element);
        return true;
    }
    if (element->letter == 'Y' && element->digits != 0) {
        buffer_append_format(writer->out, "%04lld", (long long)number(writer, 'Y'));
        return true;
    }
    if (!append_number(writer, element->letter))
        return append_word(writer, element->letter);
    append_fraction(writer, element->letter == 'S' ? element->digits : 0);
    return true;
}

/* What is no element stays as it is. */
static void append_format(const struct writer *writer, bytes format)
{
    for (size_t at = 0; at < format.size;) {
        if (format.data[at] != '%') {
            buffer_append_byte(writer->out, format.data[at++]);
            continue;
        }
        struct format_element element = format_element_at(format, at);
        if (!append_element(writer, &element))
            buffer_append(writer->out, format.data + at, element.size);
        at += element.size;
    }
}

void datetime_append(struct buffer *out, bytes format, const struct datetime *datetime)
{
    struct datetime whole = *datetime;
    whole.offset -= whole.offset % 60; /* no element has seconds of an offset */
    int64_t local = whole.timestamp_us + whole.offset * MICROS_PER_SECOND;
    int64_t of_day = floor_mod(local, MICROS_PER_DAY);
    struct writer writer = {.out = out,
                            .datetime = &whole,
                            .days = floor_div(local, MICROS_PER_DAY),
                            .seconds = of_day / MICROS_PER_SECOND,
                            .micros = of_day % MICROS_PER_SECOND};
    append_format(&writer, format);
}
