/* Parts of which the load generator's workloads are made: keys, names, values, answers. Memory
 * comes from the arena, which is the call's. Private to the benchmark. */
#ifndef TRESTLE_CMD_BENCH_BENCH_PARTS_H
#define TRESTLE_CMD_BENCH_BENCH_PARTS_H

#include "cmd/bench/bench.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "wire/proto.h"

#define BENCH_DATA  "/google.bigtable.v2.Bigtable/"
#define BENCH_ADMIN "/google.bigtable.admin.v2.BigtableTableAdmin/"

enum {
    BENCH_TIMESTAMP_US = 1000,
    BENCH_VALUES_SIZE = 4 << 20, /* random bytes: enough that neighbours do not compress each other
                                  */
};

/* "projects/p/instances/i" and "t" of a table's full name, which `id` points into. */
status bench_split_name(const char *table, struct arena *arena, const char **instance,
                        const char **id);

status bench_key_of(uint64_t number, struct arena *arena, ProtobufCBinaryData *out);
status bench_random_key(struct bench_context *context, struct arena *arena,
                        ProtobufCBinaryData *out);
ProtobufCBinaryData bench_random_value(struct bench_context *context);
status bench_qualifier(uint64_t column, struct arena *arena, ProtobufCBinaryData *out);

/* The mutation that writes one cell of a random value. */
status bench_set_cell(struct bench_context *context, uint64_t column, struct arena *arena,
                      Bt__Mutation **out);

/* Appends the request, to the benchmark's table. */
void bench_read_rows(struct bench_context *context, Bt__ReadRowsRequest *request,
                     struct buffer *message);

/* The same for one row; `filter` may be NULL. */
void bench_read_row(struct bench_context *context, ProtobufCBinaryData key, Bt__RowFilter *filter,
                    struct buffer *message);

/* A single answer, whatever is in it. */
status bench_one_response(bytes message, struct arena *arena, struct bench_answer *answer);
/* Counts the rows of a ReadRowsResponse. */
status bench_read_rows_response(bytes message, struct arena *arena, struct bench_answer *answer);

/* Workloads that have a file of their own. */
extern const struct bench_workload bench_add; /* bench_add.c */
extern const struct bench_workload bench_hot;
extern const struct bench_workload bench_hotread;
extern const struct bench_workload bench_changes; /* bench_changes.c */
extern const struct bench_workload bench_query;   /* bench_query.c */
extern const struct bench_workload bench_scan;    /* bench_range.c */
extern const struct bench_workload bench_sift;
extern const struct bench_workload bench_limit;
extern const struct bench_workload bench_reverse;
extern const struct bench_workload bench_wide;     /* bench_wide.c */
extern const struct bench_workload bench_entities; /* bench_datastore.c */
extern const struct bench_workload bench_put;
extern const struct bench_workload bench_batchput;
extern const struct bench_workload bench_update;
extern const struct bench_workload bench_get;
extern const struct bench_workload bench_ancestor;
extern const struct bench_workload bench_find;
extern const struct bench_workload bench_up;
extern const struct bench_workload bench_down;
extern const struct bench_workload bench_merge;
extern const struct bench_workload bench_transaction;
status bench_add_prepare(struct bench_client *client, struct bench_context *context);
status bench_changes_prepare(struct bench_client *client, struct bench_context *context);
status bench_query_prepare(struct bench_client *client, struct bench_context *context);
status bench_table_prepare(struct bench_client *client, struct bench_context *context);
status bench_wide_prepare(struct bench_client *client, struct bench_context *context);

#endif
