/* See pull_service.h. A pull's waiter is in line before the feed is read for the last time
 * (stream/log.h). */
#include "replica/pull_service.h"

#include "base/check.h"
#include "os/thread.h"
#include "replica/peer_stream.h"
#include "replica/pull_message.h"
#include "replica/table_names.h"
#include "tablet/version.h"
#include "wire/proto.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    PIECE_BYTES = 256 << 10,   /* of the log, about, that one answer has */
    HEARTBEAT_US = 100 * 1000, /* at most between two answers */
    PACE_US = 10 * 1000,       /* at least: what one has is written together there */
};

struct pull_service {
    struct cluster *cluster;
    struct peers *peers;
    struct link_rate *rate;
    pthread_mutex_t lock;
    uint64_t asked[VERSION_CLUSTERS]; /* by number: what it asked for is behind this sequence */
    bool has_asked[VERSION_CLUSTERS];
    struct stream_position sent[VERSION_CLUSTERS]; /* up to there; while no call runs: asked */
    atomic_size_t running;
};

struct pull {
    struct peer_stream stream;
    struct pull_service *service;
    unsigned number; /* of who asks */
    struct shard *shard;
    struct stream_position at;
    struct stream_position until;   /* of a sequence 0: there is no bound */
    struct origin_complete pending; /* to be told once all up to its sequence has been */
    struct buffer message;          /* that is being made */
    struct table_names names;
    struct stream_waiter waiter;
};

static struct pull *pull_of(struct peer_stream *stream)
{
    return LIST_ENTRY(stream, struct pull, stream);
}

/* --- what has been sent --- */

static void note_sent(struct pull_service *service, unsigned number, struct stream_position up_to)
{
    pthread_mutex_lock(&service->lock);
    service->sent[number] = up_to;
    pthread_mutex_unlock(&service->lock);
}

/* What was sent may not have come. */
static void note_unsent(struct pull_service *service, unsigned number)
{
    pthread_mutex_lock(&service->lock);
    service->sent[number] = (struct stream_position){service->asked[number], 0};
    pthread_mutex_unlock(&service->lock);
}

uint64_t pull_service_queue(struct pull_service *service, unsigned number)
{
    DCHECK(number < VERSION_CLUSTERS);
    pthread_mutex_lock(&service->lock);
    struct stream_position sent = service->sent[number];
    pthread_mutex_unlock(&service->lock);
    return origin_feed_bytes(origin_shard(service->cluster), sent);
}

/* --- an answer --- */

static size_t piece_of(const struct pull *pull)
{
    return link_rate_piece(pull->service->rate, PIECE_BYTES);
}

static bool is_past(const struct pull *pull, struct stream_position position)
{
    return pull->until.sequence != 0 && stream_position_compare(position, pull->until) > 0;
}

/* What became of the rows of a table that is there no more nobody needs to know. */
static status add_change(void *context, const struct origin_change *change, bool *enough)
{
    struct pull *pull = context;
    *enough = is_past(pull, change->position);
    if (*enough)
        return status_ok();
    uint64_t uid =
        table_names_tell(&pull->names, pull->service->cluster, change->table, &pull->message);
    if (uid != 0)
        pull_message_change(&pull->message, uid, change);
    *enough = pull->message.size >= piece_of(pull);
    return pull->message.failed ? status_out_of_memory() : status_ok();
}

/* A commit may be told in several answers. */
static bool is_all_of(uint64_t sequence, struct stream_position reached)
{
    return stream_position_compare(reached, (struct stream_position){sequence, UINT32_MAX}) >= 0;
}

/* What is complete where the feed has been read to; 0: nothing new. While clients write, what was
 * submitted last is never in the log yet: so it is taken once it is. */
static uint64_t take_complete(struct pull *pull, struct stream_position reached)
{
    uint64_t version = 0;
    if (pull->pending.version != 0 && !is_all_of(pull->pending.sequence, reached))
        return 0;
    version = pull->pending.version;
    pull->pending = origin_feed_complete(pull->shard);
    if (is_all_of(pull->pending.sequence, reached))
        version = pull->pending.version;
    return version;
}

/* `*is_end`: there is nothing more. */
static status send_piece(struct pull *pull, bool *is_end)
{
    struct stream_position reached = pull->at;
    grpc_message_start(&pull->message);
    status s =
        origin_feed_read(pull->shard, pull->at, piece_of(pull), add_change, pull, &reached, is_end);
    if (!status_is_ok(s)) {
        buffer_free(&pull->message);
        return s;
    }
    if (is_past(pull, reached))
        reached = pull->until;
    pull_message_reached(&pull->message, reached, take_complete(pull, reached));
    pull->at = reached;
    size_t size = grpc_call_send_counted(pull->stream.call, &pull->message);
    link_rate_charge(pull->service->rate, pull->number, size);
    note_sent(pull->service, pull->number, reached);
    return status_ok();
}

/* --- the thread --- */

static void woken_by_change(struct task *task)
{
    peer_stream_wake(&LIST_ENTRY(&task->link, struct pull, waiter.task.link)->stream);
}

/* Until something happens, but not sooner than answers are to follow each other. */
static void rest_at_end(struct pull *pull)
{
    int64_t from_ns = thread_steady_ns();
    peer_stream_rest(&pull->stream, HEARTBEAT_US);
    int64_t rested_us = (thread_steady_ns() - from_ns) / 1000;
    if (rested_us < PACE_US)
        peer_stream_rest(&pull->stream, PACE_US - rested_us);
}

