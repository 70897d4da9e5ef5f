/* See load.h: requests, one after the other. */
#include "design/load.h"

#include "design/load_private.h"

#include <math.h>
#include <stdlib.h>

enum {
    LOAD_SECONDS = LOAD_MINUTES * 60,
    RAMP_BEGINS = 5,           /* minutes */
    RANGES_TAKE = 20,          /* times as long to play as single rows */
    NEW_KEY_BYTES = 256 << 20, /* of rows that come, in all */
    KEY_COSTS = 32,            /* bytes beside itself */
};

#define US_PER_MINUTE ((int64_t)60 * 1000 * 1000)

/* One kind of access at work. */
struct stream {
    struct playing *playing;
    const struct design_access *access;
    size_t place;         /* among the table's */
    size_t events;        /* that are played */
    double all;           /* requests that they stand for, were there no ramp */
    uint64_t hot;         /* rows that are hot, in truth */
    size_t hot_made;      /* of those made */
    const size_t *by_age; /* rows that were made, the oldest first */
};

static const struct made_table *made_of(const struct stream *stream)
{
    return stream->playing->made;
}

static uint64_t random_of(const struct stream *stream, size_t event, uint64_t purpose)
{
    return made_random(made_of(stream)->seed, stream->place, event, 100 + purpose);
}

/* --- when, and for how many --- */

/* The minute and where in it. */
static double time_of(const struct stream *stream, size_t event)
{
    return (double)LOAD_MINUTES * ((double)event + 0.5) / (double)stream->events;
}

double load_share_at(int64_t ramp_us, double minute)
{
    double rises = (double)ramp_us / (double)US_PER_MINUTE;
    if (ramp_us < 0)
        return 1;
    if (minute < RAMP_BEGINS)
        return 0;
    return minute - RAMP_BEGINS >= rises ? 1 : (minute - RAMP_BEGINS) / rises;
}

static struct load_event event_of(const struct stream *stream, size_t event)
{
    double minute = time_of(stream, event);
    return (struct load_event){.minute = (size_t)minute,
                               .weight = stream->all / (double)stream->events *
                                         load_share_at(stream->access->ramp_us, minute),
                               .is_write = stream->access->kind == ACCESS_WRITE_NEW ||
                                           stream->access->kind == ACCESS_WRITE_EXISTING};
}

/* --- which row --- */

/* The hot row with this number. */
static size_t hot_row(const struct stream *stream, uint64_t number)
{
    const struct made_table *made = made_of(stream);
    uint64_t start = made_random(made->seed, stream->place, 0, 11);
    switch (stream->access->hot.where) {
    case HOT_NEWEST:
        return stream->by_age[made->count - 1 - number];
    case HOT_NEIGHBOURS:
        return (size_t)((start + number) % made->count);
    default:
        return (size_t)(made_random(made->seed, stream->place, number, 11) % made->count);
    }
}

/* Of so many things one after the other, in steps of the golden ratio, so that all of them come
 * about as often. */
static size_t next_of(const struct stream *stream, size_t event, size_t count)
{
    const uint64_t golden_ratio = 0x9e3779b97f4a7c15;
    uint64_t place = (event + random_of(stream, 0, 1)) * golden_ratio;
    return (size_t)((double)(place >> 11) / (double)(1ull << 53) * (double)count);
}

static size_t choose_row(const struct stream *stream, size_t event)
{
    enum { STEPS = 1 << 20 };
    double draw = (double)(random_of(stream, event, 0) % STEPS) / STEPS;
    if (draw < stream->access->hot.share)
        return hot_row(stream, next_of(stream, event, stream->hot_made));
    return next_of(stream, event, made_of(stream)->count);
}

/* As many as there are in truth, or so many that none of them stands out. */
static void set_hot(struct stream *stream)
{
    enum { LEAST = 64 };
    const struct made_table *made = made_of(stream);
    const struct design_hot *hot = &stream->access->hot;
    double rows = hot->rows > 0 ? (double)hot->rows : hot->part * (double)made->table->rows;
    double scaled = rows / made_scale(made), most = (double)made->count;
    stream->hot = rows < 1 ? 1 : (uint64_t)rows;
    double count = scaled > LEAST ? scaled : rows < LEAST ? rows : LEAST;
    stream->hot_made = (size_t)(count < 1 ? 1 : count > most ? most : count);
}

