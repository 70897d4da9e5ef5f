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
#include "replica/puller.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    LOOK_US = 200 * 1000,
    LIST_BYTES = 1 << 20,
};

struct replication {
    struct replication_options options;
    pthread_t thread;
    struct thread_stop stop;
    atomic_bool is_copying;

    /* The thread's. */
    uint64_t generation; /* of the peers, that was looked at */
    bool has_told;       /* the log, of a failure that lasts */

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

static void stop_pullers(struct replication *replication)
{
    for (unsigned i = 0; i < VERSION_CLUSTERS; i++)
        puller_stop(replication->pullers[i]);
}

/* --- the thread --- */

static status take_part(struct replication *replication, const Replica__PeerList *list)
{
    bool wants_copy;
    TRY(origin_feeds_begin(cluster_of(replication)));
    TRY(follow(replication, list));
    (void)follows_any(replication, &wants_copy);
    if (wants_copy)
        TRY(copy(replication));
    atomic_store(&replication->is_copying, false);
    return start_pullers(replication);
}

static status look(struct replication *replication)
{
    struct peers *peers = replication->options.peers;
    uint64_t generation = peers_generation(peers);
    const Replica__PeerList *list = NULL;
    if (peers_own_number(peers) == 0 || generation == replication->generation)
        return status_ok();
    struct arena *arena = arena_create(LIST_BYTES);
    if (arena == NULL)
        return status_out_of_memory();
    status s = peers_list(peers, arena, &list);
    if (status_is_ok(s) && list != NULL)
        s = take_part(replication, list);
    arena_destroy(arena);
    TRY(s);
    if (replication->options.peers_changed != NULL)
        replication->options.peers_changed(replication->options.context);
    replication->generation = generation;
    return status_ok();
}

static void tell(struct replication *replication, status s)
{
    bool is_news = !status_is_ok(s) && s.code != STATUS_CANCELLED;
    if (is_news && !replication->has_told)
        log_warn(replication->options.log, "peers cannot be followed yet",
                 LOG_STR("why", status_message(s)));
    replication->has_told = is_news;
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

/* One that has peers and follows none yet is new among them, too, unless it leads. */
static bool begins_with_copy(struct replication *replication)
{
    bool wants_copy;
    struct peers *peers = replication->options.peers;
    bool follows = follows_any(replication, &wants_copy);
    unsigned own = peers_own_number(peers);
    return wants_copy || (!follows && own != 0 && peers_leader(peers) != own);
}

static void free_replication(struct replication *replication)
{
    thread_stop_destroy(&replication->stop);
    pthread_mutex_destroy(&replication->lock);
    free(replication);
}

status replication_start(const struct replication_options *options, struct replication **out)
{
    struct replication *replication = *out = calloc(1, sizeof *replication);
    if (replication == NULL)
        return status_out_of_memory();
    replication->options = *options;
    thread_stop_init(&replication->stop);
    pthread_mutex_init(&replication->lock, NULL);
    atomic_init(&replication->is_copying, begins_with_copy(replication));
    status s = thread_start(&replication->thread, "replication", run, replication);
    if (!status_is_ok(s)) {
        free_replication(replication);
        *out = NULL;
    }
    return s;
}

void replication_stop(struct replication *replication)
{
    if (replication == NULL)
        return;
    pthread_mutex_lock(&replication->lock);
    replication->is_stopping = true;
    if (replication->session != NULL)
        client_session_cancel(replication->session);
    pthread_mutex_unlock(&replication->lock);
    thread_stop_now(&replication->stop);
    pthread_join(replication->thread, NULL);
    stop_pullers(replication);
    free_replication(replication);
}

bool replication_is_copying(const struct replication *replication)
{
    return atomic_load_explicit(&replication->is_copying, memory_order_relaxed);
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
