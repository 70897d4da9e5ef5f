/* What a damaged table file takes from the catalog.
 *
 * Of another keyspace the catalog remembers which keys are out of service; of its own no record
 * does. What a start does not find in the catalog it takes for deleted, so one that meets damage
 * there refuses, unless it may go on without (cluster_options.accepts_lost_records). Then
 *
 *     given up      every key of the damaged ranges, over all table files: what is damaged may have
 *                   deleted or overwritten what others have, and a policy that was withdrawn must
 *                   not rise. In the same batch, synced, a record says what was lost, and each
 *                   keyspace is named as one without a table, so that no start drops it
 *     healed        the catalog is compacted without what was damaged
 *     put right     salvage.h: what the records that are left say of each other, and which
 *                   keyspaces have an owner after all. The record of what was lost goes
 *
 * Invariants
 *  1. Nothing is served between the first step and the end of the last: a start meanwhile goes on
 *     with it, or refuses. So until the second has ended the catalog is not written to, and the
 *     first can be done again.
 *  2. No principal may do more than before: policies only grant (access/policies.h), and what is
 *     lost grants nothing. No row that was out of service comes back: where the records of those
 *     may be lost, and files say that there were some, all of it is refused.
 *  3. No id is given twice (salvage.h). */
#ifndef TRESTLE_CLUSTER_LOST_RECORDS_H
#define TRESTLE_CLUSTER_LOST_RECORDS_H

#include "base/bytes.h"
#include "base/status.h"

struct cluster;
struct keyspace;
struct store_batch;

/* Keys of the catalog: which of them had records is not known. */
struct lost_records {
    bytes from;
    bytes to;          /* exclusive */
    const char *words; /* of which kinds they may be, and what is wrong with which file */
};

/* Reads the catalog's table files, and calls `visit` with each range that is damaged, in no order,
 * until it fails. Blocking. */
status lost_records_find(struct keyspace *catalog,
                         status (*visit)(void *context, const struct lost_records *lost),
                         void *context);

/* Appends the kinds of records that may have keys from `from` to `to`, "tables, tablets". */
void lost_records_kinds(bytes from, bytes to, struct buffer *out);

/* Explains why a catalog cannot be read: the cause, and what there is to do about it. Takes the
 * cause. Blocking. */
status lost_records_explain(struct keyspace *catalog, status cause);

/* The first two steps, if there is damage, and they may be taken; before the catalog is read.
 * cluster->home->lost_records says what is lost, by them or by those of a former start. DATA_LOSS
 * if there is something to go on with, and it may not. Blocking. */
status lost_records_give_up(struct cluster *cluster);

/* Of a catalog that is open for reading alone: whether a start that may not go on without what is
 * lost takes it; with its error. Reads all of it. Blocking. */
status lost_records_check(struct keyspace *catalog);

/* What is lost, and not put right yet, to be freed; NULL: nothing. */
status lost_records_read(struct keyspace *catalog, char **words);
/* Ends the loss, in the batch that puts the rest right. */
void lost_records_end(struct store_batch *batch, struct keyspace *catalog);

/* Stands in place of a table's name, of rows whose keyspace has no table. */
enum { LOST_KEYSPACE_NAME_SIZE = 64 };
const char *lost_keyspace_name(uint64_t id, char out[LOST_KEYSPACE_NAME_SIZE]);

#endif
