/* See peers.h: how a server is taken out of the peers.
 *
 * Of what its clients changed, whatever one of the others has, all of them must have: it comes from
 * nobody else, since a cluster's changes are in its own feed alone. So one that leaves serves no
 * data any more, waits until all others have all of it, and then has itself taken out. Of one that
 * is gone for good the others are asked: what is complete at each of them must not be below any
 * version that one of them has applied. If it is, or cannot be told, somebody has to say that it is
 * to be done all the same.
 *
 * Its number stays in the list, among those who have left, so that nobody gets it; everybody stops
 * following it, and keeps nothing for it (replication.c). It finds that by its next question. */
#include "replica/peers_private.h"

#include "base/check.h"
#include "tablet/version.h"
#include "wire/proto.h"

#include <stdio.h>

#define DISMISS "/trestle.replica.v1.Replication/DismissPeer"
#define TELL    "/trestle.replica.v1.Replication/TellProgress"

enum {
    SHIPPED_US = 20 * 1000 * 1000, /* for the others to have all */
    CALLS_US = 1000 * 1000,        /* for calls that were let in just before */
    LOOK_US = 100 * 1000,
};

/* --- how far the others are --- */

static status ask_progress(struct peers *peers, unsigned number, struct arena *arena,
                           const Replica__TellProgressResponse **out)
{
    const ProtobufCMessage *answer;
    Replica__TellProgressRequest request = REPLICA__TELL_PROGRESS_REQUEST__INIT;
    request.from = peers_own_number(peers);
    const struct session_call call = {
        .path = TELL, .request = &request.base, .timeout_us = PEER_TIMEOUT_US};
    TRY(peers_ask(peers, number, &call, &replica__tell_progress_response__descriptor, arena,
                  &answer));
    *out = (const void *)answer;
    return status_ok();
}

static status own_progress(struct peers *peers, struct arena *arena,
                           const Replica__TellProgressResponse **out)
{
    const Replica__TellProgressRequest request = REPLICA__TELL_PROGRESS_REQUEST__INIT;
    pthread_rwlock_rdlock(&peers->schema_lock);
    status s = peers->schema.progress == NULL
                   ? status_make(STATUS_UNAVAILABLE, "the server is not ready")
                   : peers->schema.progress(peers->schema.replication, &request, arena, out);
    pthread_rwlock_unlock(&peers->schema_lock);
    return s;
}

static const Replica__Progress *progress_of(const Replica__TellProgressResponse *answer,
                                            unsigned number)
{
    static const Replica__Progress none = REPLICA__PROGRESS__INIT;
    for (size_t i = 0; i < answer->n_applied; i++)
        if (answer->applied[i]->number == number)
            return answer->applied[i];
    return &none;
}

/* What the others have of one peer's changes. */
struct places {
    uint64_t complete[PEERS_MOST + 1]; /* by number; all up to there has been applied */
    uint64_t greatest;                 /* at most that one of them has applied */
    peer_set answered;
};

static status find_places(struct peers *peers, const Replica__PeerList *list, unsigned of,
                          struct arena *arena, struct places *out)
{
    *out = (struct places){.greatest = 0};
    for (size_t i = 0; i < list->n_peers; i++) {
        const Replica__TellProgressResponse *answer;
        unsigned number = list->peers[i]->number;
        if (number == of)
            continue;
        status s = number == peers_own_number(peers) ? own_progress(peers, arena, &answer)
                                                     : ask_progress(peers, number, arena, &answer);
        if (!status_is_ok(s)) {
            status_free(s);
            continue;
        }
        const Replica__Progress *progress = progress_of(answer, of);
        out->answered |= peer_bit(number);
        out->complete[number] = progress->version;
        if (progress->greatest > out->greatest)
            out->greatest = progress->greatest;
    }
    return status_ok();
}

/* --- who has less than another --- */

static void append_time(uint64_t version, struct buffer *out)
{
    char text[PEER_TIME_SIZE];
    peers_format_time(version_time_us(version), text);
    buffer_append_bytes(out, bytes_of(text));
}

