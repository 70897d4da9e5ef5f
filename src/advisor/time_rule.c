/* Keys that begin with a time, or that have one behind so few values that all new rows go to a few
 * places.
 *
 * Of each key the time is looked for at one start, or behind any delimiter; what stands before it
 * tells the fronts apart. A number of a time's size is one only if rows were not written in another
 * order. */
#include "advisor/key_start.h"
#include "advisor/key_time.h"
#include "advisor/write_order.h"

#include <ctype.h>
#include <stdlib.h>

/* The size of the time at the front, with what a time of day has behind it. */
static size_t whole_time(bytes key, enum key_time form, size_t size)
{
    bool is_date = form >= KEY_TIME_DATE && form <= KEY_TIME_SHORT_DATE;
    if (!is_date || size == key.size || !is_one_of(key.data[size], "T _:-"))
        return size;
    size_t end = size + 1;
    while (end < key.size && (isdigit(key.data[end]) || is_one_of(key.data[end], ":.Z+")))
        end++;
    return end > size + 2 ? end : size;
}

struct place {
    size_t start;
    size_t size;
    enum key_time form; /* KEY_TIME_NONE: there is no time */
};

struct times {
    const struct advice_observations *seen;
    struct place *places; /* of each row */
    enum key_time form;   /* of most keys */
    size_t count;         /* of the keys that have it */
    size_t changes;       /* from one such key to the next */
    size_t fronts;        /* different texts before it, FRONTS at most */
    bytes words[FRONTS];  /* these */
    enum key_time_reading reading;
    size_t ahead; /* of the times, that lie in the future */
};

static struct place place_at(const struct advice_observations *seen, size_t row, size_t start)
{
    struct place place = {.start = start};
    place.form = key_time_at(bytes_from(seen->rows[row].key, start), seen->now_us, &place.size);
    return place;
}

/* The first time behind a delimiter. */
static struct place place_behind_delimiter(const struct advice_observations *seen, size_t row)
{
    enum { START_MOST = 64 };
    bytes key = seen->rows[row].key;
    for (size_t at = 0; at + 1 < key.size && at < START_MOST; at++) {
        bool is_start = is_one_of_delimiters(key.data[at]) || key.data[at] == ' ';
        struct place place = {0};
        if (is_start)
            place = place_at(seen, row, at + 1);
        if (place.form != KEY_TIME_NONE)
            return place;
    }
    return (struct place){0};
}

/* --- which form, and how many fronts --- */

static enum key_time most_frequent_form(const struct times *times)
{
    size_t counts[KEY_TIME_FORMS] = {0};
    enum key_time most = KEY_TIME_NONE;
    for (size_t i = 0; i < times->seen->row_count; i++)
        counts[times->places[i].form]++;
    for (size_t form = KEY_TIME_NONE + 1; form < KEY_TIME_FORMS; form++)
        if (counts[form] > 0 && (most == KEY_TIME_NONE || counts[form] > counts[most]))
            most = (enum key_time)form;
    return most;
}

static void note_front(struct times *times, bytes word)
{
    for (size_t i = 0; i < times->fronts; i++)
        if (bytes_equal(times->words[i], word))
            return;
    if (times->fronts < FRONTS)
        times->words[times->fronts++] = word;
}

static bytes time_in(const struct times *times, size_t row)
{
    const struct place *place = &times->places[row];
    bytes key = bytes_from(times->seen->rows[row].key, place->start);
    return bytes_make(key.data, whole_time(key, place->form, place->size));
}

static void count_times(struct times *times)
{
    bytes last = {0};
    times->form = most_frequent_form(times);
    for (size_t i = 0; i < times->seen->row_count && times->form != KEY_TIME_NONE; i++) {
        if (times->places[i].form != times->form)
            continue;
        bytes time = time_in(times, i);
        times->count++;
        times->changes += last.size > 0 && !bytes_equal(last, time);
        note_front(times, bytes_make(times->seen->rows[i].key.data, times->places[i].start));
        last = time;
    }
}

/* How local dates are read, and how many times are still to come. */
static void look_at_dates(struct times *times)
{
    const struct advice_observations *seen = times->seen;
    times->reading = KEY_TIME_DAY_FIRST;
    for (size_t i = 0; i < seen->row_count; i++) {
        const struct place *place = &times->places[i];
        bytes field = bytes_from(seen->rows[i].key, place->start);
        if (place->form == times->form && key_time_is_month_first(field, place->form, place->size))
            times->reading = KEY_TIME_MONTH_FIRST;
    }
    for (size_t i = 0; i < seen->row_count; i++) {
        const struct place *place = &times->places[i];
        bytes field = bytes_from(seen->rows[i].key, place->start);
        times->ahead +=
            place->form == times->form &&
            key_time_is_ahead(field, place->form, place->size, times->reading, seen->now_us);
    }
}

/* --- numbers that might be something else --- */

struct looks {
    size_t both; /* snowflakes that are nanoseconds as well */
    size_t round;
    size_t nearer; /* as snowflakes, to the moment of writing */
    size_t farther;
};

