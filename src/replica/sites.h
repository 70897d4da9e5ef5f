/* Which peers have an instance's rows, by its clusters: a cluster is where its location's peer is;
 * one at a location that no peer serves, as from before there were peers, is at the one that leads,
 * and so are instances without clusters. */
#ifndef TRESTLE_REPLICA_SITES_H
#define TRESTLE_REPLICA_SITES_H

#include "control/control.h"
#include "trestle/replica/v1/replica.pb-c.h"

struct sites {
    uint32_t peers;   /* a bit for each number */
    uint64_t made_in; /* the version of the edit that made the first cluster at the peer that
                         asks; 0: none is */
    uint64_t instance_made_in;
};

static inline bool sites_has(const struct sites *sites, unsigned number)
{
    return (sites->peers >> number & 1) != 0;
}

/* For the peer of that number. NOT_FOUND: there is no such instance. */
status sites_find(struct control *control, const Replica__PeerList *list, unsigned own_number,
                  const char *instance, struct sites *out);

/* The number of the peer that serves a zone, or that leads if none does. */
unsigned sites_peer_of(const Replica__PeerList *list, const char *zone);

/* How much of a name of something in an instance is "projects/P/instances/I": empty, it is none. */
bytes sites_instance_of(bytes name);

#endif
