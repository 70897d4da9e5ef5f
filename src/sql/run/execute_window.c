/* WINDOW: values that a row gets from the rows around it.
 *
 * All rows are kept, since any may need any. For each function they are put in its order, partition
 * by partition; within a partition a row's *frame* is a range of places in that order, and its
 * *peers* are the rows that its ORDER BY does not tell from it. */
#include "sql/plan/window.h"
#include "sql/run/aggregate.h"
#include "sql/run/execute_private.h"

#include <math.h>
#include <stdlib.h>

struct window_row {
    struct sql_value *values; /* of the input, then of the windows */
    struct sql_value *keys;   /* of the partition, then of the order: of the window in hand */
    size_t at;                /* in the input's order */
};

struct windows {
    struct vector rows; /* of struct window_row */
    size_t next;
    bool is_done;
};

/* Places in the order of a window. */
struct frame {
    size_t from;
    size_t to; /* not in it */
};

/* A partition: rows of one window in its order. */
struct partition {
    struct iterator *iterator;
    const struct sql_window *window;
    struct window_row *rows;
    size_t count;
    size_t column;      /* where the results go */
    struct frame peers; /* of the row that was asked for last */
};

/* --- rows --- */

static struct window_row *rows_of(const struct windows *windows)
{
    return windows->rows.items;
}

static status add_row(struct iterator *iterator, struct windows *windows,
                      const struct sql_value *row)
{
    const struct sql_operator *operator_ = iterator->operator_;
    size_t inputs = iterator->input->operator_->column_count;
    struct arena *kept = iterator->execution->kept;
    struct sql_value *values = arena_alloc(kept, operator_->column_count * sizeof *values);
    if (values == NULL)
        return out_of_query_memory(iterator->execution);
    for (size_t i = 0; i < inputs; i++)
        TRY(keep_value(iterator, operator_->columns[i].type, &row[i], &values[i]));
    const struct window_row added = {.values = values, .at = windows->rows.count};
    return keep_item(iterator, &windows->rows, &added, sizeof added);
}

static status keep_key(struct iterator *iterator, const struct sql_expr *expr,
                       struct sql_value *out)
{
    struct sql_value value;
    TRY(evaluate(iterator, expr, &value));
    return keep_value(iterator, expr->type, &value, out);
}

static status set_keys(struct iterator *iterator, const struct sql_window *window,
                       struct window_row *row)
{
    size_t count = window->partition_count + window->order_count;
    begin_row(iterator, row->values);
    if (row->keys == NULL)
        row->keys = arena_alloc(iterator->execution->kept, count * sizeof *row->keys);
    if (row->keys == NULL)
        return out_of_query_memory(iterator->execution);
    for (size_t i = 0; i < window->partition_count; i++)
        TRY(keep_key(iterator, window->partition[i], &row->keys[i]));
    for (size_t i = 0; i < window->order_count; i++)
        TRY(keep_key(iterator, window->orders[i].expr, &row->keys[window->partition_count + i]));
    return status_ok();
}

static int compare_partition(const struct sql_window *window, const struct window_row *a,
                             const struct window_row *b)
{
    int order = 0;
    for (size_t i = 0; i < window->partition_count && order == 0; i++)
        order = sql_value_compare(window->partition[i]->type, &a->keys[i], &b->keys[i]);
    return order;
}

static int compare_peers(const struct sql_window *window, const struct window_row *a,
                         const struct window_row *b)
{
    return sql_compare_orders(window->orders, window->order_count,
                              a->keys + window->partition_count, b->keys + window->partition_count);
}

static int compare_rows(const void *a, const void *b, void *context)
{
    const struct window_row *left = a, *right = b;
    int order = compare_partition(context, left, right);
    if (order == 0)
        order = compare_peers(context, left, right);
    return order != 0 ? order : (left->at > right->at) - (left->at < right->at);
}

static int compare_places(const void *a, const void *b, void *context)
{
    (void)context;
    const struct window_row *left = a, *right = b;
    return (left->at > right->at) - (left->at < right->at);
}

/* --- frames --- */

