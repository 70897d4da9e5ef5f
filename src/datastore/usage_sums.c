/* See usage_sums.h. Keys that stand out are found by "space saving" (Metwally and others, 2005): a
 * key that is new takes the place of the one with the fewest calls, and its calls as an error. */
#include "datastore/usage_sums.h"

#include <stdlib.h>

#define MINUTE_US (INT64_C(60) * 1000000)

/* `ALIKE_US`: gaps that differ by so much are alike, however short they are. */
enum { FEW_KINDS = 4, ALIKE_US = 100, UNLIKE_PERCENT = 60 };

struct tops {
    size_t count;
    struct ds_usage_top all[DS_USAGE_TOP];
};

struct period {
    int64_t from_us;
    struct ds_usage_kind *kinds;
    size_t kind_count;
    size_t kind_room;
    uint64_t begun;
    struct tops entities;
    struct tops aborted;
    struct ds_usage_top group; /* the busiest within a minute */
};

/* A caller, with the calls that it makes one after the other. */
struct caller {
    uint64_t id;
    enum ds_usage_call call;
    uint64_t kind;
    int64_t ended_us; /* the last call */
    int64_t gap_us;   /* before it */
    int64_t gaps_us;  /* in all */
    uint64_t unlike;  /* gaps more than twice as long, or less than half, as the one before */
    uint64_t length;
    bool is_loop;
};

struct ds_usage_sums {
    struct period periods[DS_USAGE_PERIODS]; /* the present one first */
    size_t count;
    int64_t minute;
    struct tops groups; /* with the commits of the minute */
    struct caller callers[DS_USAGE_CALLERS];
};

void ds_usage_set_name(struct ds_usage_name *out, bytes text)
{
    size_t size = text.size < DS_USAGE_NAME_BYTES - 1 ? text.size : DS_USAGE_NAME_BYTES - 1;
    *out = (struct ds_usage_name){.hash = bytes_hash(text), .size = (uint8_t)size};
    if (size > 0)
        memcpy(out->text, text.data, size);
}

void ds_usage_set_key(struct ds_usage_key *out, bytes row_key)
{
    size_t size = row_key.size < DS_USAGE_KEY_BYTES ? row_key.size : DS_USAGE_KEY_BYTES;
    out->hash = bytes_hash(row_key);
    out->size = (uint8_t)size;
    if (size > 0)
        memcpy(out->text, row_key.data, size);
}

struct ds_usage_sums *ds_usage_sums_create(int64_t now_us)
{
    struct ds_usage_sums *sums = calloc(1, sizeof *sums);
    if (sums == NULL)
        return NULL;
    sums->periods[0].from_us = now_us;
    sums->count = 1;
    return sums;
}

void ds_usage_sums_destroy(struct ds_usage_sums *sums)
{
    if (sums == NULL)
        return;
    for (size_t i = 0; i < sums->count; i++)
        free(sums->periods[i].kinds);
    free(sums);
}

/* --- kinds --- */

static struct ds_usage_kind *add_kind(struct period *period, const struct ds_usage_name *name)
{
    if (period->kind_count == DS_USAGE_KINDS)
        return NULL;
    if (period->kind_count == period->kind_room) {
        size_t room = period->kind_room == 0 ? FEW_KINDS : 2 * period->kind_room;
        struct ds_usage_kind *kinds = realloc(period->kinds, room * sizeof *kinds);
        if (kinds == NULL)
            return NULL;
        period->kinds = kinds;
        period->kind_room = room;
    }
    struct ds_usage_kind *made = &period->kinds[period->kind_count++];
    *made = (struct ds_usage_kind){.name = *name};
    return made;
}

static struct ds_usage_kind *find_kind(struct ds_usage_kind *kinds, size_t count, uint64_t hash)
{
    for (size_t i = 0; i < count; i++)
        if (kinds[i].name.hash == hash)
            return &kinds[i];
    return NULL;
}

/* --- keys that stand out --- */

