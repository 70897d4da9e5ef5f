/* See peers.h: how another server comes to lead.
 *
 *     ask all: who answers? ── no majority, not forced ──► refused: nothing has changed
 *       │
 *     have them promise (PreparePromotion): lists of before this epoch do not count there any more;
 *       │   the one that leads lets nothing be administered for some seconds
 *     mirror what is administered from the one that leads, or else from who has most of it
 *       │
 *     the one that leads hands over, if what was mirrored is still all it has (HandOver)
 *       │
 *     the new list here, and at all others that answer
 *
 * So what the former leader acknowledged is at the new one, if it answers; and two that are made to
 * lead at the same time are told apart: a majority promises one of two epochs last, and the other
 * one's list is not taken. A promotion that ends half way changes nothing but the promises: until
 * one ends, the one that leads goes on, and lets nobody in for want of a majority.
 *
 * One that was handed over to has all of it before the list is written here: if it dies in between,
 * the former leader follows it, and it finds by its first question that it leads. */
#include "replica/peers_private.h"

#include "base/check.h"
#include "replica/schema_state.h"
#include "wire/proto.h"

#include <stdio.h>

#define PREPARE   "/trestle.replica.v1.Replication/PreparePromotion"
#define HAND_OVER "/trestle.replica.v1.Replication/HandOver"

enum {
    ATTEMPTS = 4,
    REST_US = 10 * 1000 * 1000, /* more than the one that leads waits for calls to end */
};

/* Of one call. */
struct promotion {
    struct peers *peers;
    struct arena *arena;
    bool is_forced;
    const Replica__PeerList *list; /* which is to be changed */
    struct peer_ballot ballot;
    struct peer_support support; /* `have`: who has promised */
    Replica__SchemaState own;
    const Replica__SchemaState *leaders; /* NULL: it did not answer, or is this server */
    const Replica__SchemaState *newest;  /* of the others; NULL: none answered */
    unsigned newest_of;
    struct peer_notes notes;
};

static Replica__PeerList *unconst(const Replica__PeerList *list)
{
    return (Replica__PeerList *)(uintptr_t)list;
}

static unsigned own_number(const struct promotion *promotion)
{
    return peers_own_number(promotion->peers);
}

static const char *location_of(const Replica__PeerList *list, unsigned number)
{
    const Replica__Peer *peer = peer_list_find(list, number);
    return peer == NULL ? "?" : peer->location;
}

static status note(struct promotion *promotion, const char *text)
{
    return peers_note(&promotion->notes, promotion->arena, text);
}

/* --- what the others are asked: the asked side --- */

/* With `change` held. */
static status promise(struct peers *peers, struct peer_ballot ballot, bool *is_promised)
{
    int order = peer_ballot_compare(ballot, peers->promised);
    *is_promised = order >= 0 && ballot.epoch > peers->list->epoch;
    return *is_promised && order > 0 ? peers_write_promise(peers, ballot) : status_ok();
}

/* Once nothing is administered here any more, if this server leads. */
static status await_rest(struct peers *peers, unsigned number)
{
    if (peers_another_leads(peers) || peer_gate_freeze(peers, number))
        return status_ok();
    peer_gate_thaw(peers, number);
    return status_make(STATUS_UNAVAILABLE, "calls that change what is administered do not end");
}

static status tell_state(struct peers *peers, struct arena *arena, Replica__SchemaState *out)
{
    pthread_rwlock_rdlock(&peers->schema_lock);
    status s = peers->schema.tell == NULL
                   ? status_make(STATUS_UNAVAILABLE, "the server is not ready")
                   : peers->schema.tell(peers->schema.context, arena, out);
    pthread_rwlock_unlock(&peers->schema_lock);
    return s;
}

static status answer_prepare(struct peers *peers, bool is_promised, struct arena *arena,
                             const Replica__PreparePromotionResponse **out)
{
    Replica__PreparePromotionResponse *response;
    const Replica__PeerList *list;
    PROTO_NEW(arena, response, REPLICA__PREPARE_PROMOTION_RESPONSE__INIT);
    PROTO_NEW(arena, response->schema, REPLICA__SCHEMA_STATE__INIT);
    TRY(peers_list(peers, arena, &list));
    TRY(tell_state(peers, arena, response->schema));
    pthread_mutex_lock(&peers->change);
    response->promised_epoch = peers->promised.epoch;
    pthread_mutex_unlock(&peers->change);
    if (list->epoch > response->promised_epoch)
        response->promised_epoch = list->epoch;
    response->list = unconst(list);
    response->is_promised = is_promised;
    *out = response;
    return status_ok();
}

