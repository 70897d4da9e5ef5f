/* See data_call.h. */
#include "bigtable/data_call.h"

#include "bigtable/client_headers.h"
#include "bigtable/names.h"
#include "wire/proto_call.h"

#include <stdio.h>

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

static status open_view(struct data_call *data, const char *name)
{
    TRY(client_routing_check(data->call, name));
    TRY(view_open(data->bigtable->control, name, &data->view));
    bytes table = bytes_make(name, resource_parent_size(name));
    return cluster_table(data->bigtable->cluster, table, &data->table);
}

status data_call_open(struct data_call *data, const struct data_target *target)
{
    grpc_call_set_profile(data->call, target->app_profile_id);
    bool has_view = is_set(target->authorized_view_name);
    bool has_materialized_view = is_set(target->materialized_view_name);
    if (is_set(target->table_name) + has_view + has_materialized_view > 1)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "At most one of a table and a view may be named");
    if (has_materialized_view)
        return status_make(STATUS_UNIMPLEMENTED, "Materialized views are not supported");
    if (has_view)
        return open_view(data, target->authorized_view_name);
    TRY(name_check_table(target->table_name));
    TRY(client_routing_check(data->call, target->table_name));
    return cluster_table(data->bigtable->cluster, bytes_of(target->table_name), &data->table);
}

bytes data_call_timing(uint64_t ms, char text[DATA_CALL_TIMING_SIZE])
{
    snprintf(text, DATA_CALL_TIMING_SIZE, "gfet4t7; dur=%llu", (unsigned long long)ms);
    return bytes_of(text);
}

void data_call_add_headers(struct data_call *data)
{
    struct bigtable *bigtable = data->bigtable;
    data->has_headers = true;
    int64_t taken_us = clock_steady_us(cluster_clock(bigtable->cluster)) - data->started_us;
    uint64_t ms = (uint64_t)taken_us / 1000;
    if (ms >= BIGTABLE_READY_MS) {
        char text[DATA_CALL_TIMING_SIZE];
        grpc_call_add_header(data->call, "server-timing", data_call_timing(ms, text));
        ms = BIGTABLE_READY_MS;
    }
    grpc_call_share_headers(data->call, bigtable->answer_headers[ms]);
}

void data_call_tell_read(struct data_call *data, int64_t locked_us)
{
    grpc_call_step_at(data->call, CALL_READS, locked_us);
    grpc_call_step(data->call, CALL_AWAITS_COMMIT);
}

void data_call_tell_commit(struct data_call *data, int64_t locked_us, const struct commit *commit)
{
    grpc_call_step_at(data->call, CALL_AWAITS_COMMIT, locked_us);
    grpc_call_step_at(data->call, CALL_COMMITS, commit->begun_us);
    grpc_call_step_at(data->call, CALL_WORKS, commit->written_us);
}

/* To a client that will ask again and says what it was told: where to ask. It is the same place,
 * but clients that keep cookies can be tried. */
static void add_routing_cookie(struct data_call *data, status s)
{
    bool is_worth_asking = s.code == STATUS_UNAVAILABLE || s.code == STATUS_RESOURCE_EXHAUSTED;
    if (is_worth_asking && client_features(data->call)->routing_cookie)
        grpc_call_add_trailer(data->call, "x-goog-cbt-cookie-cluster",
                              bytes_of(BIGTABLE_CLUSTER_ID));
}

void data_call_finish(struct data_call *data, status s)
{
    if (!data->has_headers) {
        data_call_add_headers(data);
        add_routing_cookie(data, s);
    }
    if (data->table != NULL)
        table_release(data->table);
    view_release(data->view);
    grpc_call_finish(data->call, s);
}

void data_call_respond(struct data_call *data, const ProtobufCMessage *response)
{
    data_call_add_headers(data);
    grpc_call_send_proto(data->call, response);
    data_call_finish(data, status_ok());
}
