/* FORMAT_DATE, PARSE_TIMESTAMP and their like. */
#include "sql/functions/function_tables.h"
#include "sql/text.h"
#include "sql/time/datetime_format.h"
#include "sql/time/datetime_parts.h"
#include "sql/work.h"

static status find_zone(const struct sql_call *call, const struct sql_value *args, size_t count,
                        const struct sql_zone **out)
{
    bytes name = count > 2 ? args[2].text : bytes_of("UTC");
    return sql_zone_find(call->session->zones, name, out);
}

enum { STEPS_AN_ELEMENT = 64 };

static status append_formatted(const struct sql_call *call, bytes format,
                               const struct datetime *datetime, struct sql_value *out)
{
    struct buffer text = {0};
    TRY(sql_count(call->session, format.size * STEPS_AN_ELEMENT));
    datetime_append(&text, format, datetime);
    TRY(text_result(call, &text, out));
    return out->text.size <= TEXT_LIMIT
               ? status_ok()
               : status_make(STATUS_OUT_OF_RANGE,
                             "Output of FORMAT exceeds max allowed output size of 1MB");
}

static status format_date(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)count;
    struct datetime datetime = {.timestamp_us = args[1].int64 * MICROS_PER_DAY, .is_date = true};
    return append_formatted(call, args[0].text, &datetime, out);
}

static status format_timestamp(const struct sql_call *call, const struct sql_value *args,
                               size_t count, struct sql_value *out)
{
    const struct sql_zone *zone;
    struct datetime datetime = {.timestamp_us = args[1].int64};
    TRY(find_zone(call, args, count, &zone));
    datetime.offset = sql_zone_offset(zone, args[1].int64);
    return append_formatted(call, args[0].text, &datetime, out);
}

static status parse(const struct sql_call *call, const struct sql_value *args, size_t count,
                    struct sql_value *out)
{
    const struct sql_zone *zone;
    bool is_date = call->type->kind == SQL_DATE;
    TRY(find_zone(call, args, count, &zone));
    *out = sql_of_int64(0);
    TRY(datetime_read(call->session->zones, args[0].text, args[1].text, zone, is_date,
                      &out->int64));
    if (is_date)
        out->int64 = floor_div(out->int64, MICROS_PER_DAY);
    return status_ok();
}

const struct sql_function sql_datetime_format_functions[] = {
    {"FORMAT_DATE", "STRING(STRING, DATE)", format_date},
    {"FORMAT_TIMESTAMP", "STRING(STRING, TIMESTAMP, [STRING])", format_timestamp},
    {"PARSE_DATE", "DATE(STRING, STRING)", parse},
    {"PARSE_TIMESTAMP", "TIMESTAMP(STRING, STRING, [STRING])", parse},
    {0},
};
