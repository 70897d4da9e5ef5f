/* See peer_list.h: changes of the list that take a majority, and how one is found. */
#include "replica/peers_private.h"

#include "base/check.h"
#include "wire/json.h"
#include "wire/proto.h"

#include <stdio.h>

#define EXCHANGE "/trestle.replica.v1.Replication/ExchangePeers"

enum { CHANGING_WAIT_US = 8 * 1000 * 1000 };

/* --- one at a time --- */

static bool take_turn(void *context)
{
    struct peers *peers = context;
    pthread_mutex_lock(&peers->change);
    bool is_mine = !peers->is_changing;
    peers->is_changing = true;
    pthread_mutex_unlock(&peers->change);
    return is_mine;
}

status peers_changing_begin(struct peers *peers)
{
    if (thread_wait_for(take_turn, peers, CHANGING_WAIT_US))
        return status_ok();
    return status_make(STATUS_ABORTED, "the peers are being changed by another call: ask again");
}

void peers_changing_end(struct peers *peers)
{
    pthread_mutex_lock(&peers->change);
    DCHECK(peers->is_changing);
    peers->is_changing = false;
    pthread_mutex_unlock(&peers->change);
}

/* --- asking --- */

status peers_ask(struct peers *peers, unsigned number, const struct session_call *call,
                 const ProtobufCMessageDescriptor *type, struct arena *arena,
                 const ProtobufCMessage **out)
{
    struct client_session *session;
    TRY(peers_session(peers, number, &session));
    status s = client_session_ask(session, call, type, arena, out);
    client_session_destroy(session);
    return s;
}

static status exchange(struct peers *peers, const Replica__PeerList *list,
                       const Replica__Peer *peer, struct arena *arena,
                       const Replica__ExchangePeersResponse **out)
{
    Replica__ExchangePeersRequest request = REPLICA__EXCHANGE_PEERS_REQUEST__INIT;
    const ProtobufCMessage *answer;
    request.from = peers_own_number(peers);
    request.list = (Replica__PeerList *)(uintptr_t)list;
    request.identity = peers->identity;
    request.incarnation = peers->incarnation;
    request.seen = atomic_load(&peers->seen);
    request.gone = atomic_load(&peers->gone);
    const struct session_call call = {
        .path = EXCHANGE, .request = &request.base, .timeout_us = PEER_TIMEOUT_US};
    TRY(peers_ask(peers, peer->number, &call, &replica__exchange_peers_response__descriptor, arena,
                  &answer));
    *out = (const void *)answer;
    return peer_check_answer(peer, *out);
}

/* --- a majority --- */

struct settling {
    struct peers *peers;
    const Replica__PeerList *list;
    struct arena *arena;
    struct peer_support *support;
    bool is_of_silent; /* it is the turn of those that did not answer when they were asked last */
};

static status take_answer(const struct settling *settling, unsigned number,
                          const Replica__ExchangePeersResponse *answer)
{
    settling->support->seen |= answer->seen;
    if (peer_list_is_newer(answer->list, settling->list)) {
        TRY(peers_adopt(settling->peers, answer->list, false));
        return status_make(STATUS_ABORTED, "the peers are others now: ask again");
    }
    if (!peer_list_is_newer(settling->list, answer->list))
        settling->support->have |= peer_bit(number);
    return status_ok();
}

/* Who does not answer has not the list. */
static status ask_one(const struct settling *settling, const Replica__Peer *peer)
{
    const Replica__ExchangePeersResponse *answer;
    status s = exchange(settling->peers, settling->list, peer, settling->arena, &answer);
    if (status_is_ok(s))
        return take_answer(settling, peer->number, answer);
    status_free(s);
    return status_ok();
}