/* Rows are asked for in their order, mostly, so what was found for one serves its peers. */
static struct frame peers_of(struct partition *partition, size_t at)
{
    struct frame *peers = &partition->peers;
    const struct sql_window *window = partition->window;
    const struct window_row *rows = partition->rows;
    if (at >= peers->from && at < peers->to)
        return *peers;
    *peers = (struct frame){at, at + 1};
    while (peers->from > 0 && compare_peers(window, &rows[peers->from - 1], &rows[at]) == 0)
        peers->from--;
    while (peers->to < partition->count && compare_peers(window, &rows[peers->to], &rows[at]) == 0)
        peers->to++;
    return *peers;
}

/* An offset of a frame: a number that is not negative, nor NULL. */
static status offset_of(struct partition *partition, const struct sql_frame_bound *bound,
                        struct sql_value *out)
{
    *out = sql_of_int64(0);
    if (bound->offset == NULL)
        return status_ok();
    TRY(evaluate(partition->iterator, bound->offset, out));
    bool is_float = sql_is_float(bound->offset->type);
    bool is_bad = out->is_null || (is_float ? !(out->float64 >= 0) : out->int64 < 0);
    return is_bad ? status_make(STATUS_OUT_OF_RANGE,
                                "Window frame offset for PRECEDING or FOLLOWING must be "
                                "non-negative and non-null")
                  : status_ok();
}

/* The place that is so many rows away, within the partition and one beyond. */
static size_t place_after(size_t at, int64_t rows, size_t count)
{
    if (rows < 0)
        return (uint64_t)-rows > at ? 0 : at - (size_t)-rows;
    return (uint64_t)rows > count - at ? count : at + (size_t)rows;
}

static double number_of(const struct sql_type *type, const struct sql_value *value)
{
    return sql_is_float(type) ? value->float64 : (double)value->int64;
}

/* How far the row's number is ahead of the current one's, in the direction of the order. NULLs are
 * infinitely far, where the order has put them. */
static double distance_to(struct partition *partition, size_t row, size_t at)
{
    const struct sql_order *order = &partition->window->orders[0];
    size_t key = partition->window->partition_count;
    const struct sql_value *there = &partition->rows[row].keys[key];
    const struct sql_value *here = &partition->rows[at].keys[key];
    if (there->is_null)
        return order->nulls_last ? INFINITY : -INFINITY;
    double ahead = number_of(order->expr->type, there) - number_of(order->expr->type, here);
    return order->is_descending ? -ahead : ahead;
}

