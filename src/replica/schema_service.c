/* See schema_service.h.
 *
 *     handler ──► a thread of the pool: another digest? ── yes ──► pieces, the end
 *                     ▲                     │ no
 *                     └── something was ◄── a timer, on the call's loop ──► the end
 *                         edited                 (a deadline, a client that goes)
 *
 * The thread of the pool sends; what the call waits for, and its end, is its loop's alone. */
#include "replica/schema_service.h"

#include "base/check.h"
#include "os/loop.h"
#include "os/pool.h"
#include "replica/schema_snapshot.h"
#include "replica/schema_state.h"
#include "wire/proto_call.h"

#include <stdlib.h>

enum {
    LOOK_US = 20 * 1000, /* between two looks whether something was edited */
    /* Before the deadline, so that the client gets an end and no failure. */
    END_EARLY_US = 200 * 1000,
    LIST_MEMORY = 1 << 20,
};

struct schema_service {
    struct control *control;
    struct peers *peers;
    struct clock *clock;
    atomic_size_t running;
    pthread_mutex_t lock;         /* of the next ones; held while a picture is taken */
    struct schema_snapshot *kept; /* the last picture; NULL: there is none yet */
    uint64_t edits;               /* that it has, at least */
    uint64_t as_of_us;            /* when it was taken, by the versions' clock */
};

/* In the call's arena. */
struct schema_call {
    struct schema_service *service;
    struct grpc_call *call;
    bytes digest;    /* what the caller has */
    bool is_to_lead; /* the caller takes it from one that does not lead, too */
    uint64_t epoch;  /* of what is sent, and of when it is */
    uint64_t as_of_us;
    uint64_t edits;  /* that the last look has seen */
    bool is_over;    /* with `result` */
    bool is_leaving; /* the client is to go, or has gone */
    bool is_hasty;   /* it does not wait */
    bool is_timed;   /* the timer is set: nothing else is under way */
    status result;
    int64_t rests_since_us;
    struct task task;
    struct timer timer;
};

/* --- pictures --- */

/* The newest, with a reference, and when it was taken. */
static status current(struct schema_service *service, struct schema_snapshot **out,
                      uint64_t *as_of_us)
{
    status s = status_ok();
    pthread_mutex_lock(&service->lock);
    uint64_t edits = control_edit_count(service->control);
    if (service->kept == NULL || service->edits != edits) {
        struct schema_snapshot *taken;
        s = schema_snapshot_take(service->control, &taken);
        if (status_is_ok(s)) {
            schema_snapshot_release(service->kept);
            service->kept = taken;
            service->edits = edits;
            service->as_of_us = (uint64_t)cluster_version_us(control_cluster(service->control));
        }
    }
    *as_of_us = service->as_of_us;
    *out = status_is_ok(s) ? service->kept : NULL;
    if (*out != NULL)
        schema_snapshot_retain(*out);
    pthread_mutex_unlock(&service->lock);
    return s;
}

static status check_leads_here(const struct schema_service *service)
{
    unsigned leader = peers_leader(service->peers);
    if (peers_leads_here(service->peers))
        return status_ok();
    if (leader != 0 && leader == peers_own_number(service->peers))
        return status_make(STATUS_UNAVAILABLE, "This server is about to lead");
    return status_make(STATUS_FAILED_PRECONDITION, "This server does not lead: peer %u does",
                       leader);
}

/* Which picture it is: of one that does not lead, that of which it has all. */
static status find_state(struct schema_call *self, uint64_t as_of_us)
{
    struct schema_service *service = self->service;
    Replica__SchemaState state = REPLICA__SCHEMA_STATE__INIT;
    struct arena *arena = arena_create(LIST_MEMORY);
    status s = arena == NULL ? status_out_of_memory()
                             : schema_state_tell(service->control, service->peers, arena, &state);
    self->epoch = state.epoch;
    self->as_of_us = state.as_of_us == UINT64_MAX ? as_of_us : state.as_of_us;
    arena_destroy(arena);
    return s;
}

/* --- a look, on a thread of the pool --- */

/* All pieces wait in the call, if the peer is slow: they are as large as the picture. */
static status send_piece(void *context, const Replica__PullSchemaResponse *piece)
{
    const struct schema_call *self = context;
    Replica__PullSchemaResponse told = *piece;
    if (grpc_call_is_cancelled(self->call))
        return status_make(STATUS_CANCELLED, "The call was cancelled");
    told.as_of_us = self->as_of_us;
    grpc_call_send_proto(self->call, &told.base);
    return status_ok();
}

static status send_if_new(struct schema_call *self, const struct schema_snapshot *snapshot,
                          uint64_t as_of_us)
{
    if (bytes_equal(schema_snapshot_digest(snapshot), self->digest))
        return status_ok();
    self->is_over = true;
    TRY(find_state(self, as_of_us));
    return schema_snapshot_send(snapshot, self->epoch, send_piece, self);
}

