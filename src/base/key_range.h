/* Ranges of keys, of rows or of a store: from a first key up to, but not including, an end. An
 * empty end is no bound. */
#ifndef TRESTLE_BASE_KEY_RANGE_H
#define TRESTLE_BASE_KEY_RANGE_H

#include "base/bytes.h"

static inline bool key_is_before_end(bytes key, bytes end)
{
    return end.size == 0 || bytes_compare(key, end) < 0;
}

/* Whether the ranges, neither of which is empty, have keys in common. */
static inline bool key_ranges_meet(bytes start, bytes end, bytes other_start, bytes other_end)
{
    return key_is_before_end(start, other_end) && key_is_before_end(other_start, end);
}

#endif
