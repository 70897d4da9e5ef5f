/* See copy_service.h. Tables are those that there are when it is their turn: one that is made
 * meanwhile has nothing from before the copy's moment that the feeds do not have as well. */
#include "replica/copy_service.h"

#include "cluster/live_size.h"
#include "cluster/origin/origin_copy.h"
#include "cluster/shared_table.h"
#include "replica/instance_tables.h"
#include "replica/peer_stream.h"
#include "replica/pull_message.h"
#include "replica/table_names.h"
#include "tablet/version.h"
#include "wire/proto.h"

#include <stdlib.h>

enum { PIECE_BYTES = 512 << 10 /* of an answer, about */ };

struct copy {
    struct peer_stream stream;
    struct copy_service *service;
    const Replica__CopyRowsRequest *request; /* in the call's arena */
    struct origin_copy *rows;
    struct buffer message; /* that is being made; empty: none is */
    struct table_names names;
};

static struct copy *copy_of(struct peer_stream *stream)
{
    return LIST_ENTRY(stream, struct copy, stream);
}

/* --- answers --- */

static void send_answer(struct copy *copy)
{
    struct link_rate *rate = copy->service->rate;
    peer_stream_await_client(&copy->stream);
    peer_stream_await_rate(&copy->stream, rate, copy->request->from);
    size_t size = grpc_call_send_counted(copy->stream.call, &copy->message);
    link_rate_charge(rate, copy->request->from, size);
}

static status add_change(void *context, const struct origin_change *change)
{
    struct copy *copy = context;
    if (!peer_stream_goes_on(&copy->stream))
        return status_make(STATUS_UNAVAILABLE, "The call is over");
    if (copy->message.size == 0)
        grpc_message_start(&copy->message);
    uint64_t uid =
        table_names_tell(&copy->names, copy->service->cluster, change->table, &copy->message);
    if (uid != 0)
        pull_message_change(&copy->message, uid, change);
    if (copy->message.failed)
        return status_out_of_memory();
    if (copy->message.size >= link_rate_piece(copy->service->rate, PIECE_BYTES))
        send_answer(copy);
    return status_ok();
}

/* Where to go on in the rows of the instance. */
static struct origin_applied place_of(const struct copy *copy, unsigned number,
                                      struct origin_applied place)
{
    bytes instance = bytes_of(copy->request->instance);
    struct stream_position from = placed_from(copy->service->placed, instance, number);
    if (stream_position_compare(from, place.position) > 0)
        place.position = from;
    return place;
}

static void add_places(struct copy *copy)
{
    for (unsigned i = 1; i < VERSION_CLUSTERS; i++) {
        struct origin_applied place;
        if (!origin_copy_place(copy->rows, i, &place))
            continue;
        place = place_of(copy, i, place);
        pull_message_place(&copy->message, i, place.position, place.complete);
    }
}

/* --- tables --- */

static status add_table(void *context, struct table *table)
{
    struct copy *copy = context;
    pull_message_sized_table(&copy->message, table_uid(table), table_name(table),
                             live_table_size(table));
    return copy->message.failed ? status_out_of_memory() : status_ok();
}

static status copy_table(void *context, struct table *table)
{
    struct copy *copy = context;
    return origin_copy_read(copy->rows, table, add_change, copy);
}

/* --- the thread --- */

/* Once the moment is fixed: rows that are here then are in it, whatever comes of them. */
static status check_instance(const struct copy *copy)
{
    const char *name = copy->request->instance;
    if (name[0] != '\0' && !origin_copy_knows_all(copy->rows))
        return status_make(STATUS_UNAVAILABLE,
                           "It is not known here where to go on with all peers");
    return name[0] == '\0' || placed_is_here(copy->service->placed, bytes_of(name))
               ? status_ok()
               : status_make(STATUS_FAILED_PRECONDITION, "Not all rows of %s are here", name);
}

static bool names_instance(const struct copy *copy)
{
    return copy->request->instance[0] != '\0';
}

static status send_first(struct copy *copy)
{
    grpc_message_start(&copy->message);
    if (names_instance(copy))
        TRY(instance_tables_visit(copy->service->cluster, copy->request->instance, add_table,
                                  copy));
    add_places(copy);
    /* taken behind the places: see replica.proto */
    pull_message_edit_version(&copy->message, control_last_version(copy->service->control));
    send_answer(copy);
    return status_ok();
}

static status send_rest(struct copy *copy)
{
    if (names_instance(copy))
        TRY(instance_tables_visit(copy->service->cluster, copy->request->instance, copy_table,
                                  copy));
    if (copy->message.size == 0)
        grpc_message_start(&copy->message);
    pull_message_whole(&copy->message);
    send_answer(copy);
    return status_ok();
}

static status run(struct peer_stream *stream)
{
    struct copy *copy = copy_of(stream);
    TRY(origin_copy_begin(copy->service->cluster, peers_own_number(copy->service->peers),
                          &copy->rows));
    status s = check_instance(copy);
    if (status_is_ok(s))
        s = send_first(copy);
    if (status_is_ok(s))
        s = send_rest(copy);
    origin_copy_end(copy->rows);
    buffer_free(&copy->message);
    return s;
}

static void ended(struct peer_stream *stream)
{
    struct copy *copy = copy_of(stream);
    atomic_fetch_sub(&copy->service->running, 1);
    free(copy);
}

/* --- calls --- */

static status begin(struct copy_service *service, struct grpc_call *call,
                    const Replica__CopyRowsRequest *request)
{
    struct copy *copy = calloc(1, sizeof *copy);
    if (copy == NULL)
        return status_out_of_memory();
    *copy = (struct copy){
        .stream = {.call = call, .name = "copy", .run = run, .ended = ended},
        .service = service,
        .request = request,
    };
    if (atomic_fetch_add(&service->running, 1) >= COPIES_MOST) {
        ended(&copy->stream);
        return status_make(STATUS_UNAVAILABLE, "Other peers copy this server's rows just now");
    }
    status s = peer_stream_begin(&copy->stream);
    if (!status_is_ok(s))
        ended(&copy->stream);
    return s;
}

static status handle(struct copy_service *service, struct grpc_call *call, bytes wire)
{
    ProtobufCMessage *request;
    TRY(proto_decode(&replica__copy_rows_request__descriptor, wire, grpc_call_arena(call),
                     &request));
    if (peers_own_number(service->peers) == 0 || !origin_feed_is_on(origin_shard(service->cluster)))
        return status_make(STATUS_UNAVAILABLE, "This server tells no peers of its rows yet");
    if (((const Replica__CopyRowsRequest *)request)->from >= VERSION_CLUSTERS)
        return status_make(STATUS_INVALID_ARGUMENT, "that is no peer's number");
    return begin(service, call, (const void *)request);
}

void copy_service_handle(void *context, struct grpc_call *call, bytes request)
{
    status s = handle(context, call, request);
    if (!status_is_ok(s))
        grpc_call_finish(call, s);
}
