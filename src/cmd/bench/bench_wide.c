/* A workload that reads one column of a row that has very many. */
#include "cmd/bench/bench_parts.h"
#include "wire/grpc.h"

enum {
    COLUMNS_A_REQUEST = 10000,
    SETUP_ARENA_LIMIT = 64 << 20,
};

static const char wide_key[] = "wide";

/* --- the row --- */

static status encode_columns(struct bench_context *context, uint64_t first, uint64_t count,
                             struct arena *arena, struct buffer *message)
{
    Bt__MutateRowRequest request = BT__MUTATE_ROW_REQUEST__INIT;
    request.table_name = context->options->table;
    request.row_key = proto_data(bytes_of(wide_key));
    request.n_mutations = count;
    request.mutations = arena_alloc(arena, count * sizeof *request.mutations);
    if (request.mutations == NULL)
        return status_out_of_memory();
    for (uint64_t i = 0; i < count; i++)
        TRY(bench_set_cell(context, first + i, arena, &request.mutations[i]));
    proto_encode(&request.base, message);
    return status_ok();
}

static status write_columns(struct bench_client *client, struct bench_context *context,
                            uint64_t first, uint64_t count, struct arena *arena)
{
    struct buffer message = {0};
    grpc_message_start(&message);
    status s = encode_columns(context, first, count, arena, &message);
    if (status_is_ok(s))
        s = bench_call(client, BENCH_DATA "MutateRow", &message);
    buffer_free(&message);
    return s;
}

status bench_wide_prepare(struct bench_client *client, struct bench_context *context)
{
    uint64_t columns = context->options->columns;
    struct arena *arena = arena_create(SETUP_ARENA_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    status s = status_ok();
    for (uint64_t at = 0; status_is_ok(s) && at < columns; at += COLUMNS_A_REQUEST) {
        uint64_t left = columns - at;
        arena_reset(arena);
        s = write_columns(client, context, at, left < COLUMNS_A_REQUEST ? left : COLUMNS_A_REQUEST,
                          arena);
    }
    arena_destroy(arena);
    return s;
}

/* --- requests --- */

static status wide_request(struct bench_context *context, uint64_t number, struct arena *arena,
                           struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    uint64_t column = bench_random(&context->random) % context->options->columns;
    Bt__RowFilter filter = BT__ROW_FILTER__INIT;
    filter.filter_case = BT__ROW_FILTER__FILTER_COLUMN_QUALIFIER_REGEX_FILTER;
    TRY(bench_qualifier(column, arena, &filter.column_qualifier_regex_filter));
    bench_read_row(context, proto_data(bytes_of(wide_key)), &filter, message);
    answer->rows = 1;
    return status_ok();
}

const struct bench_workload bench_wide = {.name = "wide",
                                          .method = BENCH_DATA "ReadRows",
                                          .request = wide_request,
                                          .response = bench_read_rows_response};
