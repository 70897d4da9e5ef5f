/* Rules over ListHotTablets: which range is hot, whether it is one row, how fast it became so; and
 * over the server's own counts, which show it where processors do not have to work hard for it,
 * too. */
#include "advisor/advice_private.h"

#include <stdio.h>

/* An entry, with entries that lie within it. */
struct range {
    const struct advice_heat *heat;
    size_t times;
    int64_t us; /* all of them together */
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
        range.us += other->until_us - other->from_us;
        range.sum += load_of(other);
        if (other->cpu_percent > range.most_percent)
            range.most_percent = other->cpu_percent;
    }
    return range;
}

static void show_range(struct advisor *advisor, struct advice_finding *finding,
                       const struct advice_heat *heat)
{
    finding_set_range(finding, heat->start, heat->end);
    finding_add_keys_of_range(finding, advisor->seen);
}

/* Whether so much was counted that it says something: less will do of what lasts. */
static bool is_enough(const struct advice_hotspot *hotspot, uint64_t least)
{
    return hotspot->total >= (hotspot->windows > 0 ? HOT_LASTING : least);
}

/* The hotspot of the kind with the greatest share, of so many requests; NULL without one. */
static const struct advice_hotspot *find_hotspot(const struct advice_observations *seen,
                                                 enum advice_hotspot_kind kind, uint64_t least)
{
    const struct advice_hotspot *found = NULL;
    for (size_t i = 0; i < seen->hotspot_count; i++) {
        const struct advice_hotspot *hotspot = &seen->hotspots[i];
        if (hotspot->kind == kind && is_enough(hotspot, least) &&
            (found == NULL || hotspot->share > found->share))
            found = hotspot;
    }
    return found;
}

/* The whole table is no range of it. */
static bool is_hot(const struct range *range, double all)
{
    bool is_table = range->heat->start.size == 0 && range->heat->end.size == 0;
    bool has_lasted = range->times >= HOT_TIMES || range->us >= HOT_US;
    return !is_table && has_lasted && range->most_percent >= HOT_PERCENT &&
           range->sum * 100 >= all * HOT_SHARE_PERCENT;
}

static bool has_stopped(const struct advice_observations *seen)
{
    return seen->unwritten_us >= LOAD_REST_US;
}

/* Within the last minute, and not for the last time: what has not ended of the window in which a
 * load stopped shows it up to now. */
static bool goes_on_rising(const struct advice_observations *seen)
{
    return seen->now_us - seen->risen_until_us < MINUTE_US && !has_stopped(seen);
}

/* Where rising keys are all over the table there is a front for each device, say, so that the load
 * is spread; or a new table was filled in the order of its keys, and that is over: it says how it
 * was loaded, and not how it is used. While it goes on it takes many of them to be told. */
static bool is_front(const struct advice_observations *seen, const struct advice_hotspot *hotspot)
{
    bool is_all_over = hotspot->part * 100 >= RISING_PART_PERCENT;
    bool may_be_one = seen->is_young && goes_on_rising(seen);
    return hotspot->kind == ADVICE_WRITE_FRONTIER && is_enough(hotspot, HOT_REQUESTS) &&
           (!is_all_over || (may_be_one && hotspot->total >= HOT_REQUESTS));
}

static const struct advice_hotspot *find_frontier(const struct advice_observations *seen)
{
    const struct advice_hotspot *found = NULL;
    for (size_t i = 0; i < seen->hotspot_count; i++)
        if (is_front(seen, &seen->hotspots[i]) &&
            (found == NULL || seen->hotspots[i].share > found->share))
            found = &seen->hotspots[i];
    return found;
}

/* "within an hour", or since when each window showed it. */
static void write_period(const struct advisor *advisor, const struct advice_hotspot *hotspot,
                         char *out, size_t room)
{
    long long seconds = (advisor->seen->now_us - hotspot->from_us) / SECOND_US;
    if (hotspot->windows == 0)
        snprintf(out, room, "%s", advisor->period);
    else
        snprintf(out, room, "in %zu windows of heat within %lld seconds", hotspot->windows,
                 seconds);
}

