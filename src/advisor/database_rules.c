/* See database.h: the rules of Datastore. */
#include "advisor/database.h"

#include "advisor/advice_private.h"

#include <stdio.h>
#include <stdlib.h>

/* --- values that rise with time --- */

struct order {
    size_t pairs; /* of points that differ in both */
    size_t rising;
    int64_t span_us;
    size_t times;
    size_t numbers;
    size_t same; /* pairs of equal values */
    int64_t least;
    int64_t most;
};

static void count_number(const struct advice_point *point, struct order *out)
{
    if (!point->is_number)
        return;
    out->numbers++;
    out->least = point->number < out->least ? point->number : out->least;
    out->most = point->number > out->most ? point->number : out->most;
}

static struct order order_of(const struct advice_series *series)
{
    struct order order = {.least = INT64_MAX, .most = INT64_MIN};
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t i = 0; i < series->count; i++) {
        const struct advice_point *point = &series->points[i];
        first = point->written_us < first ? point->written_us : first;
        last = point->written_us > last ? point->written_us : last;
        order.times += point->is_time;
        count_number(point, &order);
        for (size_t j = 0; j < i; j++) {
            const struct advice_point *other = &series->points[j];
            int by_value = bytes_compare(other->value, point->value);
            order.same += by_value == 0;
            if (by_value == 0 || other->written_us == point->written_us)
                continue;
            order.pairs++;
            order.rising += (by_value < 0) == (other->written_us < point->written_us);
        }
    }
    order.span_us = series->count == 0 ? 0 : last - first;
    return order;
}

/* Whether these are integers that lie close together, each there once: a counter's. */
static bool is_counter(const struct advice_series *series, const struct order *order)
{
    return series->count >= COUNTER_LEAST && order->numbers == series->count && order->same == 0 &&
           (uint64_t)order->most - (uint64_t)order->least <= COUNTER_TIMES * series->count;
}

/* Other numbers may have been loaded in their order; times that rise with the commits are made of a
 * clock, and what rises for longer than a day is no load. */
static bool is_rising(const struct advice_series *series, const struct order *order)
{
    return series->count >= KEYS_LEAST && order->pairs >= RISING_PAIRS &&
           order->rising * 100 >= order->pairs * NUMBERS_IN_ORDER &&
           (order->times * 100 >= series->count * KEYS_PERCENT || order->span_us > DAY_US ||
            is_counter(series, order));
}

static const char *or_none(const char *where)
{
    return where == NULL ? "" : where;
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
    TRY(advise(advisor, RULE_index_rising, &finding,
               "%zu indexed propert%s; most of all %s of the kind %s%s: of %zu pairs of sampled "
               "values, in %zu the later commit has the greater one.",
               count, count == 1 ? "y" : "ies", worst->property, worst->kind, or_none(worst->where),
               worst_order.pairs, worst_order.rising));
    struct buffer end = {0};
    buffer_append_format(&end, "the end of %s.%s%s", worst->kind, worst->property,
                         or_none(worst->where));
    finding_set_range(finding, worst->last, bytes_make(NULL, 0));
    return keep_text(advisor, &end, &finding->end);
}

/* --- ids and names that rise --- */

/* In a range of a database there is no first or last key: the words say where it is. */
static status take_keys_finding(struct advisor *advisor, const struct advice_roots *roots,
                                const struct advice_finding *found, bytes others)
{
    struct advice_finding *finding;
    struct buffer words = {0};
    TRY(advise(advisor, RULE_entity_keys, &finding, "Of the kind %s%s: %s%.*s", roots->kind,
               or_none(roots->where), found->evidence, (int)others.size, others.data));
    for (size_t i = 0; i < ADVICE_KEYS_SHOWN; i++) {
        size_t at = roots->count * (2 * i + 1) / (2 * ADVICE_KEYS_SHOWN);
        bytes better;
        finding_add_key(finding, roots->words[at]);
        if (roots->better != NULL) {
            finding_add_better(finding, roots->words[at], roots->better[at]);
        } else if (i < found->better_count) {
            buffer_clear(&words);
            buffer_append_format(&words, "%s \"", roots->kind);
            buffer_append_bytes(&words, found->better[i].better);
            buffer_append_format(&words, "\"%s", or_none(roots->where));
            TRY(keep_text(advisor, &words, &better));
            finding_add_better(finding, roots->words[at], better);
        }
    }
    return status_ok();
}

static status look_at_roots(struct advisor *advisor, const struct advice_roots *roots,
                            struct advice *found)
{
    const struct advice_observations keys = {
        .now_us = advisor->seen->now_us, .rows = roots->keys, .row_count = roots->count};
    struct advisor inner = {.seen = &keys, .arena = advisor->arena, .out = found};
    found->count = 0;
    return advise_on_rising_keys(&inner);
}

