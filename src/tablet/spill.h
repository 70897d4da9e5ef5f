/* Spilling: what moves a row's cells out of its record, and what clears away spilled cells that the
 * record's tombstones cover (docs/internals/architecture.md, "A row is one record").
 *
 * Both only note down what is to be written, for a row whose lock is held and whose record is given
 * as it is now; the mark that goes with it is the caller's, since it carries the version. */
#ifndef TRESTLE_TABLET_SPILL_H
#define TRESTLE_TABLET_SPILL_H

#include "row/resolve.h"
#include "tablet/deferred_batch.h"

/* All cells of the record, as operands of `S` records. `*moved`: the greatest version among them,
 * for the mark; 0 if there are none. */
status spill_cells(bytes row_key, bytes record, struct deferred_batch *out, uint64_t *moved);

/* Deletes spilled cells that tombstones of the record cover which are newer than its `purged`.
 * `*purged`: the newest of them, for the mark; 0 if there are none.
 *
 * How quick it is does not depend on the number of cells that one tombstone covers if none of them
 * is newer than it, which the record's mark tells: then a few are looked at, and a range delete
 * does the rest. Else the cells in its range are walked through. */
status spill_purge(struct keyspace *keyspace, bytes row_key, bytes record,
                   struct deferred_batch *out, uint64_t *purged);

/* Whether the row has spilled cells at all. */
status spill_exists(struct keyspace *keyspace, bytes row_key, bool *exists);

#endif
