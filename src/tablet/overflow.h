/* Overflowing: what moves a row's cells out of its record, and what clears away overflow cells that
 * the record's tombstones cover or that rules condemn (docs/internals/architecture.md, "A row is
 * one record").
 *
 * All only note down what is to be written, for a row whose lock is held and whose record is given
 * as it is now; the mark that goes with it is the caller's, since it carries the version. */
#ifndef TRESTLE_TABLET_OVERFLOW_H
#define TRESTLE_TABLET_OVERFLOW_H

#include "row/fold.h"
#include "row/resolve.h"
#include "tablet/deferred_batch.h"

/* All cells of the record, as operands of `S` records. `*moved`: the greatest version among them,
 * for the mark; 0 if there are none. */
status move_to_overflow(bytes row_key, bytes record, struct deferred_batch *out, uint64_t *moved);

/* Deletes overflow cells that tombstones of the record cover which are newer than its `purged`.
 * `*purged`: the newest of them, for the mark; 0 if there are none.
 *
 * How quick it is does not depend on the number of cells that one tombstone covers if none of them
 * is newer than it, which the record's mark tells: then a few are looked at, and a range delete
 * does the rest. Else the cells in its range are walked through. */
status overflow_purge(struct keyspace *keyspace, bytes row_key, bytes record,
                      struct deferred_batch *out, uint64_t *purged);

/* Deletes overflow cells that the tombstones of the fragment, which has nothing else, cover. */
status overflow_purge_under(struct keyspace *keyspace, bytes row_key, bytes tombstones,
                            struct deferred_batch *out);

/* Deletes overflow cells for which there are enough newer cells in the record, by a seek a column:
 * with an overflow, so that columns that are written over and over do not grow. */
status overflow_collect_by_record(struct keyspace *keyspace, bytes row_key, bytes record,
                                  const struct row_rules *rules, struct deferred_batch *out);

/* How far a row has been collected. All zeroes: not at all. */
struct overflow_place {
    bool bypasses_cache;     /* set by the caller: the row is at rest; leaves the cache alone */
    bool is_over;            /* nothing is left */
    uint32_t family;         /* of the column that comes next; 0: the first */
    struct buffer qualifier; /* the caller frees it */
};

/* Collects, from `place` on, what the rules condemn and no fold can collect, since it sees neither
 * both sides nor other cells of the column: deletes such overflow cells, and makes of those in the
 * record a fragment of column tombstones with version 0, empty if there are none, which is to be
 * committed with the deletes. Looks at some thousand cells and moves the place. After a purge: what
 * a tombstone covers does not count. */
status overflow_collect(struct keyspace *keyspace, bytes row_key, bytes record,
                        const struct row_rules *rules, struct overflow_place *place,
                        struct deferred_batch *out, struct buffer *cuts);

/* The same for a table whose deletions are recorded, and for any row: makes of all that the rules
 * condemn, in the record and of overflow cells, a fragment of column tombstones, each over a
 * column's oldest cells, with version 0, empty if there are none. Nothing is deleted: that is for
 * the commit that has them. */
status overflow_condemn(struct keyspace *keyspace, bytes row_key, bytes record,
                        const struct row_rules *rules, struct overflow_place *place,
                        struct buffer *cuts);

/* Whether the row has overflow cells at all. */
status overflow_exists(struct keyspace *keyspace, bytes row_key, bool *exists);

/* --- overflow cells that are lost: overflow_lost.c --- */

/* The lost overflow cells of a row: those whose keys lie in [from, to). */
struct lost_overflow {
    bytes row_key;
    bytes from;
    bytes to;
};

/* What the record has at the places of lost cells is not what was there: an older value, which one
 * of them may have replaced, or the rest of a sum. `rest` gets the record without such cells;
 * `*has_cut`: there are some. */
status overflow_cut_lost(const struct lost_overflow *lost, bytes record, struct buffer *rest,
                         bool *has_cut);

/* `operand` is what an `S` record is to have; both are valid during the call. */
typedef status overflow_visit(void *context, bytes key, bytes operand);

/* What another store, which is not written to, has in place of lost cells: visits those that
 * counted by the row's record there, by rising keys. */
status overflow_visit_former(const struct lost_overflow *lost, struct keyspace *former,
                             bytes record, overflow_visit *visit, void *context);

/* The same of cells that were in the record there, and that an overflow has moved since: those up
 * to the version `moved` of the present record's mark. */
status overflow_visit_moved(const struct lost_overflow *lost, bytes record, uint64_t moved,
                            overflow_visit *visit, void *context);

#endif
