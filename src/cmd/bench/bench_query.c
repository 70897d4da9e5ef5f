/* ExecuteQuery of one row by its key: what SQL costs beside ReadRows of it (`read`).
 *
 * The query is prepared once, as clients do. A prepared query lasts 40 s, and so may the run. */
#include "cmd/bench/bench_parts.h"
#include "wire/grpc.h"

#include <stdlib.h>

enum { MOST_SECONDS = 30 };

static const char key_parameter[] = "key";

/* --- preparing --- */

static status encode_prepare(struct bench_context *context, struct arena *arena,
                             struct buffer *message)
{
    Bt__PrepareQueryRequest request = BT__PREPARE_QUERY_REQUEST__INIT;
    Bt__Type__Bytes bytes_type = BT__TYPE__BYTES__INIT;
    Bt__Type type = BT__TYPE__INIT;
    Bt__ProtoFormat format = BT__PROTO_FORMAT__INIT;
    Bt__PrepareQueryRequest__ParamTypesEntry parameter =
        BT__PREPARE_QUERY_REQUEST__PARAM_TYPES_ENTRY__INIT;
    Bt__PrepareQueryRequest__ParamTypesEntry *parameters[] = {&parameter};
    const char *table;
    struct buffer query = {0};
    TRY(bench_split_name(context->options->table, arena, &request.instance_name, &table));
    buffer_append_format(&query, "SELECT * FROM `%s` WHERE _key = @%s", table, key_parameter);
    request.query = arena_string(arena, buffer_bytes(&query));
    buffer_free(&query);
    if (request.query == NULL)
        return status_out_of_memory();
    type.kind_case = BT__TYPE__KIND_BYTES_TYPE;
    type.bytes_type = &bytes_type;
    parameter.key = key_parameter;
    parameter.value = &type;
    request.param_types = parameters;
    request.n_param_types = 1;
    request.data_format_case = BT__PREPARE_QUERY_REQUEST__DATA_FORMAT_PROTO_FORMAT;
    request.proto_format = &format;
    proto_encode(&request.base, message);
    return status_ok();
}

static status take_token(bytes message, struct arena *arena, struct bench_context *context)
{
    ProtobufCMessage *decoded;
    TRY(proto_decode(&bt__prepare_query_response__descriptor, message, arena, &decoded));
    const Bt__PrepareQueryResponse *response = (const Bt__PrepareQueryResponse *)decoded;
    buffer_clear(&context->prepared);
    buffer_append_bytes(&context->prepared, proto_bytes(response->prepared_query));
    return context->prepared.failed ? status_out_of_memory() : status_ok();
}

static status ask(struct bench_client *client, struct bench_context *context, struct arena *arena)
{
    struct buffer message = {0}, answer = {0};
    grpc_message_start(&message);
    status s = encode_prepare(context, arena, &message);
    if (status_is_ok(s))
        s = bench_ask(client, BENCH_DATA "PrepareQuery", &message, &answer);
    else
        buffer_free(&message);
    if (status_is_ok(s))
        s = take_token(buffer_bytes(&answer), arena, context);
    buffer_free(&answer);
    return s;
}

status bench_query_prepare(struct bench_client *client, struct bench_context *context)
{
    if (context->options->duration > MOST_SECONDS * INT64_C(1000000))
        return status_make(STATUS_INVALID_ARGUMENT,
                           "query runs for %d seconds at most: a prepared query expires",
                           MOST_SECONDS);
    struct arena *arena = arena_create(1 << 20);
    if (arena == NULL)
        return status_out_of_memory();
    status s = ask(client, context, arena);
    arena_destroy(arena);
    return s;
}

/* --- requests --- */

static status query_request(struct bench_context *context, uint64_t number, struct arena *arena,
                            struct buffer *message, struct bench_answer *answer)
{
    (void)number;
    const char *table;
    Bt__ExecuteQueryRequest request = BT__EXECUTE_QUERY_REQUEST__INIT;
    Bt__Type__Bytes bytes_type = BT__TYPE__BYTES__INIT;
    Bt__Type type = BT__TYPE__INIT;
    Bt__Value key = BT__VALUE__INIT;
    Bt__ExecuteQueryRequest__ParamsEntry entry = BT__EXECUTE_QUERY_REQUEST__PARAMS_ENTRY__INIT;
    Bt__ExecuteQueryRequest__ParamsEntry *entries[] = {&entry};
    TRY(bench_split_name(context->options->table, arena, &request.instance_name, &table));
    TRY(bench_random_key(context, arena, &key.bytes_value));
    type.kind_case = BT__TYPE__KIND_BYTES_TYPE;
    type.bytes_type = &bytes_type;
    key.type = &type;
    key.kind_case = BT__VALUE__KIND_BYTES_VALUE;
    entry.key = key_parameter;
    entry.value = &key;
    request.params = entries;
    request.n_params = 1;
    request.prepared_query = proto_data(buffer_bytes(&context->prepared));
    proto_encode(&request.base, message);
    answer->rows = 1;
    return status_ok();
}

static status query_response(bytes message, struct arena *arena, struct bench_answer *answer)
{
    ProtobufCMessage *decoded;
    TRY(proto_decode(&bt__execute_query_response__descriptor, message, arena, &decoded));
    const Bt__ExecuteQueryResponse *response = (const Bt__ExecuteQueryResponse *)decoded;
    bool has_results = response->response_case == BT__EXECUTE_QUERY_RESPONSE__RESPONSE_RESULTS &&
                       response->results->partial_rows_case ==
                           BT__PARTIAL_RESULT_SET__PARTIAL_ROWS_PROTO_ROWS_BATCH;
    if (has_results && response->results->proto_rows_batch->batch_data.len > 0)
        answer->rows_answered++;
    return status_ok();
}

const struct bench_workload bench_query = {.name = "query",
                                           .method = BENCH_DATA "ExecuteQuery",
                                           .request = query_request,
                                           .response = query_response};
