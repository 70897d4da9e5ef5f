/* See peers.h: what peers and operators ask. */
#include "replica/peers_private.h"

#include "base/check.h"
#include "wire/proto.h"

#define ADMIT           "/trestle.replica.v1.Replication/AdmitPeer"
#define JOIN_TIMEOUT_US INT64_C(10000000)
#define DOUBLED_US      INT64_C(5000000) /* after the last question of another one */

/* For a message that is only going to be encoded. */
static Replica__PeerList *unconst(const Replica__PeerList *list)
{
    return (Replica__PeerList *)(uintptr_t)list;
}

/* --- telling --- */

/* A second one asks twice a second, for as long as it runs. */
static bool is_doubled(const struct peer_link *link)
{
    int64_t now_us = clock_steady_us(link->peers->options.clock);
    return link->refused_us != 0 && now_us - link->refused_us < DOUBLED_US;
}

static status describe_link(const struct peer_link *link, struct arena *arena,
                            Replica__PeerState **out)
{
    Replica__PeerState *state;
    PROTO_NEW(arena, state, REPLICA__PEER_STATE__INIT);
    state->number = link->number;
    state->heard_us = link->heard_us;
    state->clock_ahead_us = link->clock_ahead_us;
    state->doubled = is_doubled(link);
    if (link->failure != NULL)
        state->failure = arena_string(arena, bytes_of(link->failure));
    if (state->failure == NULL)
        return status_out_of_memory();
    *out = state;
    return status_ok();
}

/* With `lock` held. */
static status describe_links(struct peers *peers, struct arena *arena,
                             Replica__ListPeersResponse *out)
{
    const Replica__PeerList *list = peers->list;
    out->states = arena_alloc(arena, list->n_peers * sizeof *out->states);
    if (out->states == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < list->n_peers; i++) {
        unsigned number = list->peers[i]->number;
        if (number == out->own_number)
            continue;
        TRY(describe_link(&peers->links[number], arena, &out->states[out->n_states]));
        out->n_states++;
    }
    return status_ok();
}

status peers_describe(struct peers *peers, struct arena *arena,
                      const Replica__ListPeersResponse **out)
{
    Replica__ListPeersResponse *response;
    const Replica__PeerList *list = NULL;
    PROTO_NEW(arena, response, REPLICA__LIST_PEERS_RESPONSE__INIT);
    pthread_mutex_lock(&peers->lock);
    status s = status_ok();
    if (peers->list != NULL) {
        response->own_number = peers_own_number(peers);
        response->has_left = peers_has_left(peers);
        s = peer_list_copy(peers->list, arena, &list);
        if (status_is_ok(s))
            s = describe_links(peers, arena, response);
    }
    pthread_mutex_unlock(&peers->lock);
    for (size_t i = 0; peers->tell_progress != NULL && i < response->n_states; i++)
        peers->tell_progress(peers->progress_context, arena, response->states[i]);
    response->list = unconst(list);
    response->now_us = clock_wall_us(peers->options.clock);
    *out = response;
    return s;
}

/* --- exchanging lists --- */

/* With `lock` held. The caller says it is that peer: whether it is the one whose address the list
 * has, or runs with a copy of that one's data directory. */
static bool is_second(struct peers *peers, struct peer_link *link, uint64_t incarnation)
{
    if (link->incarnation == incarnation)
        return false;
    if (link->stranger != incarnation) {
        link->stranger = incarnation;
        link->stranger_us = clock_steady_us(peers->options.clock);
        link->has_told_stranger = false;
        return false;
    }
    return link->incarnation != 0 && link->asked_us > link->stranger_us;
}

static status check_incarnation(struct peers *peers, const Replica__Peer *peer,
                                uint64_t incarnation)
{
    struct peer_link *link = &peers->links[peer->number];
    pthread_mutex_lock(&peers->lock);
    bool refuses = is_second(peers, link, incarnation);
    bool is_news = refuses && !link->has_told_stranger;
    link->has_told_stranger |= refuses;
    if (refuses)
        link->refused_us = clock_steady_us(peers->options.clock);
    pthread_mutex_unlock(&peers->lock);
    if (is_news)
        log_error(peers->options.log,
                  "two servers are one peer: one of them runs with a copy of the other's data "
                  "directory, and is refused",
                  LOG_INT("peer", peer->number), LOG_STR("address", peer->address),
                  LOG_STR("identity", peer->identity));
    if (refuses)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "the server at %s is peer %u: your data directory, or its, is a copy",
                           peer->address, peer->number);
    return status_ok();
}

