/* trestle.replica.v1.Replication: see replica.proto. Calls among peers are let through if the
 * connection is a fellow server's (access/access.h): its certificate says so, or it is in plain
 * from this machine, without access control. They need no other permission. */
#ifndef TRESTLE_REPLICA_SERVICE_H
#define TRESTLE_REPLICA_SERVICE_H

#include "bigtable/services.h"
#include "replica/peers.h"

/* The context of the service; all of it outlives it. */
struct replica_service {
    struct bigtable *bigtable;
    struct peers *peers;
    /* Of PullChanges, CopyRows and PullSchema, called as any handler, of fellow servers' calls
     * alone, each with its context. NULL: UNIMPLEMENTED. */
    grpc_handler *pull_changes;
    grpc_handler *copy_rows;
    /* Waits until a server that has just joined knows where to begin; NULL: it does. */
    void (*await_beginning)(void *changes);
    status (*tell_progress)(void *changes, const Replica__TellProgressRequest *request,
                            struct arena *arena, const Replica__TellProgressResponse **out);
    /* What is being copied here, for ListPeers; `*out` NULL: nothing is. NULL: nothing ever is. */
    status (*copied)(void *changes, struct arena *arena, Replica__PlacedInstance **out);
    void *changes; /* of these four */
    grpc_handler *pull_schema;
    void *schema;
};

struct grpc_service replica_grpc_service(struct replica_service *service);

#endif