/* Where keys rise, the rules about how they begin say it, and so does hot_key of a row. */
static status advise_on_counted_range(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    struct advice_finding *finding;
    char period[96];
    const struct advice_hotspot *writes = find_hotspot(seen, ADVICE_HOT_WRITES, HOT_REQUESTS);
    const struct advice_hotspot *reads = find_hotspot(seen, ADVICE_HOT_READS, HOT_REQUESTS);
    const struct advice_hotspot *frontier = find_frontier(seen);
    const struct advice_hotspot *hotspot = frontier != NULL ? frontier
                                           : writes != NULL ? writes
                                                            : reads;
    if (hotspot == NULL)
        return status_ok();
    write_period(advisor, hotspot, period, sizeof period);
    if (hotspot == frontier)
        TRY(advise(advisor, RULE_hot_range, &finding,
                   "Of %llu writes that were counted %s, %.0f %% went to keys that rise: each "
                   "follows those before.",
                   (unsigned long long)hotspot->total, period, hotspot->share * 100));
    else
        TRY(advise(
            advisor, RULE_hot_range, &finding,
            "Of %llu rows that were %s %s, %.0f %% are in a range that has %s of the data or "
            "less.",
            (unsigned long long)hotspot->total, hotspot == writes ? "written" : "read", period,
            hotspot->share * 100, hotspot->share < 0.75 ? "7.5 %" : "a tenth"));
    finding_set_range(finding, hotspot->start, hotspot->end);
    if (hotspot->key.size > 0)
        finding_add_key(finding, hotspot->key);
    finding_add_keys_of_range(finding, seen);
    return status_ok();
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
        return advise_on_counted_range(advisor);
    TRY(advise(advisor, RULE_hot_range, &finding,
               "The rows from one key to another were hot for %lld seconds within a day, took up "
               "to %.0f %% of a node's processors, and %.0f %% of what the table's hot tablets "
               "took.",
               (long long)(hottest.us / SECOND_US), hottest.most_percent, hottest.sum * 100 / all));
    show_range(advisor, finding, hottest.heat);
    return status_ok();
}

static double busiest_minute(const struct advice_observations *seen)
{
    double most = 0;
    for (size_t i = 0; i < seen->tablet_count; i++)
        for (size_t j = 0; j < seen->tablets[i].count; j++)
            if (seen->tablets[i].minutes[j].requests > most)
                most = seen->tablets[i].minutes[j].requests;
    return most;
}

/* Fewer requests count where they came within minutes. */
static uint64_t requests_for_a_row(const struct advice_observations *seen)
{
    return busiest_minute(seen) >= HOT_ROW_MINUTE ? HOT_ROW_REQUESTS : HOT_REQUESTS;
}

static status advise_on_counted_key(struct advisor *advisor)
{
    struct advice_finding *finding;
    const struct advice_hotspot *hotspot =
        find_hotspot(advisor->seen, ADVICE_HOT_ROW, requests_for_a_row(advisor->seen));
    if (hotspot == NULL || hotspot->share * 100 < HOT_ROW_PERCENT)
        return status_ok();
    TRY(advise(advisor, RULE_hot_key, &finding,
               "Of %llu requests for single rows that were counted %s, at least %.0f %% were for "
               "one.",
               (unsigned long long)hotspot->total, advisor->period, hotspot->share * 100));
    finding_set_range(finding, hotspot->start, hotspot->end);
    finding_add_key(finding, hotspot->key);
    return finding_add_shards(advisor, finding, hotspot->key);
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
        return advise_on_counted_key(advisor);
    TRY(advise(advisor, RULE_hot_key, &finding,
               "A tablet with one row took %.0f %% of a node's processors.", hottest->cpu_percent));
    show_range(advisor, finding, hottest);
    return finding->key_count == 0 ? status_ok()
                                   : finding_add_shards(advisor, finding, finding->keys[0]);
}

