/* See sample_rows.h. */
#include "advisor/sample_rows.h"

#include "base/limits.h"

#include <stdlib.h>

static status grow(struct sample_rows *rows)
{
    if (rows->count < rows->capacity)
        return status_ok();
    size_t capacity = rows->capacity == 0 ? 256 : 2 * rows->capacity;
    struct advice_row *grown = arena_alloc(rows->arena, capacity * sizeof *grown);
    if (grown == NULL)
        return status_out_of_memory();
    if (rows->count > 0)
        memcpy(grown, rows->rows, rows->count * sizeof *grown);
    rows->rows = grown;
    rows->capacity = capacity;
    return status_ok();
}

status sample_rows_add(struct sample_rows *rows, const struct advice_row *row)
{
    TRY(grow(rows));
    rows->rows[rows->count++] = *row;
    rows->cells += row->cell_count;
    return status_ok();
}

status sample_rows_add_unreadable(struct sample_rows *rows, uint32_t place, bytes key)
{
    rows->unreadable++;
    return sample_rows_add(
        rows,
        &(struct advice_row){.key = key, .place = place, .is_cut = true, .size = LIMIT_ROW_BYTES});
}

bool sample_rows_family(const struct sample_rows *rows, bytes name, uint32_t *out)
{
    for (size_t i = 0; i < rows->family_count; i++)
        if (bytes_equal(bytes_of(rows->families[i].name), name)) {
            *out = (uint32_t)i;
            return true;
        }
    return false;
}

static int order_of_rows(const void *a, const void *b)
{
    const struct advice_row *left = a, *right = b;
    int order = bytes_compare(left->key, right->key);
    return order != 0 ? order : (left->place > right->place) - (left->place < right->place);
}

void sample_rows_sort(struct sample_rows *rows)
{
    size_t kept = 0;
    if (rows->count == 0)
        return;
    qsort(rows->rows, rows->count, sizeof *rows->rows, order_of_rows);
    for (size_t i = 1; i < rows->count; i++)
        if (!bytes_equal(rows->rows[i].key, rows->rows[kept].key))
            rows->rows[++kept] = rows->rows[i];
    rows->count = kept + 1;
}
