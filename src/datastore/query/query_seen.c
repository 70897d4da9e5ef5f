/* A set of the results that have been: see query_seen.h. */
#include "datastore/query/query_seen.h"

/* The slot of the result, or the one where it would be. */
static bytes *find_slot(const struct ds_seen *seen, bytes what)
{
    size_t at = bytes_hash(what) & (seen->capacity - 1);
    while (seen->slots[at].data != NULL && !bytes_equal(seen->slots[at], what))
        at = (at + 1) & (seen->capacity - 1);
    return &seen->slots[at];
}

static status grow(struct ds_seen *seen, struct arena *arena)
{
    struct ds_seen larger = {.capacity = seen->capacity == 0 ? 64 : 2 * seen->capacity,
                             .count = seen->count};
    larger.slots = arena_zalloc(arena, larger.capacity * sizeof *larger.slots);
    if (larger.slots == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < seen->capacity; i++)
        if (seen->slots[i].data != NULL)
            *find_slot(&larger, seen->slots[i]) = seen->slots[i];
    *seen = larger;
    return status_ok();
}

status ds_seen_add(struct ds_seen *seen, bytes what, struct arena *arena, bool *is_new)
{
    if (2 * seen->count >= seen->capacity)
        TRY(grow(seen, arena));
    bytes *slot = find_slot(seen, what);
    *is_new = slot->data == NULL;
    if (!*is_new)
        return status_ok();
    *slot = arena_copy(arena, what);
    seen->count++;
    return slot->data == NULL ? status_out_of_memory() : status_ok();
}
