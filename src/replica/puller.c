/* See puller.h.
 *
 * A call lasts some seconds, and then there is another: its position tells the peer what it need
 * not keep any more, so that is one that is durable here.
 *
 * What has been applied is recorded a few times a second at most, and while nothing is changed at
 * the end of each call alone: until then only what is complete rises, which may be forgotten
 * (origin_applied_note). */
#include "replica/puller.h"

#include "base/check.h"
#include "cluster/origin/origin_applied.h"
#include "os/thread.h"
#include "wire/proto.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    CALL_US = 10 * 1000 * 1000,
    RECORD_US = 500 * 1000,      /* at least between two records while changes come */
    RETRY_US = 100 * 1000,       /* after a failure, and twice as long each time, */
    RETRY_MOST_US = 2000 * 1000, /* up to this */
    TOLD_US = 8 * RETRY_US,      /* after so long a wait a failure is told */
    PARKED_US = 50 * 1000,       /* until what is parked is tried again */
    ANSWER_BYTES = 1 << 30,      /* of memory, for the largest answer */
};

struct puller {
    struct puller_options options;
    pthread_t thread;
    struct thread_stop stop;
    struct arena *arena; /* of an answer */
    struct pull_apply *apply;

    /* The thread's. */
    struct origin_applied recorded;
    struct origin_applied reached;
    bool has_changes; /* since the record */
    int64_t recorded_us;
    int64_t wait_us;
    enum park_reason reason; /* of the last answer */
    bool has_told;           /* the log, of the failure that lasts */
    atomic_ullong greatest;  /* no version that was applied is above; others look at it */

    pthread_mutex_t lock;           /* of the next ones */
    struct client_session *session; /* of the call under way, or NULL */
    pthread_cond_t rested;          /* is_pulling has become false */
    bool is_held;
    bool is_pulling;
    bool is_stopping;
    uint64_t complete;
    uint64_t changes;
    uint64_t bytes;
    uint64_t parks[PARK_REASONS]; /* how often they began */
    enum park_reason parked;
    int64_t parked_since_us; /* by the versions' clock */
};

static int64_t steady_us(const struct puller *puller)
{
    return clock_steady_us(cluster_clock(puller->options.apply.cluster));
}

/* --- what has been applied --- */

static status record(struct puller *puller)
{
    TRY(origin_applied_record(puller->options.apply.cluster, puller->options.number,
                              &puller->reached));
    puller->recorded = puller->reached;
    puller->has_changes = false;
    puller->recorded_us = steady_us(puller);
    return status_ok();
}

/* `is_rest`: the answer had no changes. */
static status note_reached(struct puller *puller, bool is_rest)
{
    int64_t since_us = steady_us(puller) - puller->recorded_us;
    if (puller->has_changes)
        return is_rest || since_us >= RECORD_US ? record(puller) : status_ok();
    puller->recorded.complete = puller->reached.complete;
    origin_applied_note(puller->options.apply.cluster, puller->options.number,
                        puller->reached.complete);
    return status_ok();
}

/* With the lock held. Told once, for as long as it lasts. */
static void set_parked(struct puller *puller, enum park_reason reason)
{
    DCHECK(check_is_held(&puller->lock));
    if (reason != PARK_NONE && puller->parked == PARK_NONE) {
        puller->parked_since_us = cluster_version_us(puller->options.apply.cluster);
        log_warn(puller->options.log, "a peer's changes wait",
                 LOG_INT("peer", puller->options.number), LOG_STR("why", park_words(reason)));
    } else if (reason == PARK_NONE && puller->parked != PARK_NONE) {
        log_info(puller->options.log, "a peer's changes go on",
                 LOG_INT("peer", puller->options.number));
    }
    puller->parks[reason] += reason != puller->parked;
    puller->parked = reason;
}

static void observe_latency(const struct puller *puller, const Replica__PullChangesResponse *answer)
{
    int64_t now_us = cluster_version_us(puller->options.apply.cluster);
    for (size_t i = 0; i < answer->n_changes; i++) {
        int64_t took_us = now_us - version_time_us(answer->changes[i]->version);
        metrics_observe_in(puller->options.latency, took_us > 0 ? (uint64_t)took_us : 0);
    }
}

static void note_state(struct puller *puller, const Replica__PullChangesResponse *answer,
                       size_t bytes)
{
    pthread_mutex_lock(&puller->lock);
    set_parked(puller, puller->reason);
    if (puller->reason == PARK_NONE) {
        puller->complete = puller->reached.complete;
        puller->changes += answer->n_changes;
        puller->bytes += bytes;
    }
    pthread_mutex_unlock(&puller->lock);
}

static void take_reached(struct puller *puller, const Replica__PullChangesResponse *answer)
{
    if (answer->reached != NULL)
        puller->reached.position =
            (struct stream_position){answer->reached->sequence, answer->reached->ordinal};
    if (answer->complete_version > puller->reached.complete)
        puller->reached.complete = answer->complete_version;
    if (answer->n_changes > 0)
        puller->has_changes = true;
    for (size_t i = 0; i < answer->n_changes; i++)
        if (answer->changes[i]->version > atomic_load(&puller->greatest))
            atomic_store(&puller->greatest, answer->changes[i]->version);
}

