/* Connections: between a socket and the protocol that is spoken on it.
 *
 * A connection belongs to one group, and a group to one event loop; everything here but
 * connection_begin is for that loop's thread. Its life:
 *
 *     begun ──► shaking hands (TLS) ──► sniffing ──► HTTP/2, a struct grpc_connection
 *                                               ├──► HTTP/1.1, a struct bridge, if need be after
 *                                               │    waiting for a place
 *                                               └──► neither: closed without an answer
 *
 * Sniffing reads the first bytes, at most as many as HTTP/2's preface has, and keeps them: nothing
 * is peeked at, so that a client that sends one byte and waits makes no loop spin. A client that
 * has not made its protocol known in LIMIT_HANDSHAKE_SECONDS is cut off.
 *
 * Output gathers in the protocol's object during a turn of the loop and is written once at its
 * end. */
#ifndef TRESTLE_SERVER_CONNECTION_H
#define TRESTLE_SERVER_CONNECTION_H

#include "access/access.h"
#include "base/log.h"
#include "base/metrics.h"
#include "os/loop.h"
#include "os/stream.h"
#include "wire/grpc_server.h"
#include "wire/http1.h"

#include <stdatomic.h>

struct connection;

enum { CONNECTION_INPUT_SIZE = 64 << 10 };

/* What the connections of one loop share. What stands after `open` is its own. */
struct connection_group {
    struct loop *loop;
    struct grpc_server *grpc;
    struct grpc_spares *spares;
    struct http1_server *http1;
    struct tls_context *tls; /* NULL: plain */
    /* Plain: whether who comes from this machine counts as a fellow server; see access.h. */
    bool trusts_loopback;
    struct metrics *metrics;
    const struct log *log;
    int64_t idle_timeout_us;
    atomic_size_t *open; /* connections of all groups together */

    struct connection *first; /* doubly linked */
    bool draining;
    int64_t refusal_second; /* of the steady clock: when handshakes were last refused, */
    int64_t refusals;       /* and how many in it */
    int64_t untold;         /* of which the log has not told */
    uint8_t input[CONNECTION_INPUT_SIZE]; /* of whichever connection is reading */
};

/* Takes the socket and serves it on the group's loop, or closes it for want of memory. Any thread.
 * Counts in `open` from now until it is closed. `is_reserved`: it is one beyond the most, for an
 * operator: it may ask for anything but data, and is closed soon when it has nothing to ask. */
void connection_begin(struct connection_group *group, int socket, const struct address *peer,
                      bool is_reserved);

/* Asks every client to leave: HTTP/2 by GOAWAY, after which calls that run may end; HTTP/1.1 as its
 * server does (http1_server_drain). What shakes hands is closed, and what comes later. */
void connection_group_drain(struct connection_group *group);

/* Hands over each connection that speaks HTTP/2. */
void connection_group_visit(const struct connection_group *group, void *context,
                            void (*each)(void *context, struct grpc_connection *connection));

/* Closes all; calls that run are cancelled. */
void connection_group_close(struct connection_group *group);

#endif
