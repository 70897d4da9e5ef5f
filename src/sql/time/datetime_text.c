/* Dates and times as CAST writes and reads them: see datetime_text.h. */
#include "sql/time/datetime_text.h"

#include "sql/text.h"
#include "sql/time/calendar.h"

#include <ctype.h>

/* --- writing --- */

void date_append(struct buffer *out, int64_t days)
{
    struct civil_date date = civil_of_days(days);
    buffer_append_format(out, "%04d-%02d-%02d", date.year, date.month, date.day);
}

static void append_fraction(struct buffer *out, int64_t micros)
{
    if (micros == 0)
        return;
    if (micros % 1000 == 0)
        buffer_append_format(out, ".%03lld", (long long)micros / 1000);
    else
        buffer_append_format(out, ".%06lld", (long long)micros);
}

static void append_offset(struct buffer *out, int32_t seconds)
{
    int32_t minutes = (seconds < 0 ? -seconds : seconds) / 60;
    buffer_append_format(out, "%c%02d", seconds < 0 ? '-' : '+', minutes / 60);
    if (minutes % 60 != 0)
        buffer_append_format(out, ":%02d", minutes % 60);
}

void timestamp_append(struct buffer *out, int64_t timestamp_us, int32_t offset_seconds)
{
    offset_seconds -= offset_seconds % 60; /* of long ago, before zones: not to be written */
    int64_t local = timestamp_us + offset_seconds * MICROS_PER_SECOND;
    int64_t of_day = floor_mod(local, MICROS_PER_DAY);
    int64_t seconds = of_day / MICROS_PER_SECOND;
    date_append(out, floor_div(local, MICROS_PER_DAY));
    buffer_append_format(out, " %02lld:%02lld:%02lld", (long long)seconds / 3600,
                         (long long)seconds / 60 % 60, (long long)seconds % 60);
    append_fraction(out, of_day % MICROS_PER_SECOND);
    append_offset(out, offset_seconds);
}

/* --- reading --- */

struct text_reader {
    bytes text;
    size_t at;
};

static int peek(const struct text_reader *reader)
{
    return reader->at < reader->text.size ? reader->text.data[reader->at] : -1;
}

static bool take(struct text_reader *reader, char c)
{
    bool is_there = peek(reader) == c;
    reader->at += is_there;
    return is_there;
}

/* A number of `least` to `most` digits. */
static bool read_number(struct text_reader *reader, int least, int most, int32_t *out)
{
    int digits = 0;
    *out = 0;
    for (; digits < most && peek(reader) >= '0' && peek(reader) <= '9'; digits++)
        *out = *out * 10 + (reader->text.data[reader->at++] - '0');
    return digits >= least;
}

static bool read_date(struct text_reader *reader, int64_t *days)
{
    struct civil_date date;
    bool is_date = read_number(reader, 4, 5, &date.year) && take(reader, '-') &&
                   read_number(reader, 1, 2, &date.month) && take(reader, '-') &&
                   read_number(reader, 1, 2, &date.day) && is_civil(date);
    if (is_date)
        *days = days_of_civil(date);
    return is_date;
}

/* Up to six digits after the point. */
static bool read_fraction(struct text_reader *reader, int64_t *micros)
{
    int64_t unit = MICROS_PER_SECOND / 10;
    for (; peek(reader) >= '0' && peek(reader) <= '9'; unit /= 10) {
        if (unit == 0)
            return false;
        *micros += unit * (reader->text.data[reader->at++] - '0');
    }
    return true;
}

/* H:M:S[.F] */
static bool read_time(struct text_reader *reader, int64_t *micros)
{
    int32_t hour, minute, second;
    bool is_time = read_number(reader, 1, 2, &hour) && take(reader, ':') &&
                   read_number(reader, 1, 2, &minute) && take(reader, ':') &&
                   read_number(reader, 1, 2, &second);
    if (!is_time || hour > 23 || minute > 59 || second > 60) /* a leap second is the next minute */
        return false;
    *micros = (hour * 3600 + minute * 60 + second) * MICROS_PER_SECOND;
    return !take(reader, '.') || read_fraction(reader, micros);
}

static status bad_text(const char *what, bytes text)
{
    return status_make(STATUS_OUT_OF_RANGE, "Invalid %s: '%.*s'", what, (int)text.size,
                       text.size == 0 ? "" : (const char *)text.data);
}

status date_parse(bytes text, int64_t *out)
{
    struct text_reader reader = {.text = text_trimmed(text)};
    bool is_date = read_date(&reader, out) && reader.at == reader.text.size;
    return is_date ? status_ok() : bad_text("date", text);
}

/* What is left after date and time: nothing, Z, an offset, or a blank and a name. */
static status read_zone(struct sql_zones *zones, struct text_reader *reader, bytes text,
                        const struct sql_zone **out, bool *has_zone)
{
    bytes rest = bytes_from(reader->text, reader->at);
    *has_zone = rest.size > 0;
    if (rest.size == 0)
        return status_ok();
    bool is_offset = rest.data[0] == '+' || rest.data[0] == '-';
    bool is_utc = rest.size == 1 && toupper(rest.data[0]) == 'Z';
    bool is_name = rest.data[0] == ' ' && rest.size > 1;
    if (!is_offset && !is_utc && !is_name)
        return bad_text("timestamp", text);
    return sql_zone_find(zones, is_name ? text_trimmed(rest) : rest, out);
}

status timestamp_parse(struct sql_zones *zones, bytes text, const struct sql_zone *zone,
                       bool *has_zone, int64_t *out)
{
    struct text_reader reader = {.text = text_trimmed(text)};
    int64_t days = 0, micros = 0;
    bool own_zone;
    bool is_date = read_date(&reader, &days);
    size_t after_date = reader.at;
    bool has_mark = is_date && (take(&reader, ' ') || take(&reader, 'T') || take(&reader, 't'));
    bool has_time = has_mark && isdigit(peek(&reader));
    if (has_mark && !has_time)
        reader.at = after_date; /* the blank before a zone */
    if (!is_date || (has_time && !read_time(&reader, &micros)))
        return bad_text("timestamp", text);
    TRY(read_zone(zones, &reader, text, &zone, &own_zone));
    if (has_zone != NULL)
        *has_zone = own_zone;
    *out = sql_zone_moment(zone, days * MICROS_PER_DAY + micros);
    bool fits = *out >= SQL_TIMESTAMP_MIN && *out <= SQL_TIMESTAMP_MAX;
    return fits ? status_ok() : bad_text("timestamp", text);
}
