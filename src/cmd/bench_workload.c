/* What the load generator asks for, and whether it got it. */
#include "cmd/bench_parts.h"

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
        if (at_random)
            TRY(bench_random_key(context, arena, &entry->row_key));
        else
            TRY(bench_key_of(bench_key_number(first + i), arena, &entry->row_key));
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

static status load_request(struct bench_context *context, uint64_t number, struct arena *arena,
                           struct buffer *message, struct bench_answer *answer)
{
    uint64_t first = number * context->options->batch;
    uint64_t left = context->options->rows - first;
    answer->rows = left < context->options->batch ? left : context->options->batch;
    return mutate_rows(context, first, answer->rows, false, arena, message);
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
    Bt__RowSet rows = BT__ROW_SET__INIT;
    rows.n_row_keys = 1;
    rows.row_keys = &key;
    answer->rows = 1;
    return bench_read_rows(context, &rows, 0, NULL, message);
}

/* A range from a random row on; `is_open`: without an end, but a limit on the rows. */
static status range_request(struct bench_context *context, bool is_open, struct arena *arena,
                            struct buffer *message, struct bench_answer *answer)
{
    const struct bench_keys *keys = &context->keys;
    uint64_t wanted = context->options->scan_rows;
    answer->rows = wanted < keys->count ? wanted : keys->count;
    uint64_t first = bench_random(&context->random) % (keys->count - answer->rows + 1);
    Bt__RowRange range = BT__ROW_RANGE__INIT;
    range.start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_CLOSED;
    TRY(bench_key_of(keys->sorted[first], arena, &range.start_key_closed));
    if (!is_open) {
        range.end_key_case = BT__ROW_RANGE__END_KEY_END_KEY_CLOSED;
        TRY(bench_key_of(keys->sorted[first + answer->rows - 1], arena, &range.end_key_closed));
    }
    Bt__RowRange *ranges[] = {&range};
    Bt__RowSet rows = BT__ROW_SET__INIT;
    rows.n_row_ranges = 1;
    rows.row_ranges = ranges;
    return bench_read_rows(context, &rows, is_open ? (int64_t)answer->rows : 0, NULL, message);
}

static status scan_request(struct bench_context *context, uint64_t number, struct arena *arena,
                           struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    return range_request(context, false, arena, message, answer);
}

static status limit_request(struct bench_context *context, uint64_t number, struct arena *arena,
                            struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    return range_request(context, true, arena, message, answer);
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

/* --- all of them --- */

static const struct bench_workload load = {"load", BENCH_DATA "MutateRows", load_request,
                                           mutate_rows_response};
static const struct bench_workload batch = {"batch", BENCH_DATA "MutateRows", batch_request,
                                            mutate_rows_response};
static const struct bench_workload write = {"write", BENCH_DATA "MutateRow", write_request,
                                            bench_one_response};
static const struct bench_workload read = {"read", BENCH_DATA "ReadRows", read_request,
                                           bench_read_rows_response};
static const struct bench_workload scan = {"scan", BENCH_DATA "ReadRows", scan_request,
                                           bench_read_rows_response};
static const struct bench_workload limit = {"limit", BENCH_DATA "ReadRows", limit_request,
                                            bench_read_rows_response};
static const struct bench_workload rmw = {"rmw", BENCH_DATA "ReadModifyWriteRow", rmw_request,
                                          bench_one_response};

const char bench_mix_names[] = "load,batch,write,read,scan,limit,mixed,rmw,add,hot,wide";

static const struct bench_mix mixes[] = {
    {.name = "load", .parts = {&load, &load}, .is_load = true},
    {.name = "batch", .parts = {&batch, &batch}},
    {.name = "write", .parts = {&write, &write}},
    {.name = "read", .parts = {&read, &read}},
    {.name = "scan", .parts = {&scan, &scan}},
    {.name = "limit", .parts = {&limit, &limit}},
    {.name = "mixed", .parts = {&read, &write}},
    {.name = "rmw", .parts = {&rmw, &rmw}},
    {.name = "add", .parts = {&bench_add, &bench_add}, .prepare = bench_add_prepare},
    {.name = "hot", .parts = {&bench_hot, &bench_hot}, .prepare = bench_add_prepare},
    {.name = "wide", .parts = {&bench_wide, &bench_wide}, .prepare = bench_wide_prepare},
};

const struct bench_mix *bench_mix_find(bytes name)
{
    for (size_t i = 0; i < sizeof(mixes) / sizeof(mixes[0]); i++)
        if (bytes_equal(name, bytes_of(mixes[i].name)))
            return &mixes[i];
    return NULL;
}