static status make_promise(struct peers *peers, const Replica__PreparePromotionRequest *request,
                           bool *is_promised)
{
    const struct peer_ballot ballot = {request->epoch, request->from};
    pthread_mutex_lock(&peers->change);
    status s = promise(peers, ballot, is_promised);
    pthread_mutex_unlock(&peers->change);
    return s;
}

status peers_prepare(struct peers *peers, const Replica__PreparePromotionRequest *request,
                     struct arena *arena, const Replica__PreparePromotionResponse **out)
{
    const Replica__PeerList *list;
    const struct peer_caller caller = {request->from, request->identity, request->incarnation};
    bool is_promised = false;
    if (peers_own_number(peers) == 0)
        return status_make(STATUS_FAILED_PRECONDITION, "this server has no peers");
    TRY(peers_adopt(peers, request->list, false));
    TRY(peers_list(peers, arena, &list));
    TRY(peers_check_caller(peers, list, &caller));
    if (request->epoch == 0) {
        peer_gate_thaw(peers, request->from);
        return answer_prepare(peers, false, arena, out);
    }
    TRY(make_promise(peers, request, &is_promised));
    if (is_promised)
        TRY(await_rest(peers, request->from));
    return answer_prepare(peers, is_promised, arena, out);
}

/* Nothing is administered since the gate is closed: so it is compared, and then handed over. */
static status hand_over(struct peers *peers, const Replica__HandOverRequest *request,
                        struct arena *arena)
{
    Replica__SchemaState state = REPLICA__SCHEMA_STATE__INIT;
    TRY(tell_state(peers, arena, &state));
    if (!bytes_equal(proto_bytes(state.digest), proto_bytes(request->digest)))
        return status_make(STATUS_ABORTED, "what is administered has changed: ask again");
    TRY(peers_adopt(peers, request->list, true));
    if (peers_leader(peers) == request->from)
        return status_ok();
    return status_make(STATUS_ABORTED, "another peer is about to lead");
}

status peers_hand_over(struct peers *peers, const Replica__HandOverRequest *request,
                       struct arena *arena, const Replica__HandOverResponse **out)
{
    static const Replica__HandOverResponse done = REPLICA__HAND_OVER_RESPONSE__INIT;
    if (request->list == NULL || request->list->leader != request->from)
        return status_make(STATUS_INVALID_ARGUMENT, "the list is not of who is to lead");
    if (peers_own_number(peers) == 0 || peers_another_leads(peers))
        return status_make(STATUS_FAILED_PRECONDITION, "this server does not lead");
    TRY(await_rest(peers, request->from));
    status s = hand_over(peers, request, arena);
    peer_gate_thaw(peers, request->from);
    *out = &done;
    return s;
}

/* --- asking: promises --- */

static void take_state(struct promotion *promotion, unsigned number,
                       const Replica__SchemaState *state)
{
    if (number == promotion->list->leader)
        promotion->leaders = state;
    if (promotion->newest == NULL || schema_state_is_newer(state, promotion->newest)) {
        promotion->newest = state;
        promotion->newest_of = number;
    }
}

/* `*again`: with a greater epoch, or another list. */
static status take_promise(struct promotion *promotion, unsigned number,
                           const Replica__PreparePromotionResponse *answer, bool *again)
{
    if (peer_list_is_newer(answer->list, promotion->list)) {
        *again = true;
        return peers_adopt(promotion->peers, answer->list, false);
    }
    if (!answer->is_promised && answer->promised_epoch >= promotion->ballot.epoch) {
        promotion->ballot.epoch = answer->promised_epoch;
        *again = true;
    } else if (answer->is_promised && answer->schema != NULL) {
        promotion->support.have |= peer_bit(number);
        take_state(promotion, number, answer->schema);
    }
    return status_ok();
}

static status ask_for_promise(struct promotion *promotion, unsigned number, uint64_t epoch,
                              const Replica__PreparePromotionResponse **out)
{
    struct peers *peers = promotion->peers;
    const ProtobufCMessage *answer;
    Replica__PreparePromotionRequest request = REPLICA__PREPARE_PROMOTION_REQUEST__INIT;
    request.from = own_number(promotion);
    request.identity = peers->identity;
    request.incarnation = peers->incarnation;
    request.list = unconst(promotion->list);
    request.epoch = epoch;
    const struct session_call call = {
        .path = PREPARE, .request = &request.base, .timeout_us = REST_US};
    TRY(peers_ask(peers, number, &call, &replica__prepare_promotion_response__descriptor,
                  promotion->arena, &answer));
    *out = (const void *)answer;
    return status_ok();
}

