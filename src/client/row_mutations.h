/* Changes of rows as Bigtable's mutations. */
#ifndef TRESTLE_CLIENT_ROW_MUTATIONS_H
#define TRESTLE_CLIENT_ROW_MUTATIONS_H

#include "formats/change.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

/* All of an arena, copies of what the change had. */
struct row_mutations {
    ProtobufCBinaryData row_key;
    Bt__Mutation **all;
    size_t count;
};

/* `aggregates`: names of families whose cells are states, and NULL; NULL: there are none. */
status row_mutations_make(const struct move_change *change, const char *const *aggregates,
                          struct arena *arena, struct row_mutations *out);

/* A cell of an aggregate is set by two mutations, one behind the other: what there is goes, and
 * then the state, which is the cell's value, is merged into nothing. Names and bytes stay where
 * they are. */
status row_mutations_remove_cell(const struct move_cell *cell, struct arena *arena,
                                 Bt__Mutation **out);
status row_mutations_merge_cell(const struct move_cell *cell, struct arena *arena,
                                Bt__Mutation **out);

/* The request that makes them if the row has no cell later than `written_us`, without table and
 * profile. */
status row_mutations_condition(const struct row_mutations *mutations, int64_t written_us,
                               struct arena *arena, Bt__CheckAndMutateRowRequest **out);

#endif
