/* Spilling: what moves a row's cells out of its record, and what clears away spilled cells that the
 * record's tombstones cover (docs/internals/architecture.md, "A row is one record").
 *
 * Both only note down what is to be written, for a row whose lock is held and whose record is given
 * as it is now; the mark that goes with it is the caller's, since it carries the version. */
#ifndef TRESTLE_TABLET_SPILL_H
#define TRESTLE_TABLET_SPILL_H

#include "row/fold.h"
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

/* Deletes spilled cells that rules condemn which count versions, and which no fold can collect,
 * since it sees neither the record nor other cells of the column. `by_record` deletes those for
 * which there are enough newer cells in the record: at a seek a column, so do it with a spill.
 * `by_themselves` counts the spilled cells, some thousand from the row's first on: after a purge,
 * since cells that a tombstone covers do not count. */
status spill_collect_by_record(struct keyspace *keyspace, bytes row_key, bytes record,
                               const struct row_rules *rules, struct deferred_batch *out);
status spill_collect_by_themselves(struct keyspace *keyspace, bytes row_key,
                                   const struct row_rules *rules, struct deferred_batch *out);

/* Whether the row has spilled cells at all. */
status spill_exists(struct keyspace *keyspace, bytes row_key, bool *exists);

#endif
