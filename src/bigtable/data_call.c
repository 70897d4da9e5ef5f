/* See data_call.h. */
#include "bigtable/data_call.h"

#include <stdio.h>

#include "bigtable/names.h"
#include "google/bigtable/v2/response_params.pb-c.h"

void *data_call_create(struct bigtable *bigtable, struct grpc_call *call, size_t size)
{
    struct arena *arena = grpc_call_arena(call);
    struct data_call *data = arena_zalloc(arena, size);
    if (data == NULL) {
        grpc_call_finish(call, status_out_of_memory());
        return NULL;
    }
    *data = (struct data_call){
        .bigtable = bigtable,
        .call = call,
        .arena = arena,
        .started_us = clock_steady_us(cluster_clock(bigtable->cluster)),
    };
    return data;
}

static bool is_set(const char *name)
{
    return name != NULL && name[0] != '\0';
}

status data_call_open_table(struct data_call *data, const struct data_target *target)
{
    if (is_set(target->authorized_view_name) || is_set(target->materialized_view_name))
        return status_make(STATUS_UNIMPLEMENTED, "Views are not supported");
    TRY(name_check_table(target->table_name));
    return cluster_table(data->bigtable->cluster, bytes_of(target->table_name), &data->table);
}

/* How long the request took so far, in the form that clients look for. */
static void add_server_timing(struct data_call *data)
{
    char text[64];
    int64_t now_us = clock_steady_us(cluster_clock(data->bigtable->cluster));
    int length = snprintf(text, sizeof text, "gfet4t7; dur=%lld",
                          (long long)(now_us - data->started_us) / 1000);
    grpc_call_add_header(data->call, "server-timing", bytes_make(text, (size_t)length));
}

static void add_response_params(struct data_call *data)
{
    Bt__ResponseParams params = BT__RESPONSE_PARAMS__INIT;
    params.has_zone_id_case = BT__RESPONSE_PARAMS__HAS_ZONE_ID_ZONE_ID;
    params.zone_id = BIGTABLE_ZONE_ID;
    params.has_cluster_id_case = BT__RESPONSE_PARAMS__HAS_CLUSTER_ID_CLUSTER_ID;
    params.cluster_id = BIGTABLE_CLUSTER_ID;
    struct buffer value = {0};
    proto_encode(&params.base, &value);
    if (!value.failed)
        grpc_call_add_header(data->call, "x-goog-ext-425905942-bin", buffer_bytes(&value));
    buffer_free(&value);
}

void data_call_add_headers(struct data_call *data)
{
    add_server_timing(data);
    add_response_params(data);
}

void data_call_finish(struct data_call *data, status s)
{
    if (data->table != NULL)
        table_release(data->table);
    grpc_call_finish(data->call, s);
}

void data_call_respond(struct data_call *data, const ProtobufCMessage *response)
{
    struct buffer message = {0};
    data_call_add_headers(data);
    grpc_message_start(&message);
    proto_encode(response, &message);
    grpc_call_send(data->call, &message);
    data_call_finish(data, status_ok());
}
