/* See data_call.h. */
#include "bigtable/data_call.h"

#include "base/check.h"
#include "bigtable/client_headers.h"
#include "bigtable/materialized.h"
#include "bigtable/names.h"
#include "bigtable/served_by.h"
#include "wire/proto_call.h"

#include <stdio.h>
#include <string.h>

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
        .started_us = grpc_call_begun_us(call),
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

/* A view is read as a table. Google's client for Go routes as if it were one. */
static status open_materialized_view(struct data_call *data, const char *name)
{
    TRY(name_check_form("Materialized view", name,
                        "projects/{project}/instances/{instance}/materializedViews/{id}"));
    const char *instance = name_parent(data->arena, name);
    const char *table =
        instance == NULL ? NULL : name_of_table(data->arena, instance, name_id(name));
    if (table == NULL)
        return status_out_of_memory();
    TRY(client_routing_check_either(data->call, name, table));
    return materialized_open(data->bigtable, name, &data->table);
}

void data_call_serve(struct data_call *data, const char *instance, const char *profile)
{
    status s = name_check_instance(instance);
    if (status_is_ok(s)) {
        data->served = instance;
        data->profile = profile;
    }
    status_ignore(s); /* the method refuses it */
}

static status find_target(struct data_call *data, const struct data_target *target)
{
    bool has_view = is_set(target->authorized_view_name);
    bool has_materialized_view = is_set(target->materialized_view_name);
    if (is_set(target->table_name) + has_view + has_materialized_view > 1)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "At most one of a table and a view may be named");
    if (has_materialized_view)
        return open_materialized_view(data, target->materialized_view_name);
    if (has_view)
        return open_view(data, target->authorized_view_name);
    TRY(name_check_table(target->table_name));
    TRY(client_routing_check(data->call, target->table_name));
    return cluster_table(data->bigtable->cluster, bytes_of(target->table_name), &data->table);
}

/* The instance of a name: `projects/P/instances/I`, or under it. Such names have been checked. */
static bytes instance_of(const char *name)
{
    const char *project = name + strlen("projects/");
    const char *slash = strchr(project, '/');
    CHECK(slash != NULL);
    const char *id = slash + strlen("/instances/");
    return bytes_make(name, (size_t)(strchrnul(id, '/') - name));
}

status data_call_open(struct data_call *data, const struct data_target *target)
{
    grpc_call_set_profile(data->call, target->app_profile_id);
    TRY(check_is_whole(data->bigtable));
    TRY(find_target(data, target));
    data->served = table_name(data->table);
    data->profile = target->app_profile_id;
    return check_is_here(data->bigtable, instance_of(data->served));
}

bytes data_call_timing(int64_t us, char text[DATA_CALL_TIMING_SIZE])
{
    snprintf(text, DATA_CALL_TIMING_SIZE, "gfet4t7; dur=%lld.%03d", (long long)(us / 1000),
             (int)(us % 1000));
    return bytes_of(text);
}

const int64_t data_call_ready_us[BIGTABLE_READY_TIMINGS] = {
    50, 100, 300, 600, 800, 1000, 2000, 3000, 4000, 5000, 6000, 8000,
};

static void add_timing(struct data_call *data)
{
    struct bigtable *bigtable = data->bigtable;
    int64_t taken_us = clock_steady_us(cluster_clock(bigtable->cluster)) - data->started_us;
    char text[DATA_CALL_TIMING_SIZE];
    size_t ready = 0;
    while (ready < BIGTABLE_READY_TIMINGS && taken_us > data_call_ready_us[ready])
        ready++;
    if (ready < BIGTABLE_READY_TIMINGS)
        grpc_call_share_headers(data->call, bigtable->timings[ready]);
    else
        grpc_call_add_header(data->call, "server-timing", data_call_timing(taken_us, text));
}

static status find_served(struct data_call *data, struct served *served)
{
    status s =
        served_by_find(data->bigtable->served_by, instance_of(data->served), data->profile, served);
    data->params = served->params;
    return s;
}

status data_call_check_transaction(struct data_call *data)
{
    struct served served;
    TRY(find_served(data, &served));
    bool is_one_copy = !bigtable_has_peers(data->bigtable);
    if (served.allows_transactions && (is_one_copy || !served.is_lenient))
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "Single-row transactions are not allowed by this app profile");
}

/* Some clients look for it in the headers, some in the trailers. Without memory the answer names
 * the wrong place, and is right. */
static void add_place(struct data_call *data)
{
    struct served served;
    if (data->served == NULL)
        return;
    if (data->params == NULL)
        status_ignore(find_served(data, &served));
    grpc_call_share_headers(data->call, data->params);
    grpc_call_share_trailers(data->call, data->params);
}

void data_call_add_headers(struct data_call *data)
{
    data->has_headers = true;
    add_place(data);
    add_timing(data);
}

void data_call_tell_read(struct data_call *data, int64_t locked_us)
{
    grpc_call_step_at(data->call, CALL_READS, locked_us);
    grpc_call_step(data->call, CALL_AWAITS_COMMIT);
}

void data_call_tell_commit(struct data_call *data, int64_t locked_us,
                           const struct write_times *times)
{
    grpc_call_step_at(data->call, CALL_AWAITS_COMMIT, locked_us);
    grpc_call_step_at(data->call, CALL_COMMITS, times->begun_us);
    grpc_call_step_at(data->call, CALL_WORKS, times->written_us);
}

/* To a client that will ask again and then says what it was told: where to ask. One server has
 * nothing to choose between, so the words mean nothing, and name no cluster: that is for
 * ResponseParams. Clients that keep cookies can be tried. */
static void add_routing_cookie(struct data_call *data, status s)
{
    bool is_worth_asking = s.code == STATUS_UNAVAILABLE || s.code == STATUS_RESOURCE_EXHAUSTED;
    if (is_worth_asking && client_features(data->call)->routing_cookie)
        grpc_call_add_trailer(data->call, "x-goog-cbt-cookie-routing", bytes_of("trestle"));
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
