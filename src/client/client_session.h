/* Calls to a Bigtable endpoint, one at a time: each runs the event loop until it has ended. */
#ifndef TRESTLE_CLIENT_CLIENT_SESSION_H
#define TRESTLE_CLIENT_CLIENT_SESSION_H

#include "client/target_options.h"
#include "wire/proto.h"

struct client_session;

struct client_session_options {
    struct target_options target;
    struct loop *loop;     /* NULL: one of its own; else it outlives the session */
    bool is_interruptible; /* SIGINT, which is blocked in the process then, cancels calls */
};

/* Does not connect yet. The options' strings must outlive the session. INVALID_ARGUMENT. */
status client_session_create(const struct client_session_options *options,
                             struct client_session **out);
void client_session_destroy(struct client_session *session); /* NULL is fine */

/* The server's HOST:PORT; "projects/p/instances/i"; the app profile. */
const char *client_session_address(const struct client_session *session);
const char *client_session_instance(const struct client_session *session);
const char *client_session_app_profile(const struct client_session *session);

/* The loop and the endpoint that carry the session's calls, to make more than one at a time. */
struct loop *client_session_loop(const struct client_session *session);
const struct endpoint *client_session_endpoint(const struct client_session *session);

struct session_call {
    const char *path;
    const ProtobufCMessage *request;
    const char *explain;  /* the header trestle-explain; NULL: none */
    const char *features; /* the header bigtable-features; NULL: none */
    bool gzip;            /* what is asked and answered goes packed, if the server can do that */
    const char *table;    /* of a call about a table, by its full name; NULL: about the instance */
    int64_t timeout_us;   /* INT64_MAX: none */
    /* A message of more bytes is not read: the call ends with RESOURCE_EXHAUSTED, and `*refused` is
     * its size. 0: as many as any may have. */
    uint64_t message_limit;
    uint64_t *refused;
    /* For each message of the answer. A failure cancels the call, and is what it ends with. */
    status (*on_message)(void *context, bytes message);
    void *context;
};

/* Makes the call, on a new connection if there is none. UNAVAILABLE says why, if that is known;
 * CANCELLED also for SIGINT. `*is_expired`, if wanted: whether the server says that the prepared
 * query has expired. */
status client_session_stream(struct client_session *session, const struct session_call *call,
                             bool *is_expired);

/* A call with one answer of that type, decoded into the arena; the call's function for messages is
 * not called. Made once: for what must not be done twice. INTERNAL without an answer. */
status client_session_ask(struct client_session *session, const struct session_call *call,
                          const ProtobufCMessageDescriptor *type, struct arena *arena,
                          const ProtobufCMessage **out);

/* The same within some seconds, made again on a new connection if the old one turned out to be
 * lost. */
status client_session_call(struct client_session *session, const char *path, const char *explain,
                           const ProtobufCMessage *request, const ProtobufCMessageDescriptor *type,
                           struct arena *arena, const ProtobufCMessage **out);

/* For a caller of the data API that ends calls early, and counts what that costs: from the next
 * call on the server may send no more than so many bytes of it ahead. */
void client_session_narrow(struct client_session *session, uint32_t window);

/* Bytes that have come since then, of answers to all calls. */
uint64_t client_session_received(const struct client_session *session);

/* Lets time pass. CANCELLED for SIGINT. */
status client_session_wait(struct client_session *session, int64_t us);

/* Ends the call or the wait that runs, and those to come, with CANCELLED. For a session with a loop
 * of its own; any thread, as long as nobody destroys it. */
void client_session_cancel(struct client_session *session);

/* Ends the call that runs, if one does, with CANCELLED, and none of those to come. As the last. */
void client_session_end_call(struct client_session *session);

/* Forgets the connection, so that the next call makes another. */
void client_session_disconnect(struct client_session *session);

#endif
