/* See intervals.h.
 *
 * The ends of all intervals cut time into segments. The intervals, newest first, paint the segments
 * that nobody has painted yet; `skip` leads from a segment to the next unpainted one, with its
 * paths shortened as they are walked, so that each segment is painted once. */
#include "row/interim_intervals.h"

#include <stdlib.h>

bool intervals_add(struct intervals *intervals, struct interval interval)
{
    if (intervals->count == intervals->capacity) {
        size_t capacity = intervals->capacity == 0 ? 4 : 2 * intervals->capacity;
        struct interval *items = realloc(intervals->items, capacity * sizeof *items);
        if (items == NULL)
            return false;
        intervals->items = items;
        intervals->capacity = capacity;
    }
    intervals->items[intervals->count++] = interval;
    return true;
}

void intervals_clear(struct intervals *intervals)
{
    intervals->count = 0;
}

void intervals_free(struct intervals *intervals)
{
    free(intervals->items);
    *intervals = (struct intervals){0};
}

static int newest_first(const void *a, const void *b)
{
    uint64_t left = ((const struct interval *)a)->version;
    uint64_t right = ((const struct interval *)b)->version;
    return left > right ? -1 : left < right;
}

static int by_time(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

/* The segments: `edges[i]` to `edges[i + 1]`. */
struct canvas {
    int64_t *edges;
    size_t edge_count;
    uint64_t *versions; /* 0: not painted */
    size_t *skip;
};

static size_t find_edge(const struct canvas *canvas, int64_t time)
{
    const int64_t *edge =
        bsearch(&time, canvas->edges, canvas->edge_count, sizeof *canvas->edges, by_time);
    return (size_t)(edge - canvas->edges);
}

static size_t next_unpainted(struct canvas *canvas, size_t segment)
{
    size_t end = segment;
    while (canvas->skip[end] != end)
        end = canvas->skip[end];
    while (segment != end) {
        size_t next = canvas->skip[segment];
        canvas->skip[segment] = end;
        segment = next;
    }
    return end;
}

static void paint(struct canvas *canvas, const struct interval *interval)
{
    size_t end = find_edge(canvas, interval->end_us);
    size_t at = next_unpainted(canvas, find_edge(canvas, interval->start_us));
    for (; at < end; at = next_unpainted(canvas, at)) {
        canvas->versions[at] = interval->version;
        canvas->skip[at] = at + 1;
    }
}

static void make_edges(struct canvas *canvas, const struct intervals *intervals)
{
    size_t count = 0;
    for (size_t i = 0; i < intervals->count; i++) {
        canvas->edges[count++] = intervals->items[i].start_us;
        canvas->edges[count++] = intervals->items[i].end_us;
    }
    qsort(canvas->edges, count, sizeof *canvas->edges, by_time);
    for (size_t i = 0; i < count; i++)
        if (canvas->edge_count == 0 || canvas->edges[canvas->edge_count - 1] != canvas->edges[i])
            canvas->edges[canvas->edge_count++] = canvas->edges[i];
    for (size_t i = 0; i < canvas->edge_count; i++) {
        canvas->versions[i] = 0;
        canvas->skip[i] = i;
    }
}

/* Reads the picture off again: at most as many intervals as segments. */
static bool collect(const struct canvas *canvas, struct intervals *intervals)
{
    intervals->count = 0;
    for (size_t i = 0; i + 1 < canvas->edge_count; i++) {
        if (canvas->versions[i] == 0)
            continue;
        struct interval *last =
            intervals->count == 0 ? NULL : &intervals->items[intervals->count - 1];
        if (last != NULL && last->end_us == canvas->edges[i] &&
            last->version == canvas->versions[i])
            last->end_us = canvas->edges[i + 1];
        else if (!intervals_add(intervals, (struct interval){.start_us = canvas->edges[i],
                                                             .end_us = canvas->edges[i + 1],
                                                             .version = canvas->versions[i]}))
            return false;
    }
    return true;
}

bool intervals_normalise(struct intervals *intervals)
{
    size_t most_edges = 2 * intervals->count;
    if (intervals->count < 2)
        return true;
    struct canvas canvas = {.edges = malloc(most_edges * sizeof *canvas.edges),
                            .versions = malloc(most_edges * sizeof *canvas.versions),
                            .skip = malloc(most_edges * sizeof *canvas.skip)};
    bool is_done = canvas.edges != NULL && canvas.versions != NULL && canvas.skip != NULL;
    if (is_done) {
        make_edges(&canvas, intervals);
        qsort(intervals->items, intervals->count, sizeof *intervals->items, newest_first);
        for (size_t i = 0; i < intervals->count; i++)
            paint(&canvas, &intervals->items[i]);
        is_done = collect(&canvas, intervals);
    }
    free(canvas.edges);
    free(canvas.versions);
    free(canvas.skip);
    return is_done;
}