/* A line for each that is behind; nothing: all have the same. */
static void find_behind(const Replica__PeerList *list, unsigned of, const struct places *places,
                        struct buffer *out)
{
    const uint64_t most = places->greatest;
    for (size_t i = 0; i < list->n_peers; i++) {
        unsigned number = list->peers[i]->number;
        if (number == of)
            continue;
        if ((places->answered & peer_bit(number)) == 0) {
            buffer_append_format(out, "%s (%u) does not answer; ", list->peers[i]->location,
                                 number);
        } else if (places->complete[number] < most) {
            buffer_append_format(out, "%s (%u) is known to have what was changed until ",
                                 list->peers[i]->location, number);
            append_time(places->complete[number], out);
            buffer_append_bytes(out, bytes_of(", and another one may have some of until "));
            append_time(most, out);
            buffer_append_bytes(out, bytes_of("; "));
        }
    }
}

/* --- taking it out, at the one that leads --- */

struct dismissal {
    struct peers *peers;
    struct arena *arena;
    const Replica__PeerList *list;
    const Replica__Peer *peer;
    const Replica__DismissPeerRequest *request;
    struct peer_support support;
    struct peer_notes notes;
};

/* What is in the way, unless it is forced: then it is a note. Takes the status. */
static status refuse(struct dismissal *dismissal, status s)
{
    if (!dismissal->request->force || status_is_ok(s) || s.code != STATUS_FAILED_PRECONDITION)
        return s;
    status noted = peers_note(&dismissal->notes, dismissal->arena, status_message(s));
    status_free(s);
    return noted;
}

static status check_unused(const struct dismissal *dismissal)
{
    struct peers *peers = dismissal->peers;
    pthread_rwlock_rdlock(&peers->schema_lock);
    status s = peers->schema.check_unused == NULL
                   ? status_make(STATUS_UNAVAILABLE, "the server is not ready")
                   : peers->schema.check_unused(peers->schema.context, dismissal->peer->location);
    pthread_rwlock_unlock(&peers->schema_lock);
    return s;
}

static status check_majority(const struct dismissal *dismissal)
{
    if (peer_list_has_majority(dismissal->list, dismissal->support.have))
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "no majority of the peers answers: if others are only out of reach, one of "
                       "them may lead there, and this does not last");
}

static status check_is_silent(const struct dismissal *dismissal)
{
    const Replica__Peer *peer = dismissal->peer;
    if (dismissal->request->is_leaving || (dismissal->support.have & peer_bit(peer->number)) == 0)
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "%s answers: have it leave, by trestle cluster leave --endpoint %s. What it "
                       "has taken of its clients, and others have not pulled yet, would be lost",
                       peer->location, peer->address);
}

static status check_places(const struct dismissal *dismissal)
{
    struct places places;
    struct buffer behind = {0};
    if (dismissal->request->is_leaving)
        return status_ok();
    TRY(find_places(dismissal->peers, dismissal->list, dismissal->peer->number, dismissal->arena,
                    &places));
    find_behind(dismissal->list, dismissal->peer->number, &places, &behind);
    status s = status_ok();
    if (behind.failed)
        s = status_out_of_memory();
    else if (behind.size > 0)
        s = status_make(STATUS_FAILED_PRECONDITION,
                        "not all have the same of what clients changed at %s, or it cannot be "
                        "told, and they cannot get it from each other: %.*s",
                        dismissal->peer->location, (int)(behind.size - 2),
                        (const char *)behind.data);
    buffer_free(&behind);
    return s;
}

static status note_lost(struct dismissal *dismissal)
{
    char text[512];
    if (dismissal->request->is_leaving)
        return status_ok();
    snprintf(text, sizeof text,
             "What %s acknowledged and nobody had pulled is lost. If it comes back it is refused, "
             "and serves no data.",
             dismissal->peer->location);
    return peers_note(&dismissal->notes, dismissal->arena, text);
}

static status take_out(struct dismissal *dismissal)
{
    const Replica__PeerList *next;
    struct peer_support support;
    struct peers *peers = dismissal->peers;
    TRY(peer_list_dismiss(dismissal->list, dismissal->peer->number, &dismissal->support,
                          dismissal->arena, &next));
    TRY(peers_replace_list(peers, dismissal->list, next, next->leader));
    status_ignore(peers_settle(peers, next, dismissal->arena, &support)); /* else they ask soon */
    return status_ok();
}

