/* The list of the peers of a server: the record that it keeps of it, and what may become of one.
 *
 * Invariants
 *  1. A list names the peers by rising number from 1 to PEERS_MOST, the leader among them;
 *     no two have one identity, one location or one address.
 *  2. A number is never given twice: nobody is taken out of a list so far.
 *  3. Only the leader makes a new list, of a greater revision. Of two lists the newer one counts.
 *
 * The record is `peers` of the catalog's keyspace (cluster/catalog.h), a PeersRecord. */
#ifndef TRESTLE_REPLICA_PEER_LIST_H
#define TRESTLE_REPLICA_PEER_LIST_H

#include "base/arena.h"
#include "cluster/cluster.h"
#include "trestle/replica/v1/replica.pb-c.h"

enum { PEERS_MOST = 31, PEER_TEXT_MOST = 255 };

struct peer_record {
    const Replica__PeerList *list; /* NULL: there is none */
    unsigned own_number;           /* 0: it has no peers */
};

/* What the record has goes into the arena. DATA_LOSS if it does not parse. May wait for the disk.
 */
status peer_record_read(struct cluster *cluster, struct arena *arena, struct peer_record *out);
/* Durably. Blocks. */
status peer_record_write(struct cluster *cluster, const struct peer_record *record);

/* Whether it keeps to invariant 1: INVALID_ARGUMENT says where not. */
status peer_list_check(const Replica__PeerList *list);

/* Any may be NULL, which is older than any list. */
bool peer_list_is_newer(const Replica__PeerList *a, const Replica__PeerList *b);

/* NULL: there is none such, or no list. */
const Replica__Peer *peer_list_find(const Replica__PeerList *list, unsigned number);
const Replica__Peer *peer_list_of_identity(const Replica__PeerList *list, const char *identity);

/* A copy in the arena, and of nothing else. */
status peer_list_copy(const Replica__PeerList *list, struct arena *arena,
                      const Replica__PeerList **out);

/* What the list is once the peer has been admitted, in the arena and in what it is given: the same
 * list if it has that peer already. `*number` is the peer's, whose own is not looked at.
 * ALREADY_EXISTS: another one has its identity or its address; FAILED_PRECONDITION: another one has
 * its location; RESOURCE_EXHAUSTED: there are as many as there may be; INVALID_ARGUMENT: it lacks
 * something. */
status peer_list_admit(const Replica__PeerList *list, const Replica__Peer *peer,
                       struct arena *arena, const Replica__PeerList **out, unsigned *number);

/* What the list is once that peer of it has another address. ALREADY_EXISTS: another one has that;
 * INVALID_ARGUMENT: it is none. */
status peer_list_move(const Replica__PeerList *list, unsigned number, const char *address,
                      struct arena *arena, const Replica__PeerList **out);

/* The first list: `leader` gets number 1, and is alone so far. */
status peer_list_begin(const Replica__Peer *leader, struct arena *arena,
                       const Replica__PeerList **out);

#endif
