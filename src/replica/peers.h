/* The peers of a server: those with which it copies changes to and fro, itself among them. Who they
 * are is a list, which each of them keeps in its catalog (peer_list.h); the newest counts. They ask
 * each other twice a second, and so know who lives.
 *
 * Threads: any. */
#ifndef TRESTLE_REPLICA_PEERS_H
#define TRESTLE_REPLICA_PEERS_H

#include "client/client_session.h"
#include "cluster/cluster.h"
#include "trestle/replica/v1/replica.pb-c.h"

struct peers;

/* This server's number, which the versions that it gives name; 0: it has no peers. Cheap. */
unsigned peers_own_number(const struct peers *peers);
/* The number of the one that leads; 0: it has no peers. Cheap. */
unsigned peers_leader(const struct peers *peers);
/* Rises whenever the list changes. Cheap. */
uint64_t peers_generation(const struct peers *peers);

/* The list, copied into the arena; NULL: it has no peers. */
status peers_list(struct peers *peers, struct arena *arena, const Replica__PeerList **out);

/* A session with that peer, over whatever authenticates both: not connected yet. NOT_FOUND: it is
 * none. The session is the caller's, and so is the thread that it is used on. */
status peers_session(struct peers *peers, unsigned number, struct client_session **out);

#endif
