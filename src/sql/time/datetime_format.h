/* Dates and times in formats of elements like %Y: those of FORMAT_TIMESTAMP, PARSE_DATE and their
 * like. docs/reference/sql.md has the elements. */
#ifndef TRESTLE_SQL_TIME_DATETIME_FORMAT_H
#define TRESTLE_SQL_TIME_DATETIME_FORMAT_H

#include "base/bytes.h"
#include "sql/time/zone.h"

/* --- elements --- */

enum { ALL_DIGITS = 10 };

struct format_element {
    char letter;      /* '\0': the format ends after its % */
    int digits;       /* of the second's fraction; ALL_DIGITS: as many as there are */
    bool is_extended; /* %Ez, %E4Y, %E3S, %E*S */
    size_t size;
};

/* The element at the % that stands at `at`. */
struct format_element format_element_at(bytes format, size_t at);

/* What the element is short for: %T for "%H:%M:%S"; NULL: nothing. */
const char *format_element_expansion(char letter);

/* Whether it tells of a time or zone, which dates have none of. */
bool format_element_is_time(char letter);

extern const char *const sql_weekday_names[7]; /* from Sunday; their first three letters are what */
extern const char *const sql_month_names[12];  /* they are abbreviated to */

/* --- writing and reading --- */

struct datetime {
    int64_t timestamp_us;
    int32_t offset; /* of the zone's clocks at that time, in seconds */
    bool is_date;   /* elements that tell of times are left as they are */
};
void datetime_append(struct buffer *out, bytes format, const struct datetime *datetime);

/* What the text does not tell is that of 1970-01-01 00:00:00 in `zone`. OUT_OF_RANGE. */
status datetime_read(struct sql_zones *zones, bytes format, bytes text, const struct sql_zone *zone,
                     bool is_date, int64_t *timestamp_us);

#endif