/* The kind with the most of them is told whole, the others by name. */
static status advise_on_entity_keys(struct advisor *advisor, const struct advice_database *database)
{
    const struct advice_roots *worst = NULL;
    struct advice worst_found = {.count = 0};
    struct buffer others = {0};
    bytes names;
    for (size_t i = 0; i < database->roots_count; i++) {
        const struct advice_roots *roots = &database->roots[i];
        struct advice found;
        status s = look_at_roots(advisor, roots, &found);
        if (!status_is_ok(s)) {
            buffer_free(&others);
            return s;
        }
        if (found.count == 0)
            continue;
        bool is_worse = worst == NULL || roots->count > worst->count;
        const struct advice_roots *other = is_worse ? worst : roots;
        if (other != NULL)
            buffer_append_format(&others, "%s %s%s", others.size == 0 ? " So do those of" : ",",
                                 other->kind, or_none(other->where));
        worst = is_worse ? roots : worst;
        worst_found = is_worse ? found : worst_found;
    }
    buffer_append_format(&others, others.size == 0 ? "" : ".");
    TRY(keep_text(advisor, &others, &names));
    return worst == NULL ? status_ok()
                         : take_keys_finding(advisor, worst, worst_found.findings, names);
}

/* --- single entities --- */

static status advise_on_entity_size(struct advisor *advisor, const struct advice_database *database)
{
    const struct advice_entity *largest = NULL;
    struct advice_finding *finding;
    size_t count = 0;
    for (size_t i = 0; i < database->entity_count; i++) {
        const struct advice_entity *entity = &database->entities[i];
        count += entity->size >= ENTITY_BYTES;
        if (largest == NULL || entity->size > largest->size)
            largest = entity;
    }
    if (count == 0)
        return status_ok();
    TRY(advise(advisor, RULE_entity_size, &finding,
               "%zu of %zu sampled entities ha%s half of what an entity may have, or more; the "
               "largest has %llu KiB.",
               count, database->entity_count, count == 1 ? "s" : "ve",
               (unsigned long long)(largest->size >> 10)));
    finding_add_key(finding, largest->words);
    return status_ok();
}

static status advise_on_index_rows(struct advisor *advisor, const struct advice_database *database)
{
    const struct advice_entity *most = NULL;
    struct advice_finding *finding;
    char widest[256] = "";
    size_t count = 0;
    for (size_t i = 0; i < database->entity_count; i++) {
        const struct advice_entity *entity = &database->entities[i];
        count += entity->index_rows >= INDEX_ROWS_MANY;
        if (most == NULL || entity->index_rows > most->index_rows)
            most = entity;
    }
    if (count == 0)
        return status_ok();
    if (most->widest != NULL)
        snprintf(widest, sizeof widest, ", %zu of them in the composite index %s",
                 most->widest_rows, most->widest);
    TRY(advise(advisor, RULE_index_rows, &finding,
               "%zu of %zu sampled entities; one has %zu rows in indexes%s.", count,
               database->entity_count, most->index_rows, widest));
    finding_add_key(finding, most->words);
    return status_ok();
}

static status advise_on_index_count(struct advisor *advisor, const struct advice_database *database)
{
    const struct advice_composites *most = NULL;
    struct advice_finding *finding;
    for (size_t i = 0; i < database->composites_count; i++)
        if (most == NULL || database->composites[i].count > most->count)
            most = &database->composites[i];
    if (most == NULL || most->count < COMPOSITES_MANY)
        return status_ok();
    TRY(advise(advisor, RULE_index_count, &finding, "The kind %s has %zu composite indexes.",
               most->kind, most->count));
    finding_add_key(finding, bytes_of(most->kind));
    return status_ok();
}

static status advise_on_entity_names(struct advisor *advisor,
                                     const struct advice_database *database)
{
    const struct advice_entity *shown[ADVICE_KEYS_SHOWN];
    struct advice_finding *finding;
    size_t count = 0;
    for (size_t i = 0; i < database->entity_count; i++) {
        if (database->entities[i].odd == NULL)
            continue;
        if (count < ADVICE_KEYS_SHOWN)
            shown[count] = &database->entities[i];
        count++;
    }
    if (count == 0)
        return status_ok();
    TRY(advise(advisor, RULE_entity_names, &finding,
               "%zu of %zu sampled entities have such a name; one of them is %s.", count,
               database->entity_count, shown[0]->odd));
    for (size_t i = 0; i < count && i < ADVICE_KEYS_SHOWN; i++)
        finding_add_key(finding, shown[i]->words);
    return status_ok();
}

/* --- entity groups --- */

static int order_of_times(const void *a, const void *b)
{
    const int64_t *left = a, *right = b;
    return *left < *right ? -1 : *left > *right;
}

/* Commits in the busiest minute. A commit to several entities of a group counts once. */
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

/* The busiest of those that were sampled, and of those whose commits were counted. */
struct busy_groups {
    bytes root;
    size_t commits; /* within a minute, at least */
    size_t count;   /* groups that have too many */
};

