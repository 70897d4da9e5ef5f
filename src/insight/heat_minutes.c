/* See heat_minutes.h. */
#include "insight/heat_minutes.h"

#include "sql/vector.h"

#define MINUTE_US (INT64_C(60) * 1000000)

static double requests_of(const struct heat_matrix *matrix, const struct heat_time *time,
                          const void *const *owners, const void *owner)
{
    double sum = 0;
    for (size_t i = 0; i < matrix->range_count; i++)
        if (time->sums[i] != NULL && owners[i] == owner)
            sum += (double)(time->sums[i]->numbers[HEAT_WRITES] +
                            time->sums[i]->numbers[HEAT_TIMED_READS]);
    return sum;
}

status heat_minutes_of(const struct heat_matrix *matrix, const void *const *owners,
                       const void *owner, struct arena *arena, struct heat_minutes *out)
{
    struct vector minutes = {0};
    for (size_t i = 0; i < matrix->time_count; i++) {
        const struct heat_time *time = &matrix->times[i];
        int64_t span_us = time->until_us - time->from_us;
        double long_spans = span_us > MINUTE_US ? (double)span_us / MINUTE_US : 1;
        const struct advice_minute minute = {.minute = time->from_us / MINUTE_US,
                                             .requests = requests_of(matrix, time, owners, owner) /
                                                         long_spans};
        struct advice_minute *all = minutes.items;
        if (minutes.count > 0 && all[minutes.count - 1].minute == minute.minute)
            all[minutes.count - 1].requests += minute.requests;
        else
            TRY(vector_add(&minutes, arena, &minute, sizeof minute));
    }
    *out = (struct heat_minutes){.all = minutes.items, .count = minutes.count};
    return status_ok();
}
