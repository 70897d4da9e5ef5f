/* One connection of the load generator: a socket, and gRPC's client side on it. */
#ifndef TRESTLE_CMD_BENCH_LINK_H
#define TRESTLE_CMD_BENCH_LINK_H

#include "os/address.h"
#include "wire/grpc_client.h"

struct bench_link;

/* Who the server is to be, and who we are. All must outlive the link. */
struct bench_identity {
    const char *authority;   /* as the server is called: HOST:PORT */
    const char *host;        /* the name that its certificate must have */
    struct tls_context *tls; /* NULL: plain */
    bytes credential;        /* the header `authorization`; empty: none */
};

status bench_link_create(struct loop *loop, const struct address *address,
                         const struct bench_identity *identity, struct bench_link **out);

/* Ends what is open with UNAVAILABLE; NULL is fine. */
void bench_link_destroy(struct bench_link *link);

/* As grpc_client_start. UNAVAILABLE if the connection is lost. */
status bench_link_call(struct bench_link *link, const struct client_call_options *options,
                       struct buffer *message);

#endif