static struct busy_groups find_busy_groups(const struct advice_database *database)
{
    const struct advice_counted_key *counted = &database->usage.group;
    struct busy_groups busy = {.commits = GROUP_COMMITS};
    for (size_t i = 0; i < database->group_count; i++) {
        size_t commits = busiest_minute(&database->groups[i]);
        busy.count += commits > GROUP_COMMITS;
        if (commits > busy.commits) {
            busy.commits = commits;
            busy.root = database->groups[i].root;
        }
    }
    if (counted->calls > busy.commits) {
        busy.commits = (size_t)counted->calls;
        busy.root = counted->words;
        busy.count += busy.count == 0;
    }
    return busy;
}

static status advise_on_groups(struct advisor *advisor, const struct advice_database *database)
{
    struct busy_groups busy = find_busy_groups(database);
    struct advice_finding *finding;
    if (busy.count == 0)
        return status_ok();
    TRY(advise(advisor, RULE_group_writes, &finding,
               "%zu group%s; the one of %.*s had %zu commits or more within a minute.", busy.count,
               busy.count == 1 ? "" : "s", (int)busy.root.size, busy.root.data, busy.commits));
    finding_add_key(finding, busy.root);
    return finding_add_shards(advisor, finding, busy.root);
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
    TRY(advise(advisor, RULE_index_deletes, &finding,
               "%zu of %zu indexes that were read from their beginning; of the first %zu rows of "
               "the index %s, %zu are of entities that were deleted or changed within an hour.",
               count, database->index_count, worst->dead + worst->live, worst->name, worst->dead));
    finding_set_range(finding, worst->first_dead, worst->last_dead);
    return status_ok();
}

/* --- kinds whose load rises --- */

static status advise_on_kind_ramp(struct advisor *advisor, const struct advice_database *database)
{
    const struct advice_kind *worst = NULL;
    struct advice_finding *finding;
    struct advice_rise most = {0};
    for (size_t i = 0; i < database->kind_count; i++) {
        struct advice_rise rise =
            steepest_rise(database->kinds[i].minutes, database->kinds[i].count);
        if (rise.requests <= most.requests)
            continue;
        worst = &database->kinds[i];
        most = rise;
    }
    if (worst == NULL)
        return status_ok();
    TRY(advise(advisor, RULE_kind_ramp, &finding,
               "Entities of the kind %s%s were asked for %.0f times a second in a minute %s, %.1f "
               "times what a gradual rise would have come to by then.",
               worst->name, or_none(worst->where), most.requests / 60, advisor->of_period,
               most.requests / most.allowed));
    finding_add_key(finding, bytes_of(worst->name));
    return status_ok();
}

/* --- personal data --- */

static status advise_on_personal_entities(struct advisor *advisor,
                                          const struct advice_database *database)
{
    bytes *keys = arena_alloc(advisor->arena, database->entity_count * sizeof *keys);
    if (keys == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < database->entity_count; i++)
        keys[i] = database->entities[i].words;
    return advise_on_personal_data(advisor, keys, database->entity_count, &database->properties);
}

/* As of a table: what is personal is known by what is not told. */
static status advise_on_requests(struct advisor *advisor, const struct advice_database *database)
{
    TRY(advise_on_kind_ramp(advisor, database));
    TRY(advise_on_heat(advisor));
    TRY(advise_on_database_usage(advisor, database));
    size_t found = advisor->out->count;
    TRY(advise_on_personal_entities(advisor, database));
    advisor->out->count = found;
    return status_ok();
}

static status advise_on_all(struct advisor *advisor, const struct advice_database *database)
{
    TRY(advise_on_rising_values(advisor, database));
    TRY(advise_on_groups(advisor, database));
    TRY(advise_on_entity_keys(advisor, database));
    TRY(advise_on_entity_size(advisor, database));
    TRY(advise_on_index_rows(advisor, database));
    TRY(advise_on_index_count(advisor, database));
    TRY(advise_on_entity_names(advisor, database));
    TRY(advise_on_deletes(advisor, database));
    TRY(advise_on_kind_ramp(advisor, database));
    TRY(advise_on_heat(advisor));
    TRY(advise_on_database_usage(advisor, database));
    TRY(advise_on_index_uses(advisor, database));
    return advise_on_personal_entities(advisor, database);
}

status advice_find_in_database(const struct advice_observations *seen,
                               const struct advice_database *database, struct arena *arena,
                               struct advice *out)
{
    struct advisor advisor = {.seen = seen, .arena = arena, .out = out, .is_database = true};
    out->count = out->mute_count = 0;
    advisor_set_period(&advisor);
    TRY(seen->since_us > 0 ? advise_on_requests(&advisor, database)
                           : advise_on_all(&advisor, database));
    sort_findings(out);
    return hide_personal_data(&advisor);
}
