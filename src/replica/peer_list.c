/* See peer_list.h. */
#include "replica/peer_list.h"

#include "base/check.h"
#include "cluster/catalog_txn.h"
#include "wire/proto.h"

enum { RECORD_MEMORY = 1 << 20 };

static bytes record_key(void)
{
    return bytes_of("peers");
}

/* --- the record --- */

static status parse(bytes value, struct arena *arena, struct peer_record *out)
{
    ProtobufCMessage *message;
    bytes kept = arena_copy(arena, value);
    if (kept.data == NULL)
        return status_out_of_memory();
    status s = proto_decode(&replica__peers_record__descriptor, kept, arena, &message);
    if (status_is_ok(s)) {
        const Replica__PeersRecord *record = (const void *)message;
        *out = (struct peer_record){
            .list = record->list,
            .own_number = record->own_number,
            .promised = {record->promised_epoch, record->promised_leader},
            .led_epoch = record->led_epoch,
            .seen = record->seen,
            .gone = record->gone,
        };
        s = record->list == NULL ? status_make(STATUS_DATA_LOSS, "it has no list")
                                 : peer_list_check(record->list);
    }
    if (status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED)
        return s;
    status lost =
        status_make(STATUS_DATA_LOSS, "the record of the peers is damaged: %s", status_message(s));
    status_free(s);
    return lost;
}

status peer_record_read(struct cluster *cluster, struct arena *arena, struct peer_record *out)
{
    struct buffer value = {0};
    bool is_there = false;
    *out = (struct peer_record){.list = NULL};
    status s = catalog_get(cluster_catalog(cluster), record_key(), &value, &is_there);
    if (status_is_ok(s) && is_there)
        s = parse(buffer_bytes(&value), arena, out);
    buffer_free(&value);
    if (!status_is_ok(s))
        *out = (struct peer_record){.list = NULL};
    return s;
}

/* For a message that is only going to be encoded. */
static Replica__PeerList *unconst(const Replica__PeerList *list)
{
    return (Replica__PeerList *)(uintptr_t)list;
}

status peer_record_write(struct cluster *cluster, const struct peer_record *record)
{
    Replica__PeersRecord message = REPLICA__PEERS_RECORD__INIT;
    struct buffer value = {0};
    struct catalog_txn *txn = catalog_txn_create(cluster_catalog(cluster));
    DCHECK(peer_list_find(record->list, record->own_number) != NULL ||
           peer_list_former(record->list, record->own_number) != NULL);
    message.list = unconst(record->list);
    message.own_number = record->own_number;
    message.promised_epoch = record->promised.epoch;
    message.promised_leader = record->promised.leader;
    message.led_epoch = record->led_epoch;
    message.seen = record->seen | peer_list_numbers(record->list) | peer_list_gone(record->list);
    message.gone = record->gone | peer_list_gone(record->list);
    proto_encode(&message.base, &value);
    status s = txn == NULL || value.failed ? status_out_of_memory() : status_ok();
    if (status_is_ok(s)) {
        catalog_txn_put(txn, record_key(), buffer_bytes(&value));
        s = cluster_write_catalog(cluster, txn);
    }
    catalog_txn_destroy(txn);
    buffer_free(&value);
    return s;
}

/* --- looking at one --- */

const Replica__Peer *peer_list_find(const Replica__PeerList *list, unsigned number)
{
    for (size_t i = 0; list != NULL && i < list->n_peers; i++)
        if (list->peers[i]->number == number)
            return list->peers[i];
    return NULL;
}

const Replica__Peer *peer_list_of_identity(const Replica__PeerList *list, const char *identity)
{
    for (size_t i = 0; list != NULL && i < list->n_peers; i++)
        if (strcmp(list->peers[i]->identity, identity) == 0)
            return list->peers[i];
    return NULL;
}

const Replica__Peer *peer_list_former(const Replica__PeerList *list, unsigned number)
{
    for (size_t i = 0; list != NULL && i < list->n_former; i++)
        if (list->former[i]->number == number)
            return list->former[i];
    return NULL;
}

