/* See data_call.h. */
#include "bigtable/data_call.h"

#include "bigtable/client_headers.h"
#include "bigtable/names.h"

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
    TRY(client_routing_check(data->call, target->table_name));
    return cluster_table(data->bigtable->cluster, bytes_of(target->table_name), &data->table);
}

/* In decimal, at `at`; returns what is behind it. snprintf would cost as much as finding the row.
 */
static char *write_decimal(char *at, uint64_t number)
{
    char digits[20];
    size_t count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0)
        *at++ = digits[--count];
    return at;
}

/* How long the request took so far, in the form that clients look for. */
void data_call_add_headers(struct data_call *data)
{
    static const char prefix[] = "gfet4t7; dur=";
    data->has_headers = true;
    char text[sizeof prefix + 20];
    int64_t now_us = clock_steady_us(cluster_clock(data->bigtable->cluster));
    memcpy(text, prefix, sizeof prefix - 1);
    char *end =
        write_decimal(text + sizeof prefix - 1, (uint64_t)(now_us - data->started_us) / 1000);
    grpc_call_add_header(data->call, "server-timing", bytes_make(text, (size_t)(end - text)));
    grpc_call_share_header(data->call, data->bigtable->response_params);
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
