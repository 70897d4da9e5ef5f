/* See pace.h. */
#include "views/pace.h"

#include <stdbool.h>

enum { WINDOW_US = 20 * 1000, LONGEST_REST_US = 500 * 1000 };

/* The process takes all processors but for a tenth of one: nothing is idle. */
static bool is_busy(const struct view_pace *pace, const struct view_pace_sample *now,
                    unsigned processors)
{
    int64_t passed_us = now->steady_us - pace->window.steady_us;
    int64_t taken_us = now->process_us - pace->window.process_us;
    return (double)taken_us > ((double)processors - 0.1) * (double)passed_us;
}

static void choose_share(struct view_pace *pace, bool is_busy)
{
    pace->share *= is_busy ? 0.5 : 2;
    if (pace->share < VIEW_PACE_LEAST)
        pace->share = VIEW_PACE_LEAST;
    if (pace->share > 1)
        pace->share = 1;
}

void view_pace_begin(struct view_pace *pace, const struct view_pace_sample *now)
{
    if (pace->share == 0) {
        pace->share = 1;
        pace->window = *now;
    }
    pace->last = *now;
}

int64_t view_pace_rest_us(struct view_pace *pace, const struct view_pace_sample *now,
                          unsigned processors, bool is_pressed)
{
    if (now->steady_us - pace->window.steady_us >= WINDOW_US) {
        choose_share(pace, is_busy(pace, now, processors));
        pace->window = *now;
    }
    if (is_pressed)
        pace->share = VIEW_PACE_LEAST;
    int64_t worked_us = now->thread_us - pace->last.thread_us;
    int64_t passed_us = now->steady_us - pace->last.steady_us;
    double rest_us = (double)worked_us / pace->share - (double)passed_us;
    if (rest_us < 0)
        rest_us = 0;
    return rest_us > LONGEST_REST_US ? LONGEST_REST_US : (int64_t)rest_us;
}
