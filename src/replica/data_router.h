/* Which cluster serves a call of Bigtable's data API, as app profiles say (bigtable/served_by.h):
 *
 *     routing to one cluster    that one
 *     to any, or to a group     the nearest that can be asked, and if that fails the next; with row
 *                               affinity, if it is about one row, the one that wants that row most
 *                               (bigtable/nearness.h), and so on
 *
 * Some are likely not to answer: those whose servers are silent, and this one while it has not the
 * instance's rows. They come last. What is served here has its handler, and goes elsewhere only if
 * that ends it with UNAVAILABLE (grpc_call_set_rescue). */
#ifndef TRESTLE_REPLICA_DATA_ROUTER_H
#define TRESTLE_REPLICA_DATA_ROUTER_H

#include "replica/forward.h"

struct bigtable;

/* What it asks; all of it outlives the calls. */
struct data_router {
    struct bigtable *bigtable;
    struct peers *peers;
    const char *location; /* this server's */
    struct forwarder *forwarder;
};

/* Of a call that its client has sent here: true, it is taken, and answered. On its loop. */
bool data_router_take(const struct data_router *router, struct grpc_call *call,
                      const struct grpc_service *service, const struct grpc_method *method,
                      bytes request);

/* Of a call that a peer has sent here: true, it was refused, since the rows are not here, and can
 * be made elsewhere (FORWARD_NOT_TAKEN). On its loop. */
bool data_router_refuse(const struct data_router *router, struct grpc_call *call,
                        const struct grpc_method *method, bytes request);

#endif
