/* Functions on timestamps. */
#include "sql/functions/function_tables.h"
#include "sql/text.h"
#include "sql/time/datetime_parts.h"
#include "sql/time/datetime_text.h"
#include "sql/time/zone.h"

/* --- time zones --- */

/* That of argument `index`; UTC if there are fewer. */
static status find_zone(const struct sql_call *call, const struct sql_value *args, size_t count,
                        size_t index, const struct sql_zone **out)
{
    bytes name = count > index ? args[index].text : bytes_of("UTC");
    return sql_zone_find(call->session->zones, name, out);
}

/* What the zone's clocks show, as if it were UTC. */
static int64_t local_time(const struct sql_zone *zone, int64_t timestamp_us)
{
    return timestamp_us + sql_zone_offset(zone, timestamp_us) * MICROS_PER_SECOND;
}

/* --- making timestamps --- */

static status current_timestamp(const struct sql_call *call, const struct sql_value *args,
                                size_t count, struct sql_value *out)
{
    (void)args, (void)count;
    *out = sql_of_int64(call->session->now_us);
    return status_ok();
}

/* A text that has a zone of its own may not be given another. */
static status timestamp_of_text(const struct sql_call *call, const struct sql_value *args,
                                size_t count, struct sql_value *out)
{
    const struct sql_zone *zone;
    bool has_zone = false;
    bytes text = args[0].text;
    TRY(find_zone(call, args, count, 1, &zone));
    *out = sql_of_int64(0);
    TRY(timestamp_parse(call->session->zones, text, zone, &has_zone, &out->int64));
    if (!has_zone || count < 2)
        return status_ok();
    return status_make(STATUS_OUT_OF_RANGE, "Timezone is not allowed in \"%.*s\"", (int)text.size,
                       (const char *)text.data);
}

static status out_of_range(int64_t timestamp_us)
{
    struct buffer text = {0};
    timestamp_append(&text, timestamp_us, 0);
    status error = text.failed ? status_out_of_memory()
                               : status_make(STATUS_OUT_OF_RANGE, "Invalid timestamp: '%.*s'",
                                             (int)text.size, (const char *)text.data);
    buffer_free(&text);
    return error;
}

/* Midnight there. */
static status timestamp_of_date(const struct sql_call *call, const struct sql_value *args,
                                size_t count, struct sql_value *out)
{
    const struct sql_zone *zone;
    TRY(find_zone(call, args, count, 1, &zone));
    *out = sql_of_int64(sql_zone_moment(zone, args[0].int64 * MICROS_PER_DAY));
    return is_timestamp_in_range(out->int64) ? status_ok() : out_of_range(out->int64);
}

static status same_timestamp(const struct sql_call *call, const struct sql_value *args,
                             size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    *out = args[0];
    return status_ok();
}

static status from_unix(int64_t units, int64_t micros, struct sql_value *out)
{
    *out = sql_of_int64(0);
    bool fits = !__builtin_mul_overflow(units, micros, &out->int64);
    if (fits && is_timestamp_in_range(out->int64))
        return status_ok();
    return status_make(STATUS_OUT_OF_RANGE,
                       "Input value %lld cannot be converted into a TIMESTAMP, because it would "
                       "be out of the allowed range between %lld to %lld (microseconds)",
                       (long long)units, (long long)SQL_TIMESTAMP_MIN,
                       (long long)SQL_TIMESTAMP_MAX);
}

static status from_unix_seconds(const struct sql_call *call, const struct sql_value *args,
                                size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    return from_unix(args[0].int64, MICROS_PER_SECOND, out);
}

static status from_unix_millis(const struct sql_call *call, const struct sql_value *args,
                               size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    return from_unix(args[0].int64, MICROS_PER_SECOND / 1000, out);
}

static status from_unix_micros(const struct sql_call *call, const struct sql_value *args,
                               size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    return from_unix(args[0].int64, 1, out);
}

/* --- numbers and texts of them --- */

static status unix_seconds(const struct sql_call *call, const struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64(floor_div(args[0].int64, MICROS_PER_SECOND));
    return status_ok();
}

static status unix_millis(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64(floor_div(args[0].int64, MICROS_PER_SECOND / 1000));
    return status_ok();
}

