/* See heat_levels.h. */
#include "introspect/heat_levels.h"

#include <math.h>

enum { MOST_LEVEL = 63 };

static const char LEVELS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static_assert(sizeof LEVELS == MOST_LEVEL + 2, "a character for each level, and for nothing");

/* --- numbers --- */

static double mean_seconds(const struct heat_sum *sum, enum heat_number us,
                           enum heat_number requests)
{
    uint64_t count = sum->numbers[requests];
    return count == 0 ? 0 : (double)sum->numbers[us] / (double)count / 1e6;
}

static double nothing(const struct heat_sum *sum)
{
    (void)sum;
    return 0;
}

static double rows_read(const struct heat_sum *sum)
{
    return (double)sum->numbers[HEAT_READS];
}

static double rows_written(const struct heat_sum *sum)
{
    return (double)sum->numbers[HEAT_WRITES];
}

static double rows(const struct heat_sum *sum)
{
    return rows_read(sum) + rows_written(sum);
}

static double bytes_read(const struct heat_sum *sum)
{
    return (double)sum->numbers[HEAT_READ_BYTES];
}

static double bytes_written(const struct heat_sum *sum)
{
    return (double)sum->numbers[HEAT_WRITTEN_BYTES];
}

static double read_latency(const struct heat_sum *sum)
{
    return mean_seconds(sum, HEAT_READ_US, HEAT_TIMED_READS);
}

static double write_latency(const struct heat_sum *sum)
{
    return mean_seconds(sum, HEAT_WRITE_US, HEAT_TIMED_WRITES);
}

static double largest_row(const struct heat_sum *sum)
{
    return (double)sum->numbers[HEAT_LARGEST_ROW];
}

heat_level_number *heat_levels_number(Insight__ReadHeatRequest__Number number)
{
    switch ((int)number) {
    case INSIGHT__READ_HEAT_REQUEST__NUMBER__NUMBER_UNSPECIFIED:
        return nothing;
    case INSIGHT__READ_HEAT_REQUEST__NUMBER__ROWS:
        return rows;
    case INSIGHT__READ_HEAT_REQUEST__NUMBER__ROWS_READ:
        return rows_read;
    case INSIGHT__READ_HEAT_REQUEST__NUMBER__ROWS_WRITTEN:
        return rows_written;
    case INSIGHT__READ_HEAT_REQUEST__NUMBER__BYTES_READ:
        return bytes_read;
    case INSIGHT__READ_HEAT_REQUEST__NUMBER__BYTES_WRITTEN:
        return bytes_written;
    case INSIGHT__READ_HEAT_REQUEST__NUMBER__READ_LATENCY:
        return read_latency;
    case INSIGHT__READ_HEAT_REQUEST__NUMBER__WRITE_LATENCY:
        return write_latency;
    case INSIGHT__READ_HEAT_REQUEST__NUMBER__LARGEST_ROW:
        return largest_row;
    default:
        return NULL;
    }
}

/* --- levels --- */

bool heat_levels_of(const struct heat_matrix *matrix, Insight__ReadHeatRequest__Number number,
                    struct heat_levels *out)
{
    *out = (struct heat_levels){.number = heat_levels_number(number)};
    if (number == INSIGHT__READ_HEAT_REQUEST__NUMBER__NUMBER_UNSPECIFIED || out->number == NULL)
        return false;
    for (size_t i = 0; i < matrix->time_count; i++)
        for (size_t range = 0; range < matrix->range_count; range++)
            if (matrix->times[i].sums[range] != NULL)
                out->most = fmax(out->most, out->number(matrix->times[i].sums[range]));
    return true;
}

/* The nearest; what is less than the lowest stands for is that. */
static size_t level_of(const struct heat_levels *levels, const struct heat_sum *sum)
{
    double value = sum == NULL ? 0 : levels->number(sum);
    if (value <= 0)
        return 0;
    double below = round(log(levels->most / value) / log(HEAT_LEVEL_RATIO));
    return below < MOST_LEVEL ? MOST_LEVEL - (size_t)below : 1;
}

status heat_levels_text(const struct heat_levels *levels, const struct heat_time *time,
                        size_t ranges, struct arena *arena, const char **out)
{
    size_t size = 0;
    char *text = arena_alloc(arena, ranges + 1);
    if (text == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < ranges; i++) {
        size_t level = level_of(levels, time->sums[i]);
        text[i] = LEVELS[level];
        if (level > 0)
            size = i + 1;
    }
    text[size] = '\0';
    *out = text;
    return status_ok();
}
