/* How the fragments of one key add up: the row layer's `struct store_fold`.
 *
 * Folding goes by commit version, never by order of arrival (fragment.h, "Meaning"). Partial folds
 * only combine; whole folds also apply the garbage-collection rules and drop tombstones that have
 * nothing left to cover: those of the row's record stay while it has spilled cells and they are
 * newer than its `purged`, and those that rules.tombstones_from says. Keys that start with `S` fold
 * the same way, with one cell a record.
 *
 * While a row has spilled cells, folds count no versions, in either key space: a cell that was
 * dropped here because there are enough newer ones could uncover an older value of itself there.
 *
 * Aggregates want neighbouring operands in the order of their versions, as the commit queue writes
 * them: a tombstone cannot take back what was already added up across it. */
#ifndef TRESTLE_ROW_FOLD_H
#define TRESTLE_ROW_FOLD_H

#include "base/clock.h"
#include "row/schema.h"
#include "store/store.h"

/* What a keyspace's folds look at: handed to keyspace_set_rules. Immutable. */
struct row_rules {
    const struct schema *schema; /* NULL: nothing is collected */
    struct clock *clock;         /* NULL without a schema */
    /* Whole folds keep tombstones from this version on in rows' records, whatever they have left to
     * cover: cells that are older may still come, from another cluster. 0: none do. */
    uint64_t tombstones_from;
};

extern const struct store_fold row_fold;

#endif
