/* See replication.h.
 *
 * Whom to follow from where: a server that has peers for the first time follows all of them from
 * their feeds' beginnings if it leads, since it had what there was before them; else it is new
 * among them, and begins where the one that leads has come to. One that comes later begins with a
 * feed that is empty. */
#include "replica/replication.h"

#include "base/check.h"
#include "cluster/origin/origin_applied.h"
#include "cluster/origin/origin_feed.h"
#include "os/thread.h"
#include "replica/copier.h"
#include "replica/copy_service.h"
#include "replica/placement.h"
#include "replica/progress.h"
#include "replica/pull_service.h"
#include "replica/puller.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    LOOK_US = 200 * 1000,
    PLACES_US = 5 * 1000 * 1000, /* for one peer to say where it is */
    LIST_BYTES = 1 << 20,
};

struct replication {
    struct replication_options options;
    struct placement *placement;
    struct pull_service *pulls;
    struct copy_service copies;
    struct link_rate rate;
    bool has_thread;
    pthread_t thread;
    struct thread_stop stop;
    atomic_bool has_all; /* nothing is to be copied; of a server that leads nothing ever is */

    /* The thread's. */
    uint64_t generation; /* of the peers, that was looked at */
    unsigned failures;   /* in a row */

    /* Held by who stops pullers, and who holds them; taken before the next. */
    pthread_mutex_t pulling;
    pthread_mutex_t lock; /* of the next ones */
    struct puller *pullers[VERSION_CLUSTERS];
    uint64_t parks[VERSION_CLUSTERS][PARK_REASONS]; /* of pullers that have ended */
    unsigned holds;                                 /* of pulling */
    struct client_session *session; /* by which it is asked where to begin, or NULL */
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

/* --- where to begin --- */

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

/* All edits are the leader's. What another one's places have it knows the instances of. */
static uint64_t edits_since(struct replication *replication,
                            const Replica__PullChangesResponse *first)
{
    const struct peers *peers = replication->options.peers;
    return peers_leader(peers) == peers_own_number(peers)
               ? control_last_version(replication->options.control)
               : first->edit_version;
}

static bool still_wants_places(struct replication *replication)
{
    bool wants;
    (void)follows_any(replication, &wants);
    return wants;
}

static status take_place(struct replication *replication, const Replica__Place *place)
{
    struct origin_applied before;
    if (place->number >= VERSION_CLUSTERS || place->after == NULL ||
        !origin_applied(cluster_of(replication), place->number, &before) ||
        !origin_wants_copy(&before))
        return status_ok();
    const struct origin_applied found = {{place->after->sequence, place->after->ordinal},
                                         place->complete_version};
    return origin_applied_record(cluster_of(replication), place->number, &found);
}

/* Of each cluster that is followed, and has no place. Only once all have is anything new that is
 * made. */
static status take_places(void *context, const Replica__PullChangesResponse *first)
{
    struct replication *replication = context;
    for (size_t i = 0; i < first->n_places; i++)
        TRY(take_place(replication, first->places[i]));
    return still_wants_places(replication)
               ? status_ok()
               : placement_set_since(replication->placement, edits_since(replication, first));
}

static status ask_places_of(struct replication *replication, unsigned number)
{
    const struct copier_options options = {
        .apply = {.cluster = cluster_of(replication)},
        .peers = replication->options.peers,
        .from = number,
        .instance = "",
        .timeout_us = PLACES_US,
        .is_stopping = is_stopping,
        .hold_session = hold_session,
        .begin = take_places,
        .context = replication,
    };
    return copier_run(&options);
}

/* Of the one that leads, and then, as long as some are missing, of the others: who has lost the
 * same cannot say it, and who is new may know nothing but where it is itself. */
static status ask_places(struct replication *replication, const Replica__PeerList *list)
{
    unsigned own = peers_own_number(replication->options.peers);
    struct placed *placed = placement_placed(replication->placement);
    status s = list->leader == own ? status_make(STATUS_UNAVAILABLE, "there is no other peer")
                                   : ask_places_of(replication, list->leader);
    for (size_t i = 0; i < list->n_peers; i++) {
        unsigned number = list->peers[i]->number;
        bool is_known = !still_wants_places(replication) && placed_since(placed) != UINT64_MAX;
        if (is_known || number == own || number == list->leader || is_stopping(replication))
            continue;
        status_free(s);
        s = ask_places_of(replication, number);
    }
    TRY(s);
    return still_wants_places(replication)
               ? status_make(STATUS_UNAVAILABLE, "no peer says where to go on with all others")
               : status_ok();
}

/* --- pullers --- */

/* NULL: it is not counted. */
static struct metric_observed *latency_of(struct replication *replication, unsigned number)
{
    struct buffer location = {0};
    struct metric_observed *latency = NULL;
    (void)replication_location(replication, number, &location);
    buffer_append_byte(&location, '\0');
    if (location.size > 1 && !location.failed)
        latency = metrics_histogram_of(replication->options.metrics,
                                       METRIC_HISTOGRAM_BY_replication_latency_seconds,
                                       (const char *)location.data);
    buffer_free(&location);
    return latency;
}

static status lose(void *context, unsigned number)
{
    struct replication *replication = context;
    return placement_lose(replication->placement, number);
}

/* One that begins while others are held is held as they are. */
static status start_puller(struct replication *replication, unsigned number)
{
    struct puller_options options = {
        .apply = replication->options.apply,
        .peers = replication->options.peers,
        .log = replication->options.log,
        .latency = latency_of(replication, number),
        .number = number,
        .lose = lose,
        .context = replication,
    };
    struct puller *puller;
    options.apply.origin = number;
    options.apply.placed = placement_placed(replication->placement);
    pthread_mutex_lock(&replication->lock);
    options.is_held = replication->holds > 0;
    status s = puller_start(&options, &puller);
    if (status_is_ok(s))
        replication->pullers[number] = puller;
    pthread_mutex_unlock(&replication->lock);
    return s;
}

/* Nobody stops pullers meanwhile. */
static void hold(void *context)
{
    struct replication *replication = context;
    pthread_mutex_lock(&replication->pulling);
    pthread_mutex_lock(&replication->lock);
    replication->holds++;
    pthread_mutex_unlock(&replication->lock);
    for (unsigned i = 0; i < VERSION_CLUSTERS; i++) {
        pthread_mutex_lock(&replication->lock);
        struct puller *puller = replication->pullers[i];
        pthread_mutex_unlock(&replication->lock);
        if (puller != NULL)
            puller_hold(puller);
    }
    pthread_mutex_unlock(&replication->pulling);
}

static void release(void *context)
{
    struct replication *replication = context;
    pthread_mutex_lock(&replication->lock);
    CHECK(replication->holds > 0);
    replication->holds--;
    for (unsigned i = 0; replication->holds == 0 && i < VERSION_CLUSTERS; i++)
        if (replication->pullers[i] != NULL)
            puller_release(replication->pullers[i]);
    pthread_mutex_unlock(&replication->lock);
}

static status start_pullers(struct replication *replication)
{
    struct origin_applied applied;
    for (unsigned i = 1; i < VERSION_CLUSTERS; i++)
        if (replication->pullers[i] == NULL && origin_applied(cluster_of(replication), i, &applied))
            TRY(start_puller(replication, i));
    return status_ok();
}

static void add_parks(struct puller *puller, uint64_t to[PARK_REASONS])
{
    uint64_t parks[PARK_REASONS];
    puller_parks(puller, parks);
    for (unsigned i = 0; i < PARK_REASONS; i++)
        to[i] += parks[i];
}

void replication_parks(struct replication *replication, unsigned number, uint64_t out[PARK_REASONS])
{
    DCHECK(number < VERSION_CLUSTERS);
    pthread_mutex_lock(&replication->lock);
    memcpy(out, replication->parks[number], sizeof replication->parks[number]);
    if (replication->pullers[number] != NULL)
        add_parks(replication->pullers[number], out);
    pthread_mutex_unlock(&replication->lock);
}

/* With `pulling` held. */
static void stop_of(struct replication *replication, unsigned number)
{
    pthread_mutex_lock(&replication->lock);
    struct puller *puller = replication->pullers[number];
    replication->pullers[number] = NULL;
    if (puller != NULL)
        add_parks(puller, replication->parks[number]);
    pthread_mutex_unlock(&replication->lock);
    puller_stop(puller);
}

static void stop_pullers(struct replication *replication)
{
    pthread_mutex_lock(&replication->pulling);
    for (unsigned i = 0; i < VERSION_CLUSTERS; i++)
        stop_of(replication, i);
    pthread_mutex_unlock(&replication->pulling);
}

static bool is_in(const Replica__PeerList *list, unsigned number)
{
    for (size_t i = 0; i < list->n_peers; i++)
        if (list->peers[i]->number == number)
            return true;
    return false;
}

static bool is_held(struct replication *replication)
{
    pthread_mutex_lock(&replication->lock);
    bool is_so = replication->holds > 0;
    pthread_mutex_unlock(&replication->lock);
    return is_so;
}

/* With `pulling` held. */
static status forget(struct replication *replication, unsigned number)
{
    if (is_held(replication)) /* places are being set */
        return status_make(STATUS_UNAVAILABLE, "peer %u has gone, and is forgotten in a moment",
                           number);
    stop_of(replication, number);
    return origin_applied_forget(cluster_of(replication), number);
}

/* Who has left is waited for no more: nothing comes of it any more. */
static status forget_gone(struct replication *replication, const Replica__PeerList *list)
{
    struct origin_applied applied;
    status s = status_ok();
    pthread_mutex_lock(&replication->pulling);
    for (unsigned i = 1; status_is_ok(s) && i < VERSION_CLUSTERS; i++) {
        bool is_peer = is_in(list, i) && !peers_is_gone(replication->options.peers, i);
        if (!is_peer && origin_applied(cluster_of(replication), i, &applied))
            s = forget(replication, i);
    }
    pthread_mutex_unlock(&replication->pulling);
    return s;
}

/* --- the thread --- */

/* Which edits are of later than all places, too, if that is not known. */
static status find_places(struct replication *replication, const Replica__PeerList *list,
                          bool wants_places)
{
    struct placement *placement = replication->placement;
    bool leads = list->leader == peers_own_number(replication->options.peers);
    bool is_known = placed_since(placement_placed(placement)) != UINT64_MAX;
    if (wants_places || (!is_known && !leads))
        return ask_places(replication, list);
    return is_known
               ? status_ok()
               : placement_set_since(placement, control_last_version(replication->options.control));
}

static status take_part(struct replication *replication, const Replica__PeerList *list)
{
    bool wants_places;
    bool leads = list->leader == peers_own_number(replication->options.peers);
    bool has_followed = follows_any(replication, &wants_places) && !wants_places;
    TRY(origin_feeds_begin(cluster_of(replication)));
    TRY(forget_gone(replication, list));
    TRY(placement_begin(replication->placement, !leads && !has_followed));
    TRY(follow(replication, list));
    (void)follows_any(replication, &wants_places);
    TRY(find_places(replication, list, wants_places));
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
    TRY(placement_end(replication->placement));
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

static status create_placement(struct replication *replication)
{
    const struct placement_options options = {.apply = replication->options.apply,
                                              .control = replication->options.control,
                                              .peers = replication->options.peers,
                                              .log = replication->options.log,
                                              .hold = hold,
                                              .release = release,
                                              .context = replication};
    TRY(placement_create(&options, &replication->placement));
    replication->copies = (struct copy_service){.cluster = cluster_of(replication),
                                                .control = replication->options.control,
                                                .peers = replication->options.peers,
                                                .placed = placement_placed(replication->placement),
                                                .rate = &replication->rate};
    return status_ok();
}

status replication_create(const struct replication_options *options, struct replication **out)
{
    struct replication *replication = *out = calloc(1, sizeof *replication);
    if (replication == NULL)
        return status_out_of_memory();
    replication->options = *options;
    link_rate_init(&replication->rate, options->bytes_per_second,
                   cluster_clock(options->apply.cluster));
    thread_stop_init(&replication->stop);
    pthread_mutex_init(&replication->pulling, NULL);
    pthread_mutex_init(&replication->lock, NULL);
    atomic_init(&replication->has_all, has_all(replication));
    status s = create_placement(replication);
    if (status_is_ok(s))
        s = pull_service_create(options->apply.cluster, options->peers, &replication->rate,
                                &replication->pulls);
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
    placement_destroy(replication->placement);
    link_rate_destroy(&replication->rate);
    thread_stop_destroy(&replication->stop);
    pthread_mutex_destroy(&replication->pulling);
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
    return placement_start(replication->placement, knows_schema_since, context);
}

void replication_stop(struct replication *replication)
{
    if (replication == NULL || !replication->has_thread)
        return;
    placement_stop(replication->placement);
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

static bool has_begun(void *context)
{
    struct replication *replication = context;
    return placed_has_begun(placement_placed(replication->placement)) &&
           atomic_load(&replication->has_all);
}

void replication_await_beginning(void *replication)
{
    enum { MOST_US = 10 * 1000 * 1000 };
    (void)thread_wait_for(has_begun, replication, MOST_US);
}

bool replication_is_here(void *context, bytes instance)
{
    struct replication *replication = context;
    return placed_is_here(placement_placed(replication->placement), instance);
}

status replication_copied(void *context, struct arena *arena, Replica__PlacedInstance **out)
{
    struct replication *replication = context;
    return placement_tell_copied(replication->placement, arena, out);
}

void replication_tell(void *context, struct arena *arena, Replica__PeerState *state)
{
    struct replication *replication = context;
    (void)arena;
    if (state->number >= VERSION_CLUSTERS)
        return;
    state->queue_bytes = pull_service_queue(replication->pulls, state->number);
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

static void tell_greatest(struct replication *replication, Replica__TellProgressResponse *answer)
{
    pthread_mutex_lock(&replication->lock);
    for (size_t i = 0; i < answer->n_applied; i++) {
        struct puller *puller = replication->pullers[answer->applied[i]->number];
        if (puller != NULL)
            answer->applied[i]->greatest = puller_greatest(puller);
    }
    pthread_mutex_unlock(&replication->lock);
}

status replication_progress(void *context, const Replica__TellProgressRequest *request,
                            struct arena *arena, const Replica__TellProgressResponse **out)
{
    struct replication *replication = context;
    const struct progress progress = progress_of(context);
    Replica__TellProgressResponse *answer;
    TRY(progress_tell(&progress, arena, &answer));
    *out = answer;
    tell_greatest(replication, answer);
    return placement_tell(replication->placement, request->instances, request->n_instances, arena,
                          answer);
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

bool replication_creation(void *context, const char *cluster,
                          void (*tell)(void *context, const struct table_copied *table),
                          void *tell_context)
{
    struct replication *replication = context;
    return placement_creation(replication->placement, cluster, tell, tell_context);
}
