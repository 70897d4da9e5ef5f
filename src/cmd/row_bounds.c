/* See row_bounds.h. */
#include "cmd/row_bounds.h"

/* The first key that does not begin so; empty if there is none. */
static status behind_prefix(bytes prefix, struct arena *arena, bytes *out)
{
    while (prefix.size > 0 && prefix.data[prefix.size - 1] == UINT8_MAX)
        prefix.size--;
    *out = arena_copy(arena, prefix);
    if (out->data == NULL)
        return status_out_of_memory();
    if (out->size > 0)
        ((uint8_t *)(uintptr_t)out->data)[out->size - 1]++;
    return status_ok();
}

status row_bounds_find(const char *prefix, const char *start, const char *end, struct arena *arena,
                       bytes *first, bytes *behind)
{
    *first = bytes_of(start == NULL ? "" : start);
    *behind = bytes_of(end == NULL ? "" : end);
    if (prefix == NULL)
        return status_ok();
    if (start != NULL || end != NULL)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "--prefix and --start or --end exclude each other");
    *first = bytes_of(prefix);
    return behind_prefix(*first, arena, behind);
}
