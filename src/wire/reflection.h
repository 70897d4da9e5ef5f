/* grpc.reflection.v1 and v1alpha: what tools like grpcurl ask to learn the interface. */
#ifndef TRESTLE_WIRE_REFLECTION_H
#define TRESTLE_WIRE_REFLECTION_H

#include "wire/grpc.h"

struct reflection;

/* Lists the services given, whose names must live as long, and its own two; describes whatever is
 * in `descriptor_set`, a serialised google.protobuf.FileDescriptorSet in which files come after
 * those that they import, and which must live as long. */
status reflection_create(const struct grpc_service *const *services, size_t service_count,
                         bytes descriptor_set, struct reflection **out);

/* When no call of it is left; NULL is fine. */
void reflection_destroy(struct reflection *reflection);

/* The services to serve; valid as long as `reflection`. */
const struct grpc_service *reflection_service_v1(const struct reflection *reflection);
const struct grpc_service *reflection_service_v1alpha(const struct reflection *reflection);

#endif