static peer_set numbers_of(Replica__Peer *const *peers, size_t count)
{
    peer_set set = 0;
    for (size_t i = 0; i < count; i++)
        set |= peer_bit(peers[i]->number);
    return set;
}

peer_set peer_list_numbers(const Replica__PeerList *list)
{
    return list == NULL ? 0 : numbers_of(list->peers, list->n_peers);
}

peer_set peer_list_gone(const Replica__PeerList *list)
{
    return list == NULL ? 0 : numbers_of(list->former, list->n_former);
}

static peer_set voters_of(const Replica__PeerList *list)
{
    peer_set set = 0;
    for (size_t i = 0; i < list->n_voters; i++)
        set |= peer_bit(list->voters[i]);
    return set;
}

static bool is_majority_of(peer_set all, peer_set numbers)
{
    return 2 * __builtin_popcount(all & numbers) > __builtin_popcount(all);
}

bool peer_list_has_majority_but(const Replica__PeerList *list, peer_set numbers, unsigned but)
{
    peer_set peers = peer_list_numbers(list) & ~(but == 0 ? 0 : peer_bit(but));
    return is_majority_of(peers, numbers) &&
           (list->n_voters == 0 || is_majority_of(voters_of(list), numbers));
}

bool peer_list_has_majority(const Replica__PeerList *list, peer_set numbers)
{
    return peer_list_has_majority_but(list, numbers, 0);
}

int peer_ballot_compare(struct peer_ballot a, struct peer_ballot b)
{
    if (a.epoch != b.epoch)
        return a.epoch > b.epoch ? 1 : -1;
    return (a.leader > b.leader) - (a.leader < b.leader);
}

struct peer_ballot peer_list_ballot(const Replica__PeerList *list)
{
    return list == NULL ? (struct peer_ballot){0} : (struct peer_ballot){list->epoch, list->leader};
}

bool peer_list_is_newer(const Replica__PeerList *a, const Replica__PeerList *b)
{
    if (a == NULL || b == NULL)
        return a != NULL;
    int order = peer_ballot_compare(peer_list_ballot(a), peer_list_ballot(b));
    return order != 0 ? order > 0 : a->revision > b->revision;
}

static status check_text(const char *what, const char *text)
{
    if (text[0] != '\0' && strlen(text) <= PEER_TEXT_MOST)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT, "a peer's %s has from 1 to %d bytes", what,
                       PEER_TEXT_MOST);
}

static status check_texts(const Replica__Peer *peer)
{
    TRY(check_text("location", peer->location));
    TRY(check_text("address", peer->address));
    return check_text("identity", peer->identity);
}

static bool share_something(const Replica__Peer *a, const Replica__Peer *b)
{
    return strcmp(a->identity, b->identity) == 0 || strcmp(a->location, b->location) == 0 ||
           strcmp(a->address, b->address) == 0;
}

static status check_former(const Replica__PeerList *list)
{
    unsigned last = 0;
    for (size_t i = 0; i < list->n_former; i++) {
        unsigned number = list->former[i]->number;
        if (number <= last || number > PEERS_MOST || peer_list_find(list, number) != NULL)
            return status_make(STATUS_INVALID_ARGUMENT,
                               "the numbers of those who have left do not rise, or are peers'");
        last = number;
        TRY(check_texts(list->former[i]));
    }
    return status_ok();
}

static status check_voters(const Replica__PeerList *list)
{
    unsigned last = 0;
    for (size_t i = 0; i < list->n_voters; i++) {
        if (list->voters[i] <= last || list->voters[i] > PEERS_MOST)
            return status_make(STATUS_INVALID_ARGUMENT, "the voters' numbers do not rise");
        last = list->voters[i];
    }
    return status_ok();
}

