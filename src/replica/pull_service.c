/* See pull_service.h.
 *
 *     handler ──► thread: a piece of the feed, sent ─► … ─► nothing left: rests ──► …
 *                    │                                        ▲
 *                    │        a change, room, the client's end┘ wake it
 *                    └─► the loop: the call ends, and the thread is joined
 *
 * Invariants
 *  1. The call's thread alone sends; the call ends on its loop, after the thread has posted that as
 *     its last act. So no callback comes to a pull that has gone.
 *  2. The waiter is in line before the feed is read for the last time (stream/log.h). */
#include "replica/pull_service.h"

#include "base/check.h"
#include "os/thread.h"
#include "replica/pull_message.h"
#include "tablet/version.h"
#include "wire/proto.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    PIECE_BYTES = 256 << 10,    /* of the log, about, that one answer has */
    HEARTBEAT_US = 100 * 1000,  /* at most between two answers */
    PACE_US = 10 * 1000,        /* at least: what one has is written together there */
    CONGESTED_US = 1000 * 1000, /* until one looks again, should a callback be missed */
    TABLES_REMEMBERED = 64,     /* of those that the feed names */
};

struct pull_service {
    struct cluster *cluster;
    struct peers *peers;
    const struct log *log;
    pthread_mutex_t lock;
    uint64_t asked[VERSION_CLUSTERS]; /* by number: what it asked for is behind this sequence */
    bool has_asked[VERSION_CLUSTERS];
    atomic_size_t running;
};

/* A table that the feed names. */
struct named_table {
    uint64_t id;
    uint64_t uid; /* 0: it is there no more */
};

struct pull {
    struct pull_service *service;
    struct grpc_call *call;
    struct shard *shard;
    struct stream_position at;
    pthread_t thread;
    struct task end;
    status result;

    struct buffer message; /* that is being made */
    struct named_table tables[TABLES_REMEMBERED];
    size_t table_count;
    uint64_t generation; /* rises with each that is remembered */

    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_woken;
    bool is_leaving; /* the server wants its clients to go */
    struct stream_waiter waiter;
};

/* --- rest --- */

static void wake(struct pull *pull)
{
    pthread_mutex_lock(&pull->lock);
    pull->is_woken = true;
    pthread_cond_signal(&pull->wake);
    pthread_mutex_unlock(&pull->lock);
}

static void woken_by_client(void *context)
{
    wake(context);
}

static void told_to_leave(void *context)
{
    struct pull *pull = context;
    pthread_mutex_lock(&pull->lock);
    pull->is_leaving = true;
    pthread_mutex_unlock(&pull->lock);
    wake(pull);
}

static void woken_by_change(struct task *task)
{
    wake(LIST_ENTRY(&task->link, struct pull, waiter.task.link));
}

static void rest(struct pull *pull, int64_t us)
{
    struct timespec until = thread_time_in(us);
    pthread_mutex_lock(&pull->lock);
    while (!pull->is_woken &&
           pthread_cond_clockwait(&pull->wake, &pull->lock, CLOCK_MONOTONIC, &until) == 0)
        ;
    pull->is_woken = false;
    pthread_mutex_unlock(&pull->lock);
}

/* --- an answer --- */

static struct named_table *remembered(struct pull *pull, uint64_t id)
{
    for (size_t i = 0; i < pull->table_count; i++)
        if (pull->tables[i].id == id)
            return &pull->tables[i];
    return NULL;
}

/* Of many the place of an old one is taken. */
static struct named_table *remember(struct pull *pull, uint64_t id)
{
    struct table *table;
    size_t place = pull->table_count < TABLES_REMEMBERED ? pull->table_count++
                                                         : pull->generation % TABLES_REMEMBERED;
    struct named_table *named = &pull->tables[place];
    pull->generation++;
    *named = (struct named_table){.id = id};
    status s = cluster_table_of_id(pull->service->cluster, id, &table);
    if (status_is_ok(s)) {
        named->uid = table_uid(table);
        pull_message_table(&pull->message, named->uid, table_name(table));
        table_release(table);
    }
    status_free(s);
    return named;
}

/* What became of the rows of a table that is there no more nobody needs to know. */
static status add_change(void *context, const struct origin_change *change, bool *enough)
{
    struct pull *pull = context;
    struct named_table *named = remembered(pull, change->table);
    if (named == NULL)
        named = remember(pull, change->table);
    if (named->uid != 0)
        pull_message_change(&pull->message, named->uid, change);
    *enough = pull->message.size >= PIECE_BYTES;
    return pull->message.failed ? status_out_of_memory() : status_ok();
}

/* `*is_end`: there is nothing more. */
static status send_piece(struct pull *pull, bool *is_end)
{
    struct stream_position reached = pull->at;
    struct origin_complete complete = origin_feed_complete(pull->shard);
    bool is_known = origin_feed_logged(pull->shard) >= complete.sequence;
    grpc_message_start(&pull->message);
    status s =
        origin_feed_read(pull->shard, pull->at, PIECE_BYTES, add_change, pull, &reached, is_end);
    if (!status_is_ok(s)) {
        buffer_free(&pull->message);
        return s;
    }
    is_known = is_known && reached.sequence >= complete.sequence;
    pull_message_reached(&pull->message, reached, is_known ? complete.version : 0);
    pull->at = reached;
    grpc_call_send(pull->call, &pull->message);
    return status_ok();
}

/* --- the thread --- */

static void await_client(struct pull *pull)
{
    while (grpc_call_is_congested(pull->call) && !grpc_call_is_cancelled(pull->call))
        rest(pull, CONGESTED_US);
}

static bool goes_on(struct pull *pull)
{
    pthread_mutex_lock(&pull->lock);
    bool is_leaving = pull->is_leaving;
    pthread_mutex_unlock(&pull->lock);
    return !is_leaving && !grpc_call_is_cancelled(pull->call);
}

