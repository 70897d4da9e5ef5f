/* Workloads: what the load generator asks for, and whether it got it. */
#include "cmd/bench/bench_parts.h"

#include <stdlib.h>

status bench_context_create(const struct bench_options *options, struct bench_context *out)
{
    *out = (struct bench_context){.options = options, .random = options->seed};
    TRY(bench_keys_create(options->rows, &out->keys));
    out->values = malloc(BENCH_VALUES_SIZE);
    if (out->values == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < BENCH_VALUES_SIZE; i++)
        out->values[i] = (uint8_t)bench_random(&out->random);
    return status_ok();
}

void bench_context_free(struct bench_context *context)
{
    bench_keys_free(&context->keys);
    free(context->values);
    buffer_free(&context->prepared);
}

/* --- cells --- */

/* The mutations that write all cells of a row. */
static status set_cells(struct bench_context *context, struct arena *arena, Bt__Mutation ***out)
{
    uint64_t count = context->options->cells;
    *out = arena_alloc(arena, count * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    for (uint64_t i = 0; i < count; i++)
        TRY(bench_set_cell(context, i, arena, &(*out)[i]));
    return status_ok();
}

/* --- MutateRows --- */

static status make_entries(struct bench_context *context, uint64_t first, uint64_t count,
                           bool at_random, struct arena *arena,
                           Bt__MutateRowsRequest__Entry **entries)
{
    for (uint64_t i = 0; i < count; i++) {
        Bt__MutateRowsRequest__Entry *entry;
        PROTO_NEW(arena, entry, BT__MUTATE_ROWS_REQUEST__ENTRY__INIT);
        uint64_t row = (first + i) % context->options->rows;
        if (at_random)
            TRY(bench_random_key(context, arena, &entry->row_key));
        else
            TRY(bench_key_of(bench_key_number(row), arena, &entry->row_key));
        TRY(set_cells(context, arena, &entry->mutations));
        entry->n_mutations = context->options->cells;
        entries[i] = entry;
    }
    return status_ok();
}

static status mutate_rows(struct bench_context *context, uint64_t first, uint64_t count,
                          bool at_random, struct arena *arena, struct buffer *message)
{
    Bt__MutateRowsRequest request = BT__MUTATE_ROWS_REQUEST__INIT;
    request.table_name = context->options->table;
    request.n_entries = count;
    request.entries = arena_alloc(arena, count * sizeof *request.entries);
    if (request.entries == NULL)
        return status_out_of_memory();
    TRY(make_entries(context, first, count, at_random, arena, request.entries));
    proto_encode(&request.base, message);
    return status_ok();
}

/* The number of rows that the workloads write which go through all rows, in the order of their
 * indexes. */
static uint64_t rows_of_load(const struct bench_options *options)
{
    return options->rows;
}

static uint64_t rows_of_overwrite(const struct bench_options *options)
{
    return options->rows * options->overwrites;
}

/* The next batch of so many rows; behind the last row comes the first again. */
static status rows_in_order(struct bench_context *context, uint64_t rows, uint64_t number,
                            struct arena *arena, struct buffer *message,
                            struct bench_answer *answer)
{
    uint64_t first = number * context->options->batch;
    uint64_t left = rows - first;
    answer->rows = left < context->options->batch ? left : context->options->batch;
    return mutate_rows(context, first, answer->rows, false, arena, message);
}

static status load_request(struct bench_context *context, uint64_t number, struct arena *arena,
                           struct buffer *message, struct bench_answer *answer)
{
    return rows_in_order(context, rows_of_load(context->options), number, arena, message, answer);
}

static status overwrite_request(struct bench_context *context, uint64_t number, struct arena *arena,
                                struct buffer *message, struct bench_answer *answer)
{
    return rows_in_order(context, rows_of_overwrite(context->options), number, arena, message,
                         answer);
}

static status batch_request(struct bench_context *context, uint64_t number, struct arena *arena,
                            struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    answer->rows = context->options->batch;
    return mutate_rows(context, 0, answer->rows, true, arena, message);
}

static status mutate_rows_response(bytes message, struct arena *arena, struct bench_answer *answer)
{
    ProtobufCMessage *decoded;
    TRY(proto_decode(&bt__mutate_rows_response__descriptor, message, arena, &decoded));
    const Bt__MutateRowsResponse *response = (const Bt__MutateRowsResponse *)decoded;
    for (size_t i = 0; i < response->n_entries; i++) {
        const Rpc__Status *result = response->entries[i]->status;
        if (result != NULL && result->code != STATUS_OK)
            return status_make((enum status_code)result->code, "%s", result->message);
        answer->rows_answered++;
    }
    return status_ok();
}

/* --- MutateRow --- */

static status write_request(struct bench_context *context, uint64_t number, struct arena *arena,
                            struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    Bt__MutateRowRequest request = BT__MUTATE_ROW_REQUEST__INIT;
    request.table_name = context->options->table;
    request.n_mutations = context->options->cells;
    TRY(bench_random_key(context, arena, &request.row_key));
    TRY(set_cells(context, arena, &request.mutations));
    proto_encode(&request.base, message);
    answer->rows = 1;
    return status_ok();
}

/* --- ReadRows --- */

static status read_request(struct bench_context *context, uint64_t number, struct arena *arena,
                           struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    ProtobufCBinaryData key;
    TRY(bench_random_key(context, arena, &key));
    bench_read_row(context, key, NULL, message);
    answer->rows = 1;
    return status_ok();
}

/* --- ReadModifyWriteRow --- */

static status rmw_request(struct bench_context *context, uint64_t number, struct arena *arena,
                          struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    Bt__ReadModifyWriteRule rule = BT__READ_MODIFY_WRITE_RULE__INIT;
    rule.family_name = BENCH_FAMILY;
    rule.column_qualifier = proto_data(bytes_of("counter"));
    rule.rule_case = BT__READ_MODIFY_WRITE_RULE__RULE_INCREMENT_AMOUNT;
    rule.increment_amount = 1;
    Bt__ReadModifyWriteRule *rules[] = {&rule};
    Bt__ReadModifyWriteRowRequest request = BT__READ_MODIFY_WRITE_ROW_REQUEST__INIT;
    request.table_name = context->options->table;
    request.n_rules = 1;
    request.rules = rules;
    TRY(bench_random_key(context, arena, &request.row_key));
    proto_encode(&request.base, message);
    answer->rows = 1;
    return status_ok();
}

/* --- PingAndWarm --- */

/* A call that does nothing: what HTTP/2 and gRPC cost. */
static status ping_request(struct bench_context *context, uint64_t number, struct arena *arena,
                           struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    const char *id;
    Bt__PingAndWarmRequest request = BT__PING_AND_WARM_REQUEST__INIT;
    TRY(bench_split_name(context->options->table, arena, &request.name, &id));
    proto_encode(&request.base, message);
    answer->rows = 1;
    return status_ok();
}

/* --- all of them --- */

static const struct bench_workload load = {.name = "load",
                                           .method = BENCH_DATA "MutateRows",
                                           .request = load_request,
                                           .response = mutate_rows_response};
static const struct bench_workload overwrite = {.name = "overwrite",
                                                .method = BENCH_DATA "MutateRows",
                                                .request = overwrite_request,
                                                .response = mutate_rows_response};
static const struct bench_workload batch = {.name = "batch",
                                            .method = BENCH_DATA "MutateRows",
                                            .request = batch_request,
                                            .response = mutate_rows_response};
static const struct bench_workload write = {.name = "write",
                                            .method = BENCH_DATA "MutateRow",
                                            .request = write_request,
                                            .response = bench_one_response};
static const struct bench_workload read = {.name = "read",
                                           .method = BENCH_DATA "ReadRows",
                                           .request = read_request,
                                           .response = bench_read_rows_response};
static const struct bench_workload rmw = {.name = "rmw",
                                          .method = BENCH_DATA "ReadModifyWriteRow",
                                          .request = rmw_request,
                                          .response = bench_one_response};
static const struct bench_workload ping = {.name = "ping",
                                           .method = BENCH_DATA "PingAndWarm",
                                           .request = ping_request,
                                           .response = bench_one_response};

const char bench_mix_names[] = "load,overwrite,batch,write,read,query,scan,sift,limit,reverse,"
                               "mixed,rmw,add,hot,hotread,wide,ping";
const char bench_stream_names[] = "changes";
const char bench_datastore_names[] =
    "entities,put,batchput,update,get,ancestor,find,up,down,merge,transaction";

static const struct bench_mix mixes[] = {
    {"load", {&load, &load}, rows_of_load, bench_table_prepare},
    {"overwrite", {&overwrite, &overwrite}, rows_of_overwrite, NULL},
    {"batch", {&batch, &batch}, NULL, NULL},
    {"write", {&write, &write}, NULL, NULL},
    {"read", {&read, &read}, NULL, NULL},
    {"query", {&bench_query, &bench_query}, NULL, bench_query_prepare},
    {"scan", {&bench_scan, &bench_scan}, NULL, NULL},
    {"sift", {&bench_sift, &bench_sift}, NULL, NULL},
    {"limit", {&bench_limit, &bench_limit}, NULL, NULL},
    {"reverse", {&bench_reverse, &bench_reverse}, NULL, NULL},
    {"mixed", {&read, &write}, NULL, NULL},
    {"rmw", {&rmw, &rmw}, NULL, NULL},
    {"add", {&bench_add, &bench_add}, NULL, bench_add_prepare},
    {"hot", {&bench_hot, &bench_hot}, NULL, bench_add_prepare},
    {"hotread", {&bench_hotread, &bench_hotread}, NULL, NULL},
    {"wide", {&bench_wide, &bench_wide}, NULL, bench_wide_prepare},
    {"changes", {&bench_changes, &bench_changes}, NULL, bench_changes_prepare},
    {"ping", {&ping, &ping}, NULL, NULL},
    {"entities", {&bench_entities, &bench_entities}, rows_of_load, NULL},
    {"put", {&bench_put, &bench_put}, NULL, NULL},
    {"batchput", {&bench_batchput, &bench_batchput}, NULL, NULL},
    {"update", {&bench_update, &bench_update}, NULL, NULL},
    {"get", {&bench_get, &bench_get}, NULL, NULL},
    {"ancestor", {&bench_ancestor, &bench_ancestor}, NULL, NULL},
    {"find", {&bench_find, &bench_find}, NULL, NULL},
    {"up", {&bench_up, &bench_up}, NULL, NULL},
    {"down", {&bench_down, &bench_down}, NULL, NULL},
    {"merge", {&bench_merge, &bench_merge}, NULL, NULL},
    {"transaction", {&bench_transaction, &bench_transaction}, NULL, NULL},
};

const struct bench_mix *bench_mix_find(bytes name)
{
    for (size_t i = 0; i < sizeof(mixes) / sizeof(mixes[0]); i++)
        if (bytes_equal(name, bytes_of(mixes[i].name)))
            return &mixes[i];
    return NULL;
}
