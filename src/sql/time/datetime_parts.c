/* Arithmetic with the parts of dates and times: see datetime_parts.h. */
#include "sql/time/datetime_parts.h"

#include "base/check.h"

enum { MONDAY = 1, DAYS_PER_WEEK = 7, MONTHS_PER_YEAR = 12, MOST_DAYS = 10000 * 366 };

const char *sql_part_name(enum sql_part part)
{
    static const char *const names[] = {
        [SQL_PART_MICROSECOND] = "MICROSECOND",
        [SQL_PART_MILLISECOND] = "MILLISECOND",
        [SQL_PART_SECOND] = "SECOND",
        [SQL_PART_MINUTE] = "MINUTE",
        [SQL_PART_HOUR] = "HOUR",
        [SQL_PART_DAY] = "DAY",
        [SQL_PART_DAYOFWEEK] = "DAYOFWEEK",
        [SQL_PART_DAYOFYEAR] = "DAYOFYEAR",
        [SQL_PART_WEEK] = "WEEK",
        [SQL_PART_WEEK_MONDAY] = "WEEK(MONDAY)",
        [SQL_PART_WEEK_TUESDAY] = "WEEK(TUESDAY)",
        [SQL_PART_WEEK_WEDNESDAY] = "WEEK(WEDNESDAY)",
        [SQL_PART_WEEK_THURSDAY] = "WEEK(THURSDAY)",
        [SQL_PART_WEEK_FRIDAY] = "WEEK(FRIDAY)",
        [SQL_PART_WEEK_SATURDAY] = "WEEK(SATURDAY)",
        [SQL_PART_ISOWEEK] = "ISOWEEK",
        [SQL_PART_MONTH] = "MONTH",
        [SQL_PART_QUARTER] = "QUARTER",
        [SQL_PART_YEAR] = "YEAR",
        [SQL_PART_ISOYEAR] = "ISOYEAR",
        [SQL_PART_DATE] = "DATE",
        [SQL_PART_NFC] = "NFC",
        [SQL_PART_NFKC] = "NFKC",
        [SQL_PART_NFD] = "NFD",
        [SQL_PART_NFKD] = "NFKD",
    };
    return names[part];
}

/* --- days --- */

int32_t weekday_of_days(int64_t days)
{
    return (int32_t)floor_mod(days + 4, DAYS_PER_WEEK); /* 1970-01-01 was a Thursday */
}

int64_t week_start(int64_t days, int32_t first)
{
    return days - floor_mod(weekday_of_days(days) - first, DAYS_PER_WEEK);
}

static int64_t year_start(int32_t year)
{
    return days_of_civil((struct civil_date){year, 1, 1});
}

int32_t day_of_year(int64_t days)
{
    return (int32_t)(days - year_start(civil_of_days(days).year) + 1);
}

static int64_t thursday(int64_t days)
{
    return week_start(days, MONDAY) + 3;
}

int32_t iso_year(int64_t days)
{
    return civil_of_days(thursday(days)).year;
}

int64_t iso_year_start(int32_t year)
{
    return week_start(days_of_civil((struct civil_date){year, 1, 4}), MONDAY);
}

/* --- periods --- */

/* The day with which a part's weeks begin; -1 for what is no week. */
static int32_t first_weekday(enum sql_part part)
{
    if (part == SQL_PART_ISOWEEK)
        return MONDAY;
    bool is_week = part >= SQL_PART_WEEK && part <= SQL_PART_WEEK_SATURDAY;
    return is_week ? (int32_t)(part - SQL_PART_WEEK) : -1;
}

/* Days before the year's first `first` are in week 0. */
static int64_t week_of_year(int64_t days, int32_t first)
{
    int64_t of_week = days - week_start(days, first);
    return (day_of_year(days) + DAYS_PER_WEEK - 1 - of_week) / DAYS_PER_WEEK;
}

int64_t date_part(int64_t days, enum sql_part part)
{
    struct civil_date date = civil_of_days(days);
    switch (part) {
    case SQL_PART_DAY:
        return date.day;
    case SQL_PART_DAYOFWEEK:
        return weekday_of_days(days) + 1;
    case SQL_PART_DAYOFYEAR:
        return day_of_year(days);
    case SQL_PART_ISOWEEK:
        return (day_of_year(thursday(days)) - 1) / DAYS_PER_WEEK + 1;
    case SQL_PART_MONTH:
        return date.month;
    case SQL_PART_QUARTER:
        return (date.month + 2) / 3;
    case SQL_PART_YEAR:
        return date.year;
    case SQL_PART_ISOYEAR:
        return iso_year(days);
    default:
        return week_of_year(days, first_weekday(part));
    }
}

