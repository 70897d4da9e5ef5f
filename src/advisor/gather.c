/* See gather.h. Places come from SampleRowKeys where it has many keys, and are made up from
 * the keys that are known by then (advisor/place.h) where it has few. */
#include "advisor/gather.h"

#include "advisor/frontier.h"
#include "advisor/thresholds.h"
#include "base/clock.h"
#include "base/limits.h"

enum {
    ESTIMATES_MOST = 4, /* rows that are read for their size */
    ATTEMPTS = 3,       /* for each place */
    UNREADABLE_MOST = 3,
    SAMPLE_QUARTERS = 3, /* of the bytes, where rows are to be estimated with the rest */
    IN_VAIN_MOST = 60,   /* in a row */
    ONE_ROW_RANGES = 4,  /* hot ranges that are looked at */
};

struct gathering {
    const struct gather_options *options;
    struct advice_source source;
    int64_t until_us; /* clock_steady_us */
    struct advice_observations *out;
    struct advice_sample *sample;
    struct advice_cuts cuts;
    struct sample_rows rows;
    struct advice_range *ranges; /* as many as cuts, of which `out` counts those known */
    struct advice_random random;
    struct frontier frontier;
    uint32_t place;
    bool is_new;   /* the last reading brought something */
    bool is_whole; /* all rows are known, as far as it seems */
};

/* --- rows --- */

/* A row that cannot be read costs the server as much as one that can: a few of them are enough. */
static bool may_read(struct gathering *g)
{
    g->sample->is_cut =
        g->rows.is_full || g->rows.bytes >= g->rows.most || g->rows.cells >= SAMPLE_ALL_CELLS ||
        g->rows.unreadable >= UNREADABLE_MOST || clock_steady_us(clock_system()) >= g->until_us;
    return !g->sample->is_cut;
}

/* Whether the row had been read before the last reading, too. */
static bool is_known(const struct gathering *g, size_t before, size_t row)
{
    for (size_t i = 0; i < before; i++)
        if (bytes_equal(g->rows.rows[i].key, g->rows.rows[row].key))
            return true;
    return false;
}

/* Its ends say so, as a rule; what lies between them may be new if two others have left a gap. */
static bool has_brought_something(const struct gathering *g, size_t before)
{
    if (g->rows.count == before)
        return false;
    if (!is_known(g, before, g->rows.count - 1))
        return true;
    for (size_t i = before; i + 1 < g->rows.count; i++)
        if (!is_known(g, before, i))
            return true;
    return false;
}

/* Of those that were asked for. */
static size_t places_left(const struct gathering *g)
{
    return g->sample->places < g->options->places ? g->options->places - g->sample->places : 0;
}

/* A reading that was not full and not ended early has come to its end. */
static status note_reading(struct gathering *g, const struct sample_reading *reading, size_t before,
                           bool is_whole)
{
    bytes last = g->rows.count > before ? g->rows.rows[g->rows.count - 1].key : bytes_make(NULL, 0);
    bool is_end = is_whole && reading->end.size == 0;
    bytes start = arena_copy(g->source.arena, reading->start);
    if (reading->is_reversed)
        return status_ok();
    if (start.data == NULL || !frontier_note(&g->frontier, start, last, is_end))
        return status_out_of_memory();
    return status_ok();
}

/* The bounds may be gone when the place has been read. */
static status note_gap(struct gathering *g, const struct sample_reading *reading, uint64_t passed,
                       size_t rows)
{
    struct advice_gap *gap = &g->out->gap;
    if (passed <= gap->passed)
        return status_ok();
    bytes end = rows > 0 ? g->rows.rows[g->rows.count - 1].key : reading->end;
    *gap = (struct advice_gap){.passed = passed, .rows = rows};
    gap->start = arena_copy(g->source.arena, reading->start);
    gap->end = arena_copy(g->source.arena, end);
    return gap->start.data == NULL || gap->end.data == NULL ? status_out_of_memory() : status_ok();
}

/* A row that is not read whole leaves something for its estimate. */
static void note_cuts(struct gathering *g, size_t before)
{
    for (size_t i = before; i < g->rows.count; i++)
        if (g->rows.rows[i].is_cut)
            g->rows.most = g->options->bytes / 4 * SAMPLE_QUARTERS;
}

static status read_place(struct gathering *g, bytes start, bytes end, bool is_reversed,
                         bool *is_whole)
{
    const struct sample_reading reading = {.start = start,
                                           .end = end,
                                           .limit = g->options->rows,
                                           .place = g->place++,
                                           .is_reversed = is_reversed};
    size_t before = g->rows.count;
    uint64_t passed = g->rows.passed;
    TRY(g->source.calls->read_rows(&g->source, &g->rows, &reading, is_whole));
    note_cuts(g, before);
    TRY(note_gap(g, &reading, g->rows.passed - passed, g->rows.count - before));
    TRY(note_reading(g, &reading, before, *is_whole));
    g->is_new = has_brought_something(g, before);
    g->sample->places += g->is_new;
    return status_ok();
}