static struct ds_usage_top *top_of(struct tops *tops, uint64_t hash)
{
    struct ds_usage_top *least = &tops->all[0];
    for (size_t i = 0; i < tops->count; i++) {
        if (tops->all[i].key.hash == hash)
            return &tops->all[i];
        if (tops->all[i].count < least->count)
            least = &tops->all[i];
    }
    if (tops->count < DS_USAGE_TOP) {
        least = &tops->all[tops->count++];
        *least = (struct ds_usage_top){.count = 0};
    }
    *least = (struct ds_usage_top){.key.hash = hash, .count = least->count, .error = least->count};
    return least;
}

static uint64_t at_least(const struct ds_usage_top *top)
{
    return top->count - top->error;
}

/* NULL: none has a text. */
static const struct ds_usage_top *greatest(const struct tops *tops)
{
    const struct ds_usage_top *most = NULL;
    for (size_t i = 0; i < tops->count; i++)
        if (tops->all[i].key.size > 0 && (most == NULL || at_least(&tops->all[i]) > at_least(most)))
            most = &tops->all[i];
    return most;
}

static void count_keys(struct tops *tops, const struct ds_usage_event *event)
{
    for (size_t i = 0; i < event->key_count; i++) {
        struct ds_usage_top *top = top_of(tops, event->keys[i]);
        top->count += event->weight;
        if (top->key.hash == event->key.hash)
            top->key = event->key;
    }
}

/* --- groups, minute by minute --- */

static void end_minute(struct ds_usage_sums *sums)
{
    const struct ds_usage_top *most = greatest(&sums->groups);
    struct period *now = &sums->periods[0];
    if (most != NULL && at_least(most) > at_least(&now->group))
        now->group = *most;
}

static void count_group(struct ds_usage_sums *sums, const struct ds_usage_event *event)
{
    int64_t minute = event->ended_us / MINUTE_US;
    if (minute > sums->minute) {
        end_minute(sums);
        sums->groups.count = 0;
        sums->minute = minute;
    }
    count_keys(&sums->groups, event);
}

/* --- loops of single calls --- */

static bool is_of(const struct caller *caller, const struct ds_usage_event *event)
{
    return caller->id == event->caller && caller->call == event->call &&
           caller->kind == event->kind.hash;
}

/* Or the one that has been away for longest. */
static struct caller *caller_of(struct ds_usage_sums *sums, const struct ds_usage_event *event)
{
    struct caller *oldest = &sums->callers[0];
    for (size_t i = 0; i < DS_USAGE_CALLERS; i++) {
        struct caller *caller = &sums->callers[i];
        if (is_of(caller, event))
            return caller;
        if (caller->ended_us < oldest->ended_us)
            oldest = caller;
    }
    *oldest = (struct caller){
        .id = event->caller, .call = event->call, .kind = event->kind.hash, .ended_us = INT64_MIN};
    return oldest;
}

static bool are_unlike(int64_t a_us, int64_t b_us)
{
    return a_us > 2 * b_us + ALIKE_US || b_us > 2 * a_us + ALIKE_US;
}

static void begin_run(struct caller *caller)
{
    caller->length = 1;
    caller->gap_us = caller->gaps_us = 0;
    caller->unlike = 0;
    caller->is_loop = false;
}

static void lengthen_run(struct caller *caller, int64_t gap_us)
{
    if (caller->length > 1)
        caller->unlike += are_unlike(caller->gap_us, gap_us);
    caller->length++;
    caller->gap_us = gap_us;
    caller->gaps_us += gap_us;
}

/* A loop takes about as long each time. Of gaps between what comes by chance, at any rate, two in
 * three are unlike the one before; of those of a loop on a machine that has ten times as much to do
 * as it can, a half. */
static bool is_regular(const struct caller *caller)
{
    return caller->length >= DS_USAGE_RUN &&
           caller->gaps_us <= (int64_t)caller->length * DS_USAGE_RUN_MEAN_US &&
           caller->unlike * 100 < caller->length * UNLIKE_PERCENT;
}

/* How many calls, with this one, have been found to be of a loop by it. A call that begins before
 * the one before has ended does not wait for it, as a loop would. */