static status send_all(struct peer_stream *stream)
{
    struct pull *pull = pull_of(stream);
    while (peer_stream_goes_on(stream)) {
        bool is_end = false;
        peer_stream_await_client(stream);
        peer_stream_await_rate(stream, pull->service->rate, pull->number);
        origin_feed_wait(pull->shard, &pull->waiter);
        status s = send_piece(pull, &is_end);
        if (status_is_ok(s) && is_end)
            rest_at_end(pull);
        (void)origin_feed_forget(pull->shard, &pull->waiter);
        TRY(s);
        if (pull->until.sequence != 0 && stream_position_compare(pull->at, pull->until) == 0)
            return status_ok();
    }
    return status_make(STATUS_UNAVAILABLE, "The call is over");
}

static void ended(struct peer_stream *stream)
{
    struct pull *pull = pull_of(stream);
    note_unsent(pull->service, pull->number);
    atomic_fetch_sub(&pull->service->running, 1);
    free(pull);
}

/* --- what is kept --- */

static uint64_t kept_for(const struct pull_service *service, const Replica__PeerList *list)
{
    uint64_t keep = UINT64_MAX;
    for (size_t i = 0; list != NULL && i < list->n_peers; i++) {
        uint32_t number = list->peers[i]->number;
        if (number == peers_own_number(service->peers) || number >= VERSION_CLUSTERS)
            continue;
        uint64_t from = service->has_asked[number] ? service->asked[number] : 0;
        keep = from < keep ? from : keep;
    }
    return keep;
}

void pull_service_look(struct pull_service *service)
{
    enum { LIST_BYTES = 1 << 20 };
    const Replica__PeerList *list = NULL;
    struct arena *arena = arena_create(LIST_BYTES);
    if (arena == NULL)
        return;
    status s = peers_list(service->peers, arena, &list);
    if (status_is_ok(s)) {
        pthread_mutex_lock(&service->lock);
        origin_feed_keep(origin_shard(service->cluster), kept_for(service, list));
        pthread_mutex_unlock(&service->lock);
    }
    status_free(s);
    arena_destroy(arena);
}

static void note_asked(struct pull_service *service, uint32_t number, struct stream_position after)
{
    pthread_mutex_lock(&service->lock);
    service->asked[number] = after.sequence;
    service->sent[number] = after;
    service->has_asked[number] = true;
    pthread_mutex_unlock(&service->lock);
    pull_service_look(service);
}

/* --- calls --- */

static status check(const struct pull_service *service, const Replica__PullChangesRequest *request)
{
    if (request->from == 0 || request->from >= VERSION_CLUSTERS)
        return status_make(STATUS_INVALID_ARGUMENT, "%u is no peer's number", request->from);
    if (peers_own_number(service->peers) == 0 || !origin_feed_is_on(origin_shard(service->cluster)))
        return status_make(STATUS_UNAVAILABLE, "This server tells no peers of its changes yet");
    return status_ok();
}

static struct stream_position position_of(const Replica__Position *position)
{
    return position == NULL ? (struct stream_position){0, 0}
                            : (struct stream_position){position->sequence, position->ordinal};
}

static status begin(struct pull_service *service, struct grpc_call *call,
                    const Replica__PullChangesRequest *request)
{
    struct pull *pull = calloc(1, sizeof *pull);
    if (pull == NULL)
        return status_out_of_memory();
    *pull = (struct pull){
        .stream = {.call = call, .name = "pull", .run = send_all, .ended = ended},
        .service = service,
        .number = request->from,
        .shard = origin_shard(service->cluster),
        .at = position_of(request->after),
        .until = position_of(request->until),
        .waiter = {.task = {.run = woken_by_change}},
    };
    atomic_fetch_add(&service->running, 1);
    status s = peer_stream_begin(&pull->stream);
    if (!status_is_ok(s))
        ended(&pull->stream);
    return s;
}

static status handle(struct pull_service *service, struct grpc_call *call, bytes wire)
{
    ProtobufCMessage *message;
    TRY(proto_decode(&replica__pull_changes_request__descriptor, wire, grpc_call_arena(call),
                     &message));
    const Replica__PullChangesRequest *request = (const void *)message;
    TRY(check(service, request));
    note_asked(service, request->from, position_of(request->after));
    return begin(service, call, request);
}

void pull_service_handle(void *context, struct grpc_call *call, bytes request)
{
    status s = handle(context, call, request);
    if (!status_is_ok(s))
        grpc_call_finish(call, s);
}

status pull_service_create(struct cluster *cluster, struct peers *peers, struct link_rate *rate,
                           struct pull_service **out)
{
    struct pull_service *service = *out = calloc(1, sizeof *service);
    if (service == NULL)
        return status_out_of_memory();
    service->cluster = cluster;
    service->peers = peers;
    service->rate = rate;
    pthread_mutex_init(&service->lock, NULL);
    return status_ok();
}

void pull_service_destroy(struct pull_service *service)
{
    if (service == NULL)
        return;
    CHECK(atomic_load(&service->running) == 0);
    pthread_mutex_destroy(&service->lock);
    free(service);
}