static status dismiss(struct dismissal *dismissal)
{
    unsigned number = dismissal->request->number;
    TRY(peers_list(dismissal->peers, dismissal->arena, &dismissal->list));
    dismissal->peer = peer_list_find(dismissal->list, number);
    if (dismissal->peer == NULL && peer_list_former(dismissal->list, number) != NULL)
        return status_ok(); /* asked again */
    if (dismissal->peer == NULL)
        return status_make(STATUS_NOT_FOUND, "no peer has the number %u", number);
    if (number == dismissal->list->leader)
        return status_make(STATUS_FAILED_PRECONDITION, "%s leads: have another one promoted first",
                           dismissal->peer->location);
    TRY(peers_settle(dismissal->peers, dismissal->list, dismissal->arena, &dismissal->support));
    TRY(refuse(dismissal, check_majority(dismissal)));
    TRY(refuse(dismissal, check_is_silent(dismissal)));
    TRY(refuse(dismissal, check_unused(dismissal)));
    TRY(refuse(dismissal, check_places(dismissal)));
    TRY(note_lost(dismissal));
    return take_out(dismissal);
}

status peers_dismiss(struct peers *peers, const Replica__DismissPeerRequest *request,
                     struct arena *arena, const Replica__DismissPeerResponse **out)
{
    Replica__DismissPeerResponse *response;
    const Replica__PeerList *list;
    struct dismissal dismissal = {.peers = peers, .arena = arena, .request = request};
    PROTO_NEW(arena, response, REPLICA__DISMISS_PEER_RESPONSE__INIT);
    if (peers_own_number(peers) == 0 || peers_another_leads(peers))
        return status_make(STATUS_ABORTED, "another peer leads: ask again in a moment");
    TRY(peers_changing_begin(peers));
    status s = dismiss(&dismissal);
    peers_changing_end(peers);
    TRY(s);
    TRY(peers_list(peers, arena, &list));
    response->list = (Replica__PeerList *)(uintptr_t)list;
    response->n_notes = dismissal.notes.count;
    response->notes = arena_alloc(arena, sizeof dismissal.notes.text);
    if (response->notes == NULL)
        return status_out_of_memory();
    memcpy(response->notes, dismissal.notes.text, sizeof dismissal.notes.text);
    *out = response;
    return status_ok();
}

/* --- for who asks --- */

/* Here, or by the one that leads. */
static status have_dismissed(struct peers *peers, const Replica__DismissPeerRequest *request,
                             struct arena *arena, const Replica__ChangePeersResponse **out)
{
    enum { DISMISS_US = 60 * 1000 * 1000 };
    const Replica__DismissPeerResponse *response;
    const ProtobufCMessage *answer;
    struct client_session *session;
    struct peer_notes notes = {.count = 0};
    const struct session_call call = {
        .path = DISMISS, .request = &request->base, .timeout_us = DISMISS_US};
    status s;
    if (!peers_another_leads(peers)) {
        s = peers_dismiss(peers, request, arena, &response);
    } else {
        TRY(peers_session(peers, peers_leader(peers), &session));
        s = client_session_ask(session, &call, &replica__dismiss_peer_response__descriptor, arena,
                               &answer);
        client_session_destroy(session);
        response = (const void *)answer;
    }
    TRY(s);
    for (size_t i = 0; i < response->n_notes; i++)
        TRY(peers_note(&notes, arena, response->notes[i]));
    TRY(peers_adopt(peers, response->list, false));
    return peers_tell_change(peers, &notes, arena, out);
}

static const Replica__Peer *at_location(const Replica__PeerList *list, const char *location)
{
    for (size_t i = 0; list != NULL && i < list->n_peers; i++)
        if (strcmp(list->peers[i]->location, location) == 0)
            return list->peers[i];
    return NULL;
}

