/* What ListHotTablets says: which range is hot, whether it is one row, how fast it became so. */
#include "advice/advice_private.h"

/* What is known of the rows of one entry: it, and entries that lie within it. */
struct range {
    const struct advice_heat *heat;
    size_t times;
    double sum; /* of percents times seconds */
    double most_percent;
};

static bool is_of(const struct advice_heat *heat, const struct advice_heat *other)
{
    return bytes_equal(heat->start, other->start) && bytes_equal(heat->end, other->end);
}

static bool is_within(const struct advice_heat *inner, const struct advice_heat *outer)
{
    bool ends_within =
        outer->end.size == 0 || (inner->end.size > 0 && bytes_compare(inner->end, outer->end) <= 0);
    return ends_within && bytes_compare(inner->start, outer->start) >= 0;
}

static double load_of(const struct advice_heat *heat)
{
    return heat->cpu_percent * (double)(heat->until_us - heat->from_us) / SECOND_US;
}

static struct range range_of(const struct advice_observations *seen, const struct advice_heat *heat)
{
    struct range range = {.heat = heat};
    for (size_t i = 0; i < seen->heat_count; i++) {
        const struct advice_heat *other = &seen->heat[i];
        if (!is_within(other, heat))
            continue;
        range.times++;
        range.sum += load_of(other);
        if (other->cpu_percent > range.most_percent)
            range.most_percent = other->cpu_percent;
    }
    return range;
}

static void show_ends(struct advice_finding *finding, const struct advice_heat *heat)
{
    finding_add_key(finding, heat->start);
    finding_add_key(finding, heat->end);
}

/* The whole table is no range of it. */
static bool is_hot(const struct range *range, double all)
{
    bool is_table = range->heat->start.size == 0 && range->heat->end.size == 0;
    return !is_table && range->times >= HOT_TIMES && range->most_percent >= HOT_PERCENT &&
           range->sum * 100 >= all * HOT_SHARE_PERCENT;
}

/* Of those that are hot the one with the least load, which says best where it is: a tablet may have
 * been told as a whole once, and in part later. */
static status advise_on_hot_range(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    struct range hottest = {0};
    double all = 0;
    for (size_t i = 0; i < seen->heat_count; i++)
        all += load_of(&seen->heat[i]);
    for (size_t i = 0; i < seen->heat_count; i++) {
        struct range range = range_of(seen, &seen->heat[i]);
        if (is_hot(&range, all) && (hottest.heat == NULL || range.sum < hottest.sum))
            hottest = range;
    }
    if (hottest.heat == NULL)
        return status_ok();
    TRY(advise(advisor, RULE_hot_range, &finding,
               "The rows from one key to another were hot %zu times within a day, took up to "
               "%.0f %% of a node's processors, and %.0f %% of what the table's hot tablets took.",
               hottest.times, hottest.most_percent, hottest.sum * 100 / all));
    show_ends(finding, hottest.heat);
    return status_ok();
}

static status advise_on_hot_key(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    const struct advice_heat *hottest = NULL;
    for (size_t i = 0; i < seen->heat_count; i++) {
        const struct advice_heat *heat = &seen->heat[i];
        if (heat->is_one_row && heat->cpu_percent >= HOT_PERCENT &&
            (hottest == NULL || heat->cpu_percent > hottest->cpu_percent))
            hottest = heat;
    }
    if (hottest == NULL)
        return status_ok();
    TRY(advise(advisor, RULE_hot_key, &finding,
               "A tablet with one row took %.0f %% of a node's processors.", hottest->cpu_percent));
    show_ends(finding, hottest);
    return status_ok();
}

/* Whether the later one says that the load has doubled since the earlier. */
static bool is_ramp(const struct advice_heat *early, const struct advice_heat *late)
{
    return is_of(early, late) && late->from_us > early->from_us &&
           late->from_us - early->from_us <= RAMP_US && early->cpu_percent > 0 &&
           late->cpu_percent >= RAMP_PERCENT &&
           late->cpu_percent >= RAMP_TIMES * early->cpu_percent;
}

static status advise_on_ramp(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    const struct advice_heat *from = NULL, *to = NULL;
    for (size_t i = 0; i < seen->heat_count; i++)
        for (size_t j = 0; j < seen->heat_count; j++) {
            const struct advice_heat *early = &seen->heat[i], *late = &seen->heat[j];
            if (is_ramp(early, late) && (from == NULL || late->cpu_percent / early->cpu_percent >
                                                             to->cpu_percent / from->cpu_percent)) {
                from = early;
                to = late;
            }
        }
    if (from == NULL)
        return status_ok();
    TRY(advise(advisor, RULE_ramp, &finding,
               "The range went from %.0f %% to %.0f %% of a node's processors within %lld "
               "seconds.",
               from->cpu_percent, to->cpu_percent,
               (long long)((to->from_us - from->from_us) / SECOND_US)));
    show_ends(finding, to);
    return status_ok();
}

status advise_on_heat(struct advisor *advisor)
{
    TRY(advise_on_hot_range(advisor));
    TRY(advise_on_hot_key(advisor));
    return advise_on_ramp(advisor);
}
