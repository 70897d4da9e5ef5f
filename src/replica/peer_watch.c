/* See peer_watch.h. */
#include "replica/peer_watch.h"

#include "replica/peer_list.h"

#include <stddef.h>
#include <stdio.h>

enum { MEMORY = 1 << 20, LONG_US = 60 * 1000 * 1000 };

static const Replica__Peer *peer_of(const Replica__ListPeersResponse *peers, uint32_t number)
{
    return peer_list_find(peers->list, number);
}

/* --- troubles --- */

static bool is_silent(const Replica__PeerState *state)
{
    return state->failure[0] != '\0' || state->heard_us == 0;
}

/* That a copy is being made is no trouble. */
static bool is_parked(const Replica__PeerState *state)
{
    for (unsigned reason = PARK_NONE + 1; reason < PARK_REASONS; reason++)
        if (reason != PARK_LOST && strcmp(state->parked, park_words((enum park_reason)reason)) == 0)
            return true;
    return false;
}

static bool is_doubled(const Replica__PeerState *state)
{
    return state->doubled;
}

static const struct trouble {
    enum reason reason;
    bool (*is_so)(const Replica__PeerState *state);
    int64_t after_us; /* it is told when it has lasted for that */
    const char *before;
    const char *behind; /* the peer's location */
    size_t why;         /* of a string in the state: at the end; 0: none */
} all[PEER_TROUBLES] = {
    [PEER_SILENT] = {REASON_peer_silent, is_silent, LONG_US, "",
                     " does not answer: ", offsetof(Replica__PeerState, failure)},
    [PEER_PARKED] = {REASON_peer_parked, is_parked, LONG_US, "changes of ",
                     " wait here: ", offsetof(Replica__PeerState, parked)},
    [PEER_DOUBLED] = {REASON_peer_doubled, is_doubled, 0, "two servers have the identity of ", "",
                      0},
};

/* Negative: it is not so. */
static int64_t lasts_us(int64_t *since_us, bool is_so, int64_t now_us)
{
    if (!is_so)
        *since_us = 0;
    else if (*since_us == 0)
        *since_us = now_us;
    return is_so ? now_us - *since_us : -1;
}

static void word(const struct trouble *trouble, const Replica__Peer *peer,
                 const Replica__PeerState *state, struct buffer *out)
{
    const char *const *why = (const void *)((const char *)state + trouble->why);
    buffer_append_format(out, "%s%s%s%s%s", out->size > 0 ? "; " : "", trouble->before,
                         peer->location, trouble->behind, trouble->why == 0 ? "" : *why);
}

static void judge(const struct trouble *trouble, int64_t since_us[VERSION_CLUSTERS],
                  const Replica__ListPeersResponse *peers, int64_t now_us,
                  struct condition *condition)
{
    struct buffer words = {0};
    for (size_t i = 0; i < peers->n_states; i++) {
        const Replica__PeerState *state = peers->states[i];
        const Replica__Peer *peer = peer_of(peers, state->number);
        if (peer != NULL && state->number < VERSION_CLUSTERS &&
            lasts_us(&since_us[state->number], trouble->is_so(state), now_us) >= trouble->after_us)
            word(trouble, peer, state, &words);
    }
    if (words.size > 0)
        condition_enter(condition, trouble->reason, "%.*s", (int)words.size,
                        (const char *)words.data);
    else
        condition_leave(condition, trouble->reason);
    buffer_free(&words);
}

void peer_troubles_judge(struct peer_troubles *troubles, const Replica__ListPeersResponse *peers,
                         int64_t now_us, struct condition *condition)
{
    for (unsigned i = 0; i < PEER_TROUBLES; i++)
        judge(&all[i], troubles->since_us[i], peers, now_us, condition);
}

