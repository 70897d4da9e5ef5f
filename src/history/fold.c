/* See fold.h. */
#include "history/fold.h"

#include "base/check.h"

static int64_t step_of(int64_t us, int64_t step_us)
{
    return us - us % step_us;
}

/* The point that begins then; both lists are by time, and `*at` goes on from call to call. */
static const struct history_point *point_at(const struct history_points *points, size_t *at,
                                            int64_t from_us)
{
    while (*at < points->count && points->items[*at].from_us < from_us)
        ++*at;
    bool is_there = *at < points->count && points->items[*at].from_us == from_us;
    return is_there ? &points->items[*at] : NULL;
}

/* How many from that place on are of its step. */
static size_t count_of_step(const struct history_points *points, size_t first, int64_t step_us)
{
    int64_t step = step_of(points->items[first].from_us, step_us);
    size_t next = first + 1;
    while (next < points->count && step_of(points->items[next].from_us, step_us) == step)
        next++;
    return next - first;
}

status history_fold(const struct history_points *points, int64_t step_us,
                    const struct history_points *server, struct arena *arena,
                    struct history_points *out)
{
    size_t at = 0;
    *out = (struct history_points){0};
    DCHECK(step_us > 0);
    struct history_point *items = arena_alloc(arena, (points->count + 1) * sizeof *items);
    if (items == NULL)
        return status_out_of_memory();
    for (size_t i = 0, size; i < points->count; i += size) {
        int64_t from_us = step_of(points->items[i].from_us, step_us);
        const struct history_point *seen = server == NULL ? NULL : point_at(server, &at, from_us);
        size = count_of_step(points, i, step_us);
        TRY(history_point_fold(points->items + i, size, seen == NULL ? 0 : seen->seconds, arena,
                               &items[out->count]));
        items[out->count++].from_us = from_us;
    }
    out->items = items;
    return status_ok();
}

static void set_nothing(struct history_point *point, double bytes)
{
    for (enum history_line line = 0; line < HISTORY_LINES; line++)
        if (history_line_row(line)->subject == HISTORY_OF_TABLE &&
            history_line_row(line)->how == HISTORY_RATE)
            point->values[line] = 0;
    point->values[HISTORY_bytes] = bytes;
}

status history_fill(const struct history_points *table, const struct history_points *server,
                    struct arena *arena, struct history_points *out)
{
    size_t at = 0;
    double bytes = NAN;
    *out = (struct history_points){0};
    struct history_point *items = arena_alloc(arena, (server->count + 1) * sizeof *items);
    if (items == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < server->count; i++) {
        int64_t from_us = server->items[i].from_us;
        const struct history_point *found = point_at(table, &at, from_us);
        struct history_point *item = &items[out->count++];
        if (found != NULL) {
            *item = *found;
        } else {
            history_point_init(item, from_us, server->items[i].seconds);
            set_nothing(item, bytes);
        }
        bytes = item->values[HISTORY_bytes];
    }
    out->items = items;
    return status_ok();
}
