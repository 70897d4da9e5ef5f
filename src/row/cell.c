/* Lists of cells: see cell.h. */
#include "row/cell.h"

#include "base/check.h"

enum { FIRST_CAPACITY = 16 };

static bool grow(struct cell_list *list)
{
    DCHECK(list->count == list->capacity);
    size_t capacity = list->capacity == 0 ? FIRST_CAPACITY : list->capacity * 2;
    struct cell *items = arena_alloc(list->arena, capacity * sizeof *items);
    if (items == NULL)
        return false;
    if (list->count > 0)
        memcpy(items, list->items, list->count * sizeof *items);
    list->items = items;
    list->capacity = capacity;
    return true;
}

bool cell_list_add(struct cell_list *list, const struct cell *cell)
{
    DCHECK(list->count <= list->capacity);
    if (list->count == list->capacity && !grow(list))
        return false;
    list->items[list->count++] = *cell;
    return true;
}

bool cell_list_has_deferred(const struct cell_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (cell_is_deferred(&list->items[i]))
            return true;
    return false;
}
