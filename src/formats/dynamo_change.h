/* What became of an item, as a change of its row: the row is the new image and nothing else, or is
 * gone.
 *
 * Incremental exports say when each item was written last. The row's cells have that time, and the
 * change yields to cells that are later, so that a change made again, or one that is older than
 * what the row has, alters nothing. (Of a row that is gone nothing is left that could be later: an
 * older change brings it back. So exports are taken in the order of their times.) That needs cells
 * that have the times of their writes, and a row for each item. */
#ifndef TRESTLE_FORMATS_DYNAMO_CHANGE_H
#define TRESTLE_FORMATS_DYNAMO_CHANGE_H

#include "formats/dynamo_record.h"
#include "formats/item_layout.h"

enum dynamo_order {
    DYNAMO_BY_TIME,  /* incremental exports: a change yields to what is later */
    DYNAMO_IN_ORDER, /* streams: changes come in their order, and each counts */
};

/* INVALID_ARGUMENT if rows laid out so cannot be changed so. */
status dynamo_change_check(const struct item_layout *layout, enum dynamo_order order);

/* The change of an incremental record; of one that is an item as it is, the row that it becomes.
 * Fails as item_lay_out, and as dynamo_change_check. */
status dynamo_change_lay_out(const struct item_layout *layout, enum dynamo_order order,
                             const struct dynamo_record *record, struct arena *arena,
                             struct move_change *out);

#endif