static status ask_all(const struct settling *settling)
{
    const Replica__PeerList *list = settling->list;
    for (size_t i = 0; i < list->n_peers; i++) {
        unsigned number = list->peers[i]->number;
        bool is_settled = peer_list_has_majority(list, settling->support->have);
        if (number == peers_own_number(settling->peers) ||
            peers_is_silent(settling->peers, number) != settling->is_of_silent ||
            (settling->is_of_silent && is_settled))
            continue;
        TRY(ask_one(settling, list->peers[i]));
    }
    return status_ok();
}

status peers_settle(struct peers *peers, const Replica__PeerList *list, struct arena *arena,
                    struct peer_support *out)
{
    struct settling settling = {.peers = peers, .list = list, .arena = arena, .support = out};
    *out = (struct peer_support){.have = peer_bit(list->leader)};
    if (peers_own_number(peers) != 0)
        out->have = peer_bit(peers_own_number(peers));
    out->seen = atomic_load(&peers->seen);
    TRY(ask_all(&settling));
    settling.is_of_silent = true;
    return ask_all(&settling);
}

/* --- letting one in --- */

static bool is_reserve(const Replica__PeerList *list, unsigned number)
{
    return number == list->leader + PEERS_BY_MAJORITY;
}

/* A number is told once it cannot be given again: a majority of those that were there before has
 * it.
 */
static status await_majority(struct peers *peers, const Replica__PeerList *list, unsigned number,
                             struct arena *arena)
{
    struct peer_support support;
    if (is_reserve(list, number))
        return status_ok();
    TRY(peers_settle(peers, list, arena, &support));
    if (peer_list_has_majority_but(list, support.have, number))
        return status_ok();
    return status_make(STATUS_UNAVAILABLE,
                       "the number %u is not certain yet, since no majority of the peers answers: "
                       "ask again",
                       number);
}

status peers_admit_new(struct peers *peers, const Replica__PeerList *former,
                       const Replica__PeerList *list, const Replica__Peer *peer,
                       struct arena *arena, const Replica__PeerList **out, unsigned *number)
{
    struct peer_support support;
    TRY(peers_settle(peers, list, arena, &support));
    TRY(peer_list_admit(list, peer, &support, arena, out, number));
    if (*out != list)
        TRY(peers_replace_list(peers, former, *out, list->leader));
    return await_majority(peers, *out, *number, arena);
}

/* --- what is told of it --- */

void peers_format_time(int64_t us, char out[PEER_TIME_SIZE])
{
    struct buffer text = {0};
    json_write_timestamp(us / 1000000, (int32_t)(us % 1000000) * 1000, &text);
    bool is_known = us != 0 && text.size > 2 && !text.failed;
    if (is_known) /* without its quotes */
        snprintf(out, PEER_TIME_SIZE, "%.*s", (int)text.size - 2, (const char *)text.data + 1);
    else
        snprintf(out, PEER_TIME_SIZE, "a time that is not known");
    buffer_free(&text);
}

status peers_note(struct peer_notes *notes, struct arena *arena, const char *text)
{
    char *kept = arena_string(arena, bytes_of(text));
    if (kept == NULL)
        return status_out_of_memory();
    if (notes->count < PEER_NOTES_MOST)
        notes->text[notes->count++] = kept;
    return status_ok();
}

status peers_tell_change(struct peers *peers, const struct peer_notes *notes, struct arena *arena,
                         const Replica__ChangePeersResponse **out)
{
    Replica__ChangePeersResponse *response;
    const Replica__ListPeersResponse *described;
    PROTO_NEW(arena, response, REPLICA__CHANGE_PEERS_RESPONSE__INIT);
    TRY(peers_describe(peers, arena, &described));
    response->peers = (Replica__ListPeersResponse *)(uintptr_t)described;
    response->n_notes = notes->count;
    response->notes = arena_alloc(arena, sizeof notes->text);
    if (response->notes == NULL)
        return status_out_of_memory();
    memcpy(response->notes, notes->text, sizeof notes->text);
    *out = response;
    return status_ok();
}
