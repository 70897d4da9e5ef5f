/* See change.h. */
#include "move/change.h"

static status make_room(struct move_change *change, struct arena *arena)
{
    if (change->count < change->capacity)
        return status_ok();
    size_t capacity = change->capacity == 0 ? 16 : 2 * change->capacity;
    struct move_cell *cells = arena_alloc(arena, capacity * sizeof *cells);
    if (cells == NULL)
        return status_out_of_memory();
    if (change->count > 0)
        memcpy(cells, change->cells, change->count * sizeof *cells);
    change->cells = cells;
    change->capacity = capacity;
    return status_ok();
}

status move_change_add(struct move_change *change, struct arena *arena,
                       const struct move_cell *cell)
{
    TRY(make_room(change, arena));
    change->cells[change->count++] = *cell;
    change->bytes += cell->qualifier.size + cell->value.size;
    return status_ok();
}
