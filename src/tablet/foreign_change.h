/* Changes that another cluster made, and that keep the version it gave them: applied exactly,
 * whatever the row has seen since (version.h; fragment.h, "Meaning").
 *
 * A change of our own is newer than all that its row has, so it may be added blindly, as an
 * operand. An older one may not:
 *  - cells of the record up to its mark's `moved` count as overflow cells, so an older cell would
 *    vanish: it has to go among those, if the row has any;
 *  - tombstones up to `purged` have done their work there, so an older one would do none: it has to
 *    do it now;
 *  - an older cell that a tombstone of the record covers is no cell at all, wherever it goes;
 *  - of two marks the newer one says whether there are overflow cells, so an older one that says
 *    that there are, now, would not be heard.
 * So the row is read under its lock, and what it and the change come to takes the place of all its
 * operands, in one batch with what becomes of its overflow cells.
 *
 * What tombstones cover must be known as long as older cells may still come: folds drop tombstones
 * except those that row_rules.tombstones_from tells them to keep. And what was added up in an
 * aggregate stays so, so these keep adds from that version on apart: a tombstone that comes late
 * covers those that are older, and a change that comes twice adds once. What is older than that
 * must not come. */
#ifndef TRESTLE_TABLET_FOREIGN_CHANGE_H
#define TRESTLE_TABLET_FOREIGN_CHANGE_H

#include "row/fold.h"
#include "row/fragment.h"
#include "tablet/deferred_batch.h"

/* All zeroes is empty. */
struct foreign_change {
    struct buffer record;            /* what the row's record comes to; a fragment */
    struct deferred_batch overflows; /* what becomes of overflow cells */
};

/* `rules`, the keyspace's; NULL: nothing is collected, and tombstones that have nothing to cover
 * go.
 *
 * Works out what the change, which has its version (fragment_set_version), makes of the row: with
 * the row's lock held, all that was submitted under it applied, and until it is written nothing
 * else of the row's submitted. Applied twice it changes nothing. Blocks. DATA_LOSS.
 */
status foreign_change_prepare(struct keyspace *keyspace, bytes row_key,
                              const struct packed_change *change, const struct row_rules *rules,
                              struct foreign_change *out);
void foreign_change_free(struct foreign_change *change);

/* `record_key` is the row's (row_record_key). */
void foreign_change_write(const struct foreign_change *change, struct keyspace *keyspace,
                          bytes record_key, struct store_batch *batch);

#endif
