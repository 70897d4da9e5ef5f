/* Tells cluster/usage_counts.h what requests of the data service do: of ReadRows what it asked for,
 * of others which rows. SQL and Datastore do not come by here. */
#ifndef TRESTLE_BIGTABLE_REQUEST_USAGE_H
#define TRESTLE_BIGTABLE_REQUEST_USAGE_H

#include "bigtable/data_call.h"
#include "bigtable/row_ranges.h"
#include "cluster/usage_counts.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

/* A ReadRows has ended that has read something; `ranges` are the rows that it was for. Any thread.
 */
void request_usage_read(const struct data_call *data, const Bt__ReadRowsRequest *request,
                        const struct row_ranges *ranges, uint64_t seen, uint64_t answered);

/* A MutateRow has ended well. */
void request_usage_write(const struct data_call *data, bytes row_key,
                         Bt__Mutation *const *mutations, size_t count);

/* A ReadModifyWriteRow has ended well. */
void request_usage_update(const struct data_call *data,
                          const Bt__ReadModifyWriteRowRequest *request);

/* --- shared with its test --- */

/* The columns that a filter lets through, as far as that is plain. */
struct filter_look {
    enum usage_scan_kind kind;
    bool is_plain;         /* `columns` are what it lets through; none: all */
    struct buffer columns; /* to be freed */
    bytes family;          /* the last that was named */
    bytes qualifier;
};

void request_usage_look(const Bt__RowFilter *filter, struct filter_look *out);

#endif
