/* See weights.h. */
#include "cluster/weights.h"

#include "cluster/table.h"
#include "row/row_key.h"
#include "tablet/tablet.h"

#include <stdlib.h>

struct weighing {
    struct arena *arena;
    struct buffer rows; /* struct row_weight */
    struct buffer row_key;
};

/* Goes on unless there is no memory. */
static bool take_weight(void *context, const struct store_weight *weight)
{
    struct weighing *weighing = context;
    buffer_clear(&weighing->row_key);
    if (!overflow_owner_row(weight->owner, &weighing->row_key))
        return !weighing->row_key.failed;
    const struct row_weight row = {
        .row_key = arena_copy(weighing->arena, buffer_bytes(&weighing->row_key)),
        .size = weight->size,
        .largest_value = weight->largest_value};
    weighing->rows.failed |= row.row_key.data == NULL;
    buffer_append(&weighing->rows, &row, sizeof row);
    return !weighing->rows.failed;
}

static status weigh_keyspace(struct keyspace *keyspace, struct weighing *weighing)
{
    struct buffer from = {0}, to = {0};
    overflow_range_start(&from, bytes_of(""));
    overflow_range_end(&to, bytes_of(""));
    status s = from.failed || to.failed ? status_out_of_memory()
                                        : keyspace_weigh(keyspace, buffer_bytes(&from),
                                                         buffer_bytes(&to), take_weight, weighing);
    buffer_free(&from);
    buffer_free(&to);
    TRY(s);
    return weighing->rows.failed || weighing->row_key.failed ? status_out_of_memory() : status_ok();
}

static uint64_t weight(const struct row_weight *row)
{
    return row->size > 10 * row->largest_value ? row->size : 10 * row->largest_value;
}

static int compare_weights(const void *a, const void *b)
{
    uint64_t left = weight(a), right = weight(b);
    return left > right ? -1 : left < right;
}

/* Sorts them; those of one keyspace come in their order. */
static void sort(struct weighing *weighing, const struct table *table)
{
    if (table->space_count > 1 && weighing->rows.size > 0)
        qsort(weighing->rows.data, weighing->rows.size / sizeof(struct row_weight),
              sizeof(struct row_weight), compare_weights);
}

static status weigh_rows(struct table *table, struct weighing *weighing)
{
    for (size_t i = 0; i < table->space_count; i++)
        TRY(weigh_keyspace(table->spaces[i].keyspace, weighing));
    sort(weighing, table);
    return status_ok();
}

status table_weigh(struct table *table, struct arena *arena, struct row_weight **out, size_t *count)
{
    struct weighing weighing = {.arena = arena};
    *out = NULL;
    *count = 0;
    status s = weigh_rows(table, &weighing);
    bytes kept =
        status_is_ok(s) ? arena_copy(arena, buffer_bytes(&weighing.rows)) : bytes_make(NULL, 0);
    buffer_free(&weighing.rows);
    buffer_free(&weighing.row_key);
    TRY(s);
    if (kept.data == NULL)
        return status_out_of_memory();
    *out = (struct row_weight *)(uintptr_t)kept.data;
    *count = kept.size / sizeof **out;
    return status_ok();
}
