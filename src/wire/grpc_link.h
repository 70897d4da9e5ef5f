/* One connection of a command that is a client: a socket, and gRPC's client side on it. */
#ifndef TRESTLE_WIRE_GRPC_LINK_H
#define TRESTLE_WIRE_GRPC_LINK_H

#include "os/address.h"
#include "wire/credential.h"
#include "wire/grpc_client.h"

struct grpc_link;

/* The identity that the server must have, and the client's own. All must outlive the link. */
struct grpc_identity {
    const char *authority;         /* as the server is called: HOST:PORT */
    const char *host;              /* the name that its certificate must have */
    struct tls_context *tls;       /* NULL: plain */
    struct credential *credential; /* NULL: none */
};

/* Begins to connect to the first of the addresses, to the next if no answer comes from there, and
 * so on: `count` of them, at least one, which must outlive the link, too. */
status grpc_link_create(struct loop *loop, const struct address *addresses, size_t count,
                        const struct grpc_identity *identity, struct grpc_link **out);

/* Ends what is open with UNAVAILABLE; NULL is fine. */
void grpc_link_destroy(struct grpc_link *link);

/* Starts a call as grpc_client_start does, with the credential beside the options' metadata, of
 * which there are GRPC_LINK_METADATA_MOST at most. UNAVAILABLE if the connection is lost. */
enum { GRPC_LINK_METADATA_MOST = 3 };
status grpc_link_call(struct grpc_link *link, const struct client_call_options *options,
                      struct buffer *message, struct client_call **out);

/* Narrows the window as grpc_client_narrow does; and what comes from now on is counted in
 * `*received`, which outlives the link, in bytes. */
void grpc_link_narrow(struct grpc_link *link, uint32_t window, uint64_t *received);

/* Whether it will carry no more calls. */
bool grpc_link_is_lost(const struct grpc_link *link);

/* Whether anything has come or gone: if not, no server has seen a call of it. */
bool grpc_link_has_moved(const struct grpc_link *link);

/* Why it was lost, as far as this side knows; else OK. A copy: the caller's. */
status grpc_link_failure(const struct grpc_link *link);

#endif