status peer_list_check(const Replica__PeerList *list)
{
    unsigned last = 0;
    if (list->epoch == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "the list of the peers has no epoch");
    for (size_t i = 0; i < list->n_peers; i++) {
        const Replica__Peer *peer = list->peers[i];
        if (peer->number <= last || peer->number > PEERS_MOST)
            return status_make(STATUS_INVALID_ARGUMENT,
                               "the peers' numbers do not rise from 1 to %d", PEERS_MOST);
        last = peer->number;
        TRY(check_texts(peer));
        for (size_t k = 0; k < i; k++)
            if (share_something(peer, list->peers[k]))
                return status_make(STATUS_INVALID_ARGUMENT, "the peers %u and %u are one",
                                   list->peers[k]->number, peer->number);
    }
    if (peer_list_find(list, list->leader) == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "the leader is none of the peers");
    TRY(check_former(list));
    return check_voters(list);
}

/* --- making one --- */

status peer_list_copy(const Replica__PeerList *list, struct arena *arena,
                      const Replica__PeerList **out)
{
    ProtobufCMessage *copy = NULL;
    bytes encoded = proto_encode_in(arena, &list->base);
    if (encoded.data == NULL)
        return status_out_of_memory();
    TRY(proto_decode(&replica__peer_list__descriptor, encoded, arena, &copy));
    *out = (const void *)copy;
    return status_ok();
}

static status number_peer(const Replica__Peer *peer, unsigned number, struct arena *arena,
                          Replica__Peer **out)
{
    PROTO_NEW(arena, *out, REPLICA__PEER__INIT);
    **out = *peer;
    (*out)->number = number;
    return status_ok();
}

status peer_list_begin(const Replica__Peer *leader, struct arena *arena,
                       const Replica__PeerList **out)
{
    Replica__PeerList *list;
    TRY(check_texts(leader));
    PROTO_NEW(arena, list, REPLICA__PEER_LIST__INIT);
    list->peers = arena_alloc(arena, sizeof *list->peers);
    if (list->peers == NULL)
        return status_out_of_memory();
    TRY(number_peer(leader, 1, arena, &list->peers[0]));
    list->n_peers = 1;
    list->epoch = list->revision = list->leader = 1;
    *out = list;
    return status_ok();
}

static status check_address_is_free(const Replica__PeerList *list, unsigned number,
                                    const char *address)
{
    for (size_t i = 0; i < list->n_peers; i++) {
        const Replica__Peer *other = list->peers[i];
        if (other->number != number && strcmp(other->address, address) == 0)
            return status_make(STATUS_ALREADY_EXISTS, "the address %s is that of peer %u, in %s",
                               address, other->number, other->location);
    }
    return status_ok();
}

/* Whether one that is admitted can be told from those that there are. */
static status check_apart(const Replica__PeerList *list, const Replica__Peer *peer)
{
    for (size_t i = 0; i < list->n_peers; i++) {
        const Replica__Peer *other = list->peers[i];
        if (strcmp(other->identity, peer->identity) == 0)
            return status_make(STATUS_ALREADY_EXISTS,
                               "the server at %s has the identity %s, too: its data directory, or "
                               "this one's, is a copy",
                               other->address, other->identity);
        if (strcmp(other->location, peer->location) == 0)
            return status_make(STATUS_FAILED_PRECONDITION,
                               "the location %s has a server already, at %s: a location has one",
                               other->location, other->address);
    }
    for (size_t i = 0; i < list->n_former; i++)
        if (strcmp(list->former[i]->identity, peer->identity) == 0)
            return status_make(STATUS_FAILED_PRECONDITION,
                               "this server was peer %u, and has left: it joins again with a data "
                               "directory that is empty",
                               list->former[i]->number);
    return check_address_is_free(list, 0, peer->address);
}

static bool is_same(const Replica__Peer *a, const Replica__Peer *b)
{
    return strcmp(a->identity, b->identity) == 0 && strcmp(a->location, b->location) == 0 &&
           strcmp(a->address, b->address) == 0;
}

