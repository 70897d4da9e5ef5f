/* How the fragments of one key add up: the row layer's `struct store_fold`.
 *
 * Folding goes by commit version, never by order of arrival (fragment.h, "Meaning"). Partial folds
 * only combine; whole folds also apply the garbage-collection rules and drop tombstones that have
 * nothing left to cover: those of the row's record stay while it has spilled cells and they are
 * newer than its `purged`. Keys that start with `S` fold the same way, with one cell a record. */
#ifndef TRESTLE_ROW_FOLD_H
#define TRESTLE_ROW_FOLD_H

#include "base/clock.h"
#include "row/schema.h"
#include "store/store.h"

/* What a keyspace's folds look at: handed to keyspace_set_rules. Immutable. */
struct row_rules {
    const struct schema *schema;
    struct clock *clock;
};

extern const struct store_fold row_fold;

#endif
