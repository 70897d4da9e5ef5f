/* How Datastore's methods run: each is a function from request message to response message, called
 * on a thread of Datastore's own pool, where it may block. The steps that all of them share are
 * done here: decoding, what every request says of its database, the way to the pool, the answer. */
#ifndef TRESTLE_DATASTORE_DS_CALL_H
#define TRESTLE_DATASTORE_DS_CALL_H

#include "datastore/datastore.h"
#include "wire/call_steps.h"
#include "wire/proto.h"

/* Lives as long as the call. */
struct ds_call {
    struct datastore *datastore;
    struct grpc_call *call;  /* not to be finished by methods; NULL: it is the server's own */
    struct arena *arena;     /* of the call: the request is in it, and what is answered */
    const char *project_id;  /* checked */
    const char *database_id; /* checked; "": the default database */
    int64_t deadline_us;     /* clock_steady_us; INT64_MAX without one */
    uint64_t caller;         /* its connection's number; 0: it is the server's own */
};

/* `*response` is a message in the arena (or static), of the method's response type; it is left
 * alone on failure. NULL: the method has seen to it that ds_call_finish is called, once, on any
 * thread, maybe before it returns. A method that waits, or goes on for long, looks at
 * grpc_call_is_cancelled now and then. */
typedef status ds_run(struct ds_call *call, const ProtobufCMessage *request,
                      ProtobufCMessage **response);

struct ds_method {
    const char *name; /* "Lookup" */
    const ProtobufCMessageDescriptor *request;
    /* Sets the call's project_id and database_id, on the loop's thread, for requests that say them
     * in a name; NULL: the request has fields of these names. */
    status (*locate)(struct ds_call *call, const ProtobufCMessage *request);
    ds_run *run; /* NULL: not built, UNIMPLEMENTED */
};

/* Notes what the call does from now on, for its trace; nothing for the server's own. */
static inline void ds_call_step(const struct ds_call *call, enum call_step step)
{
    if (call->call != NULL)
        grpc_call_step(call->call, step);
}

/* Answers the call by what the method makes of the request. On the loop's thread. The method must
 * outlive the call. */
void ds_call_start(struct datastore *datastore, struct grpc_call *call, bytes request,
                   const struct ds_method *method);

/* Answers the call, which may be gone afterwards; takes the status. `response` is not looked at if
 * it is not OK. */
void ds_call_finish(struct ds_call *call, status s, const ProtobufCMessage *response);

/* A project without a name, or one that no project or database can have; INVALID_ARGUMENT then. In
 * both no '/' and no control characters. "(default)" is refused, which is not what requests call
 * the default database. */
status ds_check_database(const char *project_id, const char *database_id);

#endif
