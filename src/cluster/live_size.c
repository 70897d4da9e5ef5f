/* See live_size.h. */
#include "cluster/live_size.h"

#include "cluster/table.h"
#include "tablet/key_bounds.h"

/* What is left of the range's bytes without those that were there when they were dropped. What has
 * been written since counts, as far as it is more than what has been given back since. */
static uint64_t without(uint64_t size, struct keyspace *keyspace, const struct row_drop_words *drop)
{
    uint64_t there = rows_size(keyspace, drop->from, drop->to);
    uint64_t dropped = there < drop->bytes ? there : drop->bytes;
    return size > dropped ? size - dropped : 0;
}

uint64_t live_size(struct keyspace *keyspace, struct row_drops *drops, bytes from, bytes to)
{
    struct row_drop_words drop = {.sequence = 0};
    struct buffer start = {0}, end = {0};
    uint64_t size = rows_size(keyspace, from, to);
    while (size > 0 && row_drops_within(drops, from, to, drop.sequence, &drop, &start, &end))
        size = start.failed || end.failed ? 0 : without(size, keyspace, &drop);
    buffer_free(&start);
    buffer_free(&end);
    return size;
}

uint64_t live_rows_size(const struct table *table, struct keyspace *keyspace, bytes from, bytes to)
{
    return live_size(keyspace, table_drops(table, keyspace), from, to);
}

uint64_t live_tablet_size(const struct table *table, const struct tablet *tablet)
{
    return live_rows_size(table, tablet->keyspace, tablet->start, tablet->end);
}

uint64_t live_table_size(const struct table *table)
{
    const bytes all = bytes_make(NULL, 0);
    uint64_t size = 0;
    for (size_t i = 0; i < table->space_count; i++)
        size += live_rows_size(table, table->spaces[i].keyspace, all, all);
    return size;
}
