/* A workload that reads a table's change stream from its beginning up to now, over and over: what a
 * reader that was away for long catches up by. The table has one tablet, and `load` has made it
 * with --stream in the same run. */
#include "cmd/bench/bench_parts.h"

enum { US_PER_S = 1000000 };

static void set_time(Pb__Timestamp *time, int64_t us)
{
    time->seconds = us / US_PER_S;
    time->nanos = (int32_t)(us % US_PER_S) * 1000;
}

status bench_changes_prepare(struct bench_client *client, struct bench_context *context)
{
    (void)client;
    context->stream_until_us = clock_wall_us(clock_system());
    return context->stream_from_us > 0
               ? status_ok()
               : status_make(STATUS_INVALID_ARGUMENT, "changes wants load before it, and --stream");
}

static status changes_request(struct bench_context *context, uint64_t number, struct arena *arena,
                              struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    (void)arena;
    (void)answer;
    Pb__Timestamp from = PB__TIMESTAMP__INIT;
    Pb__Timestamp until = PB__TIMESTAMP__INIT;
    set_time(&from, context->stream_from_us);
    set_time(&until, context->stream_until_us);
    Bt__RowRange range = BT__ROW_RANGE__INIT; /* all: both keys are set, and empty */
    range.start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_CLOSED;
    range.end_key_case = BT__ROW_RANGE__END_KEY_END_KEY_OPEN;
    Bt__StreamPartition partition = BT__STREAM_PARTITION__INIT;
    partition.row_range = &range;
    Bt__ReadChangeStreamRequest request = BT__READ_CHANGE_STREAM_REQUEST__INIT;
    request.table_name = context->options->table;
    request.partition = &partition;
    request.start_from_case = BT__READ_CHANGE_STREAM_REQUEST__START_FROM_START_TIME;
    request.start_time = &from;
    request.end_time = &until;
    proto_encode(&request.base, message);
    return status_ok();
}

static status check_close(const Bt__ReadChangeStreamResponse__CloseStream *close)
{
    const Rpc__Status *told = close->status;
    return told == NULL || told->code == STATUS_OK
               ? status_ok()
               : status_make((enum status_code)told->code, "%s", told->message);
}

/* How many there are nobody has said before. */
static status changes_response(bytes message, struct arena *arena, struct bench_answer *answer)
{
    ProtobufCMessage *decoded;
    TRY(proto_decode(&bt__read_change_stream_response__descriptor, message, arena, &decoded));
    const Bt__ReadChangeStreamResponse *response = (const Bt__ReadChangeStreamResponse *)decoded;
    if (response->stream_record_case == BT__READ_CHANGE_STREAM_RESPONSE__STREAM_RECORD_CLOSE_STREAM)
        return check_close(response->close_stream);
    bool is_change =
        response->stream_record_case == BT__READ_CHANGE_STREAM_RESPONSE__STREAM_RECORD_DATA_CHANGE;
    if (is_change && response->data_change->done) {
        answer->rows++;
        answer->rows_answered++;
    }
    return status_ok();
}

const struct bench_workload bench_changes = {.name = "changes",
                                             .method = BENCH_DATA "ReadChangeStream",
                                             .request = changes_request,
                                             .response = changes_response};
