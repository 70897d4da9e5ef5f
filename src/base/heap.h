/* A binary heap of pointers, least first, in an array of the caller's.
 *
 * `before` says whether its first argument belongs above its second; the same for all calls on one
 * heap. The functions are inline so that a constant `before` is inlined too. */
#ifndef TRESTLE_BASE_HEAP_H
#define TRESTLE_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/* Puts the first item where it belongs after it has changed, or was put in another's place. */
static inline void heap_fix_first(void **items, size_t count,
                                  bool (*before)(const void *, const void *))
{
    void *item = count > 0 ? items[0] : NULL;
    size_t at = 0;
    for (size_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && before(items[child + 1], items[child]))
            child++;
        if (!before(items[child], item))
            break;
        items[at] = items[child];
        at = child;
    }
    if (count > 0)
        items[at] = item;
}

/* The array must have room for one more. */
static inline void heap_push(void **items, size_t *count, void *item,
                             bool (*before)(const void *, const void *))
{
    size_t at = (*count)++;
    for (size_t parent; at > 0 && before(item, items[parent = (at - 1) / 2]); at = parent)
        items[at] = items[parent];
    items[at] = item;
}

/* Takes off the first item; the heap must have one. */
static inline void *heap_pop(void **items, size_t *count,
                             bool (*before)(const void *, const void *))
{
    void *first = items[0];
    items[0] = items[--*count];
    heap_fix_first(items, *count, before);
    return first;
}

#endif
