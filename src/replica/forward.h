/* Calls that another server answers: sent on as they came, message by message, and answered by what
 * comes back. The client's deadline, and that it goes, count there as well. They have the header
 * ACCESS_FORWARDED_BY (access/access.h), and are not sent on once more.
 *
 * All is on the call's loop: each loop has a connection of its own to each peer. */
#ifndef TRESTLE_REPLICA_FORWARD_H
#define TRESTLE_REPLICA_FORWARD_H

#include "replica/peers.h"
#include "wire/grpc.h"

struct forwarder;

status forwarder_create(struct peers *peers, struct forwarder **out);
/* Ends all connections, and waits for that: when no call is left, and while the loops that had some
 * still run. NULL is fine, as for the next. */
void forwarder_rest(struct forwarder *forwarder);
void forwarder_destroy(struct forwarder *forwarder);

/* `params`, if not NULL: ResponseParams, which outlive the call. `before_end`, if not NULL, is
 * called before the call ends well, and ends it: grpc_call_finish with OK. Takes the call in any
 * case. UNAVAILABLE if the peer cannot be reached. */
struct forwarded {
    unsigned peer;
    const char *service;
    const char *method;
    const struct metadata *params;
    void (*before_end)(void *context, struct grpc_call *call);
    void *context;
};
void forward_call(struct forwarder *forwarder, struct grpc_call *call, bytes request,
                  const struct forwarded *forwarded);

#endif