static status unix_micros(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64(args[0].int64);
    return status_ok();
}

static status string(const struct sql_call *call, const struct sql_value *args, size_t count,
                     struct sql_value *out)
{
    const struct sql_zone *zone;
    struct buffer text = {0};
    TRY(find_zone(call, args, count, 1, &zone));
    timestamp_append(&text, args[0].int64, sql_zone_offset(zone, args[0].int64));
    return text_result(call, &text, out);
}

/* --- parts --- */

static bool is_time_part(enum sql_part part)
{
    return part <= SQL_PART_HOUR;
}

/* How many there are of a part in that which is counted in it: 60 of MINUTE. */
static int64_t parts_in_next(enum sql_part part)
{
    return part == SQL_PART_HOUR ? 24
           : part == SQL_PART_MINUTE || part == SQL_PART_SECOND
               ? 60
               : MICROS_PER_SECOND / part_micros(part);
}

static status extract(const struct sql_call *call, const struct sql_value *args, size_t count,
                      struct sql_value *out)
{
    const struct sql_zone *zone;
    enum sql_part part = part_of(&args[0]);
    TRY(find_zone(call, args, count, 2, &zone));
    int64_t local = local_time(zone, args[1].int64);
    *out = sql_of_int64(is_time_part(part)
                            ? floor_mod(floor_div(local, part_micros(part)), parts_in_next(part))
                            : date_part(floor_div(local, MICROS_PER_DAY), part));
    return status_ok();
}

static bool step(int64_t timestamp_us, int64_t count, enum sql_part part, int64_t *out)
{
    return !__builtin_mul_overflow(count, part_micros(part), &count) &&
           !__builtin_add_overflow(timestamp_us, count, out) && is_timestamp_in_range(*out);
}

static status overflow(const struct sql_value *args, bool subtracts)
{
    struct buffer text = {0};
    timestamp_append(&text, args[0].int64, 0);
    status error =
        text.failed
            ? status_out_of_memory()
            : status_make(STATUS_OUT_OF_RANGE, "%s %lld %s %s timestamp %.*s causes overflow",
                          subtracts ? "Subtracting" : "Adding", (long long)args[1].int64,
                          sql_part_name(part_of(&args[2])), subtracts ? "from" : "to",
                          (int)text.size, (const char *)text.data);
    buffer_free(&text);
    return error;
}

static status timestamp_add(const struct sql_call *call, const struct sql_value *args, size_t count,
                            struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64(0);
    bool fits = step(args[0].int64, args[1].int64, part_of(&args[2]), &out->int64);
    return fits ? status_ok() : overflow(args, false);
}

static status timestamp_sub(const struct sql_call *call, const struct sql_value *args, size_t count,
                            struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64(0);
    bool fits = args[1].int64 != INT64_MIN &&
                step(args[0].int64, -args[1].int64, part_of(&args[2]), &out->int64);
    return fits ? status_ok() : overflow(args, true);
}

/* Whole parts, towards zero. */
static status timestamp_diff(const struct sql_call *call, const struct sql_value *args,
                             size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64((args[0].int64 - args[1].int64) / part_micros(part_of(&args[2])));
    return status_ok();
}

/* Hours and less keep the offset that is in force; days and more begin when the zone's clocks say
 * so. */
static status timestamp_trunc(const struct sql_call *call, const struct sql_value *args,
                              size_t count, struct sql_value *out)
{
    const struct sql_zone *zone;
    enum sql_part part = part_of(&args[1]);
    TRY(find_zone(call, args, count, 2, &zone));
    int64_t local = local_time(zone, args[0].int64);
    if (is_time_part(part)) {
        *out = sql_of_int64(args[0].int64 - floor_mod(local, part_micros(part)));
    } else {
        int64_t first = date_period(floor_div(local, MICROS_PER_DAY), part);
        *out = sql_of_int64(sql_zone_moment(zone, first * MICROS_PER_DAY));
    }
    return is_timestamp_in_range(out->int64) ? status_ok() : out_of_range(out->int64);
}

/* --- arrays --- */

