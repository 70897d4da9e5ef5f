/* Files of the tz database: see tzfile.h.
 *
 * A file has two parts of the same form, the first with times of 4 bytes, which is passed over, and
 * after the second a rule for all that comes later. */
#include "sql/time/tzfile.h"

#include "os/file.h"
#include "sql/time/calendar.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define ZONEINFO "/usr/share/zoneinfo/"

enum { HEADER_SIZE = 44, FILE_LIMIT = 1 << 20, CLOCK_SIZE = 6, MOST_OFFSET = 26 * 3600 };

/* When a rule of the form Mm.w.d/time, Jn or n changes the clocks in a year. */
struct change_day {
    enum { DAY_OF_MONTH_WEEK, DAY_JULIAN, DAY_ZERO_BASED } kind;
    int32_t month;
    int32_t week;
    int32_t day;
    int32_t seconds; /* of the day, on clocks before the change */
};

struct tzfile {
    int64_t *times; /* of changes, rising */
    uint8_t *types; /* into clocks, which hold from then on */
    size_t count;
    int32_t *clocks; /* what they are ahead of UTC, in seconds */
    /* After the last change. */
    bool has_rule;
    bool has_summer;
    int32_t standard; /* seconds ahead of UTC */
    int32_t summer;
    struct change_day begins; /* summer */
    struct change_day ends;
};

void tzfile_destroy(struct tzfile *file)
{
    if (file == NULL)
        return;
    free(file->times);
    free(file->types);
    free(file->clocks);
    free(file);
}

/* --- the rule: "CET-1CEST,M3.5.0,M10.5.0/3" --- */

/* A name of letters, or anything in <>: what clocks are called. */
static bool skip_name(const char **at)
{
    const char *from = *at;
    bool is_quoted = **at == '<';
    while (is_quoted ? **at != '>' && **at != '\0' : isalpha((unsigned char)**at) != 0)
        ++*at;
    bool is_closed = !is_quoted || **at == '>';
    *at += is_quoted && is_closed;
    return *at > from && is_closed;
}

static bool read_number(const char **at, int32_t *out)
{
    *out = 0;
    if (!isdigit((unsigned char)**at))
        return false;
    for (; isdigit((unsigned char)**at) && *out < 10000; ++*at)
        *out = *out * 10 + (**at - '0');
    return true;
}

/* [+-]h[:m[:s]] */
static bool read_time(const char **at, int32_t *seconds)
{
    int32_t hours, part;
    bool is_negative = **at == '-';
    *at += is_negative || **at == '+';
    if (!read_number(at, &hours) || hours > 168)
        return false;
    *seconds = hours * 3600;
    for (int32_t unit = 60; **at == ':' && unit > 0; unit /= 60) {
        ++*at;
        if (!read_number(at, &part) || part > 59)
            return false;
        *seconds += part * unit;
    }
    *seconds = is_negative ? -*seconds : *seconds;
    return true;
}

static bool take(const char **at, char c)
{
    bool is_there = **at == c;
    *at += is_there;
    return is_there;
}

static bool read_month_day(const char **at, struct change_day *day)
{
    return read_number(at, &day->month) && take(at, '.') && read_number(at, &day->week) &&
           take(at, '.') && read_number(at, &day->day) && day->month >= 1 && day->month <= 12 &&
           day->week >= 1 && day->week <= 5 && day->day <= 6;
}

static bool read_change_day(const char **at, struct change_day *day)
{
    day->seconds = 2 * 3600;
    day->kind = **at == 'M' ? DAY_OF_MONTH_WEEK : **at == 'J' ? DAY_JULIAN : DAY_ZERO_BASED;
    *at += day->kind != DAY_ZERO_BASED;
    bool is_day = day->kind == DAY_OF_MONTH_WEEK ? read_month_day(at, day)
                                                 : read_number(at, &day->day) && day->day <= 366;
    return is_day && (!take(at, '/') || read_time(at, &day->seconds));
}