static uint64_t follow(struct caller *caller, const struct ds_usage_event *event)
{
    int64_t gap_us = caller->length == 0 ? -1 : event->begun_us - caller->ended_us;
    if (gap_us < 0 || gap_us > DS_USAGE_RUN_GAP_US)
        begin_run(caller);
    else
        lengthen_run(caller, gap_us);
    if (event->ended_us > caller->ended_us)
        caller->ended_us = event->ended_us;
    if (!is_regular(caller))
        return 0;
    uint64_t found = caller->is_loop ? 1 : caller->length;
    caller->is_loop = true;
    return found;
}

/* Only a caller that is counted call by call can be followed. */
static void count_single(struct ds_usage_sums *sums, const struct ds_usage_event *event,
                         struct ds_usage_kind *kind)
{
    bool is_lookup = event->call == DS_USAGE_LOOKUP;
    if (!event->is_single || event->weight > 1 || event->caller == 0)
        return;
    kind->numbers[is_lookup ? DS_SINGLE_LOOKUPS : DS_SINGLE_WRITES]++;
    kind->numbers[is_lookup ? DS_LOOKUPS_IN_LOOPS : DS_WRITES_IN_LOOPS] +=
        follow(caller_of(sums, event), event);
}

/* --- all of it --- */

static void drop_old(struct ds_usage_sums *sums, int64_t now_us)
{
    const int64_t kept_us = DS_USAGE_PERIODS * DS_USAGE_PERIOD_US;
    while (sums->count > 0 && (sums->count == DS_USAGE_PERIODS ||
                               now_us - sums->periods[sums->count - 1].from_us >= kept_us))
        free(sums->periods[--sums->count].kinds);
}

static void go_on(struct ds_usage_sums *sums, int64_t now_us)
{
    if (now_us - sums->periods[0].from_us < DS_USAGE_PERIOD_US)
        return;
    end_minute(sums);
    sums->groups.count = 0;
    drop_old(sums, now_us);
    memmove(&sums->periods[1], &sums->periods[0], sums->count * sizeof sums->periods[0]);
    sums->periods[0] = (struct period){.from_us = now_us};
    sums->count++;
}

static void count_query(struct ds_usage_kind *kind, const struct ds_usage_event *event)
{
    uint64_t *numbers = kind->numbers;
    numbers[DS_QUERIES] += event->weight;
    if (event->skipped > 0) {
        numbers[DS_OFFSETS] += event->weight;
        numbers[DS_SKIPPED] += (uint64_t)event->weight * event->skipped;
        numbers[DS_OFFSET_RESULTS] += (uint64_t)event->weight * event->items;
    }
    numbers[DS_SCANS_BEGUN] += event->begins_scan ? event->weight : 0;
    numbers[DS_SCANS_ENDED] += event->ends_scan ? event->weight : 0;
    numbers[DS_SCANNED] += event->is_scan ? (uint64_t)event->weight * event->items : 0;
}

static void count_of_kind(struct ds_usage_sums *sums, const struct ds_usage_event *event,
                          struct ds_usage_kind *kind)
{
    switch (event->call) {
    case DS_USAGE_LOOKUP:
        kind->numbers[DS_LOOKUPS] += event->weight;
        count_single(sums, event, kind);
        break;
    case DS_USAGE_COMMIT:
        kind->numbers[DS_COMMITS] += event->weight;
        count_single(sums, event, kind);
        break;
    case DS_USAGE_QUERY:
        count_query(kind, event);
        break;
    case DS_USAGE_EXPIRED:
        kind->numbers[DS_EXPIRED] += event->weight;
        break;
    case DS_USAGE_ABORTED:
        kind->numbers[DS_ABORTED] += event->weight;
        break;
    case DS_USAGE_BEGIN:
        break;
    }
}

