/* See pending_rows.h. */
#include "client/pending_rows.h"

#include "base/check.h"

static bool has_turn(const struct move_change *change)
{
    return change->replaces || change->in_order;
}

bool pending_rows_blocks(const struct pending_rows *rows, const struct move_change *change)
{
    if (!has_turn(change) && rows->with_turn == 0) /* as in most transfers */
        return false;
    uint64_t hash = bytes_hash(change->row_key);
    const struct pending_row *row = rows->buckets[hash % PENDING_BUCKETS];
    for (; row != NULL; row = row->next)
        if (row->hash == hash && (row->has_turn || has_turn(change)))
            return true;
    return false;
}

void pending_rows_add(struct pending_rows *rows, const struct move_change *change,
                      struct pending_row *row)
{
    row->hash = bytes_hash(change->row_key);
    row->has_turn = has_turn(change);
    rows->with_turn += row->has_turn;
    struct pending_row **bucket = &rows->buckets[row->hash % PENDING_BUCKETS];
    row->next = *bucket;
    *bucket = row;
}

void pending_rows_remove(struct pending_rows *rows, struct pending_row *row)
{
    struct pending_row **at = &rows->buckets[row->hash % PENDING_BUCKETS];
    while (*at != row) {
        CHECK(*at != NULL);
        at = &(*at)->next;
    }
    *at = row->next;
    rows->with_turn -= row->has_turn;
}