/* The first row that is at least so far ahead; or (not `reaches`) further than that. */
static size_t first_ahead(struct partition *partition, size_t at, double distance, bool reaches)
{
    size_t low = 0, high = partition->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        double ahead = distance_to(partition, middle, at);
        if (reaches ? ahead >= distance : ahead > distance)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static status bound_place(struct partition *partition, const struct sql_frame_bound *bound,
                          size_t at, bool is_start, size_t *out)
{
    struct sql_value offset;
    bool goes_back = bound->place == SQL_FRAME_PRECEDING;
    if (bound->place == SQL_FRAME_UNBOUNDED_PRECEDING ||
        bound->place == SQL_FRAME_UNBOUNDED_FOLLOWING) {
        *out = bound->place == SQL_FRAME_UNBOUNDED_PRECEDING ? 0 : partition->count;
        return status_ok();
    }
    bool is_null = partition->window->is_range && partition->window->order_count > 0 &&
                   partition->rows[at].keys[partition->window->partition_count].is_null;
    if (partition->window->is_range && (bound->place == SQL_FRAME_CURRENT || is_null)) {
        struct frame peers = peers_of(partition, at);
        *out = is_start ? peers.from : peers.to;
        return status_ok();
    }
    TRY(offset_of(partition, bound, &offset));
    if (!partition->window->is_range) {
        int64_t rows = goes_back ? -offset.int64 : offset.int64;
        *out = place_after(at, is_start ? rows : rows + 1, partition->count);
        return status_ok();
    }
    double distance = number_of(bound->offset->type, &offset);
    *out = first_ahead(partition, at, goes_back ? -distance : distance, is_start);
    return status_ok();
}

static status frame_of(struct partition *partition, size_t at, struct frame *out)
{
    TRY(bound_place(partition, &partition->window->start, at, true, &out->from));
    TRY(bound_place(partition, &partition->window->end, at, false, &out->to));
    if (out->to < out->from)
        out->to = out->from;
    return status_ok();
}

/* --- aggregates --- */

static status add_rows(struct partition *partition, struct sql_accumulator *accumulator,
                       size_t from, size_t to)
{
    struct iterator *iterator = partition->iterator;
    for (size_t i = from; i < to; i++) {
        begin_row(iterator, partition->rows[i].values);
        TRY(sql_accumulator_add(accumulator, &iterator->frame));
    }
    return status_ok();
}

/* An aggregate over frames, one after the other. */
struct running {
    struct sql_accumulator accumulator;
    struct frame frame; /* that it has; the result is of it */
    struct sql_value value;
};

static status begin_frame(struct partition *partition, struct running *running, size_t from)
{
    struct iterator *iterator = partition->iterator;
    running->frame = (struct frame){from, from};
    return sql_accumulator_begin(&running->accumulator, partition->window->aggregation,
                                 &iterator->frame, iterator->execution->kept);
}

/* Frames mostly grow at their end: then only what is new is added. */
static status aggregate_frame(struct partition *partition, struct running *running,
                              struct frame frame)
{
    bool grows = frame.from == running->frame.from && frame.to >= running->frame.to &&
                 sql_accumulator_may_go_on(&running->accumulator);
    if (!grows)
        TRY(begin_frame(partition, running, frame.from));
    TRY(add_rows(partition, &running->accumulator, running->frame.to, frame.to));
    running->frame = frame;
    struct sql_value value;
    TRY(sql_accumulator_finish(&running->accumulator, &partition->iterator->frame, &value));
    return keep_value(partition->iterator, partition->window->type, &value, &running->value);
}

/* Rows with the same frame as the one before have its result: most often all, or all peers. */
static status aggregate(struct partition *partition)
{
    struct running running = {.frame = {1, 0}};
    for (size_t i = 0; i < partition->count; i++) {
        struct frame frame;
        begin_row(partition->iterator, partition->rows[i].values);
        TRY(frame_of(partition, i, &frame));
        if (frame.from != running.frame.from || frame.to != running.frame.to)
            TRY(aggregate_frame(partition, &running, frame));
        partition->rows[i].values[partition->column] = running.value;
    }
    return status_ok();
}

/* --- functions of the place --- */

static status count_argument(struct partition *partition, const struct sql_value *values,
                             int64_t least, int64_t *out)
{
    struct sql_value value;
    begin_row(partition->iterator, values);
    TRY(evaluate(partition->iterator, partition->window->args[0], &value));
    if (value.is_null || value.int64 < least)
        return status_make(STATUS_OUT_OF_RANGE, "The N value (number of buckets) for the NTILE "
                                                "function must be positive");
    *out = value.int64;
    return status_ok();
}

/* The first buckets have a row more, if it does not come out even. */
static int64_t bucket_of(int64_t at, int64_t count, int64_t buckets)
{
    int64_t size = count / buckets, more = count % buckets;
    int64_t in_larger = more * (size + 1);
    return at < in_larger ? at / (size + 1) + 1 : more + (at - in_larger) / (size ? size : 1) + 1;
}

static status number_row(struct partition *partition, size_t at, struct frame peers,
                         int64_t dense_rank, struct sql_value *out)
{
    int64_t count = (int64_t)partition->count, buckets;
    switch (partition->window->kind) {
    case SQL_WINDOW_ROW_NUMBER:
        *out = sql_of_int64((int64_t)at + 1);
        break;
    case SQL_WINDOW_RANK:
        *out = sql_of_int64((int64_t)peers.from + 1);
        break;
    case SQL_WINDOW_DENSE_RANK:
        *out = sql_of_int64(dense_rank);
        break;
    case SQL_WINDOW_PERCENT_RANK:
        *out = sql_of_float64(count == 1 ? 0 : (double)peers.from / (double)(count - 1));
        break;
    case SQL_WINDOW_CUME_DIST:
        *out = sql_of_float64((double)peers.to / (double)count);
        break;
    default:
        TRY(count_argument(partition, partition->rows[at].values, 1, &buckets));
        *out = sql_of_int64(bucket_of((int64_t)at, count, buckets));
    }
    return status_ok();
}

static status number_rows(struct partition *partition)
{
    int64_t dense_rank = 0;
    struct frame peers = {0, 0};
    for (size_t i = 0; i < partition->count; i++) {
        if (i >= peers.to) {
            peers = peers_of(partition, i);
            dense_rank++;
        }
        TRY(number_row(partition, i, peers, dense_rank,
                       &partition->rows[i].values[partition->column]));
    }
    return status_ok();
}

/* --- values of other rows --- */

static status value_at(struct partition *partition, size_t row, size_t arg, struct sql_value *out)
{
    struct sql_value value;
    begin_row(partition->iterator, partition->rows[row].values);
    TRY(evaluate(partition->iterator, partition->window->args[arg], &value));
    return keep_value(partition->iterator, partition->window->args[arg]->type, &value, out);
}

/* The nth value of the frame from its start, or from its end; NULL if there are not so many. */
static status nth_value(struct partition *partition, struct frame frame, int64_t nth, bool from_end,
                        struct sql_value *out)
{
    if (!partition->window->ignores_nulls) { /* each counts: it is known which */
        size_t before = (uint64_t)nth - 1 < frame.to - frame.from ? (size_t)nth - 1 : SIZE_MAX;
        *out = sql_null();
        if (before == SIZE_MAX)
            return status_ok();
        return value_at(partition, from_end ? frame.to - 1 - before : frame.from + before, 0, out);
    }
    for (size_t i = frame.from; i < frame.to; i++) {
        size_t row = from_end ? frame.from + frame.to - 1 - i : i;
        TRY(value_at(partition, row, 0, out));
        bool counts = !out->is_null;
        nth -= counts;
        if (counts && nth == 0)
            return status_ok();
    }
    *out = sql_null();
    return status_ok();
}

static status find_values(struct partition *partition)
{
    enum sql_window_kind kind = partition->window->kind;
    for (size_t i = 0; i < partition->count; i++) {
        struct sql_value nth = sql_of_int64(1);
        struct frame frame;
        if (kind == SQL_WINDOW_NTH_VALUE)
            TRY(value_at(partition, i, 1, &nth));
        if (nth.is_null || nth.int64 < 1)
            return status_make(STATUS_OUT_OF_RANGE,
                               "The N value for the NthValue function must be positive");
        begin_row(partition->iterator, partition->rows[i].values);
        TRY(frame_of(partition, i, &frame));
        TRY(nth_value(partition, frame, nth.int64, kind == SQL_WINDOW_LAST_VALUE,
                      &partition->rows[i].values[partition->column]));
    }
    return status_ok();
}

static status shift_value(struct partition *partition, size_t at)
{
    const struct sql_window *window = partition->window;
    struct sql_value *out = &partition->rows[at].values[partition->column];
    struct sql_value by = sql_of_int64(1);
    if (window->arg_count > 1)
        TRY(value_at(partition, at, 1, &by));
    if (by.is_null || by.int64 < 0)
        return status_make(STATUS_OUT_OF_RANGE,
                           "The offset to the function LEAD or LAG must not be null or negative");
    size_t left = window->kind == SQL_WINDOW_LEAD ? partition->count - 1 - at : at;
    *out = sql_null();
    if ((uint64_t)by.int64 > left)
        return window->arg_count > 2 ? value_at(partition, at, 2, out) : status_ok();
    size_t row = window->kind == SQL_WINDOW_LEAD ? at + (size_t)by.int64 : at - (size_t)by.int64;
    return value_at(partition, row, 0, out);
}

static status shift_values(struct partition *partition)
{
    for (size_t i = 0; i < partition->count; i++)
        TRY(shift_value(partition, i));
    return status_ok();
}

/* --- percentiles: of all values of the partition, put in order --- */

static int compare_values(const void *a, const void *b, void *context)
{
    return sql_value_compare(context, a, b);
}

static status sorted_values(struct partition *partition, struct sql_value **out, size_t *count)
{
    const struct sql_type *type = partition->window->args[0]->type;
    struct sql_value *values =
        arena_alloc(partition->iterator->execution->kept, partition->count * sizeof *values);
    if (values == NULL)
        return out_of_query_memory(partition->iterator->execution);
    *count = 0;
    for (size_t i = 0; i < partition->count; i++) {
        TRY(value_at(partition, i, 0, &values[*count]));
        *count += !values[*count].is_null || !partition->window->ignores_nulls;
    }
    *out = values;
    return sql_sort(values, *count, sizeof *values, compare_values, (void *)(uintptr_t)type,
                    partition->iterator->execution->session);
}

/* Between the two values that are next to the place. A NULL gives way to a number. */
static struct sql_value interpolate(const struct sql_value *values, size_t count, double percentile)
{
    double place = percentile * (double)(count - 1);
    const struct sql_value *low = &values[(size_t)floor(place)];
    const struct sql_value *high = &values[(size_t)ceil(place)];
    double part = place - floor(place);
    if (low->is_null || high->is_null)
        return low->is_null ? *high : *low;
    return sql_of_float64(low->float64 + part * (high->float64 - low->float64));
}

/* The first value whose share of those up to it is at least the percentile. */
static struct sql_value discrete(const struct sql_value *values, size_t count, double percentile)
{
    size_t place = (size_t)ceil(percentile * (double)count);
    return values[place == 0 ? 0 : place - 1];
}

static status find_percentiles(struct partition *partition)
{
    struct sql_value *values;
    size_t count;
    TRY(sorted_values(partition, &values, &count));
    for (size_t i = 0; i < partition->count; i++) {
        struct sql_value percentile;
        TRY(value_at(partition, i, 1, &percentile));
        if (percentile.is_null || !(percentile.float64 >= 0 && percentile.float64 <= 1))
            return status_make(STATUS_OUT_OF_RANGE,
                               "The percentile must be a number from 0 to 1, and not NULL");
        struct sql_value *out = &partition->rows[i].values[partition->column];
        if (count == 0)
            *out = sql_null();
        else if (partition->window->kind == SQL_WINDOW_PERCENTILE_CONT)
            *out = interpolate(values, count, percentile.float64);
        else
            *out = discrete(values, count, percentile.float64);
    }
    return status_ok();
}

/* --- all of it --- */

static status compute_partition(struct partition *partition)
{
    switch (partition->window->kind) {
    case SQL_WINDOW_AGGREGATE:
        return aggregate(partition);
    case SQL_WINDOW_FIRST_VALUE:
    case SQL_WINDOW_LAST_VALUE:
    case SQL_WINDOW_NTH_VALUE:
        return find_values(partition);
    case SQL_WINDOW_LEAD:
    case SQL_WINDOW_LAG:
        return shift_values(partition);
    case SQL_WINDOW_PERCENTILE_CONT:
    case SQL_WINDOW_PERCENTILE_DISC:
        return find_percentiles(partition);
    default:
        return number_rows(partition);
    }
}

static status compute_window(struct iterator *iterator, struct windows *windows,
                             const struct sql_window *window, size_t column)
{
    for (size_t i = 0; i < windows->rows.count; i++) {
        rows_of(windows)[i].keys = NULL;
        TRY(set_keys(iterator, window, &rows_of(windows)[i]));
    }
    TRY(sql_sort(windows->rows.items, windows->rows.count, sizeof(struct window_row), compare_rows,
                 (void *)(uintptr_t)window, iterator->execution->session));
    for (size_t from = 0, to; from < windows->rows.count; from = to) {
        for (to = from + 1; to < windows->rows.count; to++)
            if (compare_partition(window, &rows_of(windows)[from], &rows_of(windows)[to]) != 0)
                break;
        struct partition partition = {.iterator = iterator,
                                      .window = window,
                                      .rows = &rows_of(windows)[from],
                                      .count = to - from,
                                      .column = column};
        TRY(compute_partition(&partition));
    }
    return status_ok();
}

static status compute_all(struct iterator *iterator, struct windows *windows)
{
    const struct sql_operator *operator_ = iterator->operator_;
    size_t inputs = iterator->input->operator_->column_count;
    for (;;) {
        const struct sql_value *row;
        TRY(next_input(iterator, &row));
        if (row == NULL)
            break;
        TRY(add_row(iterator, windows, row));
    }
    for (size_t i = 0; i < operator_->window_count; i++)
        TRY(compute_window(iterator, windows, &operator_->windows[i], inputs + i));
    TRY(sql_sort(windows->rows.items, windows->rows.count, sizeof(struct window_row),
                 compare_places, NULL, iterator->execution->session));
    windows->is_done = true;
    return status_ok();
}

static status window_next(struct iterator *iterator, const struct sql_value **row)
{
    struct windows *windows = iterator->state;
    if (!windows->is_done)
        TRY(compute_all(iterator, windows));
    *row = windows->next < windows->rows.count ? rows_of(windows)[windows->next++].values : NULL;
    return status_ok();
}

const struct iterator_kind window_kind = {.state_size = sizeof(struct windows),
                                          .next = window_next};
