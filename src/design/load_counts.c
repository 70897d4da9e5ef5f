/* See load_private.h. Counting is as in heat/heat_counts.c, but by one thread and with weights
 * that may be less than one, so that it comes to the same each time. */
#include "design/load_private.h"

#include "base/check.h"
#include "cluster/heat/heat_hotspots.h"

#include <math.h>
#include <stdlib.h>

#define HOUR_OF_LOAD_US ((int64_t)LOAD_MINUTES * 60 * 1000 * 1000)

/* --- ranges --- */

static int compare_keys(const void *a, const void *b)
{
    const bytes *left = a, *right = b;
    return bytes_compare(*left, *right);
}

/* Borders after each of `most` even parts of the keys, which are put in order; each once. */
static size_t find_borders(bytes *keys, size_t count, size_t most, bytes *borders)
{
    size_t found = 0;
    qsort(keys, count, sizeof *keys, compare_keys);
    for (size_t i = 1; i < most; i++) {
        bytes key = keys[count * i / most];
        bytes before = found > 0 ? borders[found - 1] : keys[0];
        if (bytes_compare(key, before) > 0)
            borders[found++] = key;
    }
    return found;
}

static size_t range_of(const struct playing *playing, bytes key)
{
    size_t low = 0, high = playing->load->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (bytes_compare(playing->load->ranges[middle].start, key) <= 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static status set_ranges(struct playing *playing, const bytes *borders, size_t count)
{
    const struct made_table *made = playing->made;
    struct load *load = playing->load;
    load->count = count + 1;
    load->ranges = arena_zalloc(made->arena, load->count * sizeof *load->ranges);
    playing->counts = arena_zalloc(made->arena, load->count * sizeof *playing->counts);
    if (load->ranges == NULL || playing->counts == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < load->count; i++) {
        load->ranges[i].start = i == 0 ? bytes_make(NULL, 0) : borders[i - 1];
        playing->counts[i].first_row = i == 0 ? 0 : made_find(made, borders[i - 1]);
        size_t end = i < count ? made_find(made, borders[i]) : made->count;
        playing->counts[i].rows = end - playing->counts[i].first_row;
    }
    return status_ok();
}

status load_make_ranges(struct playing *playing)
{
    const struct made_table *made = playing->made;
    size_t count = made->count + playing->new_count;
    bytes borders[LOAD_RANGES_MOST];
    bytes *keys = arena_alloc(made->arena, count * sizeof *keys);
    if (keys == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < made->count; i++)
        keys[i] = made->rows[i].key;
    for (size_t i = 0; i < playing->new_count; i++)
        keys[made->count + i] = playing->new_keys[i];
    size_t most = count < LOAD_RANGES_MOST ? count : LOAD_RANGES_MOST;
    return set_ranges(playing, borders, find_borders(keys, count, most, borders));
}

/* --- counting --- */

static void vote(struct load_counts *counts, bytes key, double weight)
{
    if (counts->votes > 0 && bytes_equal(counts->favourite, key)) {
        counts->votes += weight;
    } else if (counts->votes > weight) {
        counts->votes -= weight;
    } else {
        counts->votes = weight;
        counts->favourite = key;
    }
}

static void note_order(struct load_counts *counts, bytes key, double weight)
{
    enum { MARK_STEPS = 256 };
    uint64_t seen = ++counts->seen;
    if (seen > 1 && bytes_compare(key, counts->mark) > 0)
        counts->rising += weight;
    if (seen == 1 || bytes_compare(key, counts->greatest) > 0)
        counts->greatest = key;
    if (seen < MARK_STEPS ? (seen & (seen - 1)) == 0 : seen % MARK_STEPS == 0)
        counts->mark = counts->greatest;
}

void load_count_row(struct playing *playing, const struct load_event *event)
{
    size_t range = range_of(playing, event->key);
    struct load_range *shown = &playing->load->ranges[range];
    struct load_counts *counts = &playing->counts[range];
    (event->is_write ? shown->written : shown->read)[event->minute] += event->weight;
    *(event->is_write ? &counts->written : &counts->read) += event->weight;
    counts->single += event->weight;
    vote(counts, event->key, event->weight);
    if (event->is_write)
        note_order(counts, event->key, event->weight);
}

void load_count_range(struct playing *playing, const struct load_event *event, size_t first,
                      size_t count, double rows)
{
    size_t behind = first + count, range = 0;
    CHECK(behind <= playing->made->count);
    if (count > 0)
        range = range_of(playing, playing->made->rows[first].key);
    for (; range < playing->load->count && playing->counts[range].first_row < behind; range++) {
        struct load_counts *counts = &playing->counts[range];
        size_t from = counts->first_row > first ? counts->first_row : first;
        size_t end = counts->first_row + counts->rows;
        size_t to = end < behind ? end : behind;
        if (to <= from)
            continue;
        double part = rows * (double)(to - from) / (double)count * event->weight;
        counts->read += part;
        playing->load->ranges[range].read[event->minute] += part;
    }
}

/* --- what it shows --- */

static void fill_entry(const struct load_counts *counts, struct heat_sum *sum)
{
    sum->numbers[HEAT_READS] = (uint64_t)llround(counts->read);
    sum->numbers[HEAT_WRITES] = (uint64_t)llround(counts->written);
    sum->numbers[HEAT_RISING] = (uint64_t)llround(counts->rising);
    sum->numbers[HEAT_TIMED_WRITES] = (uint64_t)llround(counts->single);
    sum->votes = (uint64_t)llround(counts->votes);
    sum->favourite = counts->favourite;
    if (counts->rising * 2 > counts->written)
        sum->newest = counts->greatest;
}

static status fill_record(const struct playing *playing, struct heat_record *out)
{
    const struct load *load = playing->load;
    *out = (struct heat_record){.from_us = playing->made->now_us - HOUR_OF_LOAD_US,
                                .until_us = playing->made->now_us,
                                .count = load->count};
    out->entries = arena_zalloc(playing->made->arena, load->count * sizeof *out->entries);
    if (out->entries == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < load->count; i++) {
        struct heat_entry *entry = &out->entries[i];
        entry->start = load->ranges[i].start;
        entry->end = i + 1 < load->count ? load->ranges[i + 1].start : bytes_make(NULL, 0);
        fill_entry(&playing->counts[i], &entry->sum);
    }
    return status_ok();
}

/* Even parts of what is there before the load. */
static status ranges_of_data(const struct made_table *made, struct heat_ranges **out)
{
    enum { PARTS = 256 };
    bytes borders[PARTS];
    size_t most = made->count < PARTS ? made->count : PARTS;
    bytes *keys = arena_alloc(made->arena, made->count * sizeof *keys);
    if (keys == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < made->count; i++)
        keys[i] = made->rows[i].key;
    return heat_ranges_create(borders, find_borders(keys, made->count, most, borders), NULL, out);
}

/* Keys that rise within each range, all over the table, are no front: so it is where each owner has
 * newer and newer rows. */
static bool is_spread(const struct heat_hotspot *hotspot, const struct heat_ranges *data)
{
    const double small_part = 0.1;
    size_t from = heat_ranges_find(data, hotspot->start);
    size_t to = hotspot->end.size == 0 ? data->count : heat_ranges_find(data, hotspot->end);
    return (double)(to - from) > small_part * (double)data->count;
}

static bool has_spread_front(const struct heat_hotspot *hotspots, size_t count,
                             const struct heat_ranges *data)
{
    for (size_t i = 0; i < count; i++)
        if (hotspots[i].kind == HEAT_HOTSPOT_WRITE_FRONTIER && is_spread(&hotspots[i], data))
            return true;
    return false;
}

static bool kind_of(enum heat_hotspot_kind kind, enum advice_hotspot_kind *out)
{
    static const enum advice_hotspot_kind kinds[] = {
        [HEAT_HOTSPOT_WRITE_FRONTIER] = ADVICE_WRITE_FRONTIER,
        [HEAT_HOTSPOT_HOT_WRITES] = ADVICE_HOT_WRITES,
        [HEAT_HOTSPOT_HOT_READS] = ADVICE_HOT_READS,
        [HEAT_HOTSPOT_HOT_KEY] = ADVICE_HOT_ROW,
    };
    if ((size_t)kind >= sizeof kinds / sizeof *kinds)
        return false;
    *out = kinds[kind];
    return true;
}

static status keep_hotspots(struct playing *playing, const struct heat_hotspot *hotspots,
                            size_t count)
{
    struct load *load = playing->load;
    load->hotspots = arena_zalloc(playing->made->arena, count * sizeof *load->hotspots);
    if (load->hotspots == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        struct advice_hotspot *hotspot = &load->hotspots[load->hotspot_count];
        *hotspot = (struct advice_hotspot){.start = hotspots[i].start,
                                           .end = hotspots[i].end,
                                           .key = hotspots[i].key,
                                           .share = hotspots[i].share,
                                           .total = hotspots[i].total};
        load->hotspot_count += kind_of(hotspots[i].kind, &hotspot->kind);
    }
    return status_ok();
}

static status find_hotspots(struct playing *playing, struct heat_record *record,
                            const struct heat_ranges *data)
{
    struct arena *arena = playing->made->arena;
    struct heat_hotspot *hotspots;
    size_t count;
    TRY(heat_hotspots_of(record, data, NULL, arena, &hotspots, &count));
    if (has_spread_front(hotspots, count, data)) {
        for (size_t i = 0; i < record->count; i++)
            record->entries[i].sum.numbers[HEAT_RISING] = 0;
        TRY(heat_hotspots_of(record, data, NULL, arena, &hotspots, &count));
    }
    return keep_hotspots(playing, hotspots, count);
}

status load_find_hotspots(struct playing *playing)
{
    struct heat_record record;
    struct heat_ranges *data;
    TRY(fill_record(playing, &record));
    TRY(ranges_of_data(playing->made, &data));
    status s = find_hotspots(playing, &record, data);
    heat_ranges_destroy(data);
    return s;
}
