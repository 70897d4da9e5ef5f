/* Calls that another server answers: sent on as they came, message by message, and answered by what
 * comes back. The client's deadline, and that it goes, count there as well. They have the header
 * ACCESS_FORWARDED_BY (access/access.h), and are not sent on once more.
 *
 * A call may have several places where it can be answered, and is tried at one after the other:
 *
 *     the connection cannot be made, is lost,   the next one is tried: in any case if the call was
 *     or UNAVAILABLE is the answer              not taken there, else if it may be repeated
 *     half of the time that is left goes by     the next one is asked, too, if the call may be
 *                                               repeated: who answers first is who answers
 *
 * until the client has been sent something: what answers then is all that does. The last place may
 * be here: then the method's handler has the call, and nobody else is asked any more.
 *
 * All is on the call's loop: each loop has a connection of its own to each peer. */
#ifndef TRESTLE_REPLICA_FORWARD_H
#define TRESTLE_REPLICA_FORWARD_H

#include "replica/peers.h"
#include "wire/grpc.h"

struct forwarder;

/* `metrics` may be NULL. */
status forwarder_create(struct peers *peers, struct metrics *metrics, struct forwarder **out);
/* Ends all connections, and waits for that: when no call is left, and while the loops that had some
 * still run. NULL is fine, as for the next. */
void forwarder_rest(struct forwarder *forwarder);
void forwarder_destroy(struct forwarder *forwarder);

/* A trailer of a call that failed and of which its server has done nothing. */
#define FORWARD_NOT_TAKEN "trestle-not-taken"

struct forward_target {
    unsigned peer; /* 0: here */
    /* ResponseParams of the answer from there, which outlive it; NULL: none. Of the one here, the
     * handler says them. */
    const struct metadata *params;
};

struct forwarded {
    const struct grpc_service *service;
    const struct grpc_method *method;
    const struct forward_target *targets; /* at least one; they live as long as the call */
    size_t target_count;
    bool may_repeat; /* it may be applied twice */
    /* If not NULL: called before the call ends well, and ends it: grpc_call_finish with OK. Not of
     * one that is answered here. */
    void (*before_end)(void *context, struct grpc_call *call);
    void *context;
};

/* Takes the call in any case. UNAVAILABLE if no target can be reached. */
void forward_call(struct forwarder *forwarder, struct grpc_call *call, bytes request,
                  const struct forwarded *forwarded);

#endif