static status refuse_identity(const struct peers *peers, const Replica__Peer *peer,
                              const char *identity)
{
    log_error(peers->options.log, "a server calls itself a peer, and is another: it is refused",
              LOG_INT("peer", peer->number), LOG_STR("identity", identity),
              LOG_STR("expected", peer->identity));
    return status_make(STATUS_FAILED_PRECONDITION,
                       "peer %u has the identity %s, and you have %s: you are another server",
                       peer->number, peer->identity, identity);
}

status peers_check_caller(struct peers *peers, const Replica__PeerList *list,
                          const struct peer_caller *caller)
{
    const Replica__Peer *peer = peer_list_find(list, caller->number);
    if (peer == NULL)
        return status_make(STATUS_FAILED_PRECONDITION, "%u is the number of no peer",
                           caller->number);
    if (strcmp(peer->identity, caller->identity) != 0)
        return refuse_identity(peers, peer, caller->identity);
    return check_incarnation(peers, peer, caller->incarnation);
}

static status answer_exchange(struct peers *peers, struct arena *arena,
                              const Replica__ExchangePeersResponse **out)
{
    Replica__ExchangePeersResponse *response;
    const Replica__PeerList *list;
    PROTO_NEW(arena, response, REPLICA__EXCHANGE_PEERS_RESPONSE__INIT);
    TRY(peers_list(peers, arena, &list));
    response->list = unconst(list);
    response->number = peers_own_number(peers);
    response->identity = peers->identity;
    response->incarnation = peers->incarnation;
    response->now_us = clock_wall_us(peers->options.clock);
    response->seen = atomic_load(&peers->seen);
    response->gone = atomic_load(&peers->gone);
    *out = response;
    return status_ok();
}

/* Whether the caller has left, by that list: the answer tells it. */
static bool has_left(const Replica__PeerList *list, const Replica__ExchangePeersRequest *request)
{
    const Replica__Peer *former = peer_list_former(list, request->from);
    return former != NULL && strcmp(former->identity, request->identity) == 0;
}

status peers_exchange(struct peers *peers, const Replica__ExchangePeersRequest *request,
                      struct arena *arena, const Replica__ExchangePeersResponse **out)
{
    const Replica__PeerList *list;
    const struct peer_caller caller = {request->from, request->identity, request->incarnation};
    TRY(peers_list(peers, arena, &list));
    if (list == NULL || peers_own_number(peers) == 0)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "this server has no peers: if it was to join some, that has not ended");
    if (has_left(list, request))
        return answer_exchange(peers, arena, out);
    if (peer_list_is_newer(request->list, list)) {
        TRY(peer_list_check(request->list));
        list = request->list;
    }
    TRY(peers_check_caller(peers, list, &caller));
    peers_note_seen(peers, request->seen, request->gone);
    TRY(peers_adopt(peers, request->list, false));
    return answer_exchange(peers, arena, out);
}

/* --- letting one in --- */

/* With `change` held: this server as the first peer. Others reach it as the one did that asks. */
static status begin_list(struct peers *peers, const char *reached_at, struct arena *arena,
                         const Replica__PeerList **out)
{
    Replica__Peer own = REPLICA__PEER__INIT;
    const char *address = reached_at;
    if (address[0] == '\0' && peers->address.size > 0)
        address = (const char *)peers->address.data;
    own.location = (char *)(uintptr_t)peers->options.location;
    own.address = (char *)(uintptr_t)address;
    own.identity = peers->identity;
    return peer_list_begin(&own, arena, out);
}

/* Whether the peer does not answer at the address that the list has. */
bool peers_is_silent(struct peers *peers, unsigned number)
{
    pthread_mutex_lock(&peers->lock);
    bool is_silent = peers->links[number].failure != NULL;
    pthread_mutex_unlock(&peers->lock);
    return is_silent;
}

/* One that is known and asks from another address has moved, unless somebody answers at the old one
 * still. */
static bool moves(struct peers *peers, const Replica__PeerList *list, const Replica__Peer *peer,
                  unsigned *number)
{
    const Replica__Peer *known = peer_list_of_identity(list, peer->identity);
    *number = known == NULL ? 0 : known->number;
    return known != NULL && strcmp(known->location, peer->location) == 0 &&
           strcmp(known->address, peer->address) != 0 && peers_is_silent(peers, known->number);
}

static status change_address(struct peers *peers, const Replica__PeerList *list,
                             const Replica__Peer *peer, unsigned number, struct arena *arena,
                             const Replica__PeerList **out)
{
    TRY(peer_list_move(list, number, peer->address, arena, out));
    return peers_replace_list(peers, list, *out, list->leader);
}

