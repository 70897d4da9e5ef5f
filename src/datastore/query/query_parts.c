/* Parts of positions: see query_parts.h. */
#include "datastore/query/query_parts.h"

status ds_plan_keep(struct arena *arena, struct buffer *made, bytes *out)
{
    *out = arena_copy(arena, buffer_bytes(made));
    bool failed = made->failed || out->data == NULL;
    buffer_free(made);
    return failed ? status_out_of_memory() : status_ok();
}

/* A value, or a path, in its direction. */
static status turn(struct arena *arena, bytes from, enum ds_flip flip, bool is_path, bytes *out)
{
    struct buffer turned = {0};
    if (from.size == 0)
        return status_ok();
    if (is_path)
        ds_row_path_append(&turned, from, flip);
    else
        ds_bytes_append(&turned, from, flip);
    return ds_plan_keep(arena, &turned, out);
}

static status make_part(struct arena *arena, const struct ds_range *range, enum ds_flip flip,
                        bool is_path, struct ds_part *out)
{
    bool is_up = flip == DS_ASCENDING;
    bytes *excluded = arena_alloc(arena, range->excluded_count * sizeof *excluded);
    if (excluded == NULL)
        return status_out_of_memory();
    TRY(turn(arena, is_up ? range->low : range->high, flip, is_path, &out->start));
    TRY(turn(arena, is_up ? range->high : range->low, flip, is_path, &out->end));
    out->is_start_open = is_up ? range->is_low_open : range->is_high_open;
    out->is_end_open = is_up ? range->is_high_open : range->is_low_open;
    for (size_t i = 0; i < range->excluded_count; i++)
        TRY(turn(arena, range->excluded[i], flip, is_path, &excluded[i]));
    out->excluded = excluded;
    out->excluded_count = range->excluded_count;
    return status_ok();
}

status ds_parts_make(const struct ds_query *query, const struct ds_conjunction *conjunction,
                     struct arena *arena, const struct ds_part **out)
{
    size_t count = query->order_count;
    struct ds_part *parts = arena_zalloc(arena, (count + 1) * sizeof *parts);
    if (parts == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        const struct ds_order *order = &query->orders[i];
        const struct ds_equality *equality =
            ds_equality_find(conjunction, order->property, order->flip);
        const struct ds_range *range = ds_range_find(conjunction, order->property);
        if (equality != NULL)
            TRY(turn(arena, equality->value, order->flip, false, &parts[i].constant));
        if (range != NULL)
            TRY(make_part(arena, range, order->flip, false, &parts[i]));
    }
    *out = parts;
    return make_part(arena, &conjunction->keys, query->key_flip, true, &parts[count]);
}