/* Of those who answered just before; that one does not any more is as if it had not. */
static status have_promise(struct promotion *promotion, unsigned number, bool *again)
{
    const Replica__PreparePromotionResponse *answer;
    status s = ask_for_promise(promotion, number, promotion->ballot.epoch, &answer);
    if (status_is_ok(s))
        return take_promise(promotion, number, answer, again);
    log_warn(promotion->peers->options.log, "a peer does not promise to follow this server",
             LOG_INT("peer", number), LOG_STR("cause", status_message(s)));
    status_free(s);
    return status_ok();
}

static status promise_oneself(struct promotion *promotion)
{
    struct peers *peers = promotion->peers;
    bool is_promised;
    pthread_mutex_lock(&peers->change);
    if (peers->promised.epoch > promotion->ballot.epoch)
        promotion->ballot.epoch = peers->promised.epoch;
    if (promotion->list->epoch > promotion->ballot.epoch)
        promotion->ballot.epoch = promotion->list->epoch;
    promotion->ballot.epoch++;
    status s = promise(peers, promotion->ballot, &is_promised);
    pthread_mutex_unlock(&peers->change);
    return s;
}

/* The one that leads last, since it waits from then on. */
static status have_promises(struct promotion *promotion, peer_set answers, bool *again)
{
    const Replica__PeerList *list = promotion->list;
    promotion->support.have = peer_bit(own_number(promotion));
    promotion->leaders = promotion->newest = NULL;
    TRY(promise_oneself(promotion));
    for (size_t i = 0; i < list->n_peers && !*again; i++) {
        unsigned number = list->peers[i]->number;
        if (number != list->leader && number != own_number(promotion) &&
            (answers & peer_bit(number)) != 0)
            TRY(have_promise(promotion, number, again));
    }
    if (!*again && list->leader != own_number(promotion) && (answers & peer_bit(list->leader)) != 0)
        TRY(have_promise(promotion, list->leader, again));
    return status_ok();
}

/* One that leads and answers is not passed over because it was slow just now: what it has would be
 * lost. */
static status check_leader_promises(const struct promotion *promotion, peer_set answers)
{
    unsigned leader = promotion->list->leader;
    bool is_asked = leader != own_number(promotion) && (answers & peer_bit(leader)) != 0;
    if (!is_asked || promotion->leaders != NULL || promotion->is_forced)
        return status_ok();
    return status_make(STATUS_UNAVAILABLE,
                       "the server that leads, in %s, answers, but did not stop to administer in "
                       "time: ask again, or --force loses what only it has",
                       location_of(promotion->list, leader));
}

/* --- a majority --- */

static void append_silent(const struct promotion *promotion, peer_set have, struct buffer *out)
{
    const Replica__PeerList *list = promotion->list;
    const char *separator = "";
    for (size_t i = 0; i < list->n_peers; i++) {
        if ((have & peer_bit(list->peers[i]->number)) != 0)
            continue;
        buffer_append_format(out, "%s%s (%u)", separator, list->peers[i]->location,
                             list->peers[i]->number);
        separator = ", ";
    }
}

static status no_majority(const struct promotion *promotion, peer_set have)
{
    struct buffer silent = {0};
    append_silent(promotion, have, &silent);
    buffer_append_byte(&silent, '\0');
    status s = status_make(
        STATUS_FAILED_PRECONDITION,
        "%d of the %zu known peers answer, this server among them, and that is no majority; these "
        "do not: %s. If they are only out of reach, another one leads there, and what is "
        "administered on one of both sides does not last. --force does it all the same",
        __builtin_popcount(have & peer_list_numbers(promotion->list)), promotion->list->n_peers,
        silent.failed ? "…" : (const char *)silent.data);
    buffer_free(&silent);
    return s;
}

static status check_majority(const struct promotion *promotion, peer_set have)
{
    if (promotion->is_forced || peer_list_has_majority(promotion->list, have))
        return status_ok();
    return no_majority(promotion, have);
}