int64_t date_period(int64_t days, enum sql_part part)
{
    struct civil_date date = civil_of_days(days);
    date.day = 1;
    switch (part) {
    case SQL_PART_DAY:
        return days;
    case SQL_PART_MONTH:
        return days_of_civil(date);
    case SQL_PART_QUARTER:
        date.month = (date.month - 1) / 3 * 3 + 1;
        return days_of_civil(date);
    case SQL_PART_YEAR:
        return year_start(date.year);
    case SQL_PART_ISOYEAR:
        return iso_year_start(iso_year(days));
    default:
        return week_start(days, first_weekday(part));
    }
}

/* Months of the parts that are made of months; 0: of others. */
static int32_t part_months(enum sql_part part)
{
    return part == SQL_PART_MONTH     ? 1
           : part == SQL_PART_QUARTER ? 3
           : part == SQL_PART_YEAR    ? MONTHS_PER_YEAR
                                      : 0;
}

int64_t date_next_period(int64_t days, enum sql_part part)
{
    if (part == SQL_PART_ISOYEAR)
        return iso_year_start(iso_year(days) + 1);
    int64_t first = date_period(days, part);
    if (part_months(part) == 0)
        return first + DAYS_PER_WEEK;
    struct civil_date date = civil_of_days(first);
    date.month += part_months(part);
    return days_of_civil(date);
}

static int64_t add_months(int64_t days, int64_t months)
{
    struct civil_date date = civil_of_days(days);
    int64_t month = (int64_t)date.year * MONTHS_PER_YEAR + date.month - 1 + months;
    date.year = (int32_t)floor_div(month, MONTHS_PER_YEAR);
    date.month = (int32_t)floor_mod(month, MONTHS_PER_YEAR) + 1;
    int32_t last = days_in_month(date.year, date.month);
    date.day = date.day < last ? date.day : last;
    return days_of_civil(date);
}

bool date_step(int64_t days, int64_t count, enum sql_part part, int64_t *out)
{
    if (count > MOST_DAYS || count < -MOST_DAYS)
        return false;
    int32_t months = part_months(part);
    *out = months > 0              ? add_months(days, count * months)
           : part == SQL_PART_WEEK ? days + count * DAYS_PER_WEEK
                                   : days + count;
    return is_date_in_range(*out);
}

int64_t date_difference(int64_t to, int64_t from, enum sql_part part)
{
    if (part == SQL_PART_DAY)
        return to - from;
    if (first_weekday(part) >= 0)
        return (date_period(to, part) - date_period(from, part)) / DAYS_PER_WEEK;
    if (part == SQL_PART_ISOYEAR)
        return iso_year(to) - iso_year(from);
    struct civil_date later = civil_of_days(date_period(to, part));
    struct civil_date earlier = civil_of_days(date_period(from, part));
    int32_t months = (later.year - earlier.year) * MONTHS_PER_YEAR + later.month - earlier.month;
    int32_t divisor = part_months(part);
    CHECK(divisor > 0);
    return months / divisor;
}

/* --- times --- */

int64_t part_micros(enum sql_part part)
{
    switch (part) {
    case SQL_PART_MICROSECOND:
        return 1;
    case SQL_PART_MILLISECOND:
        return MICROS_PER_SECOND / 1000;
    case SQL_PART_SECOND:
        return MICROS_PER_SECOND;
    case SQL_PART_MINUTE:
        return 60 * MICROS_PER_SECOND;
    case SQL_PART_HOUR:
        return 3600 * MICROS_PER_SECOND;
    default:
        return MICROS_PER_DAY;
    }
}

/* --- errors --- */

status date_overflow(int64_t days, int64_t count, enum sql_part part, bool subtracts)
{
    struct civil_date date = civil_of_days(days);
    return status_make(STATUS_OUT_OF_RANGE, "%s %lld %s %s date %04d-%02d-%02d causes overflow",
                       subtracts ? "Subtracting" : "Adding", (long long)count, sql_part_name(part),
                       subtracts ? "from" : "to", date.year, date.month, date.day);
}
