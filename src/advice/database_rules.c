/* See database.h: the rules of Datastore. */
#include "advice/database.h"

#include "advice/advice_private.h"

#include <stdlib.h>

#define MINUTE_US (60 * SECOND_US)

/* --- values that rise with time --- */

struct order {
    size_t pairs; /* of points that differ in both */
    size_t rising;
    int64_t span_us;
    size_t times;
};

static struct order order_of(const struct advice_series *series)
{
    struct order order = {0};
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t i = 0; i < series->count; i++) {
        const struct advice_point *point = &series->points[i];
        first = point->written_us < first ? point->written_us : first;
        last = point->written_us > last ? point->written_us : last;
        order.times += point->is_time;
        for (size_t j = 0; j < i; j++) {
            const struct advice_point *other = &series->points[j];
            int by_value = bytes_compare(other->value, point->value);
            if (by_value == 0 || other->written_us == point->written_us)
                continue;
            order.pairs++;
            order.rising += (by_value < 0) == (other->written_us < point->written_us);
        }
    }
    order.span_us = series->count == 0 ? 0 : last - first;
    return order;
}

/* Numbers may have been loaded in their order; times that rise with the commits are made of a
 * clock, and what rises for longer than a day is no load. */
static bool is_rising(const struct advice_series *series, const struct order *order)
{
    return series->count >= KEYS_LEAST && order->pairs >= RISING_PAIRS &&
           order->rising * 100 >= order->pairs * NUMBERS_IN_ORDER &&
           (order->times * 100 >= series->count * KEYS_PERCENT || order->span_us > DAY_US);
}

static status advise_on_rising_values(struct advisor *advisor,
                                      const struct advice_database *database)
{
    const struct advice_series *worst = NULL;
    struct order worst_order = {0};
    struct advice_finding *finding;
    size_t count = 0;
    for (size_t i = 0; i < database->series_count; i++) {
        struct order order = order_of(&database->series[i]);
        if (!is_rising(&database->series[i], &order))
            continue;
        count++;
        if (worst == NULL || order.pairs > worst_order.pairs) {
            worst = &database->series[i];
            worst_order = order;
        }
    }
    if (worst == NULL)
        return status_ok();
    return advise(advisor, RULE_index_rising, &finding,
                  "%zu indexed propert%s; most of all %s of the kind %s: of %zu pairs of sampled "
                  "values, in %zu the later commit has the greater one.",
                  count, count == 1 ? "y" : "ies", worst->property, worst->kind, worst_order.pairs,
                  worst_order.rising);
}

/* --- entity groups --- */

static int order_of_times(const void *a, const void *b)
{
    const int64_t *left = a, *right = b;
    return *left < *right ? -1 : *left > *right;
}

/* Commits in the busiest minute. What was written to several entities of a group at once is one. */
static size_t busiest_minute(struct advice_group *group)
{
    size_t kept = 0, first = 0, most = 0;
    if (group->count == 0)
        return 0;
    qsort(group->commits_us, group->count, sizeof *group->commits_us, order_of_times);
    for (size_t i = 1; i < group->count; i++)
        if (group->commits_us[i] != group->commits_us[kept])
            group->commits_us[++kept] = group->commits_us[i];
    group->count = kept + 1;
    for (size_t i = 0; i < group->count; i++) {
        while (group->commits_us[i] - group->commits_us[first] >= MINUTE_US)
            first++;
        most = i + 1 - first > most ? i + 1 - first : most;
    }
    return most;
}

static status advise_on_groups(struct advisor *advisor, const struct advice_database *database)
{
    const struct advice_group *worst = NULL;
    struct advice_finding *finding;
    size_t most = GROUP_COMMITS, count = 0;
    for (size_t i = 0; i < database->group_count; i++) {
        size_t commits = busiest_minute(&database->groups[i]);
        count += commits > GROUP_COMMITS;
        if (commits > most) {
            most = commits;
            worst = &database->groups[i];
        }
    }
    if (worst == NULL)
        return status_ok();
    return advise(advisor, RULE_group_writes, &finding,
                  "%zu sampled group%s; the one of %s had %zu commits or more within a minute.",
                  count, count == 1 ? "" : "s", worst->root, most);
}

/* --- deleted entities --- */

static bool is_mostly_dead(const struct advice_index *index)
{
    return index->dead >= DEAD_ROWS &&
           index->dead * 100 >= (index->dead + index->live) * DEAD_PERCENT;
}

static status advise_on_deletes(struct advisor *advisor, const struct advice_database *database)
{
    const struct advice_index *worst = NULL;
    struct advice_finding *finding;
    size_t count = 0;
    for (size_t i = 0; i < database->index_count; i++) {
        const struct advice_index *index = &database->indexes[i];
        if (!is_mostly_dead(index))
            continue;
        count++;
        if (worst == NULL || index->dead > worst->dead)
            worst = index;
    }
    if (worst == NULL)
        return status_ok();
    return advise(
        advisor, RULE_index_deletes, &finding,
        "%zu of %zu indexes that were read from their beginning; of the first %zu rows of "
        "the index %s, %zu are of entities that were deleted or changed within an hour.",
        count, database->index_count, worst->dead + worst->live, worst->name, worst->dead);
}

/* --- kinds whose load rises --- */

/* The most of a minute that is five minutes before, or more, and what is always allowed. */
static double allowed_before(const struct advice_kind *kind, size_t at)
{
    double most = KIND_FIRST_RATE * 60.0;
    for (size_t i = 0; i < at; i++)
        if (kind->minutes[at].minute - kind->minutes[i].minute >= RAMP_US / MINUTE_US &&
            kind->minutes[i].requests > most)
            most = kind->minutes[i].requests;
    return most * KIND_RISE_PERCENT / 100;
}

static status advise_on_kind_ramp(struct advisor *advisor, const struct advice_database *database)
{
    const struct advice_kind *worst = NULL;
    struct advice_finding *finding;
    double most = 0, allowed = 0;
    for (size_t i = 0; i < database->kind_count; i++)
        for (size_t j = 0; j < database->kinds[i].count; j++) {
            double requests = database->kinds[i].minutes[j].requests;
            double least = allowed_before(&database->kinds[i], j);
            if (requests <= least || requests <= most)
                continue;
            worst = &database->kinds[i];
            most = requests;
            allowed = least;
        }
    if (worst == NULL)
        return status_ok();
    return advise(advisor, RULE_kind_ramp, &finding,
                  "Entities of the kind %s were asked for %.0f times a second in a minute of the "
                  "last hour, %.1f times what a gradual rise would have come to by then.",
                  worst->name, most / 60, most / allowed);
}

status advice_find_in_database(const struct advice_observations *seen,
                               const struct advice_database *database, struct arena *arena,
                               struct advice *out)
{
    struct advisor advisor = {.seen = seen, .arena = arena, .out = out};
    out->count = 0;
    TRY(advise_on_rising_values(&advisor, database));
    TRY(advise_on_groups(&advisor, database));
    TRY(advise_on_deletes(&advisor, database));
    return advise_on_kind_ramp(&advisor, database);
}
