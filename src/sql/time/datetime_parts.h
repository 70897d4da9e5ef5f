/* Arithmetic with the parts of dates and times: what EXTRACT, DATE_ADD, TIMESTAMP_TRUNC and their
 * like share. Dates are days since 1970-01-01, from SQL_DATE_MIN to SQL_DATE_MAX. */
#ifndef TRESTLE_SQL_TIME_DATETIME_PARTS_H
#define TRESTLE_SQL_TIME_DATETIME_PARTS_H

#include "sql/function.h"
#include "sql/time/calendar.h"

/* Sets of parts, for sql_function.parts. */
#define PART(name) (UINT32_C(1) << SQL_PART_##name)
#define PARTS_WEEK                                                                                 \
    (PART(WEEK) | PART(WEEK_MONDAY) | PART(WEEK_TUESDAY) | PART(WEEK_WEDNESDAY) |                  \
     PART(WEEK_THURSDAY) | PART(WEEK_FRIDAY) | PART(WEEK_SATURDAY) | PART(ISOWEEK))
#define PARTS_YEAR   (PART(MONTH) | PART(QUARTER) | PART(YEAR))
#define PARTS_STEP   (PART(DAY) | PART(WEEK) | PARTS_YEAR) /* DATE_ADD */
#define PARTS_PERIOD (PARTS_WEEK | PARTS_YEAR | PART(ISOYEAR))
#define PARTS_TIME                                                                                 \
    (PART(MICROSECOND) | PART(MILLISECOND) | PART(SECOND) | PART(MINUTE) | PART(HOUR))

/* That of an argument. */
static inline enum sql_part part_of(const struct sql_value *arg)
{
    return (enum sql_part)arg->int64;
}

int32_t weekday_of_days(int64_t days);               /* 0: Sunday */
int64_t week_start(int64_t days, int32_t first);     /* the last day `first` at or before it */
int32_t day_of_year(int64_t days);                   /* from 1 */
int32_t iso_year(int64_t days);                      /* the year in which its week's Thursday is */
int64_t iso_year_start(int32_t year);                /* its first Monday */
int64_t date_part(int64_t days, enum sql_part part); /* EXTRACT; DAY and greater parts */
int64_t date_period(int64_t days, enum sql_part part); /* the first day of the period it is in */

/* The first day of the period after it. */
int64_t date_next_period(int64_t days, enum sql_part part);

/* How many of PARTS_STEP later; the last day of a month that is too short. False on overflow. */
bool date_step(int64_t days, int64_t count, enum sql_part part, int64_t *out);

/* How many periods, or days, begin after `from` until `to`; negative if `to` is before. */
int64_t date_difference(int64_t to, int64_t from, enum sql_part part);

/* Microseconds of a MICROSECOND … DAY. */
int64_t part_micros(enum sql_part part);

static inline bool is_date_in_range(int64_t days)
{
    return days >= SQL_DATE_MIN && days <= SQL_DATE_MAX;
}

static inline bool is_timestamp_in_range(int64_t timestamp_us)
{
    return timestamp_us >= SQL_TIMESTAMP_MIN && timestamp_us <= SQL_TIMESTAMP_MAX;
}

/* OUT_OF_RANGE "Adding 1 DAY to date 9999-12-31 causes overflow". */
status date_overflow(int64_t days, int64_t count, enum sql_part part, bool subtracts);

#endif
