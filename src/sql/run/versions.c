/* Versions of a row: see versions.h. */
#include "sql/run/versions.h"

#include <stdlib.h>

struct versions {
    struct sql_scan_row row;
    struct cell *sorted; /* its cells by time, the newest first; of one time in the row's order */
    size_t count;
    size_t capacity;
    size_t next;
    struct cell_list cells; /* of the last version: within `sorted` */
    int64_t time_us;
};

status versions_create(struct arena *arena, struct versions **out)
{
    *out = arena_zalloc(arena, sizeof **out);
    return *out == NULL ? status_out_of_memory() : status_ok();
}

void versions_end(struct versions *versions)
{
    if (versions != NULL)
        free(versions->sorted);
}

static int compare_cells(const void *a, const void *b)
{
    const struct cell *left = a, *right = b;
    if (left->timestamp_us != right->timestamp_us)
        return left->timestamp_us > right->timestamp_us ? -1 : 1;
    int order = bytes_compare(left->family->name, right->family->name);
    return order != 0 ? order : bytes_compare(left->qualifier, right->qualifier);
}

status versions_begin(struct versions *versions, const struct sql_scan_row *row)
{
    size_t count = row->cells->count;
    if (count > versions->capacity) {
        struct cell *sorted = realloc(versions->sorted, count * sizeof *sorted);
        if (sorted == NULL)
            return status_out_of_memory();
        versions->sorted = sorted;
        versions->capacity = count;
    }
    if (count > 0) {
        memcpy(versions->sorted, row->cells->items, count * sizeof *versions->sorted);
        qsort(versions->sorted, count, sizeof *versions->sorted, compare_cells);
    }
    versions->row = *row;
    versions->count = count;
    versions->next = 0;
    return status_ok();
}

bool versions_next(struct versions *versions, struct sql_scan_row *out)
{
    size_t from = versions->next, to = from;
    if (from >= versions->count)
        return false;
    versions->time_us = versions->sorted[from].timestamp_us;
    while (to < versions->count && versions->sorted[to].timestamp_us == versions->time_us)
        to++;
    versions->next = to;
    versions->cells = (struct cell_list){.items = &versions->sorted[from], .count = to - from};
    *out = (struct sql_scan_row){versions->row.key, &versions->cells};
    return true;
}

int64_t versions_time(const struct versions *versions)
{
    return versions->time_us;
}
