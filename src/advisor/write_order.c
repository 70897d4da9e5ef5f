/* See write_order.h. */
#include "advisor/write_order.h"

#include "advisor/thresholds.h"

int64_t first_written(const struct advice_row *row)
{
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < row->cell_count; i++)
        if (row->cells[i].timestamp_us < first)
            first = row->cells[i].timestamp_us;
    return first == INT64_MAX || first < FIRST_TIME_US ? 0 : first;
}

static void hold_against(const struct ranked *one, const struct ranked *other,
                         struct write_order *out)
{
    if (other->written_us == 0 || other->written_us == one->written_us || other->rank == one->rank)
        return;
    out->pairs++;
    out->rising += (other->written_us < one->written_us) == (other->rank < one->rank);
}

struct write_order write_order_of(const struct ranked *all, size_t count)
{
    enum { LOOKED_AT = 1000 };
    struct write_order order = {0};
    size_t step = count / LOOKED_AT + 1;
    int64_t first = INT64_MAX, last = 0;
    for (size_t i = 0; i < count; i += step) {
        int64_t at = all[i].written_us;
        if (at == 0)
            continue;
        first = at < first ? at : first;
        last = at > last ? at : last;
        for (size_t j = 0; j < i; j += step)
            hold_against(&all[i], &all[j], &order);
    }
    order.span_us = last > first ? last - first : 0;
    return order;
}

bool write_order_is_known(const struct write_order *order)
{
    return order->pairs >= ORDER_PAIRS;
}

bool write_order_rises(const struct write_order *order, unsigned percent)
{
    return write_order_is_known(order) && order->rising * 100 >= order->pairs * percent;
}

bool write_order_falls(const struct write_order *order, unsigned percent)
{
    return write_order_is_known(order) &&
           (order->pairs - order->rising) * 100 >= order->pairs * percent;
}
