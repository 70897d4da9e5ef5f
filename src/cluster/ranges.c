/* Sizes of ranges of a table's rows: SampleRowKeys. */
#include "cluster/ranges.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/live_size.h"

#include <stdlib.h>

status table_sample(struct table *table,
                    bool (*visit)(void *context, bytes end, uint64_t offset_bytes), void *context)
{
    struct tablet **tablets;
    size_t count;
    uint64_t offset = 0;
    bool go_on = true;
    TRY(table_tablets(table, &tablets, &count));
    for (size_t i = 0; i < count; i++) {
        if (go_on) {
            offset += live_tablet_size(table, tablets[i]);
            go_on = visit(context, tablets[i]->end, offset);
        }
        tablet_release(tablets[i]);
    }
    free(tablets);
    return status_ok();
}

/* Of the tablet's rows those in the range. */
static uint64_t size_within(const struct table *table, const struct tablet *tablet, bytes from,
                            bytes to)
{
    if (bytes_compare(from, tablet->start) < 0)
        from = tablet->start;
    if (to.size == 0 || (tablet->end.size > 0 && bytes_compare(tablet->end, to) < 0))
        to = tablet->end;
    bool is_empty = to.size > 0 && bytes_compare(from, to) >= 0;
    return is_empty ? 0 : live_rows_size(table, tablet->keyspace, from, to);
}

status table_range_size(struct table *table, bytes from, bytes to, uint64_t *out)
{
    struct tablet **tablets;
    size_t count;
    *out = 0;
    TRY(table_tablets(table, &tablets, &count));
    for (size_t i = 0; i < count; i++) {
        *out += size_within(table, tablets[i], from, to);
        tablet_release(tablets[i]);
    }
    free(tablets);
    return status_ok();
}