/* This server leads, or has no peers yet, and nobody else changes the list. */
static status admit(struct peers *peers, const Replica__AdmitPeerRequest *request,
                    struct arena *arena, const Replica__AdmitPeerResponse **out)
{
    Replica__AdmitPeerResponse *response;
    const Replica__PeerList *standing, *list, *longer;
    unsigned number;
    PROTO_NEW(arena, response, REPLICA__ADMIT_PEER_RESPONSE__INIT);
    TRY(peers_list(peers, arena, &standing));
    list = standing;
    if (list == NULL)
        TRY(begin_list(peers, request->reached_at, arena, &list));
    if (moves(peers, list, request->peer, &number))
        TRY(change_address(peers, list, request->peer, number, arena, &longer));
    else
        TRY(peers_admit_new(peers, standing, list, request->peer, arena, &longer, &number));
    response->list = unconst(longer);
    response->number = number;
    *out = response;
    return status_ok();
}

/* Passes it on to the leader, which is another. */
static status pass_on(struct peers *peers, const Replica__AdmitPeerRequest *request,
                      struct arena *arena, const Replica__AdmitPeerResponse **out)
{
    struct client_session *session;
    const ProtobufCMessage *answer;
    Replica__AdmitPeerRequest passed = *request;
    if (request->passed_on)
        return status_make(STATUS_ABORTED, "another peer leads: ask again in a moment");
    passed.passed_on = true;
    TRY(peers_session(peers, peers_leader(peers), &session));
    const struct session_call call = {
        .path = ADMIT, .request = &passed.base, .timeout_us = JOIN_TIMEOUT_US / 2};
    status s = client_session_ask(session, &call, &replica__admit_peer_response__descriptor, arena,
                                  &answer);
    client_session_destroy(session);
    TRY(s);
    *out = (const void *)answer;
    return peers_adopt(peers, (*out)->list, false);
}

bool peers_another_leads(const struct peers *peers)
{
    return peers_leader(peers) != peers_own_number(peers);
}

/* Whether this server may let others in. */
static status check_may_admit(struct peers *peers)
{
    status s = status_ok();
    pthread_mutex_lock(&peers->change);
    if (peers->is_joining || peers_another_leads(peers))
        s = status_make(STATUS_ABORTED, "this server is joining others: ask again in a moment");
    else if (!peers->has_begun || peers->is_stopping)
        s = status_make(STATUS_UNAVAILABLE, "the server is not ready");
    else if (peers_has_left(peers))
        s = status_make(STATUS_FAILED_PRECONDITION, "this server was removed from its peers");
    pthread_mutex_unlock(&peers->change);
    return s;
}

status peers_admit(struct peers *peers, const Replica__AdmitPeerRequest *request,
                   struct arena *arena, const Replica__AdmitPeerResponse **out)
{
    if (request->peer == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "peer is not set");
    if (peers_another_leads(peers) && !peers_has_left(peers))
        return pass_on(peers, request, arena, out);
    TRY(check_may_admit(peers));
    TRY(peers_changing_begin(peers));
    status s = check_may_admit(peers);
    if (status_is_ok(s))
        s = admit(peers, request, arena, out);
    peers_changing_end(peers);
    return s;
}

/* --- joining --- */

static bool find_table(void *context, struct table *table)
{
    struct buffer *name = context;
    bytes found = bytes_of(table_name(table));
    if (bytes_start_with(found, bytes_of(CLUSTER_OWN_TABLES)))
        return true;
    buffer_append_bytes(name, found);
    return false;
}

static status check_tables(struct cluster *cluster)
{
    struct buffer name = {0};
    status s = cluster_list_tables(cluster, bytes_of(""), bytes_of(""), find_table, &name);
    if (status_is_ok(s) && name.failed)
        s = status_out_of_memory();
    else if (status_is_ok(s) && name.size > 0)
        s = status_make(STATUS_FAILED_PRECONDITION,
                        "this server has tables, such as %.*s: only an empty one can join others",
                        (int)name.size, (const char *)name.data);
    buffer_free(&name);
    return s;
}

/* Whether one that has peers is to have another address. */
static bool wants_to_move(const struct peers *peers, const char *own_address)
{
    const Replica__Peer *own = peer_list_find(peers->list, peers_own_number(peers));
    return own != NULL && own_address[0] != '\0' && strcmp(own->address, own_address) != 0;
}

/* With `change` held. */
static status check_may_join(struct peers *peers, const char *own_address)
{
    if (!peers->has_begun || peers->is_stopping)
        return status_make(STATUS_UNAVAILABLE, "the server is not ready");
    if (peers->is_joining)
        return status_make(STATUS_ABORTED, "this server is joining others already");
    if (peers_has_left(peers))
        return status_make(STATUS_FAILED_PRECONDITION,
                           "this server was removed from its peers: one joins with a data "
                           "directory that is empty");
    if (wants_to_move(peers, own_address))
        return status_ok();
    if (peers->list != NULL)
        return status_make(STATUS_FAILED_PRECONDITION,
                           "this server has peers already: it is number %u",
                           peers_own_number(peers));
    return check_tables(peers->options.cluster);
}

