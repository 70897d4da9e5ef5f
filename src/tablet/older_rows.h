/* Whether a drop of rows (row/drops.h) has done its work: whether anything is left in its range
 * that is older than it. */
#ifndef TRESTLE_TABLET_OLDER_ROWS_H
#define TRESTLE_TABLET_OLDER_ROWS_H

#include "row/drops.h"
#include "store/store.h"

/* Rows of a keyspace from `from` up to but not including `to` (empty: no bound). */
struct row_range {
    struct keyspace *keyspace;
    bytes from;
    bytes to;
    /* Asked at each key that is looked at: whether to look at no more. NULL: all are. */
    bool (*gives_up)(void *context);
    void *context;
};

/* Looks at all records and overflow cells of the range, whatever drops are over it. `*found`: one
 * has something that is older than the version, and that would be seen if no drop were there. Not
 * if that lies under something newer of its own place: it never comes to light again. Blocks for as
 * long as it takes to read the range; DATA_LOSS if something does not parse, CANCELLED if it gave
 * up.
 */
status rows_find_older(const struct row_range *range, uint64_t version, bool *found);

#endif
