/* Compiled filters: a tree that mirrors the message's. For the filter_*.c files. */
#ifndef TRESTLE_ROW_FILTER_PRIVATE_H
#define TRESTLE_ROW_FILTER_PRIVATE_H

#include "row/filter.h"
#include "row/regex.h"

enum filter_kind {
    FILTER_PASS,
    FILTER_BLOCK,
    FILTER_CHAIN,
    FILTER_INTERLEAVE,
    FILTER_CONDITION,
    FILTER_SINK,
    FILTER_KEY_REGEX,
    FILTER_FAMILY_REGEX,
    FILTER_QUALIFIER_REGEX,
    FILTER_VALUE_REGEX,
    FILTER_COLUMN_RANGE,
    FILTER_VALUE_RANGE,
    FILTER_VALUE_BITMASK,
    FILTER_TIMESTAMP_RANGE,
    FILTER_ROW_OFFSET,
    FILTER_ROW_LIMIT,
    FILTER_COLUMN_LIMIT,
    FILTER_STRIP_VALUE,
    FILTER_LABEL,
    FILTER_ROW_SAMPLE,
};

/* Bytes from `start` to `end`; a bound that is not there does not bound. */
struct byte_range {
    bool has_start;
    bool start_is_open;
    bool has_end;
    bool end_is_open;
    bytes start;
    bytes end;
};

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

enum { CONDITION_PREDICATE, CONDITION_THEN, CONDITION_OTHERWISE, CONDITION_CHILDREN };

bool byte_range_contains(const struct byte_range *range, bytes b);

/* Whether it judges a cell by its value, itself. */
static inline bool filter_is_of_values(const struct filter *filter)
{
    return filter->kind == FILTER_VALUE_REGEX || filter->kind == FILTER_VALUE_RANGE ||
           filter->kind == FILTER_VALUE_BITMASK;
}

/* Whether the filter, or one in it, is of the kind. */
bool filter_contains(const struct filter *filter, enum filter_kind kind);

#endif