status peers_describe_oneself(struct peers *peers, const char *own_address, struct arena *arena,
                              Replica__Peer **out)
{
    PROTO_NEW(arena, *out, REPLICA__PEER__INIT);
    if (own_address[0] == '\0' && peers->address.size > 0)
        own_address = (const char *)peers->address.data;
    if (own_address[0] == '\0')
        return status_make(STATUS_INVALID_ARGUMENT,
                           "own_address is not set, HOST:PORT as the peers reach this server: it "
                           "listens on all of the machine's addresses");
    (*out)->location = (char *)(uintptr_t)peers->options.location;
    (*out)->identity = peers->identity;
    (*out)->address = arena_string(arena, bytes_of(own_address));
    return (*out)->address == NULL ? status_out_of_memory() : status_ok();
}

static status ask_to_be_admitted(struct peers *peers, const char *address, Replica__Peer *own,
                                 struct arena *arena, const Replica__AdmitPeerResponse **out)
{
    struct client_session *session;
    const ProtobufCMessage *answer;
    Replica__AdmitPeerRequest request = REPLICA__ADMIT_PEER_REQUEST__INIT;
    request.peer = own;
    request.reached_at = (char *)(uintptr_t)address;
    TRY(peers_connect(peers, address, &session));
    const struct session_call call = {
        .path = ADMIT, .request = &request.base, .timeout_us = JOIN_TIMEOUT_US};
    status s = client_session_ask(session, &call, &replica__admit_peer_response__descriptor, arena,
                                  &answer);
    client_session_destroy(session);
    *out = (const void *)answer;
    return s;
}

static status check_admission(const struct peers *peers, const Replica__AdmitPeerResponse *answer)
{
    if (answer->list == NULL)
        return status_make(STATUS_INTERNAL, "the other server told no list of the peers");
    TRY(peer_list_check(answer->list));
    const Replica__Peer *own = peer_list_find(answer->list, answer->number);
    if (own == NULL || strcmp(own->identity, peers->identity) != 0)
        return status_make(STATUS_INTERNAL, "the other server told a list without this one");
    return status_ok();
}

/* From the moment on that another may know this server, with nothing held. */
static status join(struct peers *peers, const char *address, Replica__Peer *own,
                   struct arena *arena)
{
    const Replica__AdmitPeerResponse *answer = NULL;
    status s = peers_check_address(peers, own->address);
    if (status_is_ok(s))
        s = ask_to_be_admitted(peers, address, own, arena, &answer);
    if (status_is_ok(s))
        s = check_admission(peers, answer);
    pthread_mutex_lock(&peers->change);
    peers->is_joining = false;
    if (status_is_ok(s) && peer_list_is_newer(answer->list, peers->list))
        s = peers_change_list(peers, answer->list, answer->number);
    pthread_mutex_unlock(&peers->change);
    return s;
}

/* The leader's own address. */
static status move(struct peers *peers, const char *address, struct arena *arena)
{
    const Replica__PeerList *list, *moved;
    TRY(peers_check_address(peers, address));
    pthread_mutex_lock(&peers->change);
    unsigned own_number = peers_own_number(peers);
    status s = peers_list(peers, arena, &list);
    if (status_is_ok(s))
        s = peer_list_move(list, own_number, address, arena, &moved);
    if (status_is_ok(s))
        s = peers_change_list(peers, moved, own_number);
    pthread_mutex_unlock(&peers->change);
    return s;
}

status peers_join(struct peers *peers, const Replica__JoinPeersRequest *request,
                  struct arena *arena, const Replica__ListPeersResponse **out)
{
    Replica__Peer *own;
    if (request->address[0] == '\0')
        return status_make(STATUS_INVALID_ARGUMENT, "address is not set, HOST:PORT");
    pthread_mutex_lock(&peers->change);
    status s = check_may_join(peers, request->own_address);
    if (status_is_ok(s))
        s = peers_describe_oneself(peers, request->own_address, arena, &own);
    bool leads = peers->list != NULL && !peers_another_leads(peers);
    peers->is_joining |= status_is_ok(s) && !leads;
    pthread_mutex_unlock(&peers->change);
    TRY(s);
    TRY(leads ? move(peers, own->address, arena) : join(peers, request->address, own, arena));
    return peers_describe(peers, arena, out);
}