static void look_at_snowflake(const struct times *times, size_t row, struct looks *out)
{
    bytes field = bytes_from(times->seen->rows[row].key, times->places[row].start);
    int64_t written_us = first_written(&times->seen->rows[row]), at_us;
    if (!key_time_is_snowflake(field, times->seen->now_us, &at_us))
        return;
    int64_t number = (int64_t)key_time_rank(field, KEY_TIME_NANOS, times->places[row].size);
    out->both++;
    out->round += number % 1000 == 0;
    bool is_nearer = llabs(at_us - written_us) < llabs(number / 1000 - written_us);
    out->nearer += written_us > 0 && is_nearer;
    out->farther += written_us > 0 && !is_nearer;
}

/* Nineteen digits may be both. Clocks give round nanoseconds, as a rule, and otherwise the moment
 * of writing tells which it is. */
static void tell_snowflakes(struct times *times)
{
    struct looks looks = {0};
    for (size_t i = 0; i < times->seen->row_count; i++)
        if (times->places[i].form == KEY_TIME_NANOS || times->places[i].form == KEY_TIME_SNOWFLAKE)
            look_at_snowflake(times, i, &looks);
    if (!key_start_fits(looks.both, times->seen->row_count) || 2 * looks.round > looks.both ||
        looks.farther > looks.nearer)
        return;
    for (size_t i = 0; i < times->seen->row_count; i++)
        if (times->places[i].form == KEY_TIME_NANOS)
            times->places[i].form = KEY_TIME_SNOWFLAKE;
}

/* Of dates of any width some have two digits everywhere. */
static void join_loose_dates(const struct times *times)
{
    size_t loose = 0, rows = times->seen->row_count;
    for (size_t i = 0; i < rows; i++)
        loose += times->places[i].form == KEY_TIME_LOOSE_DATE;
    for (size_t i = 0; i < rows && loose * 100 >= rows * WIDTHS_PERCENT; i++)
        if (times->places[i].form == KEY_TIME_DATE)
            times->places[i].form = KEY_TIME_LOOSE_DATE;
}

/* The field of the row's key from the time on, if that is of the form; `*day`: see key_time_day. */
static bool find_time(const struct times *times, size_t row, bytes *field, int64_t *day)
{
    const struct place *place = &times->places[row];
    if (place->form != times->form)
        return false;
    *field = bytes_from(times->seen->rows[row].key, place->start);
    *day = key_time_day(*field, place->form, place->size, times->reading);
    return true;
}

static status find_order(struct advisor *advisor, const struct times *times,
                         struct write_order *out)
{
    size_t count = 0;
    struct ranked *all = arena_alloc(advisor->arena, times->count * sizeof *all);
    if (all == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < times->seen->row_count; i++) {
        bytes field;
        int64_t day;
        if (!find_time(times, i, &field, &day))
            continue;
        all[count++] = (struct ranked){
            .rank =
                day > 0 ? (uint64_t)day : key_time_rank(field, times->form, times->places[i].size),
            .written_us = first_written(&times->seen->rows[i])};
    }
    *out = write_order_of(all, count);
    return status_ok();
}

/* From the first date to the last one. */
static int64_t days_between(const struct times *times)
{
    int64_t first = INT64_MAX, last = 0;
    for (size_t i = 0; i < times->seen->row_count; i++) {
        bytes field;
        int64_t day;
        if (!find_time(times, i, &field, &day))
            continue;
        first = day < first ? day : first;
        last = day > last ? day : last;
    }
    return last > first ? last - first : 0;
}

/* Whether the dates are those of something else, such as of births: rows were written in no order
 * of them, for longer than history is loaded, and they are of a far longer time than that. */
static bool are_of_something_else(const struct times *times, const struct write_order *order)
{
    return write_order_is_known(order) && order->span_us >= DATES_US &&
           days_between(times) >= DATES_TIMES * (order->span_us / DAY_US) &&
           !write_order_rises(order, DATES_IN_ORDER) && !write_order_falls(order, DATES_IN_ORDER);
}

/* Whether so many times are still to come that they are those of something planned. */
static bool are_planned(const struct times *times)
{
    return times->ahead * 100 >= times->count * TIMES_AHEAD_PERCENT;
}

/* A number that was not written in its order is something else, such as a telephone's; a date, even
 * if it was not, is one of writing as a rule. What is due some day is told only of rows that were
 * written in its order. */
static status are_times(struct advisor *advisor, const struct times *times, bool *out)
{
    struct write_order order;
    bool is_date = times->form >= KEY_TIME_DATE && times->form <= KEY_TIME_YEAR_DAY;
    *out = true;
    if (!is_date && !key_time_is_count(times->form))
        return status_ok();
    TRY(find_order(advisor, times, &order));
    if (write_order_rises(&order, NUMBERS_IN_ORDER))
        return status_ok();
    if (are_planned(times))
        *out = false;
    else if (is_date)
        *out = !are_of_something_else(times, &order);
    else
        *out = !write_order_is_known(&order) && !key_time_is_doubtful(times->form);
    return status_ok();
}

/* --- what is told --- */

