/* Which server answers a call: this one, or the peer that the instance's app profile, or what is
 * administered, has it go to (forward.h).
 *
 *     data              to the cluster that the profile's single-cluster routing names; of several
 *                       that it may be, to the nearest that can be asked, and if that fails to the
 *                       next; with row affinity, if it is about one row, to the one that wants that
 *                       row most (bigtable/nearness.h), and so on
 *     administration    of what peers share: to the server that leads; what it made is there here,
 *                       too, before the call ends
 *     operations        that are not known here: to the server that leads
 *     Datastore         all of it to the server that leads: databases are there alone
 *     all else          here
 *
 * A call that was forwarded is answered where it comes to. Without peers nothing is looked at. */
#ifndef TRESTLE_REPLICA_ROUTER_H
#define TRESTLE_REPLICA_ROUTER_H

#include "bigtable/services.h"
#include "replica/forward.h"

struct router;

struct router_options {
    struct bigtable *bigtable;
    struct peers *peers;
    const char *location;    /* this server's */
    struct metrics *metrics; /* may be NULL */
};

status router_create(const struct router_options *options, struct router **out);
/* What says whether what the leader has done is here (schema_follow_knows_since); NULL: nothing
 * does from the return on. Any thread. */
void router_set_schema(struct router *router,
                       bool (*knows_schema_since)(void *context, int64_t since_us), void *context);
/* forwarder_rest. NULL is fine, as for the next. */
void router_rest(struct router *router);
void router_destroy(struct router *router);

/* As grpc_server_options.take. */
bool router_take(struct router *router, struct grpc_call *call, const struct grpc_service *service,
                 const struct grpc_method *method, bytes request);

#endif
