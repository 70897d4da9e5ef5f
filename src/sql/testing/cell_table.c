/* Tables in memory: see cell_table.h. */
#include "sql/testing/cell_table.h"

#include "base/check.h"

#include <stdlib.h>

enum { TABLE_ARENA = 1 << 30 };

void cell_table_init(struct cell_table *table, const char *const *families, size_t count)
{
    *table = (struct cell_table){.arena = arena_create(TABLE_ARENA), .family_count = count};
    CHECK(table->arena != NULL);
    table->families = arena_zalloc(table->arena, (count + 1) * sizeof *table->families);
    CHECK(table->families != NULL);
    for (size_t i = 0; i < count; i++) {
        table->families[i].id = (uint32_t)i + 1;
        table->families[i].name = arena_copy(table->arena, bytes_of(families[i]));
    }
}

void cell_table_free(struct cell_table *table)
{
    arena_destroy(table->arena);
    free(table->cells);
}

struct family *cell_table_family(struct cell_table *table, const char *name)
{
    for (size_t i = 0; i < table->family_count; i++)
        if (bytes_equal(table->families[i].name, bytes_of(name)))
            return &table->families[i];
    CHECK(!"a family of the table");
    return NULL;
}

static int compare_cells(const struct table_cell *a, const struct table_cell *b)
{
    int order = bytes_compare(a->key, b->key);
    if (order == 0)
        order = bytes_compare(a->family->name, b->family->name);
    if (order == 0)
        order = bytes_compare(a->qualifier, b->qualifier);
    return order != 0 ? order
                      : (a->timestamp_us < b->timestamp_us) - (a->timestamp_us > b->timestamp_us);
}

/* The first cell that is not before this one. */
static size_t find_cell(const struct cell_table *table, const struct table_cell *cell)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare_cells(&table->cells[middle], cell) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first cell of the first row that is not before this key. */
static size_t find_row(const struct cell_table *table, bytes key)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (bytes_compare(table->cells[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void make_room(struct cell_table *table)
{
    if (table->count < table->capacity)
        return;
    table->capacity = table->capacity == 0 ? 64 : 2 * table->capacity;
    table->cells = realloc(table->cells, table->capacity * sizeof *table->cells);
    CHECK(table->cells != NULL);
}

void cell_table_put(struct cell_table *table, bytes key, const char *family, bytes qualifier,
                    int64_t timestamp_us, bytes value)
{
    struct table_cell cell = {arena_copy(table->arena, key), cell_table_family(table, family),
                              arena_copy(table->arena, qualifier), timestamp_us,
                              arena_copy(table->arena, value)};
    size_t at = find_cell(table, &cell);
    if (at == table->count || compare_cells(&table->cells[at], &cell) != 0) {
        make_room(table);
        memmove(&table->cells[at + 1], &table->cells[at],
                (table->count - at) * sizeof *table->cells);
        table->count++;
    }
    table->cells[at] = cell;
}

static size_t row_end(const struct cell_table *table, size_t from)
{
    size_t end = from;
    while (end < table->count && bytes_equal(table->cells[end].key, table->cells[from].key))
        end++;
    return end;
}

void cell_table_delete_row(struct cell_table *table, bytes key)
{
    size_t from = find_row(table, key);
    if (from == table->count || !bytes_equal(table->cells[from].key, key))
        return;
    size_t to = row_end(table, from);
    memmove(&table->cells[from], &table->cells[to], (table->count - to) * sizeof *table->cells);
    table->count -= to - from;
}

void cell_table_delete_version(struct cell_table *table, bytes key, int64_t timestamp_us)
{
    size_t kept = find_row(table, key), at = kept;
    if (kept == table->count)
        return;
    for (; at < table->count && bytes_equal(table->cells[at].key, key); at++)
        if (table->cells[at].timestamp_us != timestamp_us)
            table->cells[kept++] = table->cells[at];
    memmove(&table->cells[kept], &table->cells[at], (table->count - at) * sizeof *table->cells);
    table->count -= at - kept;
}

/* --- reading --- */

struct table_scan {
    struct sql_scan scan;
    const struct cell_table *table;
    const struct sql_scan_spec *spec;
    size_t range; /* how many are behind it */
    bytes from;   /* in the next; reversed: below it */
    bool has_from;
    struct arena *arena;
    struct cell_list cells;
};

/* As far as the times let them through. */
static bool fill_cells(struct table_scan *scan, size_t from, size_t to)
{
    const struct table_cell *cells = scan->table->cells;
    int32_t of_column = 0;
    scan->cells.count = 0;
    for (size_t i = from; i < to; i++) {
        const struct table_cell *cell = &cells[i];
        bool is_same = i > from && cell->family == cell[-1].family &&
                       bytes_equal(cell->qualifier, cell[-1].qualifier);
        of_column = is_same ? of_column : 0;
        if (cell->timestamp_us < scan->spec->from_us || cell->timestamp_us >= scan->spec->to_us ||
            ++of_column > scan->spec->cells_per_column)
            continue;
        const struct cell found = {.family = cell->family,
                                   .qualifier = cell->qualifier,
                                   .timestamp_us = cell->timestamp_us,
                                   .value = cell->value};
        CHECK(cell_list_add(&scan->cells, &found));
    }
    return scan->cells.count > 0;
}

/* The next row of the range in hand; false at its end. */
static bool next_in_range(struct table_scan *scan, const struct sql_key_range *range, size_t *from,
                          size_t *to)
{
    const struct cell_table *table = scan->table;
    if (!scan->spec->is_reversed) {
        *from = find_row(table, scan->has_from ? scan->from : range->from);
        if (scan->has_from && *from < table->count &&
            bytes_equal(table->cells[*from].key, scan->from))
            *from = row_end(table, *from);
        *to = *from < table->count ? row_end(table, *from) : *from;
        return *from < table->count &&
               (range->to.size == 0 || bytes_compare(table->cells[*from].key, range->to) < 0);
    }
    bool has_end = scan->has_from || range->to.size > 0;
    *to = has_end ? find_row(table, scan->has_from ? scan->from : range->to) : table->count;
    *from = *to == 0 ? 0 : find_row(table, table->cells[*to - 1].key);
    return *to > 0 && bytes_compare(table->cells[*from].key, range->from) >= 0;
}

static status table_next(struct sql_scan *base, struct sql_scan_row *row, bool *found)
{
    struct table_scan *scan = (struct table_scan *)(void *)base;
    const struct sql_scan_spec *spec = scan->spec;
    size_t from, to;
    for (*found = false; scan->range < spec->range_count && !*found;) {
        size_t at = spec->is_reversed ? spec->range_count - 1 - scan->range : scan->range;
        if (!next_in_range(scan, &spec->ranges[at], &from, &to)) {
            scan->range++;
            scan->has_from = false;
            continue;
        }
        scan->from = scan->table->cells[from].key;
        scan->has_from = true;
        *found = fill_cells(scan, from, to);
        *row = (struct sql_scan_row){scan->from, &scan->cells};
    }
    return status_ok();
}

static void table_scan_destroy(struct sql_scan *base)
{
    (void)base; /* all of it is in the arena */
}

struct sql_scan *cell_table_scan(const struct cell_table *table, const struct sql_scan_spec *spec,
                                 struct arena *arena)
{
    struct table_scan *scan = arena_zalloc(arena, sizeof *scan);
    CHECK(scan != NULL);
    *scan = (struct table_scan){.scan = {.next = table_next, .destroy = table_scan_destroy},
                                .table = table,
                                .spec = spec,
                                .arena = arena,
                                .cells = {.arena = arena}};
    return &scan->scan;
}
