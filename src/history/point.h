/* A point: what is remembered of the server, or of a table, for a span of time. Pure functions.
 *
 * lines.def is the table of what that may be. A line that a point does not have is NAN. Points of
 * one subject fold into one that is about all of their time: so ten seconds become minutes, and
 * minutes hours. What was counted adds up exactly: folding points, and what they fold into, comes
 * to the same as folding all at once, but for rounding. */
#ifndef TRESTLE_HISTORY_POINT_H
#define TRESTLE_HISTORY_POINT_H

#include "base/arena.h"
#include "base/metrics.h"

#include <math.h>

enum history_line {
#define LINE(subject, name, source, how, sentence) HISTORY_##name,
#include "history/lines.def"
    HISTORY_LINES
};

enum history_subject { HISTORY_OF_SERVER, HISTORY_OF_TABLE };
enum history_how { HISTORY_RATE, HISTORY_MEAN, HISTORY_LAST, HISTORY_MOST, HISTORY_CALLS };

struct history_line_row {
    const char *name;
    const char *source; /* NULL: none */
    const char *sentence;
    enum history_subject subject;
    enum history_how how;
};

const struct history_line_row *history_line_row(enum history_line line);
/* HISTORY_LINES: there is none of the name. */
enum history_line history_line_named(bytes name);

/* Calls by how long they took. */
struct history_bucket {
    uint64_t up_to_us; /* UINT64_MAX: longer than all other buckets */
    uint64_t count;
};

int history_bucket_order(const void *a, const void *b); /* of two, for qsort: by up_to_us */

/* Calls of one method. */
struct history_method {
    const char *name; /* "google.bigtable.v2.Bigtable/ReadRows"; HISTORY_OTHERS: of several */
    double rate;
};

#define HISTORY_OTHERS "others"

enum { HISTORY_BUCKETS = METRIC_BOUNDS + 1, HISTORY_METHODS = 16 };

struct history_point {
    int64_t from_us; /* when the span begins, by the versions' clock */
    double seconds;  /* how much of it was seen, by the steady clock; above 0 */
    double values[HISTORY_LINES];
    /* Of the server: by rising time; none empty. */
    struct history_bucket buckets[HISTORY_BUCKETS];
    size_t bucket_count;
    /* Of the server: by falling rate, and HISTORY_OTHERS at the end; at most HISTORY_METHODS. In an
     * arena, with their names. */
    const struct history_method *methods;
    size_t method_count;
};

void history_point_init(struct history_point *point, int64_t from_us, double seconds);

/* Adds calls that took at most so long. Buckets come by rising time. */
void history_point_add_calls(struct history_point *point, uint64_t up_to_us, uint64_t count);

/* Sets the lines that are made of the calls' times. */
void history_point_set_quantiles(struct history_point *point);

/* Keeps the busiest of the methods, which it sorts, and the rest as HISTORY_OTHERS: for
 * point->methods. Returns how many there are then. */
size_t history_methods_keep(struct history_method *methods, size_t count);

/* Folds points, one at least, by rising time. `covered`: seconds that were seen of the span, also
 * where a table has no point, since nothing came for it; less than the points' own do not count.
 * RESOURCE_EXHAUSTED without memory. */
status history_point_fold(const struct history_point *points, size_t count, double covered,
                          struct arena *arena, struct history_point *out);

#endif
