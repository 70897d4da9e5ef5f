/* See heat_lasting.h. */
#include "cluster/heat/heat_lasting.h"

enum {
    IDLE_MOST = 12,           /* windows in a row that are passed over */
    SCRATCH_BYTES = 64 << 20, /* for the hotspots of one window */
};

static const enum heat_hotspot_kind KINDS[HEAT_LASTING_HOTSPOTS] = {
    HEAT_HOTSPOT_WRITE_FRONTIER, HEAT_HOTSPOT_HOT_WRITES, HEAT_HOTSPOT_HOT_READS};

struct looking {
    const struct heat_matrix *matrix;
    const struct heat_ranges *data;
    heat_section *section_of;
    struct arena *scratch;
};

/* A hotspot of one kind: the windows that show it, one by one. */
struct lasting {
    size_t first; /* of the matrix's times */
    size_t windows;
    size_t idle;  /* in a row, before the first */
    bool is_done; /* no window before that belongs to it */
};

static bool is_of_writes(enum heat_hotspot_kind kind)
{
    return kind != HEAT_HOTSPOT_HOT_READS;
}

static uint64_t rows_in(const struct heat_matrix *matrix, size_t at, enum heat_hotspot_kind kind)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < matrix->range_count; i++) {
        const struct heat_sum *sum = matrix->times[at].sums[i];
        if (sum != NULL)
            rows += sum->numbers[is_of_writes(kind) ? HEAT_WRITES : HEAT_READS];
    }
    return rows;
}

static const struct heat_hotspot *find(const struct heat_hotspot *hotspots, size_t count,
                                       enum heat_hotspot_kind kind)
{
    for (size_t i = 0; i < count; i++)
        if (hotspots[i].kind == kind)
            return &hotspots[i];
    return NULL;
}

/* Reads the hotspots of `times` times from `first` on. */
static status read_hotspots(const struct looking *looking, size_t first, size_t times,
                            struct arena *arena, struct heat_hotspot **out, size_t *count)
{
    struct heat_matrix part = *looking->matrix;
    struct heat_record heat;
    part.times += first;
    part.time_count = times;
    TRY(heat_matrix_sum(&part, arena, &heat));
    return heat_hotspots_of(&heat, looking->data, looking->section_of, arena, out, count);
}

static void look_at_window(const struct looking *looking, size_t at,
                           const struct heat_hotspot *hotspots, size_t count,
                           enum heat_hotspot_kind kind, struct lasting *lasting)
{
    if (lasting->is_done)
        return;
    if (rows_in(looking->matrix, at, kind) < HEAT_HOTSPOT_LEAST_ROWS) {
        lasting->is_done = ++lasting->idle > IDLE_MOST;
        return;
    }
    lasting->idle = 0;
    lasting->is_done = find(hotspots, count, kind) == NULL;
    lasting->windows += !lasting->is_done;
    lasting->first = lasting->is_done ? lasting->first : at;
}

static bool are_all_done(const struct lasting *all)
{
    bool have = true;
    for (size_t i = 0; i < HEAT_LASTING_HOTSPOTS; i++)
        have &= all[i].is_done;
    return have;
}

/* Looks from the last window back. */
static status look_back(const struct looking *looking, struct lasting *all)
{
    for (size_t at = looking->matrix->time_count; at-- > 0 && !are_all_done(all);) {
        struct heat_hotspot *hotspots;
        size_t count;
        arena_reset(looking->scratch);
        TRY(read_hotspots(looking, at, 1, looking->scratch, &hotspots, &count));
        for (size_t i = 0; i < HEAT_LASTING_HOTSPOTS; i++)
            look_at_window(looking, at, hotspots, count, KINDS[i], &all[i]);
    }
    return status_ok();
}

/* Takes hotspots that last: one that lies in another place in the next window does not. */
static status take_lasting(const struct looking *looking, const struct lasting *all,
                           struct arena *arena, struct heat_hotspot *out, size_t *count)
{
    const struct heat_matrix *matrix = looking->matrix;
    for (size_t i = 0; i < HEAT_LASTING_HOTSPOTS; i++) {
        struct heat_hotspot *hotspots;
        size_t found;
        if (all[i].windows < HEAT_LASTING_WINDOWS)
            continue;
        TRY(read_hotspots(looking, all[i].first, matrix->time_count - all[i].first, arena,
                          &hotspots, &found));
        const struct heat_hotspot *hotspot = find(hotspots, found, KINDS[i]);
        if (hotspot == NULL)
            continue;
        out[*count] = *hotspot;
        out[*count].windows = all[i].windows;
        out[(*count)++].from_us = matrix->times[all[i].first].from_us;
    }
    return status_ok();
}

status heat_lasting_hotspots(const struct heat_matrix *matrix, const struct heat_ranges *data,
                             heat_section *section_of, struct arena *arena,
                             struct heat_hotspot *out, size_t *count)
{
    struct lasting all[HEAT_LASTING_HOTSPOTS] = {{.is_done = false}};
    struct looking looking = {.matrix = matrix,
                              .data = data,
                              .section_of = section_of,
                              .scratch = arena_create(SCRATCH_BYTES)};
    *count = 0;
    if (looking.scratch == NULL)
        return status_out_of_memory();
    status s = look_back(&looking, all);
    if (status_is_ok(s))
        s = take_lasting(&looking, all, arena, out, count);
    arena_destroy(looking.scratch);
    return s;
}