status peer_list_move(const Replica__PeerList *list, unsigned number, const char *address,
                      struct arena *arena, const Replica__PeerList **out)
{
    Replica__PeerList *moved;
    DCHECK(peer_list_find(list, number) != NULL);
    TRY(check_text("address", address));
    TRY(check_address_is_free(list, number, address));
    PROTO_NEW(arena, moved, REPLICA__PEER_LIST__INIT);
    *moved = *list;
    moved->revision++;
    moved->peers = arena_alloc(arena, list->n_peers * sizeof *list->peers);
    if (moved->peers == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < list->n_peers; i++) {
        moved->peers[i] = list->peers[i];
        if (list->peers[i]->number != number)
            continue;
        TRY(number_peer(list->peers[i], number, arena, &moved->peers[i]));
        moved->peers[i]->address = arena_string(arena, bytes_of(address));
        if (moved->peers[i]->address == NULL)
            return status_out_of_memory();
    }
    *out = moved;
    return status_ok();
}

/* --- changes that take a majority --- */

static status copy_numbers(peer_set set, struct arena *arena, uint32_t **out, size_t *count)
{
    *count = 0;
    *out = arena_alloc(arena, (PEERS_MOST + 1) * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    for (unsigned i = 1; i <= PEERS_MOST; i++)
        if ((set & peer_bit(i)) != 0)
            (*out)[(*count)++] = i;
    return status_ok();
}

/* The next list, like that one. Without a majority it keeps for whom it is changed; with one that
 * is over. */
static status begin_change(const Replica__PeerList *list, const struct peer_support *support,
                           struct arena *arena, Replica__PeerList **out)
{
    PROTO_NEW(arena, *out, REPLICA__PEER_LIST__INIT);
    **out = *list;
    (*out)->revision++;
    if (peer_list_has_majority(list, support->have)) {
        (*out)->n_voters = 0;
        (*out)->voters = NULL;
    } else if (list->n_voters == 0) {
        TRY(copy_numbers(peer_list_numbers(list), arena, &(*out)->voters, &(*out)->n_voters));
    }
    return status_ok();
}

/* `peers` with that one among them, in its place. */
static status insert_peer(Replica__Peer *const *peers, size_t count, Replica__Peer *peer,
                          struct arena *arena, Replica__Peer ***out)
{
    size_t at = count;
    *out = arena_alloc(arena, (count + 1) * sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    while (at > 0 && peers[at - 1]->number > peer->number) {
        (*out)[at] = peers[at - 1];
        at--;
    }
    (*out)[at] = peer;
    if (at > 0)
        memcpy(*out, peers, at * sizeof **out);
    return status_ok();
}

/* The one that this leader gives without a majority. */
static status choose_alone(const Replica__PeerList *list, peer_set seen, unsigned *number)
{
    *number = list->leader + PEERS_BY_MAJORITY;
    if (*number <= PEERS_MOST && (seen & peer_bit(*number)) == 0)
        return status_ok();
    return status_make(STATUS_FAILED_PRECONDITION,
                       "no majority of the peers answers, and without one the server that leads "
                       "gives one number at most: %s",
                       *number > PEERS_MOST ? "this one none" : "it has been given");
}

/* Whether one above PEERS_BY_MAJORITY is free: who might give it alone has answered, as all have.
 */
static bool is_let_go(const Replica__PeerList *list, const struct peer_support *support,
                      unsigned number)
{
    return (support->have & peer_list_numbers(list)) == peer_list_numbers(list) &&
           peer_list_find(list, number - PEERS_BY_MAJORITY) != NULL;
}

static status choose_number(const Replica__PeerList *list, const struct peer_support *support,
                            unsigned *number)
{
    peer_set seen = support->seen | peer_list_numbers(list) | peer_list_gone(list);
    if (!peer_list_has_majority(list, support->have))
        return choose_alone(list, seen, number);
    for (unsigned i = 1; i <= PEERS_MOST; i++) {
        if ((seen & peer_bit(i)) != 0 || (i > PEERS_BY_MAJORITY && !is_let_go(list, support, i)))
            continue;
        *number = i;
        return status_ok();
    }
    return status_make(STATUS_RESOURCE_EXHAUSTED,
                       "there are no more numbers for peers: each is given once, and those above "
                       "%d while all peers answer",
                       PEERS_BY_MAJORITY);
}

status peer_list_admit(const Replica__PeerList *list, const Replica__Peer *peer,
                       const struct peer_support *support, struct arena *arena,
                       const Replica__PeerList **out, unsigned *number)
{
    Replica__PeerList *longer;
    Replica__Peer *numbered;
    TRY(check_texts(peer));
    const Replica__Peer *known = peer_list_of_identity(list, peer->identity);
    if (known != NULL && is_same(known, peer)) {
        *out = list;
        *number = known->number;
        return status_ok();
    }
    TRY(check_apart(list, peer));
    TRY(choose_number(list, support, number));
    TRY(number_peer(peer, *number, arena, &numbered));
    TRY(begin_change(list, support, arena, &longer));
    TRY(insert_peer(list->peers, list->n_peers, numbered, arena, &longer->peers));
    longer->n_peers++;
    *out = longer;
    return status_ok();
}

status peer_list_promote(const Replica__PeerList *list, struct peer_ballot ballot,
                         const struct peer_support *support, struct arena *arena,
                         const Replica__PeerList **out)
{
    Replica__PeerList *next;
    DCHECK(peer_list_find(list, ballot.leader) != NULL && ballot.epoch > list->epoch);
    TRY(begin_change(list, support, arena, &next));
    next->epoch = ballot.epoch;
    next->leader = ballot.leader;
    *out = next;
    return status_ok();
}

status peer_list_dismiss(const Replica__PeerList *list, unsigned number,
                         const struct peer_support *support, struct arena *arena,
                         const Replica__PeerList **out)
{
    Replica__PeerList *next;
    const Replica__Peer *peer = peer_list_find(list, number);
    DCHECK(peer != NULL && number != list->leader);
    TRY(begin_change(list, support, arena, &next));
    TRY(insert_peer(list->former, list->n_former, (Replica__Peer *)(uintptr_t)peer, arena,
                    &next->former));
    next->n_former++;
    next->peers = arena_alloc(arena, list->n_peers * sizeof *next->peers);
    if (next->peers == NULL)
        return status_out_of_memory();
    next->n_peers = 0;
    for (size_t i = 0; i < list->n_peers; i++)
        if (list->peers[i] != peer)
            next->peers[next->n_peers++] = list->peers[i];
    *out = next;
    return status_ok();
}

static status all_former(const Replica__PeerList *list, struct arena *arena, Replica__PeerList *out)
{
    out->former = list->former;
    out->n_former = list->n_former;
    for (size_t i = 0; i < list->n_peers; i++) {
        TRY(insert_peer(out->former, out->n_former, list->peers[i], arena, &out->former));
        out->n_former++;
    }
    return status_ok();
}

status peer_list_found(const Replica__PeerList *list, const Replica__Peer *peer, peer_set seen,
                       struct arena *arena, const Replica__PeerList **out)
{
    Replica__PeerList *next;
    Replica__Peer *numbered;
    unsigned number = 1;
    TRY(check_texts(peer));
    seen |= peer_list_numbers(list) | peer_list_gone(list);
    while (number <= PEERS_MOST && (seen & peer_bit(number)) != 0)
        number++;
    if (number > PEERS_MOST)
        return status_make(STATUS_RESOURCE_EXHAUSTED, "all %d numbers have been given", PEERS_MOST);
    TRY(number_peer(peer, number, arena, &numbered));
    PROTO_NEW(arena, next, REPLICA__PEER_LIST__INIT);
    TRY(all_former(list, arena, next));
    TRY(insert_peer(NULL, 0, numbered, arena, &next->peers));
    next->n_peers = 1;
    next->epoch = list->epoch + 1;
    next->revision = list->revision + 1;
    next->leader = number;
    *out = next;
    return status_ok();
}
