/* PullSchema: what is administered at this server, which leads, for a peer that follows it. Who has
 * it already waits: until something is changed, or nearly until the deadline of the call.
 *
 * A call that waits has a timer and nothing else. */
#ifndef TRESTLE_REPLICA_SCHEMA_SERVICE_H
#define TRESTLE_REPLICA_SCHEMA_SERVICE_H

#include "control/control.h"
#include "replica/peers.h"
#include "wire/grpc.h"

struct schema_service;

/* Both outlive it. */
status schema_service_create(struct control *control, struct peers *peers,
                             struct schema_service **out);
/* When no call is left, and before the control plane is closed. NULL is fine. */
void schema_service_destroy(struct schema_service *service);

/* The handler; the service is the context. */
void schema_service_handle(void *service, struct grpc_call *call, bytes request);

#endif