void ds_usage_sums_add(struct ds_usage_sums *sums, const struct ds_usage_event *event)
{
    go_on(sums, event->ended_us);
    struct period *now = &sums->periods[0];
    if (event->call == DS_USAGE_BEGIN) {
        now->begun += event->weight;
        return;
    }
    struct ds_usage_kind *kind = find_kind(now->kinds, now->kind_count, event->kind.hash);
    if (kind == NULL)
        kind = add_kind(now, &event->kind);
    if (kind != NULL)
        count_of_kind(sums, event, kind);
    if (event->call == DS_USAGE_LOOKUP)
        count_keys(&now->entities, event);
    if (event->call == DS_USAGE_COMMIT)
        count_group(sums, event);
    if (event->call == DS_USAGE_ABORTED)
        count_keys(&now->aborted, event);
}

/* --- looking --- */

static void add_kinds(const struct period *period, struct ds_usage_view *out)
{
    for (size_t i = 0; i < period->kind_count; i++) {
        const struct ds_usage_kind *from = &period->kinds[i];
        struct ds_usage_kind *to = find_kind(out->kinds, out->kind_count, from->name.hash);
        if (to == NULL) {
            to = &out->kinds[out->kind_count++];
            *to = (struct ds_usage_kind){.name = from->name};
        }
        for (size_t j = 0; j < DS_USAGE_NUMBERS; j++)
            to->numbers[j] += from->numbers[j];
        out->lookups += from->numbers[DS_LOOKUPS];
    }
}

/* Of the first `count` periods. */
static size_t kinds_of(const struct ds_usage_sums *sums, size_t count)
{
    size_t kinds = 0;
    for (size_t i = 0; i < count; i++)
        kinds += sums->periods[i].kind_count;
    return kinds;
}

static void add_calls(const struct tops *tops, struct ds_usage_top *to)
{
    for (size_t i = 0; i < tops->count; i++)
        if (tops->all[i].key.hash == to->key.hash) {
            to->count += tops->all[i].count;
            to->error += tops->all[i].error;
        }
}

static const struct tops *tops_at(const struct period *period, bool are_aborted)
{
    return are_aborted ? &period->aborted : &period->entities;
}

/* A key with its calls in the first `count` periods. */
static struct ds_usage_top sum_of(const struct ds_usage_sums *sums, size_t count, bool are_aborted,
                                  const struct ds_usage_key *key)
{
    struct ds_usage_top sum = {.key = *key};
    for (size_t i = 0; i < count; i++)
        add_calls(tops_at(&sums->periods[i], are_aborted), &sum);
    return sum;
}

/* Of all periods together: it need not be the greatest of any. Count 0: none has a text. */
static struct ds_usage_top greatest_of(const struct ds_usage_sums *sums, size_t count,
                                       bool are_aborted)
{
    struct ds_usage_top most = {.count = 0};
    for (size_t i = 0; i < count; i++) {
        const struct tops *tops = tops_at(&sums->periods[i], are_aborted);
        for (size_t j = 0; j < tops->count; j++) {
            struct ds_usage_top sum = sum_of(sums, count, are_aborted, &tops->all[j].key);
            if (sum.key.size > 0 && at_least(&sum) > at_least(&most))
                most = sum;
        }
    }
    return most;
}

static size_t periods_since(const struct ds_usage_sums *sums, int64_t since_us)
{
    size_t count = 0;
    while (count < sums->count && sums->periods[count].from_us >= since_us)
        count++;
    return count;
}

status ds_usage_sums_view(struct ds_usage_sums *sums, int64_t now_us, int64_t since_us,
                          struct arena *arena, struct ds_usage_view *out)
{
    go_on(sums, now_us);
    end_minute(sums);
    size_t count = periods_since(sums, since_us);
    *out = (struct ds_usage_view){.span_us = 0};
    out->kinds = arena_alloc(arena, (kinds_of(sums, count) + 1) * sizeof *out->kinds);
    if (out->kinds == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        const struct period *period = &sums->periods[i];
        out->span_us = now_us - period->from_us;
        out->begun += period->begun;
        add_kinds(period, out);
        if (at_least(&period->group) > at_least(&out->group))
            out->group = period->group;
    }
    out->entity = greatest_of(sums, count, false);
    out->aborted = greatest_of(sums, count, true);
    return status_ok();
}