static status look(struct schema_call *self)
{
    struct schema_snapshot *snapshot;
    uint64_t as_of_us;
    if (!self->is_to_lead)
        TRY(check_leads_here(self->service));
    self->edits = control_edit_count(self->service->control);
    TRY(current(self->service, &snapshot, &as_of_us));
    status s = send_if_new(self, snapshot, as_of_us);
    schema_snapshot_release(snapshot);
    return s;
}

static void go_on(struct task *task);

static void run_on_pool(struct task *task)
{
    struct schema_call *self = LIST_ENTRY(&task->link, struct schema_call, task.link);
    self->result = look(self);
    self->is_over |= self->is_hasty || !status_is_ok(self->result);
    self->task.run = go_on;
    loop_post(grpc_call_loop(self->call), &self->task);
}

/* --- on the loop, as all that follows: the end --- */

static void finish(struct schema_call *self, status s)
{
    struct schema_service *service = self->service;
    struct grpc_call *call = self->call;
    atomic_fetch_sub(&service->running, 1);
    grpc_call_finish(call, s);
}

static void leave(struct schema_call *self)
{
    finish(self, status_make(STATUS_UNAVAILABLE, "The call is over"));
}

/* The client has gone, or is to go. A thread that has the call brings it to its end. */
static void stop_waiting(void *context)
{
    struct schema_call *self = context;
    self->is_leaving = true;
    if (!self->is_timed)
        return;
    self->is_timed = false;
    loop_timer_clear(grpc_call_loop(self->call), &self->timer);
    leave(self);
}

/* --- waiting --- */

static void await(struct schema_call *self)
{
    self->rests_since_us = clock_steady_us(self->service->clock);
    status s =
        loop_timer_set(grpc_call_loop(self->call), &self->timer, self->rests_since_us + LOOK_US);
    self->is_timed = status_is_ok(s);
    if (!self->is_timed)
        finish(self, s);
}

static void go_on(struct task *task)
{
    struct schema_call *self = LIST_ENTRY(&task->link, struct schema_call, task.link);
    if (self->is_over)
        finish(self, self->result);
    else if (self->is_leaving)
        leave(self);
    else
        await(self);
}

/* With a pool that is full it is tried again later. */
static void submit(struct schema_call *self)
{
    struct cluster *cluster = control_cluster(self->service->control);
    self->task.run = run_on_pool;
    if (!pool_submit(cluster_pool(cluster), &self->task))
        await(self);
}

static void on_time(struct timer *timer)
{
    struct schema_call *self = LIST_ENTRY(timer, struct schema_call, timer);
    const struct schema_service *service = self->service;
    int64_t now_us = clock_steady_us(service->clock);
    int64_t deadline_us = grpc_call_deadline_us(self->call);
    self->is_timed = false;
    grpc_call_rested(self->call, now_us - self->rests_since_us);
    if (deadline_us != INT64_MAX && deadline_us - now_us < END_EARLY_US)
        finish(self, status_ok());
    else if (control_edit_count(service->control) != self->edits ||
             peers_leader(service->peers) != peers_own_number(service->peers))
        submit(self);
    else
        await(self);
}

/* --- calls --- */

static status begin(struct schema_service *service, struct grpc_call *call, bytes wire)
{
    ProtobufCMessage *message;
    struct arena *arena = grpc_call_arena(call);
    TRY(proto_decode(&replica__pull_schema_request__descriptor, wire, arena, &message));
    const Replica__PullSchemaRequest *request = (const void *)message;
    struct schema_call *self = arena_zalloc(arena, sizeof *self);
    if (self == NULL)
        return status_out_of_memory();
    self->service = service;
    self->call = call;
    self->digest = proto_bytes(request->digest);
    self->is_hasty = request->at_once;
    self->is_to_lead = request->is_to_lead;
    self->edits = UINT64_MAX; /* of none */
    self->timer.run = on_time;
    self->result = status_ok();
    atomic_fetch_add(&service->running, 1);
    grpc_call_set_callbacks(call, self, NULL, stop_waiting);
    grpc_call_set_on_drain(call, stop_waiting);
    submit(self);
    return status_ok();
}

void schema_service_handle(void *service, struct grpc_call *call, bytes request)
{
    status s = begin(service, call, request);
    if (!status_is_ok(s))
        grpc_call_finish(call, s);
}

/* --- life --- */

status schema_service_create(struct control *control, struct peers *peers,
                             struct schema_service **out)
{
    struct schema_service *service = *out = calloc(1, sizeof *service);
    if (service == NULL)
        return status_out_of_memory();
    service->control = control;
    service->peers = peers;
    service->clock = cluster_clock(control_cluster(control));
    pthread_mutex_init(&service->lock, NULL);
    return status_ok();
}

void schema_service_destroy(struct schema_service *service)
{
    if (service == NULL)
        return;
    CHECK(atomic_load(&service->running) == 0);
    schema_snapshot_release(service->kept);
    pthread_mutex_destroy(&service->lock);
    free(service);
}
