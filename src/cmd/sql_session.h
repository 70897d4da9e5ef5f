/* Calls to a Bigtable endpoint, one at a time: each runs the event loop until it has ended. */
#ifndef TRESTLE_CMD_SQL_SESSION_H
#define TRESTLE_CMD_SQL_SESSION_H

#include "cmd/endpoint.h"
#include "wire/proto.h"

struct shell_session;

struct shell_session_options {
    struct endpoint_options endpoint;
    const char *project;
    const char *instance;
    const char *app_profile; /* "": none */
    bool is_interruptible;   /* SIGINT, which is blocked in the process then, cancels calls */
};

/* Does not connect yet. The options' strings must outlive the session. INVALID_ARGUMENT. */
status shell_session_create(const struct shell_session_options *options,
                            struct shell_session **out);
void shell_session_destroy(struct shell_session *session); /* NULL is fine */

/* The server's HOST:PORT; "projects/p/instances/i"; the app profile. */
const char *shell_session_address(const struct shell_session *session);
const char *shell_session_instance(const struct shell_session *session);
const char *shell_session_app_profile(const struct shell_session *session);

struct shell_call {
    const char *path;
    const ProtobufCMessage *request;
    const char *explain; /* the header trestle-explain; NULL: none */
    int64_t timeout_us;  /* INT64_MAX: none */
    /* For each message of the answer. A failure cancels the call, and is what it ends with. */
    status (*on_message)(void *context, bytes message);
    void *context;
};

/* Makes the call, on a new connection if there is none. UNAVAILABLE says why, if that is known;
 * CANCELLED also for SIGINT. `*is_expired`, if wanted: whether the server says that the prepared
 * query has expired. */
status shell_session_stream(struct shell_session *session, const struct shell_call *call,
                            bool *is_expired);

/* A call with one answer of that type, decoded into the arena. Made again on a new connection if
 * the old one turned out to be lost. */
status shell_session_call(struct shell_session *session, const char *path, const char *explain,
                          const ProtobufCMessage *request, const ProtobufCMessageDescriptor *type,
                          struct arena *arena, const ProtobufCMessage **out);

/* Lets time pass. CANCELLED for SIGINT. */
status shell_session_wait(struct shell_session *session, int64_t us);

/* Forgets the connection, so that the next call makes another. */
void shell_session_disconnect(struct shell_session *session);

#endif