/* Who answers: nothing has been asked of anybody yet. */
static status find_who_answers(struct promotion *promotion, peer_set *answers)
{
    struct peer_support support;
    status s = peers_settle(promotion->peers, promotion->list, promotion->arena, &support);
    if (s.code == STATUS_ABORTED) { /* the next attempt has the newer list */
        *answers = 0;
        status_free(s);
        return status_ok();
    }
    TRY(s);
    *answers = support.have;
    return check_majority(promotion, support.have);
}

/* --- what is administered --- */

/* The former leader's, or who has most of it. */
static status catch_up_from(struct promotion *promotion, unsigned number,
                            const Replica__SchemaState *state)
{
    struct peers *peers = promotion->peers;
    if (schema_state_is_same(&promotion->own, state))
        return status_ok();
    pthread_rwlock_rdlock(&peers->schema_lock);
    status s = peers->schema.catch_up == NULL
                   ? status_make(STATUS_UNAVAILABLE, "the server stops")
                   : peers->schema.catch_up(peers->schema.context, number);
    pthread_rwlock_unlock(&peers->schema_lock);
    if (!status_is_ok(s)) {
        status refused = status_make(
            STATUS_FAILED_PRECONDITION,
            "peer %u, in %s, has more of what is administered than this server, and it could not "
            "be had from there: %s. Promote that one, or ask again",
            number, location_of(promotion->list, number), status_message(s));
        status_free(s);
        return refused;
    }
    return tell_state(peers, promotion->arena, &promotion->own);
}

static status catch_up(struct promotion *promotion)
{
    TRY(tell_state(promotion->peers, promotion->arena, &promotion->own));
    if (promotion->list->leader == own_number(promotion))
        return status_ok();
    if (promotion->leaders != NULL)
        return catch_up_from(promotion, promotion->list->leader, promotion->leaders);
    if (promotion->newest != NULL && schema_state_is_newer(promotion->newest, &promotion->own))
        return catch_up_from(promotion, promotion->newest_of, promotion->newest);
    return status_ok();
}

static status check_is_whole(const struct promotion *promotion)
{
    if (!promotion->own.is_partial || promotion->is_forced)
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "this server has never had all that is administered, or was on its way to "
                       "something newer, and nobody who answers has it: --force leads with what "
                       "there is");
}

/* --- what may be lost --- */

static status note_lost(struct promotion *promotion)
{
    char text[512], since[PEER_TIME_SIZE];
    unsigned leader = promotion->list->leader;
    int64_t us = promotion->own.known_until_us != 0 ? promotion->own.known_until_us
                                                    : (int64_t)promotion->own.as_of_us;
    if (leader == own_number(promotion) || promotion->leaders != NULL)
        return status_ok();
    peers_format_time(us, since);
    snprintf(text, sizeof text,
             "Peer %u, in %s, led and does not answer: what was administered there after %s is "
             "lost. If it comes back it keeps that in a file, and follows.",
             leader, location_of(promotion->list, leader), since);
    return note(promotion, text);
}

static status note_minority(struct promotion *promotion)
{
    if (peer_list_has_majority(promotion->list, promotion->support.have))
        return status_ok();
    return note(promotion,
                "No majority of the peers knows that this server leads. If others lead elsewhere, "
                "the greater epoch counts once they meet, and what was administered by the other "
                "one is kept in a file there.");
}

/* --- the new list --- */

/* That the answer is lost does not say that it was not done. */
static bool was_handed_over(struct promotion *promotion, const Replica__PeerList *next)
{
    struct peer_support support;
    status s = peers_settle(promotion->peers, next, promotion->arena, &support);
    bool is_so = status_is_ok(s) && (support.have & peer_bit(promotion->list->leader)) != 0;
    status_free(s);
    return is_so;
}

static status have_it_handed_over(struct promotion *promotion, const Replica__PeerList *next)
{
    const ProtobufCMessage *answer;
    Replica__HandOverRequest request = REPLICA__HAND_OVER_REQUEST__INIT;
    if (promotion->leaders == NULL)
        return status_ok();
    request.from = own_number(promotion);
    request.list = unconst(next);
    request.digest = promotion->leaders->digest;
    const struct session_call call = {
        .path = HAND_OVER, .request = &request.base, .timeout_us = REST_US};
    status s = peers_ask(promotion->peers, promotion->list->leader, &call,
                         &replica__hand_over_response__descriptor, promotion->arena, &answer);
    if (s.code != STATUS_UNAVAILABLE && s.code != STATUS_DEADLINE_EXCEEDED)
        return s;
    if (!was_handed_over(promotion, next))
        return s;
    status_free(s);
    return status_ok();
}

