/* HTTP requests to a server, on an event loop: libcurl's multi interface (libcurl, "multi_socket")
 * with its sockets watched and its timer kept by the loop. So a caller that waits for an answer
 * runs the loop, and what else lives on it goes on meanwhile. No threads except libcurl's
 * resolver's.
 *
 * http_proxy, https_proxy and no_proxy are obeyed, as libcurl does. One thread. */
#ifndef TRESTLE_AWS_HTTP_H
#define TRESTLE_AWS_HTTP_H

#include "aws/signature.h"
#include "os/loop.h"

struct http_client;

/* `ca`: a PEM file of authorities that servers may have; NULL: the system's. UNAVAILABLE without
 * memory. */
status http_client_create(struct loop *loop, const char *ca, struct http_client **out);
/* All calls have ended or are cancelled; NULL is fine. */
void http_client_destroy(struct http_client *client);

struct http_request {
    const char *url;
    const struct aws_header *headers; /* `host` is made of the URL */
    size_t header_count;
    bytes body; /* of the POST; lives until the call has ended */
    int64_t timeout_us;
    size_t answer_most; /* bytes; more is RESOURCE_EXHAUSTED, and not kept */
};

/* A call and its answer. All zeroes is fine. `done` is the caller's; it may begin the call again.
 */
struct http_call {
    void (*done)(struct http_call *call);
    status outcome; /* owned. UNAVAILABLE: there is no answer, or not all of it */
    unsigned http_status;
    struct buffer answer;
    int64_t server_us;             /* when the server says that it is; 0: it does not */
    struct http_call_state *state; /* NULL: not under way */
};

/* The call must not be under way; what it had is forgotten. `done` is called later, from the loop,
 * if this succeeds. */
status http_post(struct http_client *client, struct http_call *call,
                 const struct http_request *request);

/* Ends it without `done`, if it is under way, and frees what it has. */
void http_call_clear(struct http_call *call);

#endif
