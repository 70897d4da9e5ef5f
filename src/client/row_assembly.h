/* The rows that the chunks of ReadRows' answers make up, one after the other. */
#ifndef TRESTLE_CLIENT_ROW_ASSEMBLY_H
#define TRESTLE_CLIENT_ROW_ASSEMBLY_H

#include "formats/change.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

/* All zeroes is none; row_assembly_init before use, row_assembly_free after it. */
struct row_assembly {
    struct arena *arena; /* of the row */
    struct move_change row;
    const char *family; /* of the cell that is read, or the one before */
    bytes qualifier;
    int64_t timestamp_us;
    struct buffer value; /* of a cell that comes in parts */
    bool is_within_cell;
    bool is_whole; /* `row` is one; the next chunk begins another */
};

status row_assembly_init(struct row_assembly *assembly);
void row_assembly_free(struct row_assembly *assembly);

/* Forgets the row that has begun: a call that ended took it along. */
void row_assembly_reset(struct row_assembly *assembly);

/* `is_whole` says whether `row` is one now; it lives until the next chunk, or reset. DATA_LOSS if
 * the chunks make no rows. */
status row_assembly_take(struct row_assembly *assembly,
                         const Bt__ReadRowsResponse__CellChunk *chunk);

#endif
