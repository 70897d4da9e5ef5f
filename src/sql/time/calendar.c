/* The calendar: see calendar.h.
 *
 * Both ways count in eras of 400 years, which are 146,097 days each, and in years that begin in
 * March, so that the leap day is a year's last. */
#include "sql/time/calendar.h"

enum { DAYS_PER_ERA = 146097, YEARS_PER_ERA = 400, EPOCH = 719468 /* 0000-03-01 to 1970-01-01 */ };

/* Days of a year, which begins in March, before its month (0: March). */
static int32_t days_before_month(int32_t month)
{
    return (153 * month + 2) / 5;
}

int64_t days_of_civil(struct civil_date date)
{
    int64_t months = (int64_t)date.year * 12 + date.month - 3; /* since March of year 0 */
    int64_t year = floor_div(months, 12);
    int64_t era = floor_div(year, YEARS_PER_ERA);
    int64_t of_era = year - era * YEARS_PER_ERA;
    int64_t days = of_era * 365 + of_era / 4 - of_era / 100;
    return era * DAYS_PER_ERA + days + days_before_month((int32_t)floor_mod(months, 12)) +
           date.day - 1 - EPOCH;
}

struct civil_date civil_of_days(int64_t days)
{
    int64_t era = floor_div(days + EPOCH, DAYS_PER_ERA);
    int64_t of_era = days + EPOCH - era * DAYS_PER_ERA;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int32_t of_year = (int32_t)(of_era - (365 * year + year / 4 - year / 100));
    int32_t month = (5 * of_year + 2) / 153;
    struct civil_date date = {.day = of_year - days_before_month(month) + 1};
    date.month = month < 10 ? month + 3 : month - 9;
    date.year = (int32_t)(era * YEARS_PER_ERA + year + (date.month <= 2));
    return date;
}

int32_t days_in_month(int32_t year, int32_t month)
{
    struct civil_date first = {year, month, 1};
    struct civil_date next = {year, month + 1, 1};
    return (int32_t)(days_of_civil(next) - days_of_civil(first));
}

bool is_civil(struct civil_date date)
{
    return date.year >= 1 && date.year <= 9999 && date.month >= 1 && date.month <= 12 &&
           date.day >= 1 && date.day <= days_in_month(date.year, date.month);
}
