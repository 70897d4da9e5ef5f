/* See made_table.h: the cells of a row. They are made when they are asked for, always the same. */
#include "advisor/sample_rows.h"
#include "design/made_table.h"

#include <math.h>
#include <stdlib.h>

enum { PARTS_PER_MILLION = 1000 * 1000, MS_US = 1000 };

struct making {
    const struct made_table *made;
    const struct made_row *row;
    struct buffer cells; /* struct advice_cell */
    struct buffer name;
    uint64_t size;    /* of what is made, and of what is not */
    size_t column;    /* at hand */
    uint64_t repeat;  /* of it */
    uint64_t missing; /* cells that were not made: there were enough */
};

static const struct design_column *column_of(const struct making *making)
{
    return &making->made->table->columns[making->column];
}

static uint64_t random_of(const struct making *making, uint64_t a, uint64_t b)
{
    uint64_t place = making->column << 40 | making->repeat;
    return made_random(making->made->seed, making->row->number, place, a << 32 | b);
}

/* --- names --- */

static void write_name(struct making *making)
{
    const struct design_column *column = column_of(making);
    const struct design_part *part = &column->name;
    const struct made_table *made = making->made;
    uint64_t value = part->kind == PART_NUMBER && part->is_rising
                         ? making->repeat
                         : random_of(making, 1, 0) % (part->count > 0 ? part->count : UINT64_MAX);
    buffer_clear(&making->name);
    made_value(part, made_random(made->seed, making->column, 0, 9), value,
               made_time(made, making->row->number), &making->name);
    if (part->kind == PART_CONSTANT && column->count > 1)
        buffer_append_format(&making->name, "%llu", (unsigned long long)making->repeat + 1);
}

/* --- values --- */

static uint64_t size_of(const struct making *making, uint64_t value)
{
    const struct design_column *column = column_of(making);
    uint64_t span = column->size_to - column->size_from + 1;
    return column->size_from + made_random(making->column, value, 1, 10) % span;
}

/* As advice_hash: 0 of what is long. */
static uint64_t hash_of(const struct making *making, uint64_t value, uint64_t size)
{
    enum { HASHED_MOST = 32 };
    if (size == 0)
        return advice_hash(bytes_make(NULL, 0));
    return size > HASHED_MOST ? 0 : made_random(making->column, value, 2, 10) | 1;
}

static uint64_t value_of(const struct making *making, uint64_t version)
{
    uint64_t values = column_of(making)->values;
    uint64_t value = random_of(making, 2, version);
    return values > 0 ? value % values : value;
}

/* --- versions --- */

/* Of so many writes between the row's first and now the one with this number, the first is 0. */
static int64_t time_of(const struct making *making, uint64_t version, uint64_t writes)
{
    const struct made_table *made = making->made;
    int64_t first_us = made_time(made, making->row->number);
    double part = (double)version / (double)writes;
    int64_t time_us = first_us + (int64_t)((double)(made->now_us - first_us) * part);
    return time_us / MS_US * MS_US;
}

static status add_cell(struct making *making, bytes name, uint64_t version, int64_t time_us)
{
    uint64_t value = value_of(making, version), size = size_of(making, value);
    const struct advice_cell cell = {.family = column_of(making)->family,
                                     .qualifier = name,
                                     .timestamp_us = time_us,
                                     .size = size,
                                     .hash = hash_of(making, value, size)};
    making->size += size + name.size;
    if (making->cells.size / sizeof cell < SAMPLE_CELLS_MOST)
        buffer_append(&making->cells, &cell, sizeof cell);
    else
        making->missing++;
    return making->cells.failed ? status_out_of_memory() : status_ok();
}

/* Those that the family's rule leaves, the newest first. What is beyond those that are looked at
 * counts as large as it may be. */
static status add_versions(struct making *making)
{
    const struct design_column *column = column_of(making);
    const struct advice_family *family = &making->made->table->families[column->family];
    uint64_t most = family->most_versions > 0 ? (uint64_t)family->most_versions : UINT64_MAX;
    uint64_t kept = column->writes < most ? column->writes : most;
    if (family->is_aggregate)
        kept = 1;
    bytes name = arena_copy(making->made->arena, buffer_bytes(&making->name));
    if (making->name.failed || name.data == NULL)
        return status_out_of_memory();
    for (uint64_t i = 0; i < kept && making->missing == 0; i++) {
        uint64_t version = column->writes - 1 - i;
        int64_t time_us = time_of(making, version, column->writes);
        if (making->made->now_us - time_us > family->most_age_us)
            break;
        TRY(add_cell(making, name, version, time_us));
        if (making->missing > 0)
            making->size += (kept - 1 - i) * (name.size + column->size_to);
    }
    return status_ok();
}

/* --- rows --- */

/* How many of the columns are not there before the next one that is: drawn at once, since there may
 * be a hundred thousand of which hardly any is. */
static uint64_t missing_before(const struct making *making)
{
    double share = column_of(making)->share;
    double draw = (double)(random_of(making, 3, 0) % PARTS_PER_MILLION) / PARTS_PER_MILLION;
    double count = share < 1 ? log1p(-draw) / log1p(-share) : 0;
    return count < UINT32_MAX ? (uint64_t)count : UINT32_MAX;
}

/* Beyond what is looked at the rest is as large as what has been made of the column. */
static status add_columns(struct making *making)
{
    const struct design_column *column = column_of(making);
    uint64_t before = making->size;
    for (making->repeat = 0; making->repeat < column->count; making->repeat++) {
        if (making->missing > 0) {
            uint64_t left = column->count - making->repeat;
            uint64_t each = making->repeat > 0 ? (making->size - before) / making->repeat : 0;
            making->size += each * left;
            return status_ok();
        }
        uint64_t missing = missing_before(making);
        if (missing >= column->count - making->repeat)
            return status_ok();
        making->repeat += missing;
        write_name(making);
        TRY(add_versions(making));
    }
    return status_ok();
}

/* Those of a column together, each with its versions as they were made: names that are drawn may
 * come twice. */
static int compare_cells(const void *a, const void *b)
{
    const struct advice_cell *left = a, *right = b;
    if (left->family != right->family)
        return left->family < right->family ? -1 : 1;
    int order = bytes_compare(left->qualifier, right->qualifier);
    if (order != 0)
        return order;
    return left->timestamp_us > right->timestamp_us ? -1 : left->timestamp_us < right->timestamp_us;
}

static status keep_cells(struct making *making, struct advice_row *out)
{
    bytes cells = arena_copy(making->made->arena, buffer_bytes(&making->cells));
    if (cells.data == NULL)
        return status_out_of_memory();
    out->cells = (struct advice_cell *)(uintptr_t)cells.data;
    out->cell_count = cells.size / sizeof *out->cells;
    if (out->cell_count > 1)
        qsort(out->cells, out->cell_count, sizeof *out->cells, compare_cells);
    out->is_cut = making->missing > 0;
    out->size = out->key.size + making->size;
    return status_ok();
}

status made_cells(const struct made_table *made, const struct made_row *row, struct advice_row *out)
{
    struct making making = {.made = made, .row = row};
    status s = status_ok();
    *out = (struct advice_row){.key = row->key};
    for (; making.column < made->table->column_count && status_is_ok(s); making.column++)
        s = add_columns(&making);
    if (status_is_ok(s))
        s = keep_cells(&making, out);
    buffer_free(&making.cells);
    buffer_free(&making.name);
    return s;
}
