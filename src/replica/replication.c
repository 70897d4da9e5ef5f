/* See replication.h.
 *
 * Whom to follow from where: a server that has peers for the first time follows all of them from
 * their feeds' beginnings if it leads, since it had what there was before them; else it is new
 * among them, and is made a copy. One that comes later begins with a feed that is empty. */
#include "replica/replication.h"

#include "base/check.h"
#include "cluster/origin/origin_applied.h"
#include "cluster/origin/origin_feed.h"
#include "os/thread.h"
#include "replica/copier.h"
#include "replica/copy_service.h"
#include "replica/progress.h"
#include "replica/pull_service.h"
#include "replica/puller.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    LOOK_US = 200 * 1000,
    LIST_BYTES = 1 << 20,
};

struct replication {
    struct replication_options options;
    struct pull_service *pulls;
    struct copy_service copies;
    bool has_thread;
    pthread_t thread;
    struct thread_stop stop;
    atomic_bool has_all; /* nothing is to be copied; of a server that leads nothing ever is */

    /* The thread's. */
    uint64_t generation; /* of the peers, that was looked at */
    unsigned failures;   /* in a row */

    pthread_mutex_t lock; /* of the next ones */
    struct puller *pullers[VERSION_CLUSTERS];
    struct client_session *session; /* a copy's, or NULL */
    bool is_stopping;
};

static struct cluster *cluster_of(const struct replication *replication)
{
    return replication->options.apply.cluster;
}

/* --- whom to follow --- */

static bool follows_any(struct replication *replication, bool *wants_copy)
{
    struct origin_applied applied;
    bool follows = false;
    *wants_copy = false;
    for (unsigned i = 1; i < VERSION_CLUSTERS; i++) {
        if (!origin_applied(cluster_of(replication), i, &applied))
            continue;
        follows = true;
        *wants_copy = *wants_copy || origin_wants_copy(&applied);
    }
    return follows;
}

static status follow(struct replication *replication, const Replica__PeerList *list)
{
    bool wants_copy;
    bool is_new = !follows_any(replication, &wants_copy);
    bool leads = list->leader == peers_own_number(replication->options.peers);
    struct origin_applied from = {.position = ORIGIN_BEGINNING}, before;
    if (wants_copy || (is_new && !leads))
        from = (struct origin_applied){0};
    for (size_t i = 0; i < list->n_peers; i++) {
        unsigned number = list->peers[i]->number;
        if (number == peers_own_number(replication->options.peers) ||
            peers_is_gone(replication->options.peers, number) ||
            origin_applied(cluster_of(replication), number, &before))
            continue;
        TRY(origin_applied_record(cluster_of(replication), number, &from));
    }
    return status_ok();
}

/* --- copies --- */

static bool is_stopping(void *context)
{
    struct replication *replication = context;
    pthread_mutex_lock(&replication->lock);
    bool is_so = replication->is_stopping;
    pthread_mutex_unlock(&replication->lock);
    return is_so;
}

static bool hold_session(void *context, struct client_session *session)
{
    struct replication *replication = context;
    pthread_mutex_lock(&replication->lock);
    bool goes_on = !replication->is_stopping;
    replication->session = goes_on ? session : NULL;
    pthread_mutex_unlock(&replication->lock);
    return goes_on;
}

/* Of the leader: others may be new themselves. */
static status copy(struct replication *replication)
{
    const struct copier_options options = {
        .apply = replication->options.apply,
        .peers = replication->options.peers,
        .log = replication->options.log,
        .from = peers_leader(replication->options.peers),
        .is_stopping = is_stopping,
        .hold_session = hold_session,
        .context = replication,
    };
    if (options.from == peers_own_number(replication->options.peers))
        return status_make(STATUS_FAILED_PRECONDITION,
                           "this server is to be made a copy, and leads");
    return copier_run(&options);
}

/* --- pullers --- */

static status start_puller(struct replication *replication, unsigned number)
{
    const struct puller_options options = {
        .apply = replication->options.apply,
        .peers = replication->options.peers,
        .log = replication->options.log,
        .metrics = replication->options.metrics,
        .number = number,
    };
    struct puller *puller;
    TRY(puller_start(&options, &puller));
    pthread_mutex_lock(&replication->lock);
    replication->pullers[number] = puller;
    pthread_mutex_unlock(&replication->lock);
    return status_ok();
}

