/* Carries bytes between a client's stream and the HTTP/1.1 server, which wants a socket of its own:
 * one end of a socketpair, so that plain and TLS clients take one way. At most one buffer full
 * waits in each direction. How long a client may be idle is the HTTP/1.1 server's to say: when it
 * closes its end, the bridge has ended. The loop's thread only.
 *
 * Invariant: what the server said before it closed its end reaches the client, also while that
 * still sends (a body that the server did not want to read). */
#ifndef TRESTLE_SERVER_BRIDGE_H
#define TRESTLE_SERVER_BRIDGE_H

#include "os/loop.h"
#include "os/stream.h"

struct bridge;

/* The stream stays its owner's, which must not watch its socket any more. `first` is what was read
 * of it already, at most BRIDGE_FIRST_SIZE bytes. `*server` gets the socket for the HTTP/1.1
 * server, non-blocking, which the caller owns. `ended` is called once, on the loop, when nothing
 * more can be carried, never from within bridge_create; its callee may destroy the bridge.
 * `is_whole`: the stream has all that the server said; else it is broken, or took too long. */
enum { BRIDGE_FIRST_SIZE = 1024 };
typedef void bridge_ended(void *context, bool is_whole);
status bridge_create(struct loop *loop, struct stream *stream, bytes first, bridge_ended *ended,
                     void *context, int *server, struct bridge **out);
void bridge_destroy(struct bridge *bridge); /* NULL is fine */

#endif
