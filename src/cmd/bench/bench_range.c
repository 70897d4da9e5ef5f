/* ReadRows of a range that begins, or ends, at a random row. */
#include "cmd/bench/bench_parts.h"
#include "wire/grpc_client.h"

/* A range of so many rows: the index in `sorted` of its first, and how many it has. */
struct rows {
    uint64_t first;
    uint64_t count;
};

static struct rows random_rows(struct bench_context *context)
{
    uint64_t wanted = context->options->scan_rows;
    uint64_t all = context->keys.count;
    uint64_t count = wanted < all ? wanted : all;
    return (struct rows){.first = bench_random(&context->random) % (all - count + 1),
                         .count = count};
}

static status start_at(struct bench_context *context, struct rows rows, struct arena *arena,
                       Bt__RowRange *range)
{
    range->start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_CLOSED;
    return bench_key_of(context->keys.sorted[rows.first], arena, &range->start_key_closed);
}

static status end_at(struct bench_context *context, struct rows rows, struct arena *arena,
                     Bt__RowRange *range)
{
    uint64_t last = rows.first + rows.count - 1;
    range->end_key_case = BT__ROW_RANGE__END_KEY_END_KEY_CLOSED;
    return bench_key_of(context->keys.sorted[last], arena, &range->end_key_closed);
}

static void read_range(struct bench_context *context, Bt__RowRange *range,
                       Bt__ReadRowsRequest *request, struct buffer *message)
{
    Bt__RowSet set = BT__ROW_SET__INIT;
    set.n_row_ranges = 1;
    set.row_ranges = &range;
    request->rows = &set;
    bench_read_rows(context, request, message);
}

static status bounded_request(struct bench_context *context, bool is_reversed, struct arena *arena,
                              struct buffer *message, struct bench_answer *answer)
{
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    Bt__RowRange range = BT__ROW_RANGE__INIT;
    struct rows rows = random_rows(context);
    TRY(start_at(context, rows, arena, &range));
    TRY(end_at(context, rows, arena, &range));
    request.reversed = is_reversed;
    read_range(context, &range, &request, message);
    answer->rows = rows.count;
    return status_ok();
}

static status scan_request(struct bench_context *context, uint64_t number, struct arena *arena,
                           struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    return bounded_request(context, false, arena, message, answer);
}

static status reverse_request(struct bench_context *context, uint64_t number, struct arena *arena,
                              struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    return bounded_request(context, true, arena, message, answer);
}

static status limit_request(struct bench_context *context, uint64_t number, struct arena *arena,
                            struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    Bt__RowRange range = BT__ROW_RANGE__INIT;
    struct rows rows = random_rows(context);
    TRY(start_at(context, rows, arena, &range));
    request.rows_limit = (int64_t)rows.count;
    read_range(context, &range, &request, message);
    answer->rows = rows.count;
    return status_ok();
}

/* --- rows of which nothing passes --- */

/* A value that none has: the filter looks at the first column of each row, and drops it. */
static status sift_filter(struct arena *arena, Bt__RowFilter *column, Bt__RowFilter *value)
{
    column->filter_case = BT__ROW_FILTER__FILTER_COLUMN_RANGE_FILTER;
    PROTO_NEW(arena, column->column_range_filter, BT__COLUMN_RANGE__INIT);
    column->column_range_filter->family_name = BENCH_FAMILY;
    column->column_range_filter->end_qualifier_case =
        BT__COLUMN_RANGE__END_QUALIFIER_END_QUALIFIER_CLOSED;
    TRY(bench_qualifier(0, arena, &column->column_range_filter->end_qualifier_closed));
    value->filter_case = BT__ROW_FILTER__FILTER_VALUE_RANGE_FILTER;
    PROTO_NEW(arena, value->value_range_filter, BT__VALUE_RANGE__INIT);
    value->value_range_filter->end_value_case = BT__VALUE_RANGE__END_VALUE_END_VALUE_OPEN;
    value->value_range_filter->end_value_open = proto_data(bytes_make(NULL, 0));
    return status_ok();
}

static status sift_request(struct bench_context *context, uint64_t number, struct arena *arena,
                           struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    Bt__RowRange range = BT__ROW_RANGE__INIT;
    Bt__RowFilter column = BT__ROW_FILTER__INIT, value = BT__ROW_FILTER__INIT,
                  filter = BT__ROW_FILTER__INIT;
    Bt__RowFilter *both[] = {&column, &value};
    Bt__RowFilter__Chain chain = BT__ROW_FILTER__CHAIN__INIT;
    struct rows rows = random_rows(context);
    TRY(start_at(context, rows, arena, &range));
    TRY(end_at(context, rows, arena, &range));
    TRY(sift_filter(arena, &column, &value));
    chain.filters = both;
    chain.n_filters = 2;
    filter.filter_case = BT__ROW_FILTER__FILTER_CHAIN;
    filter.chain = &chain;
    request.filter = &filter;
    read_range(context, &range, &request, message);
    answer->rows = answer->rows_answered = rows.count;
    return status_ok();
}

/* A row that comes is one too many. */
static status sift_response(bytes message, struct arena *arena, struct bench_answer *answer)
{
    struct bench_answer got = {0};
    TRY(bench_read_rows_response(message, arena, &got));
    answer->rows_answered += got.rows_answered;
    return status_ok();
}

/* Reversed scans are for clients that say that they can take rows in that order. */
static const struct client_metadata takes_reversed = {
    .name = "bigtable-features",
    .value = {.data = (const uint8_t *)"CAE=", .size = 4}, /* FeatureFlags.reverse_scans */
};

const struct bench_workload bench_scan = {.name = "scan",
                                          .method = BENCH_DATA "ReadRows",
                                          .request = scan_request,
                                          .response = bench_read_rows_response};
const struct bench_workload bench_sift = {.name = "sift",
                                          .method = BENCH_DATA "ReadRows",
                                          .request = sift_request,
                                          .response = sift_response};
const struct bench_workload bench_limit = {.name = "limit",
                                           .method = BENCH_DATA "ReadRows",
                                           .request = limit_request,
                                           .response = bench_read_rows_response};
const struct bench_workload bench_reverse = {.name = "reverse",
                                             .method = BENCH_DATA "ReadRows",
                                             .request = reverse_request,
                                             .response = bench_read_rows_response,
                                             .header = &takes_reversed};
