/* The parts of REST (rest.h):
 *
 *     rest.c          requests, calls, answers
 *     rest_request.c  from a request to its message
 *     rest_error.c    from a status to its HTTP status and envelope
 *     rest_link.c     the connection inside the process */
#ifndef TRESTLE_WIRE_REST_PRIVATE_H
#define TRESTLE_WIRE_REST_PRIVATE_H

#include "wire/grpc_client.h"
#include "wire/json.h"
#include "wire/rest.h"

/* --- rest_request.c --- */

enum { REST_MOST_METADATA = 24 };

/* What a request asks for. All zeroes is none yet. */
struct rest_request {
    const struct http_route *route;
    struct buffer message; /* the call's request message, begun for gRPC */
    bool is_binary;        /* request and answer, and errors, are protobuf */
    struct json_style style;
    struct json_fields *fields; /* that `style` points to; NULL: none */
    size_t metadata_count;
    struct client_metadata metadata[REST_MOST_METADATA];
    struct buffer metadata_text; /* what `metadata` points into */
};

/* Fills it in. If it fails, `style` says how the failure is to be written. */
status rest_request_read(const struct http_router *router, const struct http_request *request,
                         struct rest_request *out);
void rest_request_free(struct rest_request *request);

/* --- rest_error.c --- */

unsigned rest_http_status(enum status_code code);

/* Appends the envelope. `details` is a serialised google.rpc.Status, or empty. */
void rest_write_error(unsigned http_status, status s, bytes details, const struct json_style *style,
                      struct buffer *out);

/* The same as a serialised google.rpc.Status. */
void rest_write_status(status s, bytes details, struct buffer *out);

/* --- rest_link.c --- */

struct rest_link;

status rest_link_create(struct grpc_server *grpc, void *peer, struct loop *loop,
                        struct grpc_spares *spares, struct rest_link **out);
void rest_link_destroy(struct rest_link *link); /* ends its calls with UNAVAILABLE; NULL is fine */
struct grpc_client *rest_link_client(struct rest_link *link);
struct grpc_connection *rest_link_connection(struct rest_link *link);
bool rest_link_is_broken(const struct rest_link *link);

#endif
