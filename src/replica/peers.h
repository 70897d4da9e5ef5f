/* The peers of a server: those with which it copies changes to and fro, itself among them. Who they
 * are is a list, which each of them keeps in its catalog (peer_list.h); the newest counts. They ask
 * each other twice a second, and so know who lives.
 *
 * Threads: any. */
#ifndef TRESTLE_REPLICA_PEERS_H
#define TRESTLE_REPLICA_PEERS_H

#include "client/client_session.h"
#include "cluster/cluster.h"
#include "os/address.h"
#include "trestle/replica/v1/replica.pb-c.h"

struct peers;

/* --- for who asks --- */

/* This server's number, which the versions that it gives name; 0: it has no peers. Cheap. */
unsigned peers_own_number(const struct peers *peers);
/* The number of the one that leads; 0: it has no peers. Cheap. */
unsigned peers_leader(const struct peers *peers);
/* Rises whenever the list changes. Cheap. */
uint64_t peers_generation(const struct peers *peers);

/* The list, copied into the arena; NULL: it has no peers. */
status peers_list(struct peers *peers, struct arena *arena, const Replica__PeerList **out);

/* Whether changes and copies are asked for packed. Cheap. */
bool peers_pack(const struct peers *peers);

/* A session with that peer, over whatever authenticates both: not connected yet. NOT_FOUND: it is
 * none. The session is the caller's, and so is the thread that it is used on. */
status peers_session(struct peers *peers, unsigned number, struct client_session **out);

/* --- making and ending --- */

/* Strings, log, clock, metrics and cluster outlive it. */
struct peers_options {
    struct cluster *cluster;
    const char *location; /* the zone that the server serves */
    /* Whether this server speaks TLS, and then to its peers, too. Then these are files: of the
     * authorities that the peers' certificates must lead to (NULL: it can have no peers), and of
     * the certificate that they are shown, and its key. */
    bool speaks_tls;
    const char *ca;
    const char *certificate;
    const char *key;
    bool packs; /* what comes from the others is asked for packed */
    const struct log *log;
    struct metrics *metrics; /* may be NULL */
    struct clock *clock;
};

/* Reads who the peers are, and has versions name this server's number from now on: before any call
 * is served. DATA_LOSS if the record is damaged. */
status peers_open(const struct peers_options *options, struct peers **out);
/* Begins to ask them, a thread each, and to let others join. `listen`: where the server is reached
 * by those that are told nothing else. */
status peers_begin(struct peers *peers, const struct address *listen);
/* Ends these threads. Sessions that were handed out are their owners' to end before. NULL is fine,
 * here and below. */
void peers_stop(struct peers *peers);
void peers_close(struct peers *peers);

/* Sets the metrics. Any thread. */
void peers_measure(struct peers *peers);

/* What of a peer's state its pulling knows: asked while a client lists the peers, from any thread,
 * until peers_close. Before peers_begin. Strings go into the arena. */
void peers_set_progress(struct peers *peers,
                        void (*tell)(void *context, struct arena *arena, Replica__PeerState *state),
                        void *context);

/* --- the calls; all block, and answer in the arena --- */

/* Of one that has peers already: it gets the new own address, if it is not what they know; of
 * others, FAILED_PRECONDITION: this server has peers or tables, or the other one, or its location,
 * will not do; ALREADY_EXISTS: a peer has its identity; RESOURCE_EXHAUSTED: there are PEERS_MOST;
 * and what asking the other one failed with. Durable at both when it is OK. */
status peers_join(struct peers *peers, const Replica__JoinPeersRequest *request,
                  struct arena *arena, const Replica__ListPeersResponse **out);
status peers_describe(struct peers *peers, struct arena *arena,
                      const Replica__ListPeersResponse **out);
status peers_admit(struct peers *peers, const Replica__AdmitPeerRequest *request,
                   struct arena *arena, const Replica__AdmitPeerResponse **out);
/* FAILED_PRECONDITION if the caller is not who it says. */
status peers_exchange(struct peers *peers, const Replica__ExchangePeersRequest *request,
                      struct arena *arena, const Replica__ExchangePeersResponse **out);

#endif
