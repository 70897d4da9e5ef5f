/* See change.h. */
#include "formats/change.h"

#include "base/limits.h"

#include <inttypes.h>

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

/* --- limits --- */

#define INVALID(...) status_make(STATUS_INVALID_ARGUMENT, __VA_ARGS__)

static status check_cell(const struct move_cell *cell)
{
    enum { SHOWN = 100, MILLISECOND = 1000 };
    int shown = cell->qualifier.size < SHOWN ? (int)cell->qualifier.size : SHOWN;
    const char *name = (const char *)cell->qualifier.data;
    if (cell->qualifier.size > LIMIT_QUALIFIER_BYTES)
        return INVALID("the name %.*s… has %zu bytes, more than %d", shown, name,
                       cell->qualifier.size, LIMIT_QUALIFIER_BYTES);
    if (cell->value.size > LIMIT_CELL_BYTES)
        return INVALID("the value of %.*s has %zu bytes, more than %d", shown, name,
                       cell->value.size, LIMIT_CELL_BYTES);
    if (cell->timestamp_us < 0 || cell->timestamp_us % MILLISECOND != 0)
        return INVALID("the timestamp %" PRId64 " of %.*s is not of whole milliseconds since 1970",
                       cell->timestamp_us, shown, name);
    return status_ok();
}

status move_change_check(const struct move_change *change)
{
    if (change->row_key.size == 0)
        return INVALID("the row key is empty");
    if (change->row_key.size > LIMIT_ROW_KEY_BYTES)
        return INVALID("the row key has %zu bytes, more than %d", change->row_key.size,
                       LIMIT_ROW_KEY_BYTES);
    for (size_t i = 0; i < change->count; i++)
        TRY(check_cell(&change->cells[i]));
    return status_ok();
}
