/* Makes the indexes of a database say what its entities say: for `trestle repair`.
 *
 * Damage that index_check.h finds is put right, as a commit would write it: at a moment later than
 * those of all rows of the database, through a commit queue, so that the version ceiling is above
 * it. The past of a row is kept for reads of the past: they ask the entity of their moment, so that
 * after the repair they give what the entities were then, also where they did not before.
 *
 * Rows are written some at a time, all of them or none, each lot for itself: an index is as right
 * as before after any of them, or more so. So a repair that was killed is done by another one. It
 * takes the memory of the check, and of a lot.
 *
 * Blocks. The database must not be written to meanwhile. */
#ifndef TRESTLE_DATASTORE_INDEX_INDEX_REPAIR_H
#define TRESTLE_DATASTORE_INDEX_INDEX_REPAIR_H

#include "datastore/index/index_check.h"
#include "tablet/commit.h"

struct ds_index_repair {
    /* Set by the caller, as for a check; it is told of each damage that is found, also of what
     * cannot be repaired, before that is repaired. */
    struct ds_index_check check;
    struct commit_queue *commits;
    /* Rows that were repaired, durably, by kind. */
    uint64_t repaired[DS_DAMAGE_KINDS];
};

/* OK also if there is damage that cannot be repaired: that is for a check afterwards to say. */
status ds_index_repair_run(struct ds_index_repair *repair);

#endif
