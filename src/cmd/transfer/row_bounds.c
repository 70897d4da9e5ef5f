/* See row_bounds.h. */
#include "cmd/transfer/row_bounds.h"

#include "row/row_key.h"

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
    return key_prefix_end(arena, *first, behind) ? status_ok() : status_out_of_memory();
}
