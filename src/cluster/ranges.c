/* Sizes of ranges of a table's rows: SampleRowKeys. */
#include "cluster/ranges.h"

#include "base/check.h"
#include "cluster/cluster_private.h"
#include "cluster/live_size.h"
#include "cluster/midpoint.h"

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

uint64_t table_stored_bytes(const struct table *table)
{
    uint64_t size = 0;
    for (size_t i = 0; i < table->space_count; i++) {
        const struct keyspace_bytes bytes = keyspace_bytes(table->spaces[i].keyspace);
        size += bytes.tables + bytes.buffered;
    }
    return size;
}

/* --- parts ---
 *
 * A piece that the store cuts is up to half too small. So a part ends where all so far have about
 * as much as so many parts should: else the last would get what all others lack. */

struct division {
    struct table *table;
    bytes to;
    struct buffer at;  /* what comes before is divided */
    struct buffer end; /* of the piece in hand */
    uint64_t part;     /* bytes that one is to have */
    uint64_t done;     /* bytes before `at` */
};

/* The next piece: as much as lies in one tablet, and up to `target` bytes from the beginning. */
static status next_piece(struct division *division, uint64_t target)
{
    struct tablet *tablet = table_route(division->table, buffer_bytes(&division->at));
    bool is_last = tablet->end.size == 0 ||
                   (division->to.size > 0 && bytes_compare(division->to, tablet->end) <= 0);
    buffer_clear(&division->end);
    buffer_append_bytes(&division->end, is_last ? division->to : tablet->end);
    status s = division->end.failed ? status_out_of_memory()
                                    : rows_piece_end(tablet->keyspace, buffer_bytes(&division->at),
                                                     target - division->done, &division->end);
    if (status_is_ok(s))
        division->done += live_rows_size(division->table, tablet->keyspace,
                                         buffer_bytes(&division->at), buffer_bytes(&division->end));
    tablet_release(tablet);
    return s;
}

static status go_to_end(struct division *division)
{
    buffer_clear(&division->at);
    buffer_append_bytes(&division->at, buffer_bytes(&division->end));
    return division->at.failed ? status_out_of_memory() : status_ok();
}

/* Up to the border behind so many parts, or to the end of all: then `*found` is false. */
static status next_border(struct division *division, size_t parts, bool *found)
{
    uint64_t target = parts * division->part;
    if (target < division->done + division->part / 2)
        target = division->done + division->part;
    do {
        TRY(next_piece(division, target));
        *found = !bytes_equal(buffer_bytes(&division->end), division->to) &&
                 bytes_compare(buffer_bytes(&division->at), buffer_bytes(&division->end)) < 0;
        if (*found)
            TRY(go_to_end(division));
    } while (*found && division->done + division->part / 4 < target);
    return status_ok();
}

static status find_borders(struct division *division, size_t most, struct arena *arena,
                           bytes *borders, size_t *count)
{
    bool found = true;
    while (*count < most) {
        TRY(next_border(division, *count + 1, &found));
        if (!found)
            break;
        borders[*count] = arena_copy(arena, buffer_bytes(&division->at));
        if (borders[*count].data == NULL)
            return status_out_of_memory();
        ++*count;
    }
    return status_ok();
}

status table_divide(struct table *table, bytes from, bytes to, size_t most, struct arena *arena,
                    bytes **borders, size_t *count)
{
    uint64_t size;
    *count = 0;
    TRY(table_range_size(table, from, to, &size));
    if (size < 2 * (uint64_t)TABLE_PART_BYTES || most < 2)
        return status_ok();
    *borders = arena_alloc(arena, (most - 1) * sizeof **borders);
    if (*borders == NULL)
        return status_out_of_memory();
    struct division division = {.table = table, .to = to, .part = size / most};
    if (division.part < TABLE_PART_BYTES)
        division.part = TABLE_PART_BYTES;
    buffer_append_bytes(&division.at, from);
    status s = division.at.failed ? status_out_of_memory()
                                  : find_borders(&division, most - 1, arena, *borders, count);
    buffer_free(&division.at);
    buffer_free(&division.end);
    return s;
}