static status start_pullers(struct replication *replication)
{
    struct origin_applied applied;
    for (unsigned i = 1; i < VERSION_CLUSTERS; i++)
        if (replication->pullers[i] == NULL && origin_applied(cluster_of(replication), i, &applied))
            TRY(start_puller(replication, i));
    return status_ok();
}

static void stop_of(struct replication *replication, unsigned number)
{
    pthread_mutex_lock(&replication->lock);
    struct puller *puller = replication->pullers[number];
    replication->pullers[number] = NULL;
    pthread_mutex_unlock(&replication->lock);
    puller_stop(puller);
}

static void stop_pullers(struct replication *replication)
{
    for (unsigned i = 0; i < VERSION_CLUSTERS; i++)
        stop_of(replication, i);
}

static bool is_in(const Replica__PeerList *list, unsigned number)
{
    for (size_t i = 0; i < list->n_peers; i++)
        if (list->peers[i]->number == number)
            return true;
    return false;
}

/* Who has left is waited for no more: nothing comes of it any more. */
static status forget_gone(struct replication *replication, const Replica__PeerList *list)
{
    struct origin_applied applied;
    struct peers *peers = replication->options.peers;
    for (unsigned i = 1; i < VERSION_CLUSTERS; i++) {
        if ((is_in(list, i) && !peers_is_gone(peers, i)) ||
            !origin_applied(cluster_of(replication), i, &applied))
            continue;
        stop_of(replication, i);
        TRY(origin_applied_forget(cluster_of(replication), i));
    }
    return status_ok();
}

/* --- the thread --- */

static status take_part(struct replication *replication, const Replica__PeerList *list)
{
    bool wants_copy;
    TRY(origin_feeds_begin(cluster_of(replication)));
    TRY(forget_gone(replication, list));
    TRY(follow(replication, list));
    (void)follows_any(replication, &wants_copy);
    atomic_store(&replication->has_all, !wants_copy);
    if (wants_copy) {
        stop_pullers(replication);
        TRY(copy(replication));
    }
    atomic_store(&replication->has_all, true);
    return start_pullers(replication);
}

/* A server without peers whose directory is a former peer's, restored, or that has left: what it
 * kept for others is kept for nobody. */
static status end_all(struct replication *replication)
{
    struct cluster *cluster = cluster_of(replication);
    struct origin_applied applied;
    stop_pullers(replication);
    for (unsigned i = 1; i < VERSION_CLUSTERS; i++)
        if (origin_applied(cluster, i, &applied))
            TRY(origin_applied_forget(cluster, i));
    return origin_feed_is_on(origin_shard(cluster)) ? origin_feeds_end(cluster) : status_ok();
}

static status look(struct replication *replication)
{
    struct peers *peers = replication->options.peers;
    uint64_t generation = peers_generation(peers);
    const Replica__PeerList *list = NULL;
    bool wants_copy;
    if (peers_own_number(peers) == 0)
        return end_all(replication);
    (void)follows_any(replication, &wants_copy);
    if (generation == replication->generation && !wants_copy)
        return status_ok();
    struct arena *arena = arena_create(LIST_BYTES);
    if (arena == NULL)
        return status_out_of_memory();
    status s = peers_list(peers, arena, &list);
    if (status_is_ok(s) && list != NULL)
        s = take_part(replication, list);
    arena_destroy(arena);
    TRY(s);
    pull_service_look(replication->pulls);
    replication->generation = generation;
    return status_ok();
}

static void tell(struct replication *replication, status s)
{
    enum { TOLD = 10 /* about two seconds: a peer may just start */ };
    bool is_failure = !status_is_ok(s) && s.code != STATUS_CANCELLED;
    replication->failures = is_failure ? replication->failures + 1 : 0;
    if (replication->failures == TOLD)
        log_warn(replication->options.log, "peers cannot be followed yet",
                 LOG_STR("why", status_message(s)));
}

static void *run(void *argument)
{
    struct replication *replication = argument;
    do {
        status s = look(replication);
        tell(replication, s);
        status_free(s);
    } while (thread_rest(&replication->stop, LOOK_US));
    return NULL;
}

/* --- making and ending --- */

static bool has_all(struct replication *replication)
{
    bool wants_copy;
    return follows_any(replication, &wants_copy) && !wants_copy;
}

