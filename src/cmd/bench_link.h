/* One connection of the load generator: a socket, and gRPC's client side on it. */
#ifndef TRESTLE_CMD_BENCH_LINK_H
#define TRESTLE_CMD_BENCH_LINK_H

#include "os/address.h"
#include "wire/grpc_client.h"

struct bench_link;

status bench_link_create(struct loop *loop, const struct address *address, const char *authority,
                         struct bench_link **out);

/* Ends what is open with UNAVAILABLE; NULL is fine. */
void bench_link_destroy(struct bench_link *link);

/* As grpc_client_start. UNAVAILABLE if the connection is lost. */
status bench_link_call(struct bench_link *link, const struct client_call_options *options,
                       struct buffer *message);

#endif
