/* See copy_service.h. Tables are those that there are when it is their turn: one that is made
 * meanwhile has nothing from before the copy's moment that the feeds do not have as well. */
#include "replica/copy_service.h"

#include "cluster/origin/origin_copy.h"
#include "cluster/shared_table.h"
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
    peer_stream_await_client(&copy->stream);
    grpc_call_send(copy->stream.call, &copy->message);
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
    if (copy->message.size >= PIECE_BYTES)
        send_answer(copy);
    return status_ok();
}

static void send_places(struct copy *copy)
{
    if (copy->message.size == 0)
        grpc_message_start(&copy->message);
    for (unsigned i = 1; i < VERSION_CLUSTERS; i++) {
        struct origin_applied place;
        if (origin_copy_place(copy->rows, i, &place))
            pull_message_place(&copy->message, i, place.position, place.complete);
    }
    pull_message_whole(&copy->message);
    send_answer(copy);
}

/* --- the thread --- */

static bool take_shared(void *context, struct table *table)
{
    struct table **found = context;
    if (table_uid(table) == 0)
        return true;
    table_retain(table);
    *found = table;
    return false;
}

/* The first shared table behind the name, with a reference; NULL: there is none. */
static status next_table(struct cluster *cluster, bytes after, struct table **out)
{
    *out = NULL;
    return cluster_list_tables(cluster, bytes_of(""), after, take_shared, out);
}

static status copy_tables(struct copy *copy)
{
    struct buffer after = {0};
    struct table *table = NULL;
    status s = next_table(copy->service->cluster, buffer_bytes(&after), &table);
    while (status_is_ok(s) && table != NULL) {
        s = origin_copy_read(copy->rows, table, add_change, copy);
        buffer_clear(&after);
        buffer_append_bytes(&after, bytes_of(table_name(table)));
        table_release(table);
        table = NULL;
        if (status_is_ok(s))
            s = after.failed ? status_out_of_memory()
                             : next_table(copy->service->cluster, buffer_bytes(&after), &table);
    }
    buffer_free(&after);
    return s;
}

static status run(struct peer_stream *stream)
{
    struct copy *copy = copy_of(stream);
    TRY(origin_copy_begin(copy->service->cluster, peers_own_number(copy->service->peers),
                          &copy->rows));
    status s = copy_tables(copy);
    if (status_is_ok(s))
        send_places(copy);
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

static status begin(struct copy_service *service, struct grpc_call *call)
{
    struct copy *copy = calloc(1, sizeof *copy);
    if (copy == NULL)
        return status_out_of_memory();
    *copy = (struct copy){
        .stream = {.call = call, .name = "copy", .run = run, .ended = ended},
        .service = service,
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

void copy_service_handle(void *context, struct grpc_call *call, bytes request)
{
    struct copy_service *service = context;
    (void)request;
    status s =
        peers_own_number(service->peers) == 0 || !origin_feed_is_on(origin_shard(service->cluster))
            ? status_make(STATUS_UNAVAILABLE, "This server tells no peers of its rows yet")
            : begin(service, call);
    if (!status_is_ok(s))
        grpc_call_finish(call, s);
}