static status check_is_peer(const struct peers *peers)
{
    if (peers_has_left(peers))
        return status_make(STATUS_FAILED_PRECONDITION, "this server was removed from its peers");
    if (peers_own_number(peers) == 0)
        return status_make(STATUS_FAILED_PRECONDITION, "this server has no peers");
    return status_ok();
}

status peers_remove(struct peers *peers, const Replica__RemovePeerRequest *request,
                    struct arena *arena, const Replica__ChangePeersResponse **out)
{
    const Replica__PeerList *list;
    Replica__DismissPeerRequest dismissed = REPLICA__DISMISS_PEER_REQUEST__INIT;
    TRY(check_is_peer(peers));
    TRY(peers_list(peers, arena, &list));
    const Replica__Peer *peer = at_location(list, request->location);
    if (peer == NULL)
        return status_make(STATUS_NOT_FOUND, "no peer serves the location \"%s\"",
                           request->location);
    if (peer->number == peers_own_number(peers))
        return status_make(STATUS_FAILED_PRECONDITION,
                           "that is this server: trestle cluster leave has it leave");
    dismissed.number = peer->number;
    dismissed.force = request->force;
    return have_dismissed(peers, &dismissed, arena, out);
}

/* --- leaving --- */

static status find_who_lacks(struct peers *peers, uint64_t version, struct arena *arena,
                             struct buffer *out)
{
    struct places places;
    const Replica__PeerList *list;
    TRY(peers_list(peers, arena, &list));
    TRY(find_places(peers, list, peers_own_number(peers), arena, &places));
    places.greatest = version;
    buffer_clear(out);
    find_behind(list, peers_own_number(peers), &places, out);
    return out->failed ? status_out_of_memory() : status_ok();
}

static bool stops(void *context)
{
    struct peers *peers = context;
    pthread_mutex_lock(&peers->lock);
    bool is_so = peers->is_stopping;
    pthread_mutex_unlock(&peers->lock);
    return is_so;
}

/* Until all others have what this server's clients were told before, or for as long as that may
 * take. */
static status await_shipped(struct peers *peers, struct buffer *lacking)
{
    struct clock *clock = peers->options.clock;
    int64_t until_us = clock_steady_us(clock) + SHIPPED_US;
    (void)thread_wait_for(stops, peers, CALLS_US);
    uint64_t version = version_at(cluster_version_us(peers->options.cluster) + 1);
    struct arena *asked = arena_create(PEER_MEMORY);
    status s = asked == NULL ? status_out_of_memory() : status_ok();
    while (status_is_ok(s)) {
        arena_reset(asked);
        s = find_who_lacks(peers, version, asked, lacking);
        if (!status_is_ok(s) || lacking->size == 0 || clock_steady_us(clock) > until_us ||
            thread_wait_for(stops, peers, LOOK_US))
            break;
    }
    arena_destroy(asked);
    return s;
}

static status ship_all(struct peers *peers, bool is_forced)
{
    struct buffer lacking = {0};
    status s = await_shipped(peers, &lacking);
    if (status_is_ok(s) && lacking.size > 0 && !is_forced)
        s = status_make(STATUS_FAILED_PRECONDITION,
                        "not all others have what clients changed here: %.*s",
                        (int)(lacking.size - 2), (const char *)lacking.data);
    buffer_free(&lacking);
    return s;
}

static status leave(struct peers *peers, bool is_forced, struct arena *arena,
                    const Replica__ChangePeersResponse **out)
{
    Replica__DismissPeerRequest request = REPLICA__DISMISS_PEER_REQUEST__INIT;
    TRY(ship_all(peers, is_forced));
    request.number = peers_own_number(peers);
    request.force = is_forced;
    request.is_leaving = true;
    return have_dismissed(peers, &request, arena, out);
}

status peers_leave(struct peers *peers, const Replica__LeavePeersRequest *request,
                   struct arena *arena, const Replica__ChangePeersResponse **out)
{
    TRY(check_is_peer(peers));
    if (!peers_another_leads(peers))
        return status_make(STATUS_FAILED_PRECONDITION,
                           "this server leads: have another one promoted first");
    atomic_store(&peers->is_leaving, true);
    status s = leave(peers, request->force, arena, out);
    atomic_store(&peers->is_leaving, false);
    return s;
}
