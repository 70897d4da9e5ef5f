/* Calls of change streams: very many of one server at a time, whose messages wait until they are
 * wanted.
 *
 * Invariants
 *  1. A call whose messages wait beyond what it is allowed is paused; then no more than
 *     CHANGE_CALL_WINDOW bytes come, and the server waits.
 *  2. A link carries no more calls than every server takes at once. A call that waits behind others
 *     would not be heard of.
 *
 * One thread. */
#ifndef TRESTLE_CLIENT_CHANGE_CALLS_H
#define TRESTLE_CLIENT_CHANGE_CALLS_H

#include "client/client_session.h"

enum { CHANGE_CALL_WINDOW = 512 << 10 };

/* The links that such calls share. All zeroes is none yet. */
struct change_links {
    struct change_link **items;
    size_t count;
};

void change_links_free(struct change_links *links); /* when no call is on them */

struct change_call_options {
    struct client_session *session;
    struct change_links *links;
    const char *path;
    bytes routing; /* the header x-goog-request-params */
    const ProtobufCMessage *request;
    void *context;
    void (*on_news)(void *context); /* a message has come, or the end; on the loop */
};

struct change_call;

/* Makes the call. Of the options `session`, `links` and `context` outlive it. UNAVAILABLE,
 * RESOURCE_EXHAUSTED, as calls end with them. */
status change_call_create(const struct change_call_options *options, struct change_call **out);
void change_call_destroy(struct change_call *call); /* cancels it; NULL is fine */

/* The first message, which stays; false if none waits. */
bool change_call_message(const struct change_call *call, bytes *message);
void change_call_drop_message(struct change_call *call);

/* From now on so many bytes may wait. */
void change_call_allow(struct change_call *call, size_t bytes);

/* Whether the call has ended, and all its messages were dropped. `*how`, then: the caller's. Once.
 */
bool change_call_has_ended(struct change_call *call, status *how);

/* When something came last, or might have: clock_steady_us. */
int64_t change_call_heard_us(const struct change_call *call);

#endif
