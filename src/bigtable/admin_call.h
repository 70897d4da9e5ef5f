/* How administrative methods run: each is a function from request message to response message,
 * called on a pool thread, since it waits for commits. The steps that all of them share are done
 * here: decoding, the way to the pool and back, encoding, ending the call. */
#ifndef TRESTLE_BIGTABLE_ADMIN_CALL_H
#define TRESTLE_BIGTABLE_ADMIN_CALL_H

#include "bigtable/services.h"
#include "wire/proto.h"

struct admin_request {
    struct bigtable *bigtable;
    struct arena *arena; /* of the call: what the response is made in */
    int64_t deadline_us; /* clock_steady_us; INT64_MAX without one */
    const ProtobufCMessage *message;
    const struct grpc_call *call; /* for grpc_call_is_cancelled; NULL: no client waits for it */
    struct access_caller *caller; /* NULL: with access control off, and nothing audited */
    void *more;                   /* of a service of another folder: its own context; else NULL */
};

/* `*response` is a message in the arena (or static); left alone on failure. */
typedef status admin_method(const struct admin_request *request, const ProtobufCMessage **response);

/* Answers the call by what `method` makes of the request. */
void admin_call_run(struct bigtable *bigtable, void *more, struct grpc_call *call, bytes request,
                    const ProtobufCMessageDescriptor *type, admin_method *method);

/* The handler `handle_<method>` of a table of methods, for a request message of this C prefix. */
#define ADMIN_HANDLER(method, prefix)                                                              \
    static void handle_##method(void *context, struct grpc_call *call, bytes request)              \
    {                                                                                              \
        admin_call_run(context, NULL, call, request, &prefix##__descriptor, method);               \
    }

/* The same for a method that changes what peers share: refused where another one leads
 * (peers_hook.h). */
#define ADMIN_LEADERS_HANDLER(method, prefix)                                                      \
    static status method##_if_leads(const struct admin_request *request,                           \
                                    const ProtobufCMessage **response)                             \
    {                                                                                              \
        TRY(change_shared_begin(request->bigtable));                                               \
        status s = method(request, response);                                                      \
        change_shared_end(request->bigtable);                                                      \
        return s;                                                                                  \
    }                                                                                              \
    static void handle_##method(void *context, struct grpc_call *call, bytes request)              \
    {                                                                                              \
        admin_call_run(context, NULL, call, request, &prefix##__descriptor, method##_if_leads);    \
    }

/* google.protobuf.Empty, for methods that say no more than that they succeeded. */
const ProtobufCMessage *admin_empty_response(void);

#endif
