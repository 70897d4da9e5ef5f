/* PullChanges: what clients have changed at this server, for a peer that asks. Each call has a
 * thread, which reads the origin feed and rests where there is nothing, or where the peer does not
 * keep up.
 *
 * What a peer asks for behind a position it will not ask for again from before: the feed is kept
 * from the least of all peers' positions on. */
#ifndef TRESTLE_REPLICA_PULL_SERVICE_H
#define TRESTLE_REPLICA_PULL_SERVICE_H

#include "replica/link_rate.h"
#include "replica/peers.h"
#include "wire/grpc.h"

struct pull_service;

/* All of these outlive it. */
status pull_service_create(struct cluster *cluster, struct peers *peers, struct link_rate *rate,
                           struct pull_service **out);
/* When no call is left. NULL is fine. */
void pull_service_destroy(struct pull_service *service);

/* The handler; the service is its context. */
void pull_service_handle(void *service, struct grpc_call *call, bytes request);

/* What that peer has not been sent yet, in bytes, estimated; of one that has not asked since the
 * start, all that is kept. Any thread. */
uint64_t pull_service_queue(struct pull_service *service, unsigned number);

/* The peers have changed: what was kept for those that are gone may go. Any thread. */
void pull_service_look(struct pull_service *service);

#endif
