/* UNPACK: histories become rows, one for each moment at which any of them has a cell. */
#include "sql/run/execute_private.h"

#include <stdlib.h>

struct unpacker {
    const struct sql_value *input;
    int64_t *times; /* of the input's row, newest first */
    size_t time_count;
    size_t next;
};

/* Of a column of the input. */
enum packing { PLAIN, HISTORY, MAP_OF_HISTORIES };

static enum packing packing_of(const struct iterator *iterator, size_t column)
{
    const struct sql_type *before = iterator->input->operator_->columns[column].type;
    const struct sql_type *after = iterator->operator_->columns[column].type;
    if (before == after)
        return PLAIN;
    return before->kind == SQL_MAP ? MAP_OF_HISTORIES : HISTORY;
}

/* --- the moments of a row --- */

static size_t count_cells(const struct sql_value *value, enum packing packing)
{
    size_t count = 0;
    if (packing == PLAIN || value->is_null)
        return 0;
    if (packing == HISTORY)
        return value->count;
    for (size_t i = 1; i < value->count; i += 2)
        count += value->items[i].count;
    return count;
}

static void add_history(struct unpacker *unpacker, const struct sql_value *history)
{
    for (size_t i = 0; i < history->count; i++)
        unpacker->times[unpacker->time_count++] = history->items[i].items[0].int64;
}

static void add_times(struct unpacker *unpacker, const struct sql_value *value,
                      enum packing packing)
{
    if (packing == PLAIN || value->is_null)
        return;
    if (packing == HISTORY)
        add_history(unpacker, value);
    else
        for (size_t i = 1; i < value->count; i += 2)
            add_history(unpacker, &value->items[i]);
}

static int newest_first(const void *a, const void *b, void *context)
{
    (void)context;
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left < right) - (left > right);
}

static void leave_distinct(struct unpacker *unpacker)
{
    size_t kept = 0;
    for (size_t i = 0; i < unpacker->time_count; i++)
        if (kept == 0 || unpacker->times[kept - 1] != unpacker->times[i])
            unpacker->times[kept++] = unpacker->times[i];
    unpacker->time_count = kept;
}

static status collect_times(struct iterator *iterator, const struct sql_value *row)
{
    struct unpacker *unpacker = iterator->state;
    size_t columns = iterator->input->operator_->column_count;
    size_t cells = 0;
    begin_row(iterator, row);
    for (size_t i = 0; i < columns; i++)
        cells += count_cells(&row[i], packing_of(iterator, i));
    *unpacker = (struct unpacker){.input = row};
    unpacker->times = arena_alloc(iterator->frame.arena, cells * sizeof *unpacker->times);
    if (unpacker->times == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < columns; i++)
        add_times(unpacker, &row[i], packing_of(iterator, i));
    TRY(sql_sort(unpacker->times, unpacker->time_count, sizeof *unpacker->times, newest_first, NULL,
                 iterator->execution->session));
    leave_distinct(unpacker);
    return status_ok();
}

/* --- values at a moment --- */

static struct sql_value value_at(const struct sql_value *history, int64_t time)
{
    for (size_t i = 0; !history->is_null && i < history->count; i++)
        if (history->items[i].items[0].int64 == time)
            return history->items[i].items[1];
    return sql_null();
}

/* Of a map, those columns that have a cell then. */
static status map_at(struct iterator *iterator, const struct sql_value *map, int64_t time,
                     struct sql_value *out)
{
    struct sql_value *items = arena_alloc(iterator->frame.arena, map->count * sizeof *items);
    size_t count = 0;
    if (items == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i + 1 < map->count; i += 2) {
        struct sql_value value = value_at(&map->items[i + 1], time);
        if (value.is_null)
            continue;
        items[count++] = map->items[i];
        items[count++] = value;
    }
    *out = sql_of_items(items, count);
    return status_ok();
}

static status fill_row(struct iterator *iterator, int64_t time)
{
    const struct unpacker *unpacker = iterator->state;
    size_t columns = iterator->input->operator_->column_count;
    for (size_t i = 0; i < columns; i++) {
        const struct sql_value *value = &unpacker->input[i];
        enum packing packing = packing_of(iterator, i);
        if (packing == MAP_OF_HISTORIES && !value->is_null)
            TRY(map_at(iterator, value, time, &iterator->row[i]));
        else
            iterator->row[i] = packing == PLAIN ? *value : value_at(value, time);
    }
    iterator->row[columns] = sql_of_int64(time);
    return status_ok();
}

static status unpack_next(struct iterator *iterator, const struct sql_value **row)
{
    struct unpacker *unpacker = iterator->state;
    TRY(count_row(iterator, 1));
    while (unpacker->next >= unpacker->time_count) {
        TRY(next_input(iterator, row));
        if (*row == NULL)
            return status_ok();
        TRY(collect_times(iterator, *row));
    }
    TRY(fill_row(iterator, unpacker->times[unpacker->next++]));
    *row = iterator->row;
    return status_ok();
}

const struct iterator_kind unpack_kind = {.state_size = sizeof(struct unpacker),
                                          .next = unpack_next};
