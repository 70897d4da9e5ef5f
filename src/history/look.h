/* A look at the metrics, and what two of them, one after the other, say of the time in between: a
 * point of the server, and one of each table that has series of its own. */
#ifndef TRESTLE_HISTORY_LOOK_H
#define TRESTLE_HISTORY_LOOK_H

#include "base/vector.h"
#include "history/point.h"

struct looked_method {
    const char *name;
    double calls;
    double errors;
};

struct looked_table {
    const char *name;
    double values[HISTORY_LINES]; /* of its lines; NAN: not told */
};

struct looked_bucket {
    uint64_t up_to_us;
    uint64_t count; /* in it alone */
};

struct history_look {
    struct arena *arena; /* the look's: what is below lies there */
    int64_t steady_us;   /* when it was taken */
    double values[HISTORY_LINES];
    struct looked_bucket buckets[HISTORY_BUCKETS];
    size_t bucket_count;
    struct vector methods; /* of struct looked_method, in no order */
    struct vector tables;  /* of struct looked_table, in no order */
};

/* Made once, and freed by history_look_destroy. RESOURCE_EXHAUSTED without memory. */
status history_look_take(struct metrics *metrics, int64_t steady_us, struct history_look **out);
void history_look_destroy(struct history_look *look); /* NULL is fine */

/* Of the server. `now` is later than `before`. */
status history_look_point(const struct history_look *now, const struct history_look *before,
                          int64_t from_us, struct arena *arena, struct history_point *out);

/* The same of a table of `now`. What it has counted in all is of that time if it has had no
 * series before, or was made anew since. False if there is nothing to tell: nothing came, and its
 * size is the same. */
bool history_look_table(const struct history_look *now, const struct history_look *before,
                        const struct looked_table *table, int64_t from_us,
                        struct history_point *out);

#endif