/* Whether the later one says that the load has doubled since the earlier. */
static bool is_ramp(const struct advice_heat *early, const struct advice_heat *late)
{
    return is_of(early, late) && late->from_us > early->from_us &&
           late->from_us - early->from_us <= RAMP_US && early->cpu_percent > 0 &&
           late->cpu_percent >= RAMP_PERCENT &&
           late->cpu_percent >= RAMP_TIMES * early->cpu_percent;
}

/* The most of a minute that is five minutes before, or more, and what is always allowed. */
static double allowed_before(const struct advice_minute *minutes, size_t at)
{
    double most = RAMP_FIRST_RATE * 60.0;
    for (size_t i = 0; i < at; i++)
        if (minutes[at].minute - minutes[i].minute >= RAMP_US / MINUTE_US &&
            minutes[i].requests > most)
            most = minutes[i].requests;
    return most * RAMP_RISE_PERCENT / 100;
}

struct advice_rise steepest_rise(const struct advice_minute *minutes, size_t count)
{
    struct advice_rise rise = {0};
    for (size_t i = 0; i < count; i++) {
        double allowed = allowed_before(minutes, i);
        if (minutes[i].requests > allowed && minutes[i].requests > rise.requests)
            rise = (struct advice_rise){.requests = minutes[i].requests, .allowed = allowed};
    }
    return rise;
}

/* Whether the load was in a minute that has passed, or is none by what this one has so far. */
static bool is_over(const struct advice_minute *last, int64_t now_us)
{
    int64_t passed_us = now_us - last->minute * MINUTE_US;
    double seconds = (double)passed_us / SECOND_US;
    return passed_us >= MINUTE_US ||
           last->requests <= RAMP_FIRST_RATE * (seconds < 1 ? 1 : seconds);
}

/* A load that made the table what it is, and is over, also for who looks where keys rise: nobody
 * need do anything about it. */
static bool is_finished_load(const struct advice_observations *seen)
{
    if (!seen->is_first_load || goes_on_rising(seen))
        return false;
    for (size_t i = 0; !has_stopped(seen) && i < seen->tablet_count; i++) {
        const struct advice_tablet *tablet = &seen->tablets[i];
        if (tablet->count > 0 && !is_over(&tablet->minutes[tablet->count - 1], seen->now_us))
            return false;
    }
    return true;
}

static enum advice_rule_number ramp_rule(const struct advice_observations *seen)
{
    return is_finished_load(seen) ? RULE_bulk_load : RULE_ramp;
}

static status advise_on_counted_ramp(struct advisor *advisor)
{
    const struct advice_observations *seen = advisor->seen;
    const struct advice_tablet *worst = NULL;
    struct advice_finding *finding;
    struct advice_rise most = {0};
    for (size_t i = 0; i < seen->tablet_count; i++) {
        struct advice_rise rise = steepest_rise(seen->tablets[i].minutes, seen->tablets[i].count);
        if (rise.requests <= most.requests)
            continue;
        worst = &seen->tablets[i];
        most = rise;
    }
    if (worst == NULL)
        return status_ok();
    TRY(advise(advisor, ramp_rule(seen), &finding,
               "Rows of one tablet were asked for, or written, %.0f times a second in a minute "
               "%s, %.1f times what a gradual rise would have come to by then.",
               most.requests / 60, advisor->of_period, most.requests / most.allowed));
    finding_set_range(finding, worst->start, worst->end);
    finding_add_keys_of_range(finding, seen);
    return status_ok();
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
        return advise_on_counted_ramp(advisor);
    TRY(advise(advisor, ramp_rule(seen), &finding,
               "The range went from %.0f %% to %.0f %% of a node's processors within %lld "
               "seconds.",
               from->cpu_percent, to->cpu_percent,
               (long long)((to->from_us - from->from_us) / SECOND_US)));
    show_range(advisor, finding, to);
    return status_ok();
}

status advise_on_heat(struct advisor *advisor)
{
    TRY(advise_on_hot_range(advisor));
    TRY(advise_on_hot_key(advisor));
    return advise_on_ramp(advisor);
}
