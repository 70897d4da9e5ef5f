/* The calendar: days as dates, and back. The proleptic Gregorian one, years 1 to 9999 and a little
 * beyond, as far as days fit into 32 bits. */
#ifndef TRESTLE_SQL_TIME_CALENDAR_H
#define TRESTLE_SQL_TIME_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

struct civil_date {
    int32_t year;
    int32_t month; /* 1 to 12 */
    int32_t day;   /* 1 to 31 */
};

/* Days since 1970-01-01. */
struct civil_date civil_of_days(int64_t days);
int64_t days_of_civil(struct civil_date date); /* months and days may be beyond their ranges */

bool is_civil(struct civil_date date); /* a day that there is, from year 1 to year 9999 */
int32_t days_in_month(int32_t year, int32_t month);

#define MICROS_PER_SECOND (INT64_C(1000000))
#define MICROS_PER_DAY    (INT64_C(86400) * MICROS_PER_SECOND)

/* Division whose rest is never negative. */
static inline int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

static inline int64_t floor_mod(int64_t a, int64_t b)
{
    return a - floor_div(a, b) * b;
}

#endif
