/* How a server's peers are, for who watches it: metrics (metrics.def, "Peers"), and reasons of its
 * health (base/condition.h) when one of them does not answer, when its changes wait here,
 * and when two servers run with its identity.
 *
 * What passes by itself, as while one of them starts anew, is a reason after a minute. */
#ifndef TRESTLE_REPLICA_PEER_WATCH_H
#define TRESTLE_REPLICA_PEER_WATCH_H

#include "base/condition.h"
#include "replica/peers.h"
#include "replica/replication.h"
#include "tablet/version.h"

#include <stdatomic.h>

enum peer_trouble { PEER_SILENT, PEER_PARKED, PEER_DOUBLED, PEER_TROUBLES };

/* Since when each has which trouble, by the steady clock; 0: it has not. */
struct peer_troubles {
    int64_t since_us[PEER_TROUBLES][VERSION_CLUSTERS];
};

struct peer_watch {
    struct cluster *cluster;
    struct peers *peers;
    struct replication *replication;
    struct metrics *metrics; /* may be NULL */

    /* The rest is private, and zero at first. */
    struct peer_troubles troubles; /* of who looks */
    bool has_judged;
    atomic_bool has_measured;
};

/* Sets the metrics. Any thread, several may. */
void peer_watch_measure(struct peer_watch *watch);

/* Enters and leaves the reasons. One thread, every second or so. */
void peer_watch_look(struct peer_watch *watch);

/* What that makes of what ListPeers tells at `now_us` (clock_steady_us, above 0). */
void peer_troubles_judge(struct peer_troubles *troubles, const Replica__ListPeersResponse *peers,
                         int64_t now_us, struct condition *condition);

#endif
