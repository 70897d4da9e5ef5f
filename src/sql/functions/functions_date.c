/* Functions on dates. */
#include "sql/functions/function_tables.h"
#include "sql/time/datetime_parts.h"
#include "sql/time/datetime_text.h"
#include "sql/time/zone.h"

/* --- making dates --- */

static status date_of_moment(const struct sql_call *call, int64_t timestamp_us,
                             const struct sql_value *zone_name, struct sql_value *out)
{
    const struct sql_zone *zone;
    bytes name = zone_name == NULL ? bytes_of("UTC") : zone_name->text;
    TRY(sql_zone_find(call->session->zones, name, &zone));
    int64_t local = timestamp_us + sql_zone_offset(zone, timestamp_us) * MICROS_PER_SECOND;
    *out = sql_of_int64(floor_div(local, MICROS_PER_DAY));
    if (is_date_in_range(out->int64))
        return status_ok();
    struct civil_date date = civil_of_days(out->int64);
    return status_make(STATUS_OUT_OF_RANGE, "Date value out of range: '%04d-%02d-%02d'", date.year,
                       date.month, date.day);
}

static status current_date(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    return date_of_moment(call, call->session->now_us, count > 0 ? &args[0] : NULL, out);
}

static status date_of_timestamp(const struct sql_call *call, const struct sql_value *args,
                                size_t count, struct sql_value *out)
{
    return date_of_moment(call, args[0].int64, count > 1 ? &args[1] : NULL, out);
}

static status date_of_date(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    (void)call, (void)count;
    *out = args[0];
    return status_ok();
}

static bool is_small(int64_t number)
{
    return number >= 1 && number <= 9999;
}

static status date_of_numbers(const struct sql_call *call, const struct sql_value *args,
                              size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    int64_t year = args[0].int64, month = args[1].int64, day = args[2].int64;
    bool fits = is_small(year) && is_small(month) && is_small(day);
    struct civil_date date = {0};
    if (fits)
        date = (struct civil_date){(int32_t)year, (int32_t)month, (int32_t)day};
    if (!fits || !is_civil(date))
        return status_make(STATUS_OUT_OF_RANGE,
                           "Input calculates to invalid date: %04lld-%02lld-%02lld",
                           (long long)year, (long long)month, (long long)day);
    *out = sql_of_int64(days_of_civil(date));
    return status_ok();
}

static status date_from_unix_date(const struct sql_call *call, const struct sql_value *args,
                                  size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    *out = args[0];
    return is_date_in_range(out->int64)
               ? status_ok()
               : status_make(STATUS_OUT_OF_RANGE,
                             "DATE_FROM_UNIX_DATE range is %d to %d but saw %lld", SQL_DATE_MIN,
                             SQL_DATE_MAX, (long long)out->int64);
}

static status unix_date(const struct sql_call *call, const struct sql_value *args, size_t count,
                        struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64(args[0].int64);
    return status_ok();
}

/* --- parts --- */

static status extract(const struct sql_call *call, const struct sql_value *args, size_t count,
                      struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64(date_part(args[1].int64, part_of(&args[0])));
    return status_ok();
}

static status date_add(const struct sql_call *call, const struct sql_value *args, size_t count,
                       struct sql_value *out)
{
    (void)call, (void)count;
    int64_t days = args[0].int64, steps = args[1].int64;
    enum sql_part part = part_of(&args[2]);
    *out = sql_of_int64(0);
    return date_step(days, steps, part, &out->int64) ? status_ok()
                                                     : date_overflow(days, steps, part, false);
}

static status date_sub(const struct sql_call *call, const struct sql_value *args, size_t count,
                       struct sql_value *out)
{
    (void)call, (void)count;
    int64_t days = args[0].int64, steps = args[1].int64;
    enum sql_part part = part_of(&args[2]);
    *out = sql_of_int64(0);
    bool fits = steps != INT64_MIN && date_step(days, -steps, part, &out->int64);
    return fits ? status_ok() : date_overflow(days, steps, part, true);
}

static status date_diff(const struct sql_call *call, const struct sql_value *args, size_t count,
                        struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64(date_difference(args[0].int64, args[1].int64, part_of(&args[2])));
    return status_ok();
}

