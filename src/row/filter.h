/* Row filters (google.bigtable.v2.RowFilter): checked and compiled once, applied to each row.
 *
 * A compiled filter is immutable and may be used by several threads at a time. */
#ifndef TRESTLE_ROW_FILTER_H
#define TRESTLE_ROW_FILTER_H

#include "row/cell.h"
#include "row/resolve.h"

struct filter;
struct Bt__RowFilter;

/* Checks and compiles; INVALID_ARGUMENT with production's words. `message` NULL passes all: `*out`
 * is then NULL, which every function here takes. Slices of the message are kept: it must outlive
 * the filter. Its memory is the arena's, but for regular expressions: hence filter_destroy. */
status filter_compile(const struct Bt__RowFilter *message, struct arena *arena,
                      struct filter **out);
void filter_destroy(struct filter *filter);

/* What of a row the filter can make use of. Memory from the arena. */
status filter_scope(const struct filter *filter, const struct schema *schema, struct arena *arena,
                    struct read_scope *out);

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