/* --- ranges --- */

/* The end of the rows from `first` on that begin so: they stand together. */
static size_t find_behind(const struct made_table *made, size_t first, bytes prefix)
{
    size_t low = first, high = made->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (bytes_start_with(made->rows[middle].key, prefix))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What begins as the row's key does, as far as is known; and of it as much as is wanted, if no more
 * has to be looked at. */
static status play_range(struct stream *stream, struct load_event *event, size_t row,
                         struct buffer *prefix)
{
    const struct made_table *made = made_of(stream);
    const struct design_access *access = stream->access;
    uint64_t number = made->rows[row].number;
    buffer_clear(prefix);
    made_key(made, number, made_time(made, number), access->leading, prefix);
    if (prefix->failed)
        return status_out_of_memory();
    size_t first = made_find(made, buffer_bytes(prefix));
    size_t behind = find_behind(made, first, buffer_bytes(prefix));
    double found = (double)(behind - first) * made_scale(made), rows = found;
    if (access->is_ordered && access->rows > 0 && (double)access->rows < found)
        rows = (double)access->rows;
    size_t count = (size_t)ceil((double)(behind - first) * rows / found);
    load_count_range(stream->playing, event, first, count, rows);
    stream->playing->load->costs[stream->place].rows += rows / (double)stream->events;
    return status_ok();
}

/* --- all kinds --- */

static status play_event(struct stream *stream, size_t number, struct buffer *prefix)
{
    const struct made_table *made = made_of(stream);
    struct load_event event = event_of(stream, number);
    size_t row;
    stream->playing->load->costs[stream->place].requests += event.weight;
    switch (stream->access->kind) {
    case ACCESS_WRITE_NEW:
        event.key = stream->playing->new_keys[stream->playing->new_count++];
        load_count_row(stream->playing, &event);
        return status_ok();
    case ACCESS_WRITE_EXISTING:
    case ACCESS_READ_ROW:
        event.key = made->rows[choose_row(stream, number)].key;
        load_count_row(stream->playing, &event);
        return status_ok();
    case ACCESS_READ_RANGE:
        row = choose_row(stream, number);
        return play_range(stream, &event, row, prefix);
    case ACCESS_READ_TABLE:
        load_count_range(stream->playing, &event, 0, made->count, (double)made->table->rows);
        return status_ok();
    }
    return status_ok();
}

static double rows_of_one(const struct made_table *made, enum design_access_kind kind)
{
    if (kind == ACCESS_READ_TABLE)
        return (double)made->table->rows;
    return kind == ACCESS_READ_RANGE ? 0 : 1;
}

static status play_stream(struct stream *stream)
{
    struct buffer prefix = {0};
    status s = status_ok();
    stream->playing->load->costs[stream->place].rows =
        rows_of_one(made_of(stream), stream->access->kind);
    for (size_t i = 0; i < stream->events && status_is_ok(s); i++)
        s = play_event(stream, i, &prefix);
    buffer_free(&prefix);
    return s;
}

/* So many that all keys of rows that come have room. */
static size_t most_new(const struct made_table *made)
{
    size_t accesses = 0, key = KEY_COSTS;
    for (size_t i = 0; i < made->table->access_count; i++)
        accesses += made->table->accesses[i].kind == ACCESS_WRITE_NEW;
    if (made->count > 0)
        key += made->rows[0].key.size;
    return NEW_KEY_BYTES / (accesses + !accesses) / key;
}

static size_t most_of(const struct made_table *made, enum design_access_kind kind)
{
    size_t most =
        made->events > 0 && made->events < LOAD_EVENTS_MOST ? made->events : LOAD_EVENTS_MOST;
    if (kind == ACCESS_READ_RANGE || kind == ACCESS_READ_TABLE)
        most /= RANGES_TAKE;
    if (kind == ACCESS_WRITE_NEW && most_new(made) < most)
        most = most_new(made);
    return most < LOAD_MINUTES ? LOAD_MINUTES : most / LOAD_MINUTES * LOAD_MINUTES;
}

/* As many in each minute, if there are so many at all. */
static size_t events_for(const struct made_table *made, enum design_access_kind kind,
                         double requests)
{
    size_t most = most_of(made, kind);
    if (requests < LOAD_MINUTES)
        return requests < 1 ? 1 : (size_t)requests;
    return requests > (double)most ? most : (size_t)requests / LOAD_MINUTES * LOAD_MINUTES;
}

static struct stream stream_of(struct playing *playing, size_t place, const size_t *by_age)
{
    struct stream stream = {.playing = playing,
                            .access = &playing->made->table->accesses[place],
                            .place = place,
                            .by_age = by_age};
    stream.all = stream.access->rate * LOAD_SECONDS;
    stream.events = events_for(playing->made, stream.access->kind, stream.all);
    set_hot(&stream);
    return stream;
}

/* --- rows that come --- */

/* Each is as it would be if all before it had been written: a stream's events stand for several. */
static status make_new_key(const struct stream *stream, size_t event, uint64_t number,
                           struct buffer *key, bytes *out)
{
    const struct made_table *made = made_of(stream);
    double ago_us = ((double)LOAD_MINUTES - time_of(stream, event)) * (double)US_PER_MINUTE;
    buffer_clear(key);
    made_key(made, number, made->now_us - (int64_t)ago_us, made->table->key.count, key);
    *out = key->failed ? (bytes){0} : arena_copy(made->arena, buffer_bytes(key));
    return out->data == NULL ? status_out_of_memory() : status_ok();
}

static status make_new_keys(struct playing *playing)
{
    const struct design_table *table = playing->made->table;
    struct buffer key = {0};
    status s = status_ok();
    uint64_t number = table->rows;
    size_t room = 0;
    for (size_t i = 0; i < table->access_count; i++)
        if (table->accesses[i].kind == ACCESS_WRITE_NEW)
            room += stream_of(playing, i, NULL).events;
    playing->new_keys = arena_alloc(playing->made->arena, room * sizeof *playing->new_keys);
    if (playing->new_keys == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < table->access_count; i++) {
        struct stream stream = stream_of(playing, i, NULL);
        if (stream.access->kind != ACCESS_WRITE_NEW)
            continue;
        for (size_t j = 0; j < stream.events && status_is_ok(s); j++)
            s = make_new_key(&stream, j, number++, &key, &playing->new_keys[playing->new_count++]);
    }
    buffer_free(&key);
    return s;
}

/* --- what the advisor asks for beside hotspots --- */

/* By how much its busiest row is written within the hour. */
static void find_rewritten(const struct stream *stream, struct advice_rewritten *out)
{
    const struct made_table *made = made_of(stream);
    bool is_hot = stream->access->hot.share > 0;
    double rows = is_hot ? (double)stream->hot : (double)made->table->rows;
    double share = is_hot ? stream->access->hot.share : 1;
    uint64_t writes = (uint64_t)(stream->all * share / rows);
    if (stream->access->kind == ACCESS_WRITE_EXISTING && writes > out->writes)
        *out = (struct advice_rewritten){
            .key = made->rows[hot_row(stream, 0)].key,
            .writes = writes,
        };
}

/* Requests for single rows whose load rises within the hour. */
static status find_minutes(struct playing *playing)
{
    const struct design_table *table = playing->made->table;
    struct advice_minute *minutes =
        arena_zalloc(playing->made->arena, LOAD_MINUTES * sizeof *minutes);
    if (minutes == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < LOAD_MINUTES; i++) {
        minutes[i].minute = playing->made->now_us / US_PER_MINUTE - LOAD_MINUTES + (int64_t)i;
        for (size_t j = 0; j < table->access_count; j++) {
            const struct design_access *access = &table->accesses[j];
            bool is_single = access->kind != ACCESS_READ_RANGE && access->kind != ACCESS_READ_TABLE;
            if (!is_single || access->ramp_us < 0)
                continue;
            playing->load->tablet.count = LOAD_MINUTES;
            minutes[i].requests +=
                access->rate * 60 * load_share_at(access->ramp_us, (double)i + 0.5);
        }
    }
    playing->load->tablet.minutes = minutes;
    return status_ok();
}

/* Of the rows that are read the part that has the values that are known, too. Of a column of which
 * it is not said how many values it has, each row has its own. */
static double part_answered(const struct made_table *made, const struct design_access *access)
{
    double part = 1;
    for (size_t i = access->leading; i < made->table->key.count; i++)
        if ((access->by >> i & 1) && made->table->key.parts[i].count > 1)
            part /= (double)made->table->key.parts[i].count;
    return access->by_columns ? part / (double)made->table->rows : part;
}

static void fill_scans(const struct made_table *made, const struct design_access *access,
                       const struct load_cost *cost, struct advice_scans *out)
{
    double scans = access->rate * LOAD_USAGE_HOURS * 3600, seen = scans * cost->rows;
    double answered = access->is_ordered ? seen : seen * part_answered(made, access);
    bool is_whole =
        access->kind == ACCESS_READ_TABLE || (!access->is_ordered && access->leading == 0);
    if (access->kind == ACCESS_READ_TABLE)
        answered = seen;
    else if (access->rows > 0 && answered > scans * (double)access->rows)
        answered = scans * (double)access->rows;
    *out = (struct advice_scans){.kind = access->by_columns ? ADVICE_BY_VALUE
                                         : access->is_ordered || access->kind == ACCESS_READ_TABLE
                                             ? ADVICE_ALL_ROWS
                                             : ADVICE_BY_KEY,
                                 .scans = (uint64_t)scans,
                                 .whole = is_whole ? (uint64_t)scans : 0,
                                 .seen = (uint64_t)seen,
                                 .whole_seen = is_whole ? (uint64_t)seen : 0,
                                 .answered = (uint64_t)answered};
}

/* The scans of each kind of access, as if it were an app profile's. */
static status find_scans(struct playing *playing)
{
    const struct design_table *table = playing->made->table;
    struct advice_usage *usage = &playing->load->usage;
    struct advice_scans *scans =
        arena_zalloc(playing->made->arena, table->access_count * sizeof *scans);
    if (scans == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < table->access_count; i++) {
        const struct design_access *access = &table->accesses[i];
        if (access->kind == ACCESS_READ_RANGE || access->kind == ACCESS_READ_TABLE)
            fill_scans(playing->made, access, &playing->load->costs[i],
                       &scans[usage->scan_count++]);
    }
    usage->scans = scans;
    usage->from_us = playing->made->now_us - LOAD_USAGE_HOURS * 60 * US_PER_MINUTE;
    return status_ok();
}

/* --- all --- */

struct aged {
    uint64_t number;
    size_t row;
};

static int compare_ages(const void *a, const void *b)
{
    const struct aged *left = a, *right = b;
    return left->number < right->number ? -1 : left->number > right->number;
}

static status sort_by_age(const struct made_table *made, const size_t **out)
{
    struct aged *aged = arena_alloc(made->arena, made->count * sizeof *aged);
    size_t *rows = arena_alloc(made->arena, made->count * sizeof *rows);
    if (aged == NULL || rows == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < made->count; i++)
        aged[i] = (struct aged){.number = made->rows[i].number, .row = i};
    qsort(aged, made->count, sizeof *aged, compare_ages);
    for (size_t i = 0; i < made->count; i++)
        rows[i] = aged[i].row;
    *out = rows;
    return status_ok();
}

status load_play(const struct made_table *made, struct load *out)
{
    struct playing playing = {.made = made, .load = out};
    const size_t *by_age;
    *out = (struct load){0};
    out->costs = arena_zalloc(made->arena, made->table->access_count * sizeof *out->costs);
    if (out->costs == NULL)
        return status_out_of_memory();
    TRY(sort_by_age(made, &by_age));
    TRY(make_new_keys(&playing));
    TRY(load_make_ranges(&playing));
    playing.new_count = 0;
    for (size_t i = 0; i < made->table->access_count; i++) {
        struct stream stream = stream_of(&playing, i, by_age);
        TRY(play_stream(&stream));
        find_rewritten(&stream, &out->rewritten);
    }
    TRY(find_minutes(&playing));
    TRY(find_scans(&playing));
    return load_find_hotspots(&playing);
}
