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
        out->list = record->list;
        out->own_number = record->own_number;
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
    DCHECK(peer_list_find(record->list, record->own_number) != NULL);
    message.list = unconst(record->list);
    message.own_number = record->own_number;
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

bool peer_list_is_newer(const Replica__PeerList *a, const Replica__PeerList *b)
{
    if (a == NULL || b == NULL)
        return a != NULL;
    return a->epoch != b->epoch ? a->epoch > b->epoch : a->revision > b->revision;
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

status peer_list_check(const Replica__PeerList *list)
{
    unsigned last = 0;
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
    return status_ok();
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

static status append_peer(const Replica__PeerList *list, const Replica__Peer *peer,
                          struct arena *arena, Replica__PeerList **out)
{
    PROTO_NEW(arena, *out, REPLICA__PEER_LIST__INIT);
    **out = *list;
    (*out)->revision++;
    (*out)->peers = arena_alloc(arena, (list->n_peers + 1) * sizeof *list->peers);
    if ((*out)->peers == NULL)
        return status_out_of_memory();
    memcpy((*out)->peers, list->peers, list->n_peers * sizeof *list->peers);
    unsigned number = list->peers[list->n_peers - 1]->number + 1;
    return number_peer(peer, number, arena, &(*out)->peers[(*out)->n_peers++]);
}

status peer_list_admit(const Replica__PeerList *list, const Replica__Peer *peer,
                       struct arena *arena, const Replica__PeerList **out, unsigned *number)
{
    Replica__PeerList *longer;
    TRY(check_texts(peer));
    const Replica__Peer *known = peer_list_of_identity(list, peer->identity);
    if (known != NULL && is_same(known, peer)) {
        *out = list;
        *number = known->number;
        return status_ok();
    }
    TRY(check_apart(list, peer));
    if (list->peers[list->n_peers - 1]->number >= PEERS_MOST)
        return status_make(STATUS_RESOURCE_EXHAUSTED, "there are %d peers, as many as there may be",
                           PEERS_MOST);
    TRY(append_peer(list, peer, arena, &longer));
    *out = longer;
    *number = longer->peers[longer->n_peers - 1]->number;
    return status_ok();
}
