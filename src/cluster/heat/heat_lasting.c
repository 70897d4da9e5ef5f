/* See heat_lasting.h. */
#include "cluster/heat/heat_lasting.h"

enum {
    IDLE_MOST = 12,           /* windows in a row that are passed over */
    SCRATCH_BYTES = 64 << 20, /* for the signs of one window */
};

static const enum heat_sign_kind KINDS[HEAT_LASTING_SIGNS] = {
    HEAT_SIGN_WRITE_FRONTIER, HEAT_SIGN_HOT_WRITES, HEAT_SIGN_HOT_READS};

struct looking {
    const struct heat_matrix *matrix;
    const struct heat_ranges *data;
    heat_section *section_of;
    struct arena *scratch;
};

/* Of one kind: the windows that show it, one by one. */
struct lasting {
    size_t first; /* of the matrix's times */
    size_t windows;
    size_t idle;  /* in a row, before the first */
    bool is_done; /* no window before that belongs to it */
};

static bool is_of_writes(enum heat_sign_kind kind)
{
    return kind != HEAT_SIGN_HOT_READS;
}

static uint64_t rows_in(const struct heat_matrix *matrix, size_t at, enum heat_sign_kind kind)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < matrix->range_count; i++) {
        const struct heat_sum *sum = matrix->times[at].sums[i];
        if (sum != NULL)
            rows += sum->numbers[is_of_writes(kind) ? HEAT_WRITES : HEAT_READS];
    }
    return rows;
}

static const struct heat_sign *find(const struct heat_sign *signs, size_t count,
                                    enum heat_sign_kind kind)
{
    for (size_t i = 0; i < count; i++)
        if (signs[i].kind == kind)
            return &signs[i];
    return NULL;
}

/* Of the times from `first` on, `times` of them. */
static status read_signs(const struct looking *looking, size_t first, size_t times,
                         struct arena *arena, struct heat_sign **out, size_t *count)
{
    struct heat_matrix part = *looking->matrix;
    struct heat_record heat;
    part.times += first;
    part.time_count = times;
    TRY(heat_matrix_sum(&part, arena, &heat));
    return heat_signs_of(&heat, looking->data, looking->section_of, arena, out, count);
}

static void look_at_window(const struct looking *looking, size_t at, const struct heat_sign *signs,
                           size_t count, enum heat_sign_kind kind, struct lasting *lasting)
{
    if (lasting->is_done)
        return;
    if (rows_in(looking->matrix, at, kind) < HEAT_SIGN_LEAST_ROWS) {
        lasting->is_done = ++lasting->idle > IDLE_MOST;
        return;
    }
    lasting->idle = 0;
    lasting->is_done = find(signs, count, kind) == NULL;
    lasting->windows += !lasting->is_done;
    lasting->first = lasting->is_done ? lasting->first : at;
}

static bool are_all_done(const struct lasting *all)
{
    bool have = true;
    for (size_t i = 0; i < HEAT_LASTING_SIGNS; i++)
        have &= all[i].is_done;
    return have;
}

/* From the last window back. */
static status look_back(const struct looking *looking, struct lasting *all)
{
    for (size_t at = looking->matrix->time_count; at-- > 0 && !are_all_done(all);) {
        struct heat_sign *signs;
        size_t count;
        arena_reset(looking->scratch);
        TRY(read_signs(looking, at, 1, looking->scratch, &signs, &count));
        for (size_t i = 0; i < HEAT_LASTING_SIGNS; i++)
            look_at_window(looking, at, signs, count, KINDS[i], &all[i]);
    }
    return status_ok();
}

/* What lies in one place in one window, and in another in the next, does not last. */
static status take_lasting(const struct looking *looking, const struct lasting *all,
                           struct arena *arena, struct heat_sign *out, size_t *count)
{
    const struct heat_matrix *matrix = looking->matrix;
    for (size_t i = 0; i < HEAT_LASTING_SIGNS; i++) {
        struct heat_sign *signs;
        size_t found;
        if (all[i].windows < HEAT_LASTING_WINDOWS)
            continue;
        TRY(read_signs(looking, all[i].first, matrix->time_count - all[i].first, arena, &signs,
                       &found));
        const struct heat_sign *sign = find(signs, found, KINDS[i]);
        if (sign == NULL)
            continue;
        out[*count] = *sign;
        out[*count].windows = all[i].windows;
        out[(*count)++].from_us = matrix->times[all[i].first].from_us;
    }
    return status_ok();
}

status heat_lasting_signs(const struct heat_matrix *matrix, const struct heat_ranges *data,
                          heat_section *section_of, struct arena *arena, struct heat_sign *out,
                          size_t *count)
{
    struct lasting all[HEAT_LASTING_SIGNS] = {{.is_done = false}};
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
