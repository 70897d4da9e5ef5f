/* Lists that grow, in an arena. */
#ifndef TRESTLE_BASE_VECTOR_H
#define TRESTLE_BASE_VECTOR_H

#include "base/arena.h"
#include "base/status.h"

struct vector {
    void *items;
    size_t count;
    size_t capacity;
};

/* Adds a copy of an item of `size` bytes, the same for all of a list. */
static inline status vector_add(struct vector *vector, struct arena *arena, const void *item,
                                size_t size)
{
    if (vector->count == vector->capacity) {
        size_t capacity = vector->capacity == 0 ? 8 : 2 * vector->capacity;
        void *items = arena_alloc(arena, capacity * size);
        if (items == NULL)
            return status_out_of_memory();
        if (vector->count > 0)
            memcpy(items, vector->items, vector->count * size);
        vector->items = items;
        vector->capacity = capacity;
    }
    memcpy((char *)vector->items + vector->count++ * size, item, size);
    return status_ok();
}

#endif
