/* Headers of a client's request. On the loop's thread. */
#ifndef TRESTLE_BIGTABLE_CLIENT_HEADERS_H
#define TRESTLE_BIGTABLE_CLIENT_HEADERS_H

#include "google/bigtable/v2/feature_flags.pb-c.h"
#include "wire/grpc.h"

/* The client's feature flags: `bigtable-features`, URL-safe base64 or the other one, padded or not.
 * Never NULL: without the header, or with one that cannot be read, nothing is flagged. */
const Bt__FeatureFlags *client_features(struct grpc_call *call);

/* The resource for which the request is routed, `x-goog-request-params`, must be the one that the
 * request names, or an instance that has it; else INVALID_ARGUMENT. A client that sends no such
 * header, or leaves the name out, is not wrong: as in production, the request says it all. */
status client_routing_check(struct grpc_call *call, const char *resource_name);

/* The same where some clients have another name for it. */
status client_routing_check_either(struct grpc_call *call, const char *resource_name,
                                   const char *other);

#endif
