/* See columns.h. */
#include "advisor/columns.h"

#include <stdlib.h>

enum { COLUMNS_MOST = 50000 }; /* of all rows, which are looked at */

/* A column of a row: its versions, the newest first. */
struct column {
    const struct advice_cell *cells;
    size_t count;
};

static int order_of_columns(const void *a, const void *b)
{
    const struct advice_cell *left = ((const struct column *)a)->cells;
    const struct advice_cell *right = ((const struct column *)b)->cells;
    if (left->family != right->family)
        return left->family < right->family ? -1 : 1;
    return bytes_compare(left->qualifier, right->qualifier);
}

static bool is_another(const struct advice_row *row, size_t cell)
{
    const struct advice_cell *c = &row->cells[cell];
    return cell == 0 || c[-1].family != c->family || !bytes_equal(c[-1].qualifier, c->qualifier);
}

static void take_row(const struct advice_row *row, struct column *columns, size_t *count)
{
    for (size_t i = 0; i < row->cell_count; i++) {
        if (is_another(row, i))
            columns[(*count)++] = (struct column){.cells = &row->cells[i]};
        columns[*count - 1].count++;
    }
}

/* Each row, or each n-th if that would be too many. */
static status collect(struct advisor *advisor, struct column **out, size_t *count, size_t *rows)
{
    const struct advice_observations *seen = advisor->seen;
    size_t cells = 0, taken = 0;
    *count = *rows = 0;
    for (size_t i = 0; i < seen->row_count; i++)
        cells += seen->rows[i].cell_count;
    size_t step = cells / COLUMNS_MOST + 1;
    for (size_t i = 0; i < seen->row_count; i += step)
        taken += seen->rows[i].cell_count;
    *out = arena_alloc(advisor->arena, taken * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < seen->row_count; i += step) {
        take_row(&seen->rows[i], *out, count);
        ++*rows;
    }
    return status_ok();
}

static void take_times(const struct column *column, struct column_summary *out)
{
    for (size_t i = 0; i < column->count; i++) {
        int64_t at_us = column->cells[i].timestamp_us;
        if (at_us < FIRST_TIME_US)
            continue;
        out->youngest_us = at_us > out->youngest_us ? at_us : out->youngest_us;
        out->oldest_us = out->oldest_us == 0 || at_us < out->oldest_us ? at_us : out->oldest_us;
    }
}

static void summarize(const struct column *columns, size_t count, struct column_summary *out)
{
    size_t votes = 0;
    *out = (struct column_summary){
        .family = columns->cells->family, .qualifier = columns->cells->qualifier, .rows = count};
    for (size_t i = 0; i < count; i++) {
        uint64_t hash = columns[i].cells->hash;
        if (votes == 0)
            out->usual_hash = hash;
        votes = hash == out->usual_hash ? votes + 1 : votes - 1;
        out->cells += columns[i].count;
        out->most = columns[i].count > out->most ? columns[i].count : out->most;
        for (size_t j = 0; j < columns[i].count; j++)
            out->size += columns[i].cells[j].size;
        take_times(&columns[i], out);
    }
    for (size_t i = 0; i < count && out->usual_hash != 0; i++)
        out->usual += columns[i].cells->hash == out->usual_hash;
}

status columns_summarize(struct advisor *advisor, struct column_summaries *out)
{
    struct column *columns;
    size_t count, first = 0;
    *out = (struct column_summaries){0};
    TRY(collect(advisor, &columns, &count, &out->rows));
    if (count == 0)
        return status_ok();
    qsort(columns, count, sizeof *columns, order_of_columns);
    out->all = arena_alloc(advisor->arena, count * sizeof *out->all);
    if (out->all == NULL)
        return status_out_of_memory();
    for (size_t i = 1; i <= count; i++) {
        if (i < count && order_of_columns(&columns[i], &columns[first]) == 0)
            continue;
        summarize(&columns[first], i - first, &out->all[out->count++]);
        first = i;
    }
    return status_ok();
}