/* Weeks of the first days may begin before there are dates, and the last week ends after. */
static status check_period(const char *what, const struct sql_value *date, enum sql_part part,
                           int64_t result)
{
    struct buffer text = {0};
    if (is_date_in_range(result))
        return status_ok();
    date_append(&text, date->int64);
    status error = text.failed ? status_out_of_memory()
                               : status_make(STATUS_OUT_OF_RANGE,
                                             "%s date %.*s to %s resulted in an out of range date "
                                             "value: %lld",
                                             what, (int)text.size, (const char *)text.data,
                                             sql_part_name(part), (long long)result);
    buffer_free(&text);
    return error;
}

static status date_trunc(const struct sql_call *call, const struct sql_value *args, size_t count,
                         struct sql_value *out)
{
    (void)call, (void)count;
    enum sql_part part = part_of(&args[1]);
    *out = sql_of_int64(date_period(args[0].int64, part));
    return check_period("Truncating", &args[0], part, out->int64);
}

static status last_day(const struct sql_call *call, const struct sql_value *args, size_t count,
                       struct sql_value *out)
{
    (void)call;
    enum sql_part part = count > 1 ? part_of(&args[1]) : SQL_PART_MONTH;
    *out = sql_of_int64(date_next_period(args[0].int64, part) - 1);
    return check_period("Rounding up", &args[0], part, out->int64);
}

/* --- arrays --- */

/* Element `index` of the array; false if there is none: it would be beyond the end. */
static bool date_at(const struct sql_value *args, int64_t step, enum sql_part part, int64_t index,
                    int64_t *out)
{
    int64_t steps;
    bool fits =
        !__builtin_mul_overflow(step, index, &steps) && date_step(args[0].int64, steps, part, out);
    return fits && (step > 0 ? *out <= args[1].int64 : *out >= args[1].int64);
}

/* Each is so many steps after the first, and not one after the last: months' ends stay ends. */
static status generate_date_array(const struct sql_call *call, const struct sql_value *args,
                                  size_t count, struct sql_value *out)
{
    int64_t step = count > 2 ? args[2].int64 : 1, day;
    enum sql_part part = count > 2 ? part_of(&args[3]) : SQL_PART_DAY;
    size_t length = 0;
    if (step == 0)
        return status_make(STATUS_OUT_OF_RANGE, "Sequence step cannot be 0");
    while (date_at(args, step, part, (int64_t)length, &day))
        length++;
    struct sql_value *items = arena_alloc(call->arena, length * sizeof *items);
    if (items == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < length; i++) {
        date_at(args, step, part, (int64_t)i, &day);
        items[i] = sql_of_int64(day);
    }
    *out = sql_of_items(items, length);
    return status_ok();
}

const struct sql_function sql_date_functions[] = {
    {"CURRENT_DATE", "DATE([STRING])", current_date, SQL_STABLE},
    {"DATE", "DATE(TIMESTAMP, [STRING])", date_of_timestamp},
    {"DATE", "DATE(DATE)", date_of_date},
    {"DATE", "DATE(INT64, INT64, INT64)", date_of_numbers},
    {"DATE_FROM_UNIX_DATE", "DATE(INT64)", date_from_unix_date},
    {"UNIX_DATE", "INT64(DATE)", unix_date},
    {"$extract", "INT64(PART, DATE)", extract,
     .parts = PARTS_PERIOD | PART(DAY) | PART(DAYOFWEEK) | PART(DAYOFYEAR)},
    {"DATE_ADD", "DATE(DATE, INT64, PART)", date_add, .parts = PARTS_STEP},
    {"DATE_SUB", "DATE(DATE, INT64, PART)", date_sub, .parts = PARTS_STEP},
    {"DATE_DIFF", "INT64(DATE, DATE, PART)", date_diff, .parts = PARTS_PERIOD | PART(DAY)},
    {"DATE_TRUNC", "DATE(DATE, PART)", date_trunc, .parts = PARTS_PERIOD | PART(DAY)},
    {"LAST_DAY", "DATE(DATE, [PART])", last_day, .parts = PARTS_PERIOD},
    {"GENERATE_DATE_ARRAY", "ARRAY<DATE>(DATE, DATE, [INT64], [PART])", generate_date_array,
     .parts = PARTS_STEP},
    {0},
};