/* --- a call --- */

static status take_answer(void *context, bytes message)
{
    struct puller *puller = context;
    ProtobufCMessage *decoded;
    arena_reset(puller->arena);
    TRY(proto_decode(&replica__pull_changes_response__descriptor, message, puller->arena,
                     &decoded));
    const Replica__PullChangesResponse *answer = (const void *)decoded;
    status s = pull_apply_run(puller->apply, answer, &puller->reason);
    if (status_is_ok(s))
        take_reached(puller, answer);
    if (status_is_ok(s))
        observe_latency(puller, answer);
    note_state(puller, answer, message.size);
    TRY(s);
    puller->wait_us = 0;
    return note_reached(puller, answer->n_changes == 0);
}

/* No answer is on both sides of a place where it becomes another what is applied (placed.h). */
static void bound(const struct puller *puller, Replica__PullChangesRequest *request,
                  Replica__Position *until)
{
    struct stream_position at;
    struct placed *placed = puller->options.apply.placed;
    if (placed == NULL ||
        !placed_bound(placed, puller->options.number, puller->recorded.position, &at))
        return;
    until->sequence = at.sequence;
    until->ordinal = at.ordinal;
    request->until = until;
}

static status pull(struct puller *puller, struct client_session *session)
{
    Replica__Position after = REPLICA__POSITION__INIT;
    Replica__Position until = REPLICA__POSITION__INIT;
    Replica__PullChangesRequest request = REPLICA__PULL_CHANGES_REQUEST__INIT;
    const struct session_call call = {.path = "/trestle.replica.v1.Replication/PullChanges",
                                      .request = &request.base,
                                      .timeout_us = CALL_US,
                                      .gzip = peers_pack(puller->options.peers),
                                      .on_message = take_answer,
                                      .context = puller};
    after.sequence = puller->recorded.position.sequence;
    after.ordinal = puller->recorded.position.ordinal;
    request.from = peers_own_number(puller->options.peers);
    request.after = &after;
    bound(puller, &request, &until);
    puller->reached = puller->recorded;
    status s = client_session_stream(session, &call, NULL);
    if (stream_position_compare(puller->reached.position, puller->recorded.position) == 0)
        return s;
    status last = record(puller);
    if (status_is_ok(s))
        return last;
    status_free(last);
    return s;
}

/* False: it is to end. */
static bool hold_session(struct puller *puller, struct client_session *session)
{
    pthread_mutex_lock(&puller->lock);
    bool goes_on = !puller->is_stopping && !puller->is_held;
    puller->session = goes_on ? session : NULL;
    pthread_mutex_unlock(&puller->lock);
    return goes_on;
}

static status pull_with(struct puller *puller, struct client_session *session)
{
    status s = status_ok();
    while (hold_session(puller, session) &&
           (status_is_ok(s) || s.code == STATUS_DEADLINE_EXCEEDED)) {
        status_free(s);
        s = pull(puller, session);
    }
    (void)hold_session(puller, NULL);
    return s;
}

/* The peer has given up what was to come next: where to go on is to be asked for, and what is here
 * and elsewhere, too, to be copied anew, which is not this thread's to do. */
static status give_up(struct puller *puller, status lost)
{
    const struct origin_applied none = {.position = {0, 0}};
    log_error(puller->options.log,
              "a peer keeps the changes no more that are missing here: what other clusters have, "
              "too, is copied anew",
              LOG_INT("peer", puller->options.number), LOG_STR("why", status_message(lost)));
    status_free(lost);
    pthread_mutex_lock(&puller->lock);
    set_parked(puller, PARK_LOST);
    pthread_mutex_unlock(&puller->lock);
    TRY(puller->options.lose(puller->options.context, puller->options.number));
    return origin_applied_record(puller->options.apply.cluster, puller->options.number, &none);
}

static status pull_from_peer(struct puller *puller)
{
    struct client_session *session;
    struct cluster *cluster = puller->options.apply.cluster;
    TRY(peers_session(puller->options.peers, puller->options.number, &session));
    puller->reason = PARK_NONE;
    puller->has_changes = false;
    (void)origin_applied(cluster, puller->options.number, &puller->recorded);
    if (origin_wants_copy(&puller->recorded)) {
        client_session_destroy(session);
        return status_ok();
    }
    pull_apply_forget_tables(puller->apply);
    status s = pull_with(puller, session);
    client_session_destroy(session);
    return s.code == STATUS_OUT_OF_RANGE ? give_up(puller, s) : s;
}

/* --- the thread --- */

