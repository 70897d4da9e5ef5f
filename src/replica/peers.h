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
/* Whether this server was a peer, and is none any more: then its number is 0. Cheap. */
bool peers_has_left(const struct peers *peers);
/* The same, or it is about to leave: for bigtable/peers_hook.h. */
bool peers_was_removed(const void *peers);
/* Whether peers of that number have left, by whatever list that was heard of. Cheap. */
bool peers_is_gone(const struct peers *peers, unsigned number);
/* Rises whenever the list changes. Cheap. */
uint64_t peers_generation(const struct peers *peers);

/* The list, copied into the arena; NULL: it has no peers. */
status peers_list(struct peers *peers, struct arena *arena, const Replica__PeerList **out);

/* Whether changes and copies are asked for packed. Cheap. */
bool peers_pack(const struct peers *peers);
/* The number of the peer that serves the location, this server's own among them, and whether it did
 * not answer when it was asked last; 0: none does. Waits for a lock, and for no more. */
unsigned peers_at(struct peers *peers, const char *location, bool *is_silent);

/* A session with that peer, over whatever authenticates both: not connected yet. NOT_FOUND: it is
 * none. The session is the caller's, and so is the thread that it is used on. */
status peers_session(struct peers *peers, unsigned number, struct client_session **out);

/* --- who changes what is administered --- */

/* A client's call, for as long as it lasts: UNAVAILABLE while another server is about to lead, or
 * this one is not ready to. Without peers it always may. */
status peers_administer_begin(void *peers);
void peers_administer_end(void *peers);

/* What follows that peer, for as long as it changes what is here: false if that does not lead any
 * more, or calls take too long. */
bool peers_mirror_begin(struct peers *peers, unsigned leader);
void peers_mirror_end(struct peers *peers);
/* Whether this server leads, and nothing is being mirrored here still. Cheap. */
bool peers_leads_here(struct peers *peers);

/* The epoch in which this server led, if it follows and what it has of then has not been compared
 * with what the other one has; 0: there is nothing to compare. Any thread. */
uint64_t peers_led_epoch(struct peers *peers);
/* It has been. Blocks. */
status peers_led_compared(struct peers *peers);

/* What changing who leads needs of what is administered: schema_state.h, schema_follow.h. */
struct peers_schema {
    void *context;
    /* What this server has of it. */
    status (*tell)(void *context, struct arena *arena, Replica__SchemaState *out);
    /* Makes it what that peer has. Blocks for the time that this takes. */
    status (*catch_up)(void *context, unsigned from);
    /* FAILED_PRECONDITION, naming it, if an instance has a cluster at the location. */
    status (*check_unused)(void *context, const char *location);
    /* Whether the rows here are whole. */
    bool (*is_copying)(const void *replication);
    /* How far this server has come with the others' changes: as replication_progress. */
    status (*progress)(void *replication, const Replica__TellProgressRequest *request,
                       struct arena *arena, const Replica__TellProgressResponse **out);
    void *replication;
};
/* NULL: nothing is, from the return on, which waits for what uses it. Any thread. */
void peers_set_schema(struct peers *peers, const struct peers_schema *schema);

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
/* Makes this server the one that leads. FAILED_PRECONDITION: no majority of the peers answers, and
 * it is not forced; its rows are not whole; another one has more of what is administered, and does
 * not give it. ABORTED, UNAVAILABLE: it is to be asked for again. */
status peers_promote(struct peers *peers, const Replica__PromotePeerRequest *request,
                     struct arena *arena, const Replica__ChangePeersResponse **out);
status peers_prepare(struct peers *peers, const Replica__PreparePromotionRequest *request,
                     struct arena *arena, const Replica__PreparePromotionResponse **out);
status peers_hand_over(struct peers *peers, const Replica__HandOverRequest *request,
                       struct arena *arena, const Replica__HandOverResponse **out);
/* Takes another one, or this server, out of the peers: FAILED_PRECONDITION says what would be lost,
 * or what is in the way; it may be forced. */
status peers_remove(struct peers *peers, const Replica__RemovePeerRequest *request,
                    struct arena *arena, const Replica__ChangePeersResponse **out);
status peers_leave(struct peers *peers, const Replica__LeavePeersRequest *request,
                   struct arena *arena, const Replica__ChangePeersResponse **out);
status peers_dismiss(struct peers *peers, const Replica__DismissPeerRequest *request,
                     struct arena *arena, const Replica__DismissPeerResponse **out);
/* FAILED_PRECONDITION if the caller is not who it says. */
status peers_exchange(struct peers *peers, const Replica__ExchangePeersRequest *request,
                      struct arena *arena, const Replica__ExchangePeersResponse **out);

#endif
