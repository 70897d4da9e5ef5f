/* How the fragments of one key add up: the row layer's `struct store_fold`.
 *
 * Folding goes by commit version, never by order of arrival (fragment.h, "Meaning"). Partial folds
 * only combine; whole folds also apply the garbage-collection rules and drop tombstones that have
 * nothing left to cover: those of the row's record stay while it has overflow cells and they are
 * newer than its `purged`, and those that rules.tombstones_from says. Keys that start with `S` fold
 * the same way, with one cell a record.
 *
 * Where no rules are known yet (row_fold.before) all adds are kept apart, whatever drops there may
 * be: folds that know them make them one.
 *
 * What a drop of rows covers (drops.h) goes in all folds that know the keyspace's drops, as under a
 * row tombstone, and with it what marks from before it say. The fold leaves no tombstone for it:
 * the drop is that, for as long as anything older may be somewhere.
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
#include "row/drops.h"
#include "row/schema.h"
#include "store/store.h"

#include <stdatomic.h>

/* What a keyspace's folds look at: handed to keyspace_set_rules. Immutable. */
struct row_rules {
    const struct schema *schema; /* NULL: nothing is collected */
    struct clock *clock;         /* NULL without a schema */
    /* Changes from this version on may still come, from another cluster: whole folds keep such
     * tombstones in rows' records, whatever they have left to cover, and all folds keep such adds
     * apart. (Adds that are one already stay so: where it is turned on, it is above all versions
     * that there are.) 0: none do. */
    uint64_t tombstones_from;
    /* The same, which rises while folds go on; NULL: it is the number above. */
    const _Atomic(uint64_t) *rising_from;
    bool keeps_adds; /* all of them apart */
    /* Of the keyspace; these change, and go by a lock of their own. NULL: no row is dropped. */
    struct row_drops *drops;
};

extern const struct store_fold row_fold;

/* A folded value as it is without what the drops cover, for who reads values as they are stored:
 * `*value` stays as it is, or is in `scratch` then. `*is_left` false: nothing is left of it.
 * `drops`: NULL, or with none that is held. DATA_LOSS if the value does not parse. */
status row_leave_out_dropped(struct row_drops *drops, bytes key, bytes *value,
                             struct buffer *scratch, bool *is_left);

#endif