/* Until something happens, but not sooner than answers are to follow each other. */
static void rest_at_end(struct pull *pull)
{
    int64_t from_ns = thread_steady_ns();
    rest(pull, HEARTBEAT_US);
    int64_t rested_us = (thread_steady_ns() - from_ns) / 1000;
    if (rested_us < PACE_US)
        rest(pull, PACE_US - rested_us);
}

static status send_all(struct pull *pull)
{
    while (goes_on(pull)) {
        bool is_end = false;
        await_client(pull);
        origin_feed_wait(pull->shard, &pull->waiter);
        status s = send_piece(pull, &is_end);
        if (status_is_ok(s) && is_end)
            rest_at_end(pull);
        (void)origin_feed_forget(pull->shard, &pull->waiter);
        TRY(s);
    }
    return status_make(STATUS_UNAVAILABLE, "The call is over");
}

static void *run(void *argument)
{
    struct pull *pull = argument;
    pull->result = send_all(pull);
    loop_post(grpc_call_loop(pull->call), &pull->end);
    return NULL;
}

static void end(struct task *task)
{
    struct pull *pull = LIST_ENTRY(&task->link, struct pull, end.link);
    struct pull_service *service = pull->service;
    struct grpc_call *call = pull->call;
    status result = pull->result;
    pthread_join(pull->thread, NULL); /* it has nothing left to do */
    pthread_mutex_destroy(&pull->lock);
    pthread_cond_destroy(&pull->wake);
    free(pull);
    atomic_fetch_sub(&service->running, 1);
    grpc_call_finish(call, result);
}

/* --- what is kept --- */

void pull_service_look(struct pull_service *service)
{
    struct arena *arena = arena_create(1 << 20);
    const Replica__PeerList *list = NULL;
    if (arena == NULL)
        return;
    status s = peers_list(service->peers, arena, &list);
    uint64_t keep = UINT64_MAX;
    pthread_mutex_lock(&service->lock);
    for (size_t i = 0; status_is_ok(s) && list != NULL && i < list->n_peers; i++) {
        uint32_t number = list->peers[i]->number;
        if (number == peers_own_number(service->peers) || number >= VERSION_CLUSTERS)
            continue;
        uint64_t from = service->has_asked[number] ? service->asked[number] : 0;
        keep = from < keep ? from : keep;
    }
    pthread_mutex_unlock(&service->lock);
    if (status_is_ok(s))
        origin_feed_keep(origin_shard(service->cluster), keep);
    status_free(s);
    arena_destroy(arena);
}

static void note_asked(struct pull_service *service, uint32_t number, uint64_t sequence)
{
    pthread_mutex_lock(&service->lock);
    service->asked[number] = sequence;
    service->has_asked[number] = true;
    pthread_mutex_unlock(&service->lock);
    pull_service_look(service);
}

/* --- calls --- */

static status check(const struct pull_service *service, const Replica__PullChangesRequest *request)
{
    if (request->from == 0 || request->from >= VERSION_CLUSTERS)
        return status_make(STATUS_INVALID_ARGUMENT, "%u is no peer's number", request->from);
    if (peers_own_number(service->peers) == 0)
        return status_make(STATUS_FAILED_PRECONDITION, "This server has no peers");
    return status_ok();
}

static struct pull *create(struct pull_service *service, struct grpc_call *call,
                           struct stream_position after)
{
    struct pull *pull = calloc(1, sizeof *pull);
    if (pull == NULL)
        return NULL;
    pull->service = service;
    pull->call = call;
    pull->shard = origin_shard(service->cluster);
    pull->at = after;
    pull->end.run = end;
    pull->waiter.task.run = woken_by_change;
    pthread_mutex_init(&pull->lock, NULL);
    thread_init_steady_wake(&pull->wake);
    return pull;
}

static status begin(struct pull_service *service, struct grpc_call *call,
                    struct stream_position after)
{
    struct pull *pull = create(service, call, after);
    if (pull == NULL)
        return status_out_of_memory();
    grpc_call_set_callbacks(call, pull, woken_by_client, woken_by_client);
    grpc_call_set_on_drain(call, told_to_leave);
    atomic_fetch_add(&service->running, 1);
    status s = thread_start(&pull->thread, "pull", run, pull);
    if (status_is_ok(s))
        return s;
    grpc_call_set_callbacks(call, NULL, NULL, NULL);
    atomic_fetch_sub(&service->running, 1);
    pthread_mutex_destroy(&pull->lock);
    pthread_cond_destroy(&pull->wake);
    free(pull);
    return s;
}

static status handle(struct pull_service *service, struct grpc_call *call, bytes wire)
{
    ProtobufCMessage *message;
    TRY(proto_decode(&replica__pull_changes_request__descriptor, wire, grpc_call_arena(call),
                     &message));
    const Replica__PullChangesRequest *request = (const void *)message;
    TRY(check(service, request));
    struct stream_position after = {0, 0};
    if (request->after != NULL)
        after = (struct stream_position){request->after->sequence, request->after->ordinal};
    note_asked(service, request->from, after.sequence);
    return begin(service, call, after);
}

void pull_service_handle(struct pull_service *service, struct grpc_call *call, bytes request)
{
    status s = handle(service, call, request);
    if (!status_is_ok(s))
        grpc_call_finish(call, s);
}

status pull_service_create(struct cluster *cluster, struct peers *peers, const struct log *log,
                           struct pull_service **out)
{
    struct pull_service *service = *out = calloc(1, sizeof *service);
    if (service == NULL)
        return status_out_of_memory();
    service->cluster = cluster;
    service->peers = peers;
    service->log = log;
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