/* Not of what lasts for a moment, as while one of both joins or starts. */
static void tell(struct puller *puller, status s)
{
    bool is_news = !status_is_ok(s) && s.code != STATUS_CANCELLED && puller->reason == PARK_NONE &&
                   puller->wait_us >= TOLD_US;
    if (is_news && !puller->has_told)
        log_warn(puller->options.log, "a peer's changes cannot be pulled",
                 LOG_INT("peer", puller->options.number), LOG_STR("why", status_message(s)));
    puller->has_told = is_news;
}

static void choose_wait(struct puller *puller)
{
    if (puller->reason != PARK_NONE)
        puller->wait_us = PARKED_US;
    else if (puller->wait_us == 0)
        puller->wait_us = RETRY_US;
    else if (puller->wait_us < RETRY_MOST_US)
        puller->wait_us *= 2;
}

static bool begin_turn(struct puller *puller)
{
    pthread_mutex_lock(&puller->lock);
    puller->is_pulling = !puller->is_held;
    bool begins = puller->is_pulling;
    pthread_mutex_unlock(&puller->lock);
    return begins;
}

static void end_turn(struct puller *puller)
{
    pthread_mutex_lock(&puller->lock);
    puller->is_pulling = false;
    pthread_cond_broadcast(&puller->rested);
    pthread_mutex_unlock(&puller->lock);
}

static status take_turn(struct puller *puller)
{
    if (!begin_turn(puller))
        return status_ok();
    status s = pull_from_peer(puller);
    end_turn(puller);
    return s;
}

static void *run(void *argument)
{
    struct puller *puller = argument;
    do {
        status s = take_turn(puller);
        tell(puller, s);
        status_free(s);
        choose_wait(puller);
    } while (thread_rest(&puller->stop, puller->wait_us));
    return NULL;
}

static void free_puller(struct puller *puller)
{
    pull_apply_destroy(puller->apply);
    arena_destroy(puller->arena);
    thread_stop_destroy(&puller->stop);
    pthread_cond_destroy(&puller->rested);
    pthread_mutex_destroy(&puller->lock);
    free(puller);
}

status puller_start(const struct puller_options *options, struct puller **out)
{
    DCHECK(options->number > 0 && options->number < VERSION_CLUSTERS);
    struct puller *puller = *out = calloc(1, sizeof *puller);
    if (puller == NULL)
        return status_out_of_memory();
    puller->options = *options;
    thread_stop_init(&puller->stop);
    pthread_mutex_init(&puller->lock, NULL);
    pthread_cond_init(&puller->rested, NULL);
    puller->is_held = options->is_held;
    /* What was applied before is of before; and of what was ahead then (pull_apply.c). */
    atomic_init(&puller->greatest,
                version_at(cluster_version_us(options->apply.cluster) + 500 * 1000));
    puller->arena = arena_create(ANSWER_BYTES);
    status s = puller->arena == NULL ? status_out_of_memory()
                                     : pull_apply_create(&options->apply, &puller->apply);
    if (status_is_ok(s))
        s = thread_start(&puller->thread, "puller", run, puller);
    if (!status_is_ok(s)) {
        free_puller(puller);
        *out = NULL;
    }
    return s;
}

void puller_stop(struct puller *puller)
{
    if (puller == NULL)
        return;
    pthread_mutex_lock(&puller->lock);
    puller->is_stopping = true;
    if (puller->session != NULL)
        client_session_cancel(puller->session);
    pthread_mutex_unlock(&puller->lock);
    thread_stop_now(&puller->stop);
    pthread_join(puller->thread, NULL);
    free_puller(puller);
}

void puller_hold(struct puller *puller)
{
    pthread_mutex_lock(&puller->lock);
    puller->is_held = true;
    if (puller->session != NULL)
        client_session_cancel(puller->session);
    while (puller->is_pulling)
        pthread_cond_wait(&puller->rested, &puller->lock);
    pthread_mutex_unlock(&puller->lock);
}

void puller_release(struct puller *puller)
{
    pthread_mutex_lock(&puller->lock);
    puller->is_held = false;
    pthread_mutex_unlock(&puller->lock);
}

unsigned puller_number(const struct puller *puller)
{
    return puller->options.number;
}

uint64_t puller_greatest(struct puller *puller)
{
    return atomic_load(&puller->greatest);
}

void puller_parks(struct puller *puller, uint64_t out[PARK_REASONS])
{
    pthread_mutex_lock(&puller->lock);
    memcpy(out, puller->parks, sizeof puller->parks);
    pthread_mutex_unlock(&puller->lock);
}

void puller_state(struct puller *puller, Replica__PeerState *out)
{
    pthread_mutex_lock(&puller->lock);
    /* What waits may be as old as that. */
    out->applied_until_us = version_time_us(puller->complete);
    if (puller->parked != PARK_NONE && out->applied_until_us > puller->parked_since_us)
        out->applied_until_us = puller->parked_since_us;
    out->applied_bytes = puller->bytes;
    out->applied_changes = puller->changes;
    out->parked = park_words(puller->parked);
    pthread_mutex_unlock(&puller->lock);
}
