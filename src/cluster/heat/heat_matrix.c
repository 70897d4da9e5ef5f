/* See heat_matrix.h. */
#include "cluster/heat/heat_matrix.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "heat/heat_grid.h"

#include <math.h>

struct columns {
    struct heat_record *items;
    size_t count;
};

/* The finest level of which nothing has gone yet that long ago. */
static enum heat_level level_for(const struct table *table, int64_t from_us)
{
    int64_t age_us = clock_wall_us(table->cluster->options.clock) - from_us;
    enum heat_level level = HEAT_WINDOWS;
    while (level + 1 < HEAT_LEVELS && age_us > heat_level_kept_us(level))
        level++;
    return level;
}

static status append(struct columns *columns, const struct columns *more, struct arena *arena)
{
    size_t count = columns->count + more->count;
    struct heat_record *items = arena_alloc(arena, count * sizeof *items);
    if (items == NULL)
        return status_out_of_memory();
    if (columns->count > 0)
        memcpy(items, columns->items, columns->count * sizeof *items);
    if (more->count > 0)
        memcpy(items + columns->count, more->items, more->count * sizeof *items);
    *columns = (struct columns){.items = items, .count = count};
    return status_ok();
}

/* Reads the columns: times that are too new for the level are in the finer ones. */
static status read_columns(struct table *table, int64_t from_us, int64_t until_us,
                           struct arena *arena, struct columns *columns)
{
    for (enum heat_level level = level_for(table, from_us);; level--) {
        struct columns more = {.count = 0};
        TRY(heat_store_read(table->cluster, table->id, level, from_us, until_us, arena, &more.items,
                            &more.count));
        TRY(append(columns, &more, arena));
        if (more.count > 0)
            from_us = more.items[more.count - 1].until_us;
        if (level == HEAT_WINDOWS)
            return status_ok();
    }
}

/* Adds the window that has not ended, if that is asked for and has not ended since. */
static status add_open_window(const struct heat_record *open, int64_t from_us, int64_t until_us,
                              struct arena *arena, struct columns *columns, bool *is_added)
{
    struct heat_record copy = *open;
    struct columns more = {.items = &copy, .count = 1};
    size_t count = columns->count;
    bool is_kept = count > 0 && columns->items[count - 1].until_us > open->from_us;
    *is_added = open->count > 0 && open->from_us >= from_us && open->from_us < until_us && !is_kept;
    return !*is_added ? status_ok() : append(columns, &more, arena);
}

static status fill(const struct heat_grid *grid, const struct columns *columns, struct arena *arena,
                   struct heat_matrix *out)
{
    DCHECK(grid->count > 0);
    struct heat_time *times = arena_alloc(arena, columns->count * sizeof *times);
    bytes *starts = arena_alloc(arena, grid->count * sizeof *starts);
    if (times == NULL || starts == NULL)
        return status_out_of_memory();
    memcpy(starts, grid->starts, grid->count * sizeof *starts);
    for (size_t i = 0; i < columns->count; i++) {
        const struct heat_record *record = &columns->items[i];
        struct heat_sum **sums = arena_zalloc(arena, grid->count * sizeof(*sums));
        if (sums == NULL)
            return status_out_of_memory();
        TRY(heat_grid_spread(grid, record, arena, sums));
        times[i] = (struct heat_time){.from_us = record->from_us,
                                      .until_us = record->until_us,
                                      .cpu_percent = record->cpu_percent,
                                      .sums = (const struct heat_sum *const *)sums};
    }
    *out = (struct heat_matrix){
        .range_count = grid->count, .starts = starts, .time_count = columns->count, .times = times};
    return status_ok();
}

static status fit(struct heat_grid *grid, const struct columns *columns, size_t most_ranges)
{
    for (size_t i = 0; i < columns->count; i++)
        TRY(heat_grid_fit(grid, &columns->items[i], most_ranges));
    heat_grid_finish(grid, most_ranges);
    return status_ok();
}

status heat_matrix_read(struct table *table, int64_t from_us, int64_t until_us, size_t most_ranges,
                        struct arena *arena, struct heat_matrix *out)
{
    struct columns columns = {.count = 0};
    struct heat_record open;
    struct heat_grid grid;
    bool ends_open;
    TRY(heat_table_look(table, arena, &open));
    TRY(read_columns(table, from_us, until_us, arena, &columns));
    TRY(add_open_window(&open, from_us, until_us, arena, &columns, &ends_open));
    TRY(heat_grid_create(&grid));
    status s = fit(&grid, &columns, most_ranges);
    if (status_is_ok(s))
        s = fill(&grid, &columns, arena, out);
    heat_grid_free(&grid);
    out->ends_open = ends_open;
    return s;
}