/* Who has no peers any more has nothing to tell of them, either. */
void peer_watch_look(struct peer_watch *watch)
{
    const Replica__ListPeersResponse *told;
    bool has_peers = watch->peers != NULL && peers_own_number(watch->peers) != 0;
    if (!has_peers && !watch->has_judged)
        return;
    struct arena *arena = arena_create(MEMORY);
    if (arena == NULL)
        return;
    status s = peers_describe(watch->peers, arena, &told);
    if (status_is_ok(s))
        peer_troubles_judge(&watch->troubles, told, clock_steady_us(cluster_clock(watch->cluster)),
                            cluster_condition(watch->cluster));
    status_free(s);
    watch->has_judged = has_peers;
    arena_destroy(arena);
}

/* --- metrics --- */

enum { LABEL_MOST = 32, PARKS_MOST = PEERS_MOST * PARK_REASONS };

struct measuring {
    struct metric_series queue[PEERS_MOST];
    struct metric_series parks[PARKS_MOST];
    char labels[PARK_REASONS][LABEL_MOST];
    size_t count;
    size_t park_count;
    int64_t silent;
    int64_t most_delay_us;
};

/* "clock ahead" is "clock_ahead". */
static void name_reasons(struct measuring *out)
{
    for (unsigned reason = 0; reason < PARK_REASONS; reason++) {
        char *label = out->labels[reason];
        snprintf(label, LABEL_MOST, "%s", park_words((enum park_reason)reason));
        while ((label = strchr(label, ' ')) != NULL)
            *label = '_';
    }
}

static void gather_parks(const struct peer_watch *watch, const Replica__Peer *peer,
                         struct measuring *out)
{
    uint64_t parks[PARK_REASONS];
    replication_parks(watch->replication, peer->number, parks);
    for (unsigned reason = PARK_NONE + 1; reason < PARK_REASONS; reason++)
        out->parks[out->park_count++] = (struct metric_series){
            .labels = {peer->location, out->labels[reason]}, .value = (int64_t)parks[reason]};
}

static void gather_state(const struct peer_watch *watch, const Replica__Peer *peer,
                         const Replica__PeerState *state, struct measuring *out)
{
    int64_t delay_us = cluster_version_us(watch->cluster) - state->applied_until_us;
    out->queue[out->count++] =
        (struct metric_series){{peer->location}, (int64_t)state->queue_bytes};
    out->silent += is_silent(state);
    if (state->applied_until_us != 0 && delay_us > out->most_delay_us)
        out->most_delay_us = delay_us;
    gather_parks(watch, peer, out);
}

static void gather(const struct peer_watch *watch, const Replica__ListPeersResponse *told,
                   struct measuring *out)
{
    name_reasons(out);
    for (size_t i = 0; i < told->n_states && out->count < PEERS_MOST; i++) {
        const Replica__Peer *peer = peer_of(told, told->states[i]->number);
        if (peer != NULL)
            gather_state(watch, peer, told->states[i], out);
    }
}

static void set_metrics(struct metrics *metrics, const Replica__ListPeersResponse *told,
                        const struct measuring *of)
{
    metrics_set(metrics, METRIC_peers, told->list == NULL ? 0 : (int64_t)told->list->n_peers);
    metrics_set(metrics, METRIC_peers_silent, of->silent);
    metrics_set(metrics, METRIC_replication_max_delay_seconds, of->most_delay_us);
    status_ignore(
        metrics_replace(metrics, METRIC_BY_replication_queue_bytes, of->queue, of->count));
    status_ignore(
        metrics_replace(metrics, METRIC_BY_replication_parked_total, of->parks, of->park_count));
}

void peer_watch_measure(struct peer_watch *watch)
{
    const Replica__ListPeersResponse *told;
    bool has_peers = watch->peers != NULL && peers_own_number(watch->peers) != 0;
    if (watch->metrics == NULL || (!has_peers && !atomic_load(&watch->has_measured)))
        return;
    struct measuring measuring = {.count = 0};
    struct arena *arena = arena_create(MEMORY);
    if (arena == NULL)
        return;
    status s = peers_describe(watch->peers, arena, &told);
    if (status_is_ok(s)) {
        gather(watch, told, &measuring);
        set_metrics(watch->metrics, told, &measuring);
    }
    status_free(s);
    atomic_store(&watch->has_measured, has_peers);
    arena_destroy(arena);
}
