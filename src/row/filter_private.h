/* Compiled filters: a tree that mirrors the description's. For the filter_*.c files. */
#ifndef TRESTLE_ROW_FILTER_PRIVATE_H
#define TRESTLE_ROW_FILTER_PRIVATE_H

#include "row/filter.h"
#include "row/regex.h"

struct filter {
    enum filter_kind kind;
    /* Chain and interleave: the children in order. Condition: predicate, then, otherwise; the
     * latter two may be NULL: nothing passes. */
    struct filter **children;
    size_t child_count;
    struct regex *regex;
    bytes family; /* column range's; or a family regex's that is no more than a name; else empty */
    struct byte_range range;
    bytes mask;
    int64_t start_us;
    int64_t end_us; /* exclusive; INT64_MAX: none */
    int32_t count;
    double probability;
    bytes label;
};

bool byte_range_contains(const struct byte_range *range, bytes b);

/* Whether it judges a cell by its value, itself. */
static inline bool filter_is_of_values(const struct filter *filter)
{
    return filter->kind == FILTER_VALUE_REGEX || filter->kind == FILTER_VALUE_RANGE ||
           filter->kind == FILTER_VALUE_BITMASK;
}

#endif
