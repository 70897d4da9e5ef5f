/* See point.h. */
#include "history/point.h"

#include "base/check.h"

#include <stdlib.h>

static const struct history_line_row line_rows[HISTORY_LINES] = {
#define LINE(subject_, name_, source_, how_, sentence_)                                            \
    [HISTORY_##name_] = {.name = #name_,                                                           \
                         .source = source_,                                                        \
                         .sentence = sentence_,                                                    \
                         .subject = HISTORY_OF_##subject_,                                         \
                         .how = HISTORY_##how_},
#include "history/lines.def"
};

const struct history_line_row *history_line_row(enum history_line line)
{
    DCHECK(line < HISTORY_LINES);
    return &line_rows[line];
}

enum history_line history_line_named(bytes name)
{
    enum history_line line = 0;
    while (line < HISTORY_LINES && !bytes_equal(bytes_of(line_rows[line].name), name))
        line++;
    return line;
}

void history_point_init(struct history_point *point, int64_t from_us, double seconds)
{
    DCHECK(seconds > 0);
    *point = (struct history_point){.from_us = from_us, .seconds = seconds};
    for (enum history_line line = 0; line < HISTORY_LINES; line++)
        point->values[line] = NAN;
}

/* --- calls --- */

void history_point_add_calls(struct history_point *point, uint64_t up_to_us, uint64_t count)
{
    if (count == 0 || point->bucket_count == HISTORY_BUCKETS)
        return;
    DCHECK(point->bucket_count == 0 || point->buckets[point->bucket_count - 1].up_to_us < up_to_us);
    point->buckets[point->bucket_count++] = (struct history_bucket){up_to_us, count};
}

static uint64_t count_calls(const struct history_point *point)
{
    uint64_t count = 0;
    for (size_t i = 0; i < point->bucket_count; i++)
        count += point->buckets[i].count;
    return count;
}

/* What is in a bucket is taken to be spread evenly; it begins at half of where it ends. As the
 * console's metric_samples.js has it. */
static double quantile(const struct history_point *point, double share)
{
    double wanted = share * (double)count_calls(point), below = 0, last = NAN;
    for (size_t i = 0; i < point->bucket_count; i++) {
        const struct history_bucket *bucket = &point->buckets[i];
        double up_to = (double)bucket->up_to_us / 1e6, count = (double)bucket->count;
        if (bucket->up_to_us == UINT64_MAX)
            break;
        if (below + count >= wanted)
            return up_to / 2 * (1 + (wanted - below) / count);
        below += count;
        last = up_to;
    }
    return last;
}

void history_point_set_quantiles(struct history_point *point)
{
    point->values[HISTORY_p50_seconds] = quantile(point, 0.5);
    point->values[HISTORY_p99_seconds] = quantile(point, 0.99);
}

int history_bucket_order(const void *a, const void *b)
{
    const struct history_bucket *left = a, *right = b;
    return (left->up_to_us > right->up_to_us) - (left->up_to_us < right->up_to_us);
}

/* Of programs that had other bounds there may be more than there is room for: the last are left
 * out. */
static status fold_calls(const struct history_point *points, size_t count, struct arena *arena,
                         struct history_point *out)
{
    size_t all = 0;
    struct history_bucket *buckets =
        arena_alloc(arena, (count * HISTORY_BUCKETS + 1) * sizeof *buckets);
    if (buckets == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < points[i].bucket_count; j++)
            buckets[all++] = points[i].buckets[j];
    if (all > 0)
        qsort(buckets, all, sizeof *buckets, history_bucket_order);
    for (size_t i = 0, next; i < all; i = next) {
        uint64_t sum = 0;
        for (next = i; next < all && buckets[next].up_to_us == buckets[i].up_to_us; next++)
            sum += buckets[next].count;
        history_point_add_calls(out, buckets[i].up_to_us, sum);
    }
    return status_ok();
}

/* --- methods --- */

/* Others go last, whatever their rate. */
static int by_rate(const void *a, const void *b)
{
    const struct history_method *left = a, *right = b;
    bool is_left_last = strcmp(left->name, HISTORY_OTHERS) == 0;
    bool is_right_last = strcmp(right->name, HISTORY_OTHERS) == 0;
    if (is_left_last != is_right_last)
        return is_left_last - is_right_last;
    int order = (left->rate < right->rate) - (left->rate > right->rate);
    return order != 0 ? order : strcmp(left->name, right->name);
}

size_t history_methods_keep(struct history_method *methods, size_t count)
{
    if (count > 0)
        qsort(methods, count, sizeof *methods, by_rate);
    if (count <= HISTORY_METHODS)
        return count;
    struct history_method *others = &methods[HISTORY_METHODS - 1];
    for (size_t i = HISTORY_METHODS; i < count; i++)
        others->rate += methods[i].rate;
    others->name = HISTORY_OTHERS;
    return HISTORY_METHODS;
}

static void add_method(struct history_method *methods, size_t *count, const char *name,
                       double calls)
{
    size_t at = 0;
    while (at < *count && strcmp(methods[at].name, name) != 0)
        at++;
    if (at == *count)
        methods[(*count)++] = (struct history_method){.name = name};
    methods[at].rate += calls;
}

static status fold_methods(const struct history_point *points, size_t count, double covered,
                           struct arena *arena, struct history_point *out)
{
    size_t all = 0, found = 0;
    for (size_t i = 0; i < count; i++)
        all += points[i].method_count;
    struct history_method *methods = arena_alloc(arena, (all + 1) * sizeof *methods);
    if (methods == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < points[i].method_count; j++)
            add_method(methods, &found, points[i].methods[j].name,
                       points[i].methods[j].rate * points[i].seconds);
    for (size_t i = 0; i < found; i++)
        methods[i].rate /= covered;
    out->methods = methods;
    out->method_count = history_methods_keep(methods, found);
    return status_ok();
}

/* --- lines --- */

static double fold_rate(const struct history_point *points, size_t count, enum history_line line,
                        double covered)
{
    double sum = NAN;
    for (size_t i = 0; i < count; i++)
        if (!isnan(points[i].values[line]))
            sum = (isnan(sum) ? 0 : sum) + points[i].values[line] * points[i].seconds;
    return sum / covered;
}

static double fold_mean(const struct history_point *points, size_t count, enum history_line line)
{
    double sum = 0, seconds = 0;
    for (size_t i = 0; i < count; i++) {
        if (isnan(points[i].values[line]))
            continue;
        sum += points[i].values[line] * points[i].seconds;
        seconds += points[i].seconds;
    }
    return seconds > 0 ? sum / seconds : NAN;
}

static double fold_last(const struct history_point *points, size_t count, enum history_line line)
{
    while (count > 0 && isnan(points[count - 1].values[line]))
        count--;
    return count > 0 ? points[count - 1].values[line] : NAN;
}

static double fold_most(const struct history_point *points, size_t count, enum history_line line)
{
    double most = NAN;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, points[i].values[line]);
    return most;
}

static double fold_line(const struct history_point *points, size_t count, enum history_line line,
                        double covered)
{
    switch (line_rows[line].how) {
    case HISTORY_RATE:
        return fold_rate(points, count, line, covered);
    case HISTORY_MEAN:
        return fold_mean(points, count, line);
    case HISTORY_LAST:
        return fold_last(points, count, line);
    case HISTORY_MOST:
        return fold_most(points, count, line);
    case HISTORY_CALLS:
        break;
    }
    return NAN;
}

status history_point_fold(const struct history_point *points, size_t count, double covered,
                          struct arena *arena, struct history_point *out)
{
    double seconds = 0;
    DCHECK(count > 0);
    for (size_t i = 0; i < count; i++)
        seconds += points[i].seconds;
    history_point_init(out, points[0].from_us, fmax(seconds, covered));
    for (enum history_line line = 0; line < HISTORY_LINES; line++)
        out->values[line] = fold_line(points, count, line, out->seconds);
    TRY(fold_calls(points, count, arena, out));
    history_point_set_quantiles(out);
    return fold_methods(points, count, out->seconds, arena, out);
}
