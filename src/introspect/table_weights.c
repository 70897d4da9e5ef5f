/* See table_weights.h. A note may be of what is deleted, or was written over, by now: so each row
 * is looked at, its cells' sizes, of which no more than some lie in memory at a time. That is
 * bounded by LOOKED_AT_MOST rows, and by LARGE_MOST of those that take long. */
#include "introspect/table_weights.h"

#include "advisor/thresholds.h"
#include "base/limits.h"
#include "base/vector.h"
#include "cluster/rows.h"
#include "cluster/weights.h"
#include "row/row_key.h"

enum {
    LOOKED_AT_MOST = 16,
    LARGE_MOST = 4,
    LARGE_BYTES = 16 << 20,
    ROW_MEMORY = 64 << 20,           /* for the list of its cells */
    NOTED_ROW_BYTES = ROW_BYTES / 2, /* what is noted may be a part */
};

static void weigh_cells(const struct scan_row *row, struct arena *arena, struct advice_weight *out)
{
    const struct cell *largest = NULL;
    for (size_t i = 0; i < row->cells->count; i++) {
        const struct cell *cell = &row->cells->items[i];
        out->size += cell->qualifier.size + cell->value.size;
        if (largest == NULL || cell->value.size > largest->value.size)
            largest = cell;
    }
    if (largest == NULL)
        return;
    out->largest_cell = largest->value.size;
    out->family = arena_string(arena, largest->family->name);
}

/* Size 0: it is gone. One that is larger than is ever read has that size. */
static status weigh_scanned(const struct scan_spec *spec, struct arena *arena,
                            struct advice_weight *out)
{
    struct scan *scan;
    struct scan_row row;
    enum row_outcome outcome;
    TRY(scan_create(spec, &scan));
    do {
        status s = scan_next(scan, STORE_READ_ANY, &row, &outcome);
        if (!status_is_ok(s)) {
            scan_destroy(scan);
            return s;
        }
    } while (outcome == ROW_ABSENT);
    if (outcome == ROW_FOUND) {
        out->size = out->key.size;
        weigh_cells(&row, arena, out);
    } else if (outcome == ROW_TOO_LARGE) {
        out->size = LIMIT_ROW_BYTES;
    }
    scan_destroy(scan);
    return out->largest_cell > 0 && out->family == NULL ? status_out_of_memory() : status_ok();
}

static status weigh_row(struct table *table, struct arena *arena, struct advice_weight *out)
{
    struct key_range range = {.from = out->key, .is_point = true};
    struct arena *scratch = arena_create(ROW_MEMORY);
    const struct scan_spec spec = {.table = table,
                                   .ranges = &range,
                                   .range_count = 1,
                                   .schema = table_schema(table),
                                   .is_background = true,
                                   .arena = scratch};
    status s = scratch == NULL || !key_successor(scratch, out->key, &range.to)
                   ? status_out_of_memory()
                   : weigh_scanned(&spec, arena, out);
    arena_destroy(scratch);
    return s;
}

static bool may_be_too_large(const struct row_weight *noted)
{
    return noted->size >= NOTED_ROW_BYTES || noted->largest_value > CELL_BYTES;
}

/* A row that cannot be read now, out of service or with too many cells, is none that is told. */
static status pass_over(status s)
{
    if (s.code != STATUS_DATA_LOSS && s.code != STATUS_RESOURCE_EXHAUSTED)
        return s;
    status_free(s);
    return status_ok();
}

status table_read_weights(struct advice_source *source, struct advice_observations *out)
{
    struct table_source *from = source->context;
    struct vector found = {0};
    struct row_weight *noted;
    size_t count, large = 0;
    TRY(table_weigh(from->table, source->arena, &noted, &count));
    for (size_t i = 0; i < count && i < LOOKED_AT_MOST && large < LARGE_MOST; i++) {
        struct advice_weight weight = {.key = noted[i].row_key};
        if (!may_be_too_large(&noted[i]))
            continue;
        TRY(insight_check_call(from->request));
        TRY(pass_over(weigh_row(from->table, source->arena, &weight)));
        large += weight.size >= LARGE_BYTES;
        TRY(vector_add(&found, source->arena, &weight, sizeof weight));
    }
    out->weights = found.items;
    out->weight_count = found.count;
    return status_ok();
}