status replication_create(const struct replication_options *options, struct replication **out)
{
    struct replication *replication = *out = calloc(1, sizeof *replication);
    if (replication == NULL)
        return status_out_of_memory();
    replication->options = *options;
    thread_stop_init(&replication->stop);
    pthread_mutex_init(&replication->lock, NULL);
    atomic_init(&replication->has_all, has_all(replication));
    replication->copies =
        (struct copy_service){.cluster = options->apply.cluster, .peers = options->peers};
    status s = pull_service_create(options->apply.cluster, options->peers, &replication->pulls);
    if (!status_is_ok(s)) {
        replication_destroy(replication);
        *out = NULL;
    }
    return s;
}

void replication_destroy(struct replication *replication)
{
    if (replication == NULL)
        return;
    pull_service_destroy(replication->pulls);
    thread_stop_destroy(&replication->stop);
    pthread_mutex_destroy(&replication->lock);
    free(replication);
}

status replication_start(struct replication *replication,
                         bool (*knows_schema_since)(void *context, int64_t since_us), void *context)
{
    replication->options.apply.knows_schema_since = knows_schema_since;
    replication->options.apply.context = context;
    TRY(thread_start(&replication->thread, "replication", run, replication));
    replication->has_thread = true;
    return status_ok();
}

void replication_stop(struct replication *replication)
{
    if (replication == NULL || !replication->has_thread)
        return;
    pthread_mutex_lock(&replication->lock);
    replication->is_stopping = true;
    if (replication->session != NULL)
        client_session_cancel(replication->session);
    pthread_mutex_unlock(&replication->lock);
    thread_stop_now(&replication->stop);
    pthread_join(replication->thread, NULL);
    replication->has_thread = false;
    stop_pullers(replication);
}

void replication_pull_changes(void *context, struct grpc_call *call, bytes request)
{
    struct replication *replication = context;
    pull_service_handle(replication->pulls, call, request);
}

void replication_copy_rows(void *context, struct grpc_call *call, bytes request)
{
    struct replication *replication = context;
    copy_service_handle(&replication->copies, call, request);
}

bool replication_is_copying(const void *context)
{
    const struct replication *replication = context;
    const struct peers *peers = replication->options.peers;
    unsigned own = peers_own_number(peers);
    return own != 0 && !atomic_load_explicit(&replication->has_all, memory_order_acquire) &&
           peers_leader(peers) != own;
}

void replication_tell(void *context, struct arena *arena, Replica__PeerState *state)
{
    struct replication *replication = context;
    (void)arena;
    if (state->number >= VERSION_CLUSTERS)
        return;
    pthread_mutex_lock(&replication->lock);
    struct puller *puller = replication->pullers[state->number];
    if (puller != NULL)
        puller_state(puller, state);
    else if (replication_is_copying(replication))
        state->parked = "being copied";
    pthread_mutex_unlock(&replication->lock);
}

static struct progress progress_of(const struct replication *replication)
{
    return (struct progress){cluster_of(replication), replication->options.peers};
}

status replication_progress(void *context, struct arena *arena,
                            const Replica__TellProgressResponse **out)
{
    struct replication *replication = context;
    const struct progress progress = progress_of(context);
    TRY(progress_tell(&progress, arena, out));
    pthread_mutex_lock(&replication->lock);
    for (size_t i = 0; i < (*out)->n_applied; i++) {
        struct puller *puller = replication->pullers[(*out)->applied[i]->number];
        if (puller != NULL)
            (*out)->applied[i]->greatest = puller_greatest(puller);
    }
    pthread_mutex_unlock(&replication->lock);
    return status_ok();
}

status replication_mark(void *context, struct arena *arena, struct buffer *out)
{
    const struct progress progress = progress_of(context);
    return progress_mark(&progress, arena, out);
}

status replication_has_reached(void *context, struct arena *arena, const char *marks, bool *out)
{
    const struct progress progress = progress_of(context);
    return progress_check(&progress, arena, marks, out);
}

bool replication_location(void *context, unsigned number, struct buffer *out)
{
    const struct replication *replication = context;
    const Replica__PeerList *list = NULL;
    size_t before = out->size;
    struct arena *arena =
        peers_own_number(replication->options.peers) == 0 ? NULL : arena_create(LIST_BYTES);
    if (arena != NULL)
        status_ignore(peers_list(replication->options.peers, arena, &list));
    for (size_t i = 0; list != NULL && i < list->n_peers; i++)
        if (list->peers[i]->number == number)
            buffer_append_bytes(out, bytes_of(list->peers[i]->location));
    arena_destroy(arena);
    return out->size > before;
}

bool replication_has_peers(const void *context)
{
    const struct replication *replication = context;
    return peers_own_number(replication->options.peers) != 0;
}