static bool read_rule(const char *at, struct tzfile *file)
{
    int32_t west;
    if (!skip_name(&at) || !read_time(&at, &west))
        return false;
    file->standard = -west;
    file->has_rule = true;
    if (*at == '\0')
        return true;
    file->has_summer = true;
    if (!skip_name(&at))
        return false;
    file->summer = file->standard + 3600;
    if (*at != ',') {
        if (!read_time(&at, &west))
            return false;
        file->summer = -west;
    }
    return take(&at, ',') && read_change_day(&at, &file->begins) && take(&at, ',') &&
           read_change_day(&at, &file->ends) && *at == '\0';
}

/* --- the tables --- */

struct header {
    uint32_t utc_count;
    uint32_t standard_count;
    uint32_t leap_count;
    uint32_t time_count;
    uint32_t type_count;
    uint32_t name_size;
};

static int64_t big_endian(const uint8_t *at, size_t size)
{
    uint64_t value = (at[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | at[i];
    return (int64_t)value;
}

static bool read_header(bytes content, struct header *out)
{
    uint32_t *const counts[] = {&out->utc_count,  &out->standard_count, &out->leap_count,
                                &out->time_count, &out->type_count,     &out->name_size};
    if (content.size < HEADER_SIZE || memcmp(content.data, "TZif", 4) != 0 || content.data[4] < '2')
        return false;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        *counts[i] = (uint32_t)big_endian(content.data + 20 + 4 * i, 4);
        if (*counts[i] > FILE_LIMIT)
            return false;
    }
    return true;
}

static size_t part_size(const struct header *header, size_t time_size)
{
    return header->time_count * (time_size + 1) + header->type_count * (size_t)CLOCK_SIZE +
           header->name_size + header->leap_count * (time_size + 4) + header->standard_count +
           header->utc_count;
}

static bool fill_tables(struct tzfile *file, const struct header *header, const uint8_t *at)
{
    const uint8_t *types = at + header->time_count * (size_t)8;
    const uint8_t *clocks = types + header->time_count;
    for (size_t i = 0; i < header->time_count; i++) {
        file->times[i] = big_endian(at + 8 * i, 8);
        file->types[i] = types[i];
        if (types[i] >= header->type_count || (i > 0 && file->times[i] <= file->times[i - 1]))
            return false;
    }
    for (size_t i = 0; i < header->type_count; i++) {
        int64_t offset = big_endian(clocks + CLOCK_SIZE * i, 4);
        if (offset < -MOST_OFFSET || offset > MOST_OFFSET)
            return false;
        file->clocks[i] = (int32_t)offset;
    }
    return true;
}

static status read_tables(struct tzfile *file, const struct header *header, const uint8_t *at,
                          bool *is_good)
{
    file->count = header->time_count;
    *is_good = header->type_count > 0;
    if (!*is_good)
        return status_ok();
    file->times = calloc(header->time_count + 1, sizeof *file->times);
    file->types = calloc(header->time_count + 1, sizeof *file->types);
    file->clocks = calloc(header->type_count, sizeof *file->clocks);
    if (file->times == NULL || file->types == NULL || file->clocks == NULL)
        return status_out_of_memory();
    *is_good = fill_tables(file, header, at);
    return status_ok();
}

/* The line after the second part. */
static bool read_footer(struct tzfile *file, bytes footer)
{
    char rule[128];
    if (footer.size < 2 || footer.data[0] != '\n' || footer.data[footer.size - 1] != '\n' ||
        footer.size > sizeof rule)
        return false;
    snprintf(rule, sizeof rule, "%.*s", (int)footer.size - 2, (const char *)footer.data + 1);
    return rule[0] == '\0' || read_rule(rule, file);
}

static status read_content(struct tzfile *file, bytes content, bool *is_good)
{
    struct header first, second;
    *is_good = read_header(content, &first) &&
               content.size >= HEADER_SIZE + part_size(&first, 4) + HEADER_SIZE;
    if (!*is_good)
        return status_ok();
    bytes rest = bytes_from(content, HEADER_SIZE + part_size(&first, 4));
    *is_good = read_header(rest, &second) && rest.size >= HEADER_SIZE + part_size(&second, 8);
    if (!*is_good)
        return status_ok();
    TRY(read_tables(file, &second, rest.data + HEADER_SIZE, is_good));
    if (*is_good)
        *is_good = read_footer(file, bytes_from(rest, HEADER_SIZE + part_size(&second, 8)));
    return status_ok();
}

status tzfile_parse(bytes content, struct tzfile **out)
{
    struct tzfile *file = calloc(1, sizeof *file);
    bool is_good = false;
    *out = NULL;
    if (file == NULL)
        return status_out_of_memory();
    status result = read_content(file, content, &is_good);
    if (status_is_ok(result) && !is_good)
        result = status_make(STATUS_DATA_LOSS, "The time zone's file is damaged");
    if (status_is_ok(result))
        *out = file;
    else
        tzfile_destroy(file);
    return result;
}

status tzfile_read(const char *zone, struct tzfile **out)
{
    char path[256];
    struct buffer content = {0};
    snprintf(path, sizeof path, ZONEINFO "%s", zone);
    status result = file_read(path, FILE_LIMIT, 0, &content);
    if (status_is_ok(result))
        result = tzfile_parse(buffer_bytes(&content), out);
    buffer_free(&content);
    return result;
}

/* --- using it --- */

/* Seconds from 1970 to the change in that year, as clocks showed them. */
static int64_t change_in(const struct change_day *day, int32_t year)
{
    int64_t first = days_of_civil((struct civil_date){year, 1, 1});
    if (day->kind == DAY_ZERO_BASED)
        return (first + day->day) * 86400 + day->seconds;
    if (day->kind == DAY_JULIAN) { /* as if there were no leap days */
        bool is_leap = days_in_month(year, 2) == 29;
        return (first + day->day - 1 + (is_leap && day->day >= 60)) * 86400 + day->seconds;
    }
    first = days_of_civil((struct civil_date){year, day->month, 1});
    int64_t weekday = floor_mod(first + 4, 7); /* 1970-01-01 was a Thursday */
    int64_t of_month = floor_mod(day->day - weekday, 7) + (day->week - 1) * 7;
    if (of_month >= days_in_month(year, day->month))
        of_month -= 7;
    return (first + of_month) * 86400 + day->seconds;
}

/* What the rule's clocks are ahead at a moment: those of the last change before it. */
static int32_t rule_offset(const struct tzfile *file, int64_t seconds)
{
    int32_t year = civil_of_days(floor_div(seconds, 86400)).year;
    int64_t best = INT64_MIN;
    int32_t offset = file->standard;
    for (int32_t y = year - 1; y <= year + 1 && file->has_summer; y++) {
        int64_t begins = change_in(&file->begins, y) - file->standard;
        int64_t ends = change_in(&file->ends, y) - file->summer;
        if (begins <= seconds && begins >= best) { /* as another summer ends: it goes on */
            best = begins;
            offset = file->summer;
        }
        if (ends <= seconds && ends > best) {
            best = ends;
            offset = file->standard;
        }
    }
    return offset;
}

/* How many of the listed changes are at or before the moment. */
static size_t changes_until(const struct tzfile *file, int64_t seconds)
{
    size_t low = 0, high = file->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (file->times[middle] <= seconds)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t tzfile_offset(const struct tzfile *file, int64_t seconds)
{
    size_t changes = changes_until(file, seconds);
    if (changes == file->count && file->has_rule)
        return rule_offset(file, seconds);
    return file->clocks[changes == 0 ? 0 : file->types[changes - 1]];
}