static status generate_timestamp_array(const struct sql_call *call, const struct sql_value *args,
                                       size_t count, struct sql_value *out)
{
    (void)count;
    int64_t by, first = args[0].int64, span = args[1].int64 - first;
    if (args[2].int64 == 0)
        return status_make(STATUS_OUT_OF_RANGE, "Sequence step cannot be 0");
    *out = sql_of_items(NULL, 0);
    if (span != 0 && (span > 0) != (args[2].int64 > 0))
        return status_ok();
    if (__builtin_mul_overflow(args[2].int64, part_micros(part_of(&args[3])), &by))
        by = args[2].int64 > 0 ? INT64_MAX : -INT64_MAX; /* beyond any other */
    size_t length = (size_t)(span / by) + 1;
    struct sql_value *items = arena_alloc(call->arena, length * sizeof *items);
    if (items == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < length; i++)
        items[i] = sql_of_int64(first + (int64_t)i * by);
    *out = sql_of_items(items, length);
    return status_ok();
}

enum { PARTS_ADD = PARTS_TIME | PART(DAY) };

const struct sql_function sql_timestamp_functions[] = {
    {"CURRENT_TIMESTAMP", "TIMESTAMP()", current_timestamp, SQL_STABLE},
    {"TIMESTAMP", "TIMESTAMP(STRING, [STRING])", timestamp_of_text},
    {"TIMESTAMP", "TIMESTAMP(DATE, [STRING])", timestamp_of_date},
    {"TIMESTAMP", "TIMESTAMP(TIMESTAMP)", same_timestamp},
    {"TIMESTAMP_SECONDS", "TIMESTAMP(INT64)", from_unix_seconds},
    {"TIMESTAMP_MILLIS", "TIMESTAMP(INT64)", from_unix_millis},
    {"TIMESTAMP_MICROS", "TIMESTAMP(INT64)", from_unix_micros},
    {"TIMESTAMP_FROM_UNIX_SECONDS", "TIMESTAMP(INT64)", from_unix_seconds},
    {"TIMESTAMP_FROM_UNIX_SECONDS", "TIMESTAMP(TIMESTAMP)", same_timestamp},
    {"TIMESTAMP_FROM_UNIX_MILLIS", "TIMESTAMP(INT64)", from_unix_millis},
    {"TIMESTAMP_FROM_UNIX_MILLIS", "TIMESTAMP(TIMESTAMP)", same_timestamp},
    {"TIMESTAMP_FROM_UNIX_MICROS", "TIMESTAMP(INT64)", from_unix_micros},
    {"TIMESTAMP_FROM_UNIX_MICROS", "TIMESTAMP(TIMESTAMP)", same_timestamp},
    {"UNIX_SECONDS", "INT64(TIMESTAMP)", unix_seconds},
    {"UNIX_MILLIS", "INT64(TIMESTAMP)", unix_millis},
    {"UNIX_MICROS", "INT64(TIMESTAMP)", unix_micros},
    {"STRING", "STRING(TIMESTAMP, [STRING])", string},
    {"$extract", "INT64(PART, TIMESTAMP, [STRING])", extract,
     .parts = PARTS_TIME | PARTS_PERIOD | PART(DAY) | PART(DAYOFWEEK) | PART(DAYOFYEAR)},
    {"TIMESTAMP_ADD", "TIMESTAMP(TIMESTAMP, INT64, PART)", timestamp_add, .parts = PARTS_ADD},
    {"TIMESTAMP_SUB", "TIMESTAMP(TIMESTAMP, INT64, PART)", timestamp_sub, .parts = PARTS_ADD},
    {"TIMESTAMP_DIFF", "INT64(TIMESTAMP, TIMESTAMP, PART)", timestamp_diff, .parts = PARTS_ADD},
    {"TIMESTAMP_TRUNC", "TIMESTAMP(TIMESTAMP, PART, [STRING])", timestamp_trunc,
     .parts = PARTS_TIME | PARTS_PERIOD | PART(DAY)},
    {"GENERATE_TIMESTAMP_ARRAY", "ARRAY<TIMESTAMP>(TIMESTAMP, TIMESTAMP, INT64, PART)",
     generate_timestamp_array, .parts = PARTS_ADD},
    {0},
};
