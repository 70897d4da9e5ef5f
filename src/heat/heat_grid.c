/* See heat_grid.h. While records are fitted there may be up to ROOM times as many ranges as there
 * are to be, so that what is joined in between has little traffic for certain. */
#include "heat/heat_grid.h"

#include "base/check.h"

#include <stdlib.h>

enum { ROOM = 4 };

status heat_grid_create(struct heat_grid *grid)
{
    *grid = (struct heat_grid){.count = 1};
    grid->starts = calloc(1, sizeof *grid->starts);
    grid->traffic = calloc(1, sizeof *grid->traffic);
    if (grid->starts != NULL && grid->traffic != NULL)
        return status_ok();
    heat_grid_free(grid);
    return status_out_of_memory();
}

void heat_grid_free(struct heat_grid *grid)
{
    free(grid->starts);
    free(grid->traffic);
    *grid = (struct heat_grid){0};
}

size_t heat_grid_find(const struct heat_grid *grid, bytes key)
{
    DCHECK(grid->count > 0 && grid->starts[0].size == 0);
    size_t low = 0, high = grid->count; /* the first start is at or before every key */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (bytes_compare(grid->starts[middle], key) <= 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

bytes heat_grid_end(const struct heat_grid *grid, size_t range)
{
    DCHECK(range < grid->count);
    return range + 1 < grid->count ? grid->starts[range + 1] : bytes_make(NULL, 0);
}

/* The ranges that an entry lies in: from the result up to `*last`. */
static size_t ranges_of(const struct heat_grid *grid, const struct heat_entry *entry, size_t *last)
{
    size_t first = heat_grid_find(grid, entry->start);
    *last = grid->count - 1;
    if (entry->end.size > 0) {
        *last = heat_grid_find(grid, entry->end);
        if (*last > first && bytes_equal(grid->starts[*last], entry->end))
            (*last)--;
    }
    DCHECK(*last >= first);
    return first;
}

/* --- borders --- */

struct borders {
    bytes *keys;
    size_t count;
};

/* Starts and ends of all entries, rising, each once. */
static status borders_of(const struct heat_record *record, struct borders *borders)
{
    borders->count = 0;
    borders->keys = malloc((2 * record->count + 1) * sizeof *borders->keys);
    if (borders->keys == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < record->count; i++) {
        const struct heat_entry *entry = &record->entries[i];
        bool follows = i > 0 && bytes_equal(record->entries[i - 1].end, entry->start);
        if (entry->start.size > 0 && !follows)
            borders->keys[borders->count++] = entry->start;
        if (entry->end.size > 0)
            borders->keys[borders->count++] = entry->end;
    }
    return status_ok();
}

/* Puts the borders among the starts. A range that is parted leaves its traffic to its parts. */
static void merge(const struct heat_grid *from, const struct borders *borders, struct heat_grid *to)
{
    size_t at = 0;
    to->count = 0;
    for (size_t i = 0; i < from->count; i++) {
        bytes end = heat_grid_end(from, i);
        size_t first = to->count;
        to->starts[to->count++] = from->starts[i];
        while (at < borders->count && bytes_compare(borders->keys[at], from->starts[i]) <= 0)
            at++;
        while (at < borders->count && (end.size == 0 || bytes_compare(borders->keys[at], end) < 0))
            to->starts[to->count++] = borders->keys[at++];
        for (size_t part = first; part < to->count; part++)
            to->traffic[part] = from->traffic[i] / (double)(to->count - first);
    }
}

static status add_borders(struct heat_grid *grid, const struct borders *borders)
{
    size_t room = grid->count + borders->count;
    struct heat_grid next = {.starts = malloc(room * sizeof *next.starts),
                             .traffic = malloc(room * sizeof *next.traffic)};
    if (next.starts == NULL || next.traffic == NULL) {
        heat_grid_free(&next);
        return status_out_of_memory();
    }
    merge(grid, borders, &next);
    DCHECK(next.count <= room);
    heat_grid_free(grid);
    *grid = next;
    return status_ok();
}

/* --- joining --- */

/* Joins neighbours that have no more than `limit` together, or, if `grid` is to stay as it is, only
 * says how many ranges that would leave. */
static size_t join(struct heat_grid *grid, double limit, bool changes)
{
    size_t count = 0;
    double open = 0;
    for (size_t i = 0; i < grid->count; i++) {
        bool opens = count == 0 || open + grid->traffic[i] > limit;
        open = opens ? grid->traffic[i] : open + grid->traffic[i];
        count += opens;
        if (changes && opens)
            grid->starts[count - 1] = grid->starts[i];
        DCHECK(count <= grid->count);
        if (changes)
            grid->traffic[count - 1] = open;
    }
    if (changes)
        grid->count = count;
    return count;
}

void heat_grid_finish(struct heat_grid *grid, size_t most)
{
    double limit = 1;
    if (grid->count <= most)
        return;
    for (size_t i = 0; i < grid->count; i++)
        limit += grid->traffic[i] / (double)most / 2;
    while (join(grid, limit, false) > most)
        limit *= 2;
    join(grid, limit, true);
    DCHECK(grid->count <= most);
}

status heat_grid_fit(struct heat_grid *grid, const struct heat_record *record, size_t most)
{
    struct borders borders;
    TRY(borders_of(record, &borders));
    status s = add_borders(grid, &borders);
    free(borders.keys);
    TRY(s);
    for (size_t i = 0; i < record->count; i++) {
        const uint64_t *numbers = record->entries[i].sum.numbers;
        size_t last, first = ranges_of(grid, &record->entries[i], &last);
        double traffic = (double)(numbers[HEAT_READS] + numbers[HEAT_WRITES]);
        for (size_t at = first; at <= last; at++)
            grid->traffic[at] += traffic / (double)(last - first + 1);
    }
    if (grid->count > ROOM * most)
        heat_grid_finish(grid, ROOM * most / 2);
    return status_ok();
}

/* --- spreading --- */

static struct heat_sum *sum_at(struct heat_sum **sums, size_t range, struct arena *arena)
{
    if (sums[range] == NULL)
        sums[range] = arena_zalloc(arena, sizeof **sums);
    return sums[range];
}

/* One of `parts` equal parts; what is left over goes to some of them, at even distances. */
static struct heat_sum part_of(const struct heat_sum *sum, size_t parts, size_t part_index)
{
    DCHECK(part_index < parts);
    struct heat_sum part = {.votes = 0};
    for (unsigned i = 0; i < HEAT_NUMBERS; i++) {
        uint64_t left = sum->numbers[i] % parts;
        uint64_t own = left * (part_index + 1) / parts - left * part_index / parts;
        part.numbers[i] = sum->numbers[i] / parts + own;
    }
    part.numbers[HEAT_LARGEST_ROW] = sum->numbers[HEAT_LARGEST_ROW];
    return part;
}

/* Keys go to the range that has them. */
static status add_keys(const struct heat_grid *grid, const struct heat_sum *sum,
                       struct arena *arena, struct heat_sum **sums)
{
    struct heat_sum favourite = {.votes = sum->votes, .favourite = sum->favourite};
    struct heat_sum newest = {.newest = sum->newest};
    for (unsigned i = 0; i < 2; i++) {
        const struct heat_sum *from = i == 0 ? &favourite : &newest;
        bytes key = i == 0 ? sum->favourite : sum->newest;
        if (key.size == 0)
            continue;
        struct heat_sum *to = sum_at(sums, heat_grid_find(grid, key), arena);
        if (to == NULL)
            return status_out_of_memory();
        heat_sum_add(to, from);
    }
    return status_ok();
}

static status spread_entry(const struct heat_grid *grid, const struct heat_entry *entry,
                           struct arena *arena, struct heat_sum **sums)
{
    size_t last, first = ranges_of(grid, entry, &last);
    for (size_t at = first; at <= last; at++) {
        struct heat_sum *to = sum_at(sums, at, arena);
        struct heat_sum part = part_of(&entry->sum, last - first + 1, at - first);
        if (to == NULL)
            return status_out_of_memory();
        heat_sum_add(to, &part);
    }
    return add_keys(grid, &entry->sum, arena, sums);
}

status heat_grid_spread(const struct heat_grid *grid, const struct heat_record *record,
                        struct arena *arena, struct heat_sum **sums)
{
    for (size_t i = 0; i < record->count; i++)
        TRY(spread_entry(grid, &record->entries[i], arena, sums));
    return status_ok();
}

/* --- records as one --- */

static status record_of(const struct heat_grid *grid, struct heat_sum *const *sums,
                        struct arena *arena, struct heat_record *out)
{
    DCHECK(out->count == 0);
    out->entries = arena_alloc(arena, grid->count * sizeof *out->entries);
    if (out->entries == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < grid->count; i++)
        if (sums[i] != NULL)
            out->entries[out->count++] = (struct heat_entry){
                .start = grid->starts[i], .end = heat_grid_end(grid, i), .sum = *sums[i]};
    return status_ok();
}

static status combine_on(struct heat_grid *grid, const struct heat_record *records, size_t count,
                         size_t most, struct arena *arena, struct heat_record *out)
{
    for (size_t i = 0; i < count; i++)
        TRY(heat_grid_fit(grid, &records[i], most));
    heat_grid_finish(grid, most);
    struct heat_sum **sums = arena_zalloc(arena, grid->count * sizeof(*sums));
    if (sums == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        TRY(heat_grid_spread(grid, &records[i], arena, sums));
    return record_of(grid, sums, arena, out);
}

status heat_records_combine(const struct heat_record *records, size_t count, size_t most,
                            struct arena *arena, struct heat_record *out)
{
    struct heat_grid grid;
    double cpu_us = 0;
    *out = (struct heat_record){.count = 0};
    if (count > 0) {
        out->from_us = records[0].from_us;
        out->until_us = records[count - 1].until_us;
    }
    for (size_t i = 0; i < count; i++)
        cpu_us += records[i].cpu_percent * (double)(records[i].until_us - records[i].from_us);
    if (out->until_us > out->from_us)
        out->cpu_percent = cpu_us / (double)(out->until_us - out->from_us);
    TRY(heat_grid_create(&grid));
    status s = combine_on(&grid, records, count, most, arena, out);
    heat_grid_free(&grid);
    return s;
}
