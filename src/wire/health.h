/* grpc.health.v1.Health: Check, List and Watch, for load balancers and probes. */
#ifndef TRESTLE_WIRE_HEALTH_H
#define TRESTLE_WIRE_HEALTH_H

#include "wire/grpc.h"

struct health;

/* Tells of the server as a whole (""), and of each of the services, whose names must live as long;
 * all are in the same state, at first NOT_SERVING. */
status health_create(const struct grpc_service *const *services, size_t service_count,
                     struct health **out);

/* When no call of it is left; NULL is fine. */
void health_destroy(struct health *health);

/* The service to serve; valid as long as `health`. */
const struct grpc_service *health_service(const struct health *health);

/* Any thread. Watching clients are told of a change. */
void health_set(struct health *health, bool serving);

/* Says NOT_SERVING from now on and ends all watching, for else a draining server would never be
 * quiet. Any thread. */
void health_shut_down(struct health *health);

#endif
