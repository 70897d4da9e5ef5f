/* Asking a peer twice a second: who the peers are, whether it lives, and what time it is there. A
 * thread for each, so that one that does not answer delays nobody. */
#include "replica/peers_private.h"

#include "base/check.h"

#include <stdlib.h>

/* One that was just admitted has to write that down before it answers. */
enum { EVERY_US = 500 * 1000, FIRST_US = 100 * 1000 };

/* --- the session --- */

/* Takes the session out of others' sight. */
static void drop_session(struct peer_link *link)
{
    struct peers *peers = link->peers;
    pthread_mutex_lock(&peers->lock);
    struct client_session *session = link->session;
    link->session = NULL;
    pthread_mutex_unlock(&peers->lock);
    client_session_destroy(session);
}

/* A session with the address that the list has. Files and names are looked at again for each. */
static status have_session(struct peer_link *link, const Replica__Peer *peer)
{
    struct peers *peers = link->peers;
    struct client_session *session = link->session; /* only this thread changes it */
    if (session != NULL && strcmp(client_session_address(session), peer->address) == 0)
        return status_ok();
    drop_session(link);
    TRY(peers_connect(peers, peer->address, &session));
    pthread_mutex_lock(&peers->lock);
    bool is_stopping = peers->is_stopping;
    if (!is_stopping)
        link->session = session;
    pthread_mutex_unlock(&peers->lock);
    if (is_stopping) {
        client_session_destroy(session);
        return status_make(STATUS_CANCELLED, "the server stops");
    }
    return status_ok();
}

/* --- asking --- */

/* When it was asked, and how long that took. */
struct asking {
    int64_t wall_us;
    int64_t begun_us; /* clock_steady_us */
    int64_t ended_us;
};

static status ask(struct peer_link *link, const Replica__PeerList *list, struct arena *arena,
                  struct asking *asking, const Replica__ExchangePeersResponse **out)
{
    struct peers *peers = link->peers;
    const ProtobufCMessage *answer;
    Replica__ExchangePeersRequest request = REPLICA__EXCHANGE_PEERS_REQUEST__INIT;
    request.from = peers_own_number(peers);
    request.list = (Replica__PeerList *)(uintptr_t)list;
    request.identity = peers->identity;
    request.incarnation = peers->incarnation;
    request.seen = atomic_load(&peers->seen);
    request.gone = atomic_load(&peers->gone);
    const struct session_call call = {.path = "/trestle.replica.v1.Replication/ExchangePeers",
                                      .request = &request.base,
                                      .timeout_us = PEER_TIMEOUT_US};
    asking->wall_us = clock_wall_us(peers->options.clock);
    asking->begun_us = clock_steady_us(peers->options.clock);
    TRY(client_session_ask(link->session, &call, &replica__exchange_peers_response__descriptor,
                           arena, &answer));
    asking->ended_us = clock_steady_us(peers->options.clock);
    *out = (const void *)answer;
    return status_ok();
}

status peer_check_answer(const Replica__Peer *peer, const Replica__ExchangePeersResponse *answer)
{
    if (answer->number == peer->number && strcmp(answer->identity, peer->identity) == 0)
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "%s is not peer %u any more: number %u answers, with the identity %s in "
                       "place of %s",
                       peer->address, peer->number, answer->number, answer->identity,
                       peer->identity);
}

static void note_answer(struct peer_link *link, const struct asking *asking,
                        const Replica__ExchangePeersResponse *answer)
{
    struct peers *peers = link->peers;
    int64_t way_us = asking->ended_us - asking->begun_us;
    pthread_mutex_lock(&peers->lock);
    link->heard_us = asking->wall_us + way_us;
    link->clock_ahead_us = answer->now_us - (asking->wall_us + way_us / 2);
    link->incarnation = answer->incarnation;
    link->asked_us = asking->begun_us;
    pthread_mutex_unlock(&peers->lock);
}

static status exchange(struct peer_link *link, struct arena *arena)
{
    const Replica__PeerList *list;
    const Replica__ExchangePeersResponse *answer;
    struct asking asking;
    TRY(peers_list(link->peers, arena, &list));
    const Replica__Peer *peer = peer_list_find(list, link->number);
    if (peer == NULL || peers_own_number(link->peers) == 0) { /* it, or this server, has left */
        drop_session(link);
        return status_ok();
    }
    TRY(have_session(link, peer));
    TRY(ask(link, list, arena, &asking, &answer));
    TRY(peer_check_answer(peer, answer));
    note_answer(link, &asking, answer);
    peers_note_seen(link->peers, answer->seen, answer->gone);
    return peers_adopt(link->peers, answer->list, false);
}

/* --- what came of it --- */

/* Once when it begins to fail, or fails otherwise, and once when it answers again. */
static void tell(const struct peer_link *link, status s, bool has_failed)
{
    const struct log *log = link->peers->options.log;
    if (!status_is_ok(s))
        log_warn(log, "a peer does not answer", LOG_INT("peer", link->number),
                 LOG_STR("cause", status_message(s)));
    else if (has_failed)
        log_info(log, "a peer answers again", LOG_INT("peer", link->number));
}

static void note_outcome(struct peer_link *link, status s)
{
    struct peers *peers = link->peers;
    char *failure = status_is_ok(s) ? NULL : bytes_to_string(bytes_of(status_message(s)));
    pthread_mutex_lock(&peers->lock);
    bool is_stopping = peers->is_stopping;
    enum status_code former = link->failure_code;
    if (!is_stopping) {
        free(link->failure);
        link->failure = failure;
        link->failure_code = s.code;
    }
    pthread_mutex_unlock(&peers->lock);
    if (is_stopping)
        free(failure);
    else if (former != s.code)
        tell(link, s, former != STATUS_OK);
}

static void *run(void *argument)
{
    struct peer_link *link = argument;
    struct arena *arena = arena_create(PEER_MEMORY);
    (void)thread_rest(&link->stop, FIRST_US);
    do {
        status s = arena == NULL ? status_out_of_memory() : exchange(link, arena);
        if (!status_is_ok(s))
            drop_session(link);
        note_outcome(link, s);
        status_free(s);
        if (arena == NULL)
            arena = arena_create(PEER_MEMORY);
        else
            arena_reset(arena);
    } while (thread_rest(&link->stop, EVERY_US));
    drop_session(link);
    arena_destroy(arena);
    return NULL;
}

status peer_link_start(struct peer_link *link)
{
    DCHECK(check_is_held(&link->peers->change));
    if (link->is_running)
        return status_ok();
    TRY(thread_start(&link->thread, "peer", run, link));
    link->is_running = true;
    return status_ok();
}

void peer_link_stop(struct peer_link *link)
{
    if (link->is_running)
        pthread_join(link->thread, NULL);
    link->is_running = false;
}