static status lead(struct promotion *promotion)
{
    struct peers *peers = promotion->peers;
    const Replica__PeerList *next;
    struct peer_support support;
    TRY(peer_list_promote(promotion->list, promotion->ballot, &promotion->support, promotion->arena,
                          &next));
    TRY(have_it_handed_over(promotion, next));
    TRY(peers_replace_list(peers, promotion->list, next, own_number(promotion)));
    log_info(peers->options.log, "this server leads", LOG_INT("epoch", next->epoch),
             LOG_INT("promised", __builtin_popcount(promotion->support.have)));
    status_ignore(peers_settle(peers, next, promotion->arena, &support)); /* else they ask soon */
    return status_ok();
}

/* What has been asked for is not to be waited for any more. */
static void give_up(struct promotion *promotion, peer_set answers)
{
    const Replica__PreparePromotionResponse *answer;
    unsigned leader = promotion->list->leader;
    if (leader == own_number(promotion))
        peer_gate_thaw(promotion->peers, leader);
    else if ((answers & peer_bit(leader)) != 0)
        status_ignore(ask_for_promise(promotion, leader, 0, &answer));
}

static status lead_if_it_may(struct promotion *promotion, peer_set answers)
{
    status s = check_leader_promises(promotion, answers);
    if (status_is_ok(s))
        s = check_majority(promotion, promotion->support.have);
    if (status_is_ok(s))
        s = catch_up(promotion);
    if (status_is_ok(s))
        s = check_is_whole(promotion);
    if (status_is_ok(s))
        s = note_lost(promotion);
    if (status_is_ok(s))
        s = note_minority(promotion);
    if (status_is_ok(s))
        s = lead(promotion);
    if (!status_is_ok(s))
        give_up(promotion, answers);
    return s;
}

/* --- all of it --- */

static status attempt(struct promotion *promotion, bool *again)
{
    peer_set answers;
    TRY(peers_list(promotion->peers, promotion->arena, &promotion->list));
    if (promotion->list == NULL || own_number(promotion) == 0)
        return status_make(STATUS_FAILED_PRECONDITION, "this server has no peers");
    TRY(find_who_answers(promotion, &answers));
    *again = answers == 0;
    if (!*again)
        TRY(have_promises(promotion, answers, again));
    return *again ? status_ok() : lead_if_it_may(promotion, answers);
}

static status run(struct promotion *promotion)
{
    bool again = true;
    for (unsigned i = 0; i < ATTEMPTS && again; i++) {
        again = false;
        TRY(attempt(promotion, &again));
    }
    return again ? status_make(STATUS_ABORTED, "another server is about to lead: ask again")
                 : status_ok();
}

static status check_has_rows(struct peers *peers)
{
    status s = status_ok();
    pthread_rwlock_rdlock(&peers->schema_lock);
    if (peers->schema.is_copying == NULL)
        s = status_make(STATUS_UNAVAILABLE, "the server is not ready");
    else if (peers->schema.is_copying(peers->schema.replication))
        s = status_make(STATUS_FAILED_PRECONDITION,
                        "this server is being copied from another one, and has not all rows");
    pthread_rwlock_unlock(&peers->schema_lock);
    return s;
}

static status check_may_lead(struct peers *peers)
{
    if (peers_has_left(peers))
        return status_make(STATUS_FAILED_PRECONDITION, "this server was removed from its peers");
    if (peers_own_number(peers) == 0)
        return status_make(STATUS_FAILED_PRECONDITION, "this server has no peers");
    return check_has_rows(peers);
}

status peers_promote(struct peers *peers, const Replica__PromotePeerRequest *request,
                     struct arena *arena, const Replica__ChangePeersResponse **out)
{
    struct promotion promotion = {.peers = peers,
                                  .arena = arena,
                                  .is_forced = request->force,
                                  .ballot = {0, peers_own_number(peers)},
                                  .own = REPLICA__SCHEMA_STATE__INIT};
    if (request->from_backup)
        return peers_found(peers, request, arena, out);
    TRY(check_may_lead(peers));
    TRY(peers_changing_begin(peers));
    status s = run(&promotion);
    peers_changing_end(peers);
    TRY(s);
    return peers_tell_change(peers, &promotion.notes, arena, out);
}