/* --- fewer times --- */

/* Adds the sums of `from` to `*to`, in a new array. */
static status add_sums(const struct heat_time *from, size_t ranges, struct heat_sum **to,
                       struct arena *arena)
{
    for (size_t i = 0; i < ranges; i++) {
        if (from->sums[i] == NULL)
            continue;
        if (to[i] == NULL)
            to[i] = arena_zalloc(arena, sizeof **to);
        if (to[i] == NULL)
            return status_out_of_memory();
        heat_sum_add(to[i], from->sums[i]);
    }
    return status_ok();
}

static status join_times(const struct heat_time *times, size_t count, size_t ranges,
                         struct arena *arena, struct heat_time *out)
{
    DCHECK(count > 0);
    double cpu_us = 0;
    struct heat_sum **sums = arena_zalloc(arena, ranges * sizeof(*sums));
    if (sums == NULL)
        return status_out_of_memory();
    *out = (struct heat_time){.from_us = times[0].from_us,
                              .until_us = times[count - 1].until_us,
                              .sums = (const struct heat_sum *const *)sums};
    for (size_t i = 0; i < count; i++) {
        cpu_us += times[i].cpu_percent * (double)(times[i].until_us - times[i].from_us);
        TRY(add_sums(&times[i], ranges, sums, arena));
    }
    if (out->until_us > out->from_us)
        out->cpu_percent = cpu_us / (double)(out->until_us - out->from_us);
    return status_ok();
}

status heat_matrix_join(struct heat_matrix *matrix, int64_t from_us, int64_t until_us,
                        size_t most_times, struct arena *arena)
{
    DCHECK(most_times > 0);
    struct heat_time *times = arena_alloc(arena, matrix->time_count * sizeof *times);
    double part_us = (double)(until_us - from_us) / (double)most_times;
    size_t count = 0;
    if (matrix->time_count <= most_times)
        return status_ok();
    if (times == NULL)
        return status_out_of_memory();
    for (size_t first = 0, end; first < matrix->time_count; first = end) {
        double part = floor((double)(matrix->times[first].from_us - from_us) / part_us);
        double until = (double)from_us + (part + 1) * part_us;
        for (end = first + 1; end < matrix->time_count; end++)
            if ((double)matrix->times[end].from_us >= until)
                break;
        TRY(join_times(&matrix->times[first], end - first, matrix->range_count, arena,
                       &times[count++]));
    }
    matrix->times = times;
    matrix->time_count = count;
    return status_ok();
}

static bool add_range(const struct heat_matrix *matrix, size_t range, struct heat_sum *to)
{
    DCHECK(range < matrix->range_count);
    bool any = false;
    for (size_t i = 0; i < matrix->time_count; i++) {
        const struct heat_sum *sum = matrix->times[i].sums[range];
        if (sum != NULL)
            heat_sum_add(to, sum);
        any |= sum != NULL;
    }
    return any;
}

static double mean_percent(const struct heat_matrix *matrix, int64_t span_us)
{
    double cpu_us = 0;
    for (size_t i = 0; i < matrix->time_count; i++) {
        const struct heat_time *time = &matrix->times[i];
        cpu_us += time->cpu_percent * (double)(time->until_us - time->from_us);
    }
    return span_us > 0 ? cpu_us / (double)span_us : 0;
}

status heat_matrix_sum(const struct heat_matrix *matrix, struct arena *arena,
                       struct heat_record *out)
{
    *out = (struct heat_record){.count = 0};
    if (matrix->time_count > 0) {
        out->from_us = matrix->times[0].from_us;
        out->until_us = matrix->times[matrix->time_count - 1].until_us;
    }
    out->cpu_percent = mean_percent(matrix, out->until_us - out->from_us);
    out->entries = arena_alloc(arena, matrix->range_count * sizeof *out->entries);
    if (out->entries == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < matrix->range_count; i++) {
        bool is_last = i + 1 == matrix->range_count;
        struct heat_entry entry = {.start = matrix->starts[i],
                                   .end = is_last ? bytes_make(NULL, 0) : matrix->starts[i + 1]};
        if (add_range(matrix, i, &entry.sum))
            out->entries[out->count++] = entry;
    }
    return status_ok();
}
