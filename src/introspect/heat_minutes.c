/* See heat_minutes.h. */
#include "introspect/heat_minutes.h"

#include "base/vector.h"

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

/* The requests of each time. */
static double *requests_of_all(const struct heat_matrix *matrix, const void *const *owners,
                               const void *owner, struct arena *arena)
{
    double *all = arena_alloc(arena, (matrix->time_count + 1) * sizeof *all);
    for (size_t i = 0; all != NULL && i < matrix->time_count; i++)
        all[i] = requests_of(matrix, &matrix->times[i], owners, owner);
    return all;
}

/* The requests in the minute that begins with a time. */
static double requests_within(const struct heat_matrix *matrix, const double *requests,
                              size_t first)
{
    const struct heat_time *times = matrix->times;
    int64_t span_us = times[first].until_us - times[first].from_us;
    double sum = 0;
    if (span_us > MINUTE_US)
        return requests[first] * MINUTE_US / (double)span_us;
    for (size_t i = first; i < matrix->time_count; i++)
        if (times[i].from_us - times[first].from_us < MINUTE_US)
            sum += requests[i];
    return sum;
}

status heat_minutes_of(const struct heat_matrix *matrix, const void *const *owners,
                       const void *owner, struct arena *arena, struct heat_minutes *out)
{
    struct vector minutes = {0};
    double *requests = requests_of_all(matrix, owners, owner, arena);
    if (requests == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < matrix->time_count; i++) {
        const struct advice_minute minute = {.minute = matrix->times[i].from_us / MINUTE_US,
                                             .requests = requests_within(matrix, requests, i)};
        struct advice_minute *all = minutes.items;
        bool is_new = minutes.count == 0 || all[minutes.count - 1].minute != minute.minute;
        if (is_new)
            TRY(vector_add(&minutes, arena, &minute, sizeof minute));
        else if (minute.requests > all[minutes.count - 1].requests)
            all[minutes.count - 1].requests = minute.requests;
    }
    *out = (struct heat_minutes){.all = minutes.items, .count = minutes.count};
    return status_ok();
}