/* The first rows and the last; not all servers read backwards. */
static status read_ends(struct gathering *g)
{
    const bytes none = {0};
    bool is_whole;
    TRY(read_place(g, none, none, false, &is_whole));
    g->is_whole = is_whole;
    if (is_whole || places_left(g) == 0 || !may_read(g))
        return status_ok();
    status s = read_place(g, none, none, true, &is_whole);
    if (s.code != STATUS_UNIMPLEMENTED && s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status_free(s);
    return status_ok();
}

static bytes range_start(const struct gathering *g, size_t index)
{
    return index == 0 ? bytes_make(NULL, 0) : g->cuts.all[index - 1].key;
}

/* The first rows of a range between two cuts. If these are all that it has, what it takes can be
 * held against them. */
static status read_range(struct gathering *g, size_t index)
{
    const struct advice_cut *cut = &g->cuts.all[index];
    uint64_t offset = index == 0 ? 0 : g->cuts.all[index - 1].offset;
    struct advice_range range = {.start = range_start(g, index), .end = cut->key};
    size_t before = g->rows.count;
    bool is_whole;
    TRY(read_place(g, range.start, range.end, false, &is_whole));
    if (!is_whole)
        return status_ok();
    range.stored = cut->offset > offset ? cut->offset - offset : 0;
    range.rows = g->rows.count - before;
    for (size_t i = before; i < g->rows.count; i++)
        range.read += g->rows.rows[i].size;
    g->ranges[g->out->range_count++] = range;
    return status_ok();
}

/* At half of the places, at most, spread over all ranges. */
static status read_ranges(struct gathering *g)
{
    size_t count = g->cuts.count, half = (g->options->places + 1) / 2, left = places_left(g);
    size_t most = half < left ? half : left, reads = count < most ? count : most;
    if (reads == 0)
        return status_ok();
    g->ranges = arena_alloc(g->source.arena, reads * sizeof *g->ranges);
    if (g->ranges == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < reads && may_read(g); i++) {
        size_t first = count * i / reads, behind = count * (i + 1) / reads;
        TRY(read_range(g, first + advice_random_below(&g->random, behind - first)));
    }
    g->out->ranges = g->ranges;
    return status_ok();
}

/* The keys that are known, of rows and cuts. */
static status known_keys(const struct gathering *g, struct buffer *out)
{
    buffer_clear(out);
    for (size_t i = 0; i < g->rows.count; i++)
        buffer_append(out, &g->rows.rows[i].key, sizeof(bytes));
    for (size_t i = 0; i < g->cuts.count; i++)
        if (g->cuts.all[i].key.size > 0)
            buffer_append(out, &g->cuts.all[i].key, sizeof(bytes));
    return out->failed ? status_out_of_memory() : status_ok();
}

/* Half of the places are made of all keys, the others lie behind readings; and where made-up places
 * bring nothing, reading goes on right behind readings, which leads on in any table. */
static void choose_place(struct gathering *g, const bytes *keys, size_t count, struct buffer *place)
{
    bytes end;
    bool is_behind = !g->is_new || advice_random_below(&g->random, 2) == 0;
    if (!is_behind || !frontier_choose(&g->frontier, &g->random, &end)) {
        advice_place(keys, count, &g->random, place);
        return;
    }
    if (g->is_new)
        advice_place_behind(keys, count, end, &g->random, place);
    if (g->is_new && bytes_compare(buffer_bytes(place), end) > 0)
        return;
    buffer_clear(place);
    buffer_append_bytes(place, end);
    buffer_append_byte(place, 0);
}

static status read_random_place(struct gathering *g, struct buffer *keys, struct buffer *place)
{
    const bytes none = {0};
    bool is_whole;
    TRY(known_keys(g, keys));
    choose_place(g, (const bytes *)(const void *)keys->data, keys->size / sizeof(bytes), place);
    if (place->failed)
        return status_out_of_memory();
    return read_place(g, buffer_bytes(place), none, false, &is_whole);
}

/* Until there are enough, or it seems that all rows are known. */
static status read_random_places(struct gathering *g)
{
    struct buffer keys = {0}, place = {0};
    status s = status_ok();
    size_t most = g->is_whole ? 0 : ATTEMPTS * g->options->places, in_vain = 0;
    for (size_t i = 0; i < most && in_vain < IN_VAIN_MOST && g->rows.count > 0; i++) {
        if (!status_is_ok(s) || places_left(g) == 0 || !may_read(g))
            break;
        s = read_random_place(g, &keys, &place);
        in_vain = g->is_new ? 0 : in_vain + 1;
    }
    g->is_whole |= in_vain == IN_VAIN_MOST;
    buffer_free(&keys);
    buffer_free(&place);
    return s;
}

/* The largest of the rows that were cut, of those smaller than that. */
static struct advice_row *largest_cut(const struct gathering *g, uint64_t below)
{
    struct advice_row *largest = NULL;
    for (size_t i = 0; i < g->rows.count; i++) {
        struct advice_row *row = &g->rows.rows[i];
        if (row->is_cut && row->size < below && (largest == NULL || row->size > largest->size))
            largest = row;
    }
    return largest;
}

/* An estimate is never below what was seen, so that no row is estimated twice. A row that cannot be
 * read stays as it is. */
static status estimate_rows(struct gathering *g)
{
    uint64_t below = LIMIT_ROW_BYTES;
    g->rows.most = g->options->bytes;
    for (size_t i = 0; i < ESTIMATES_MOST; i++) {
        struct advice_row *row = largest_cut(g, below);
        if (row == NULL)
            return status_ok();
        below = row->size;
        TRY(g->source.calls->estimate_row(&g->source, &g->rows, row));
    }
    return status_ok();
}

static status read_rows(struct gathering *g)
{
    TRY(read_ends(g));
    TRY(read_ranges(g));
    TRY(read_random_places(g));
    g->sample->is_cut |= g->rows.is_full;
    sample_rows_sort(&g->rows);
    TRY(estimate_rows(g));
    g->out->rows = g->rows.rows;
    g->out->row_count = g->rows.count;
    g->sample->bytes = g->rows.bytes;
    return status_ok();
}

/* --- heat --- */

/* A range that begins or ends elsewhere is another one. */
static bool is_same_range(const struct advice_heat *a, const struct advice_heat *b)
{
    return bytes_equal(a->start, b->start) && bytes_equal(a->end, b->end);
}

/* Of the ranges that were hot enough to matter, the first few. */
static status find_single_rows(struct gathering *g)
{
    struct advice_heat *heat = g->out->heat;
    size_t count = g->out->heat_count, looked_at = 0;
    for (size_t i = 0; i < count && looked_at < ONE_ROW_RANGES; i++) {
        size_t first = 0;
        while (!is_same_range(&heat[first], &heat[i]))
            first++;
        if (first < i)
            continue;
        bool is_one;
        TRY(g->source.calls->is_one_row(&g->source, &g->rows, heat[i].start, heat[i].end, &is_one));
        looked_at++;
        for (size_t j = i; j < count; j++)
            heat[j].is_one_row |= is_one && is_same_range(&heat[i], &heat[j]);
    }
    return status_ok();
}

static status read_heat(struct gathering *g)
{
    TRY(g->source.calls->read_heat(&g->source, g->out, &g->sample->has_heat));
    return find_single_rows(g);
}

/* --- cuts --- */

static status grow(struct advice_cuts *cuts)
{
    if (cuts->count < cuts->capacity)
        return status_ok();
    size_t capacity = cuts->capacity == 0 ? 64 : 2 * cuts->capacity;
    struct advice_cut *grown = arena_alloc(cuts->arena, capacity * sizeof *grown);
    if (grown == NULL)
        return status_out_of_memory();
    if (cuts->count > 0)
        memcpy(grown, cuts->all, cuts->count * sizeof *grown);
    cuts->all = grown;
    cuts->capacity = capacity;
    return status_ok();
}

status advice_cuts_add(struct advice_cuts *cuts, const struct advice_cut *cut)
{
    TRY(grow(cuts));
    cuts->all[cuts->count++] = *cut;
    return status_ok();
}

uint64_t advice_cuts_size(const struct advice_cuts *cuts)
{
    return cuts->count == 0 ? 0 : cuts->all[cuts->count - 1].offset;
}

/* --- all --- */

static int64_t end_of(int64_t time_limit_us)
{
    int64_t now_us = clock_steady_us(clock_system());
    return time_limit_us < INT64_MAX - now_us ? now_us + time_limit_us : INT64_MAX;
}

/* Then no place is missing, though not all were read. */
static bool is_most_known(const struct advice_observations *seen)
{
    uint64_t size = 0;
    for (size_t i = 0; i < seen->row_count; i++)
        size += seen->rows[i].size;
    return seen->table_size > 0 && size >= seen->table_size / 2;
}

status gather(const struct gather_options *options, struct advice_observations *out,
              struct advice_sample *sample)
{
    struct gathering g = {.options = options,
                          .source = options->source,
                          .until_us = end_of(options->time_limit_us),
                          .out = out,
                          .sample = sample,
                          .random = {.state = options->seed}};
    *out = (struct advice_observations){.table_id = options->table_id,
                                        .now_us = options->now_us,
                                        .shows_values = options->shows_values,
                                        .since_us = options->since_us};
    *sample = (struct advice_sample){0};
    TRY(g.source.calls->read_schema(&g.source, out));
    g.rows = (struct sample_rows){.families = out->families,
                                  .family_count = out->family_count,
                                  .arena = g.source.arena,
                                  .most = options->bytes};
    g.cuts.arena = g.source.arena;
    TRY(g.source.calls->read_cuts(&g.source, &g.cuts));
    out->table_size = advice_cuts_size(&g.cuts);
    status s = read_rows(&g);
    frontier_free(&g.frontier);
    TRY(s);
    bool is_most = is_most_known(out);
    sample->is_cut &= !is_most;
    sample->is_little = !g.is_whole && !is_most && out->row_count < KEYS_PREFIX_LEAST;
    TRY(g.source.calls->read_weights(&g.source, out));
    TRY(read_heat(&g));
    return g.source.calls->read_siblings(&g.source, out);
}
