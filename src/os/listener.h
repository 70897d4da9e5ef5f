/* A listening socket on a loop: hands each accepted connection to a callback.
 *
 * When descriptors run out (EMFILE and its like) it stops listening for a tenth of a second, while
 * clients wait in the system's queue: it neither spins nor fails. */
#ifndef TRESTLE_OS_LISTENER_H
#define TRESTLE_OS_LISTENER_H

#include "os/address.h"
#include "os/loop.h"

struct listener;

/* Gets a non-blocking socket, which is its own from then on, on the loop's thread. */
typedef void listener_accepted(void *context, int socket, const struct address *peer);

/* Binds and listens at once; accepts when the loop runs. ALREADY_EXISTS if the address is in use.
 */
status listener_open(struct loop *loop, const struct address *address, listener_accepted *accepted,
                     void *context, struct listener **out);

/* Whether that would succeed: binds for a moment, and does not listen. */
status listener_check(const struct address *address);

/* The loop's thread only. NULL is fine. */
void listener_close(struct listener *listener);

/* The address bound, with the port that the system chose if 0 was asked for. */
const struct address *listener_address(const struct listener *listener);

#endif