/* Another field first, or else one of 16 prefixes, which follows from the key. */
static status better_than_time(struct advisor *advisor, const struct times *times, size_t row,
                               bytes *out)
{
    enum { BUCKETS = 16 };
    bytes key = times->seen->rows[row].key;
    struct buffer text = {0};
    *out = bytes_make(NULL, 0);
    if (times->places[row].form != times->form)
        return status_ok();
    const struct key_start keys = {.seen = times->seen, .start = times->places[row].start};
    TRY(key_start_promote(advisor, &keys, key, time_in(times, row).size, out));
    if (out->size > 0)
        return status_ok();
    buffer_append_format(&text, "%02u#", (unsigned)(bytes_hash(key) % BUCKETS));
    buffer_append_bytes(&text, key);
    return keep_text(advisor, &text, out);
}

static status add_keys(struct advisor *advisor, const struct times *times,
                       struct advice_finding *finding)
{
    for (size_t i = 0; i < ADVICE_KEYS_SHOWN; i++) {
        size_t row = (size_t)(row_to_show(times->seen, i) - times->seen->rows);
        bytes better;
        finding_add_key(finding, times->seen->rows[row].key);
        TRY(better_than_time(advisor, times, row, &better));
        if (better.size > 0)
            finding_add_better(finding, times->seen->rows[row].key, better);
    }
    return status_ok();
}

/* The row with the latest time, or with the first key, if that is it; NULL: there is no time. */
static const struct advice_row *newest_row(const struct times *times, bytes *time)
{
    const struct advice_row *newest = NULL;
    int64_t latest = 0;
    for (size_t i = 0; i < times->seen->row_count; i++) {
        bytes field;
        int64_t day;
        if (!find_time(times, i, &field, &day))
            continue;
        bool is_newer = key_time_is_in_order(times->form) || day >= latest;
        if (newest != NULL && (times->form == KEY_TIME_REVERSED || !is_newer))
            continue;
        newest = &times->seen->rows[i];
        latest = day;
        *time = bytes_make(newest->key.data, times->places[i].start + times->places[i].size);
    }
    return newest;
}

/* Behind the newest row. A local date begins anywhere: rows of the last day go to that day's. */
static status set_range(struct advisor *advisor, const struct times *times,
                        const struct key_start *keys, struct advice_finding *finding)
{
    bytes time = {0};
    const struct advice_row *newest = newest_row(times, &time);
    if (newest == NULL)
        return status_ok();
    const struct key_start of_day = {.seen = times->seen, .start = time.size};
    bool is_local = times->form == KEY_TIME_LOCAL_DATE;
    TRY(key_start_set_range(advisor, is_local ? &of_day : keys, newest->key,
                            times->form == KEY_TIME_REVERSED, finding));
    if (is_local)
        finding->start = time;
    return status_ok();
}

static status tell(struct advisor *advisor, const struct times *times)
{
    struct advice_finding *finding;
    size_t all = times->seen->row_count;
    if (times->fronts > 1) {
        TRY(advise(advisor, RULE_key_time_first, &finding,
                   "%zu of %zu sampled keys have %s behind one of %zu values, so that all new rows "
                   "go to %zu places.",
                   times->count, all, key_time_name(times->form), times->fronts, times->fronts));
        return add_keys(advisor, times, finding);
    }
    const struct key_start keys = {.seen = times->seen, .start = times->words[0].size};
    char opening[KEY_START_OPENING];
    key_start_opening(&keys, opening);
    TRY(advise(advisor, RULE_key_time_first, &finding, "%zu of %zu sampled keys %s %s.",
               times->count, all, opening, key_time_name(times->form)));
    TRY(set_range(advisor, times, &keys, finding));
    return add_keys(advisor, times, finding);
}

static status look_at(struct advisor *advisor, struct times *times, bool *is_found)
{
    enum { CHANGES_LEAST = 2 };
    tell_snowflakes(times);
    join_loose_dates(times);
    count_times(times);
    *is_found = times->count > 0 && key_start_fits(times->count, times->seen->row_count) &&
                times->changes >= CHANGES_LEAST && times->fronts < FRONTS;
    if (*is_found)
        look_at_dates(times);
    if (*is_found)
        TRY(are_times(advisor, times, is_found));
    return *is_found ? tell(advisor, times) : status_ok();
}

static status make_times(struct advisor *advisor, struct times *out)
{
    *out = (struct times){.seen = advisor->seen};
    out->places = arena_zalloc(advisor->arena, advisor->seen->row_count * sizeof *out->places);
    return out->places == NULL ? status_out_of_memory() : status_ok();
}

status look_for_times(struct advisor *advisor, const struct key_start *keys, bool *is_found)
{
    struct times times;
    TRY(make_times(advisor, &times));
    for (size_t i = 0; i < advisor->seen->row_count; i++)
        times.places[i] = place_at(advisor->seen, i, keys->start);
    return look_at(advisor, &times, is_found);
}

status look_for_fronts_of_times(struct advisor *advisor, bool *is_found)
{
    struct times times;
    TRY(make_times(advisor, &times));
    for (size_t i = 0; i < advisor->seen->row_count; i++)
        times.places[i] = place_behind_delimiter(advisor->seen, i);
    return look_at(advisor, &times, is_found);
}
