/* Cells as a reader sees them. */
#ifndef TRESTLE_ROW_CELL_H
#define TRESTLE_ROW_CELL_H

#include "base/arena.h"
#include "row/schema.h"

struct label {
    bytes text;
    const struct label *next;
};

struct cell {
    const struct family *family;
    bytes qualifier;
    int64_t timestamp_us;
    bytes value;                /* may be left in the store: cell_is_deferred */
    const struct label *labels; /* in the order in which filters gave them */
};

/* Whether the value was left in the store: its size is known, and it has no data. Only readers that
 * ask for it get such cells (resolve_request.defer_after). */
static inline bool cell_is_deferred(const struct cell *cell)
{
    return cell->value.data == NULL && cell->value.size > 0;
}

/* Cells of one row in the order of the API: family by name, qualifier, newest first; filters that
 * interleave may repeat a cell. The array lives in the arena. All zeroes but the arena is empty. */
struct cell_list {
    struct arena *arena;
    struct cell *items;
    size_t count;
    size_t capacity;
};

/* Whether the value of one of them was left in the store. */
bool cell_list_has_deferred(const struct cell_list *list);

/* False when the arena is exhausted. */
__attribute__((warn_unused_result)) bool cell_list_add(struct cell_list *list,
                                                       const struct cell *cell);

#endif
