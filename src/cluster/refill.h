/* Rows of a range that is given up (damage.h), taken from another store that has the table as it
 * was: a whole backup's. What it has of them comes with the versions that it had; what it does not
 * have is gone.
 *
 * Large cells whose rows are in service do not come back: they could be ones that were deleted
 * since, or replaced. */
#ifndef TRESTLE_CLUSTER_REFILL_H
#define TRESTLE_CLUSTER_REFILL_H

#include "cluster/backup_foreign.h"

/* OK, or FAILED_PRECONDITION unless the source is this very table as it was once: one of that name
 * that was made anew has other rows. `schema`: what it is now; NULL: not looked at. */
status refill_check(const struct foreign_table *source, uint64_t table_id,
                    const struct schema *schema);

/* How many of the rows from `from` to `to` (exclusive; empty: no bound) it has: reads them all,
 * with their large cells. DATA_LOSS if some cannot be read. Blocking. */
status refill_count(const struct foreign_table *source, bytes from, bytes to, uint64_t *rows);

#endif
