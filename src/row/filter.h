/* Row filters: described by a tree of filter_spec, checked and compiled once, applied to each row.
 *
 * They are those of google.bigtable.v2.RowFilter, whose messages bigtable/filter_message.h makes
 * descriptions of. A compiled filter is immutable and may be used by several threads at a time. */
#ifndef TRESTLE_ROW_FILTER_H
#define TRESTLE_ROW_FILTER_H

#include "row/cell.h"
#include "row/resolve.h"

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

enum { CONDITION_PREDICATE, CONDITION_THEN, CONDITION_OTHERWISE, CONDITION_CHILDREN };

/* A filter as a request describes it; only what the kind has is looked at. */
struct filter_spec {
    enum filter_kind kind;
    bool is_off; /* of those that have no argument: "false" was given, which is refused */
    /* Chain and interleave: at least two. Condition: CONDITION_CHILDREN, of which then and
     * otherwise may be NULL: nothing passes. */
    const struct filter_spec *const *children;
    size_t child_count;
    bytes pattern; /* a regular expression */
    bytes family;  /* of a column range: its name */
    struct byte_range range;
    bytes mask;
    int64_t start_us;
    int64_t end_us; /* exclusive; 0: none */
    int32_t count;
    double probability;
    bytes label;
};

struct filter;

/* Checks and compiles; INVALID_ARGUMENT with production's words. `spec` NULL passes all: `*out` is
 * then NULL, which every function here takes. Bytes that the description names are kept: they must
 * outlive the filter. Its memory is the arena's, except that of regular expressions: hence
 * filter_destroy. */
status filter_compile(const struct filter_spec *spec, struct arena *arena, struct filter **out);
void filter_destroy(struct filter *filter);

/* INVALID_ARGUMENT if filters are nested deeper than they may be; the outermost one is at 1. */
status filter_check_depth(int depth);

/* What of a row the filter can make use of. Memory from the arena. */
status filter_scope(const struct filter *filter, const struct schema *schema, struct arena *arena,
                    struct read_scope *out);

/* Whether the filter, or one in it, is of the kind. */
bool filter_contains(const struct filter *filter, enum filter_kind kind);

/* Whether the filter can drop the row by its key alone, before anything else is read. */
bool filter_rejects_key(const struct filter *filter, bytes row_key);

/* Whether the filter, or one in it, judges cells by their values. */
bool filter_looks_at_values(const struct filter *filter);

/* Whether `has` says yes to each family that the filter names, wherever in it: as a column range's,
 * or by a pattern that is no more than a name. */
bool filter_names_only(const struct filter *filter, bool (*has)(void *context, bytes family),
                       void *context);

/* The values of a row's cells that were left in the store (cell_is_deferred). */
struct value_source {
    /* The value of the cell, or of a copy; valid until the next call. */
    status (*get)(struct value_source *source, const struct cell *cell, bytes *value);
};

/* What of `in` passes, into `out` (emptied first; may not be the same list). `random` gives
 * row_sample its coin: a uniform 64-bit number a row. `left` is asked for each value that was left
 * in the store as often as the filter looks at it, in the order of the cells where it can be; what
 * it fails with is returned. The value stays left in what passes. NULL: none was left. */
status filter_apply(const struct filter *filter, bytes row_key, const struct cell_list *in,
                    uint64_t random, struct value_source *left, struct cell_list *out);

#endif
