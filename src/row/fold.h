/* How the fragments of one key add up: the row layer's `struct store_fold`.
 *
 * Folding goes by commit version, never by order of arrival (fragment.h, "Meaning"). Partial folds
 * only combine; whole folds also apply the garbage-collection rules and drop tombstones that have
 * nothing left to cover: those of the row's record stay while it has overflow cells and they are
 * newer than its `purged`, and those that rules.tombstones_from says. Keys that start with `S` fold
 * the same way, with one cell a record.
 *
 * While a row has overflow cells, folds count no versions, in either key space: a cell that was
 * dropped here because there are enough newer ones could uncover an older value of itself there.
 *
 * A tombstone cannot take back what was already added up across it. So adds become one only as far
 * as no tombstone can come between them any more: below rules.tombstones_from. From there on they
 * are kept apart, in either key space, and each version counts once, however often it comes. */
#ifndef TRESTLE_ROW_FOLD_H
#define TRESTLE_ROW_FOLD_H

#include "base/clock.h"
#include "row/schema.h"
#include "store/store.h"

/* What a keyspace's folds look at: handed to keyspace_set_rules. Immutable. */
struct row_rules {
    const struct schema *schema; /* NULL: nothing is collected */
    struct clock *clock;         /* NULL without a schema */
    /* Changes from this version on may still come, from another cluster: whole folds keep such
     * tombstones in rows' records, whatever they have left to cover, and all folds keep such adds
     * apart. (Adds that are one already stay so: where it is turned on, it is above all versions
     * that there are.) 0: none do. */
    uint64_t tombstones_from;
};

extern const struct store_fold row_fold;

#endif
