/* GenerateInitialChangeStreamPartitions: the ranges that the table's change stream is read by,
 * which are those of its tablets. */
#include "bigtable/data_call.h"
#include "bigtable/data_methods.h"
#include "bigtable/stream_answer.h"
#include "bigtable/stream_profile.h"
#include "bigtable/stream_request.h"
#include "cluster/stream/table_stream.h"
#include "wire/proto_call.h"

static status send_partition(void *context, bytes start, bytes end)
{
    struct data_call *data = context;
    struct partition_message partition;
    Bt__GenerateInitialChangeStreamPartitionsResponse response =
        BT__GENERATE_INITIAL_CHANGE_STREAM_PARTITIONS_RESPONSE__INIT;
    partition_message(start, end, &partition);
    response.partition = &partition.partition;
    grpc_call_send_proto(data->call, &response.base);
    return status_ok();
}

static status send_partitions(struct data_call *data, bytes wire)
{
    ProtobufCMessage *message;
    const char *cluster_id;
    TRY(proto_decode(&bt__generate_initial_change_stream_partitions_request__descriptor, wire,
                     data->arena, &message));
    const Bt__GenerateInitialChangeStreamPartitionsRequest *request = (const void *)message;
    TRY(data_call_open(data, &(struct data_target){.table_name = request->table_name,
                                                   .app_profile_id = request->app_profile_id}));
    TRY(stream_profile_check(data->bigtable, request->table_name, request->app_profile_id,
                             data->arena, &cluster_id));
    const struct stream_facts facts = table_stream_facts(data->table);
    TRY(stream_facts_check(&facts, request->table_name));
    data_call_add_headers(data);
    return table_stream_partitions(data->table, send_partition, data);
}

void generate_initial_change_stream_partitions(void *context, struct grpc_call *call, bytes request)
{
    struct data_call *data = data_call_create(context, call, sizeof *data);
    if (data != NULL)
        data_call_finish(data, send_partitions(data, request));
}
