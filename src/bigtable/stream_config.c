/* See stream_config.h. */
#include "bigtable/stream_config.h"

#include "wire/proto.h"
#include "wire/timestamps.h"

enum { DAY_SECONDS = 24 * 3600, LEAST_DAYS = 1, MOST_DAYS = 7 };

static status out_of_bounds(void)
{
    return status_make(STATUS_INVALID_ARGUMENT,
                       "change_stream_config.retention_period must be %d to %d days", LEAST_DAYS,
                       MOST_DAYS);
}

status stream_config_check(const BtAdmin__Table *wanted)
{
    const BtAdmin__ChangeStreamConfig *config = wanted->change_stream_config;
    return config == NULL || config->retention_period != NULL ? status_ok() : out_of_bounds();
}

status stream_config_read(const BtAdmin__Table *table, int64_t *retention_us)
{
    const BtAdmin__ChangeStreamConfig *config = table->change_stream_config;
    const Pb__Duration *period = config == NULL ? NULL : config->retention_period;
    const int64_t day_us = INT64_C(1000000) * DAY_SECONDS;
    *retention_us = 0;
    if (period == NULL)
        return status_ok();
    bool is_duration = period->seconds >= 0 && period->seconds <= MOST_DAYS * DAY_SECONDS &&
                       period->nanos >= 0 && period->nanos < 1000000000;
    int64_t us = is_duration ? period->seconds * 1000000 + period->nanos / 1000 : 0;
    if (us < STREAM_LEAST_RETENTION_US || us > MOST_DAYS * day_us)
        return out_of_bounds();
    *retention_us = us;
    return status_ok();
}

status stream_config_show(int64_t retention_us, struct arena *arena, BtAdmin__Table *table)
{
    if (retention_us == 0)
        return status_ok();
    PROTO_NEW(arena, table->change_stream_config, BT_ADMIN__CHANGE_STREAM_CONFIG__INIT);
    return duration_message(retention_us, arena, &table->change_stream_config->retention_period);
}
