/* The server side of gRPC over HTTP/2, without I/O: bytes in, bytes out.
 *
 * A `struct grpc_server` is what all connections share: the methods that exist, the limits, and the
 * callbacks for each call. It never changes, so any thread may use it. A connection belongs to one
 * loop. The owner of the socket moves the bytes:
 *
 *     grpc_connection_receive(connection, input)          what was read
 *     n = grpc_connection_output(connection, vectors, …)  what to write now
 *     grpc_connection_sent(connection, written)           what the socket took of it
 *
 * `output_ready` says when it is time to ask: after receive, when a handler has answered, when a
 * timer fired. It comes at most once until the next grpc_connection_output, so that its owner can
 * defer one write to the end of the loop's turn and send all that has gathered.
 *
 * The owner of the socket closes it, and destroys the connection, when reading finds the end, when
 * writing fails, or when grpc_connection_is_finished says so (look after each write). */
#ifndef TRESTLE_WIRE_GRPC_SERVER_H
#define TRESTLE_WIRE_GRPC_SERVER_H

#include "os/loop.h"
#include "wire/call_steps.h"
#include "wire/grpc.h"

#include <stdatomic.h>
#include <sys/uio.h>

struct grpc_server;
struct grpc_spares;
struct grpc_connection;
struct request_room;

/* One call that has ended, for metrics and access logs. */
struct grpc_call_record {
    const struct grpc_service *service; /* NULL if the path named none of ours */
    const struct grpc_method *method;   /* NULL likewise */
    size_t method_index; /* among all methods, in the order they were given; their count if NULL */
    enum status_code code;
    const status *end;      /* with its words; NULL: it has been given none */
    int64_t duration_us;    /* from the headers' arrival to the handler's finish */
    int64_t client_us;      /* of these, while the request was coming in or answers were not read */
    size_t request_bytes;   /* of messages, inflated */
    size_t response_bytes;  /* of messages, as sent */
    const void *note;       /* grpc_call_set_note; lives in the call's arena, maybe */
    struct grpc_call *call; /* for its headers and its arena */
    void *peer;             /* grpc_connection_set_peer; NULL if the connection has gone before */
    bytes request;          /* the message, or what came of it; empty if it is bidirectional */
    int64_t items;          /* grpc_call_count */
    int64_t seen;
    bytes explanation;              /* grpc_call_explain */
    const char *profile;            /* grpc_call_set_profile; NULL: not said */
    const struct call_steps *steps; /* NULL: not wanted */
};

/* The time that the server is answerable for, in microseconds. */
static inline int64_t grpc_call_record_served_us(const struct grpc_call_record *record)
{
    return record->duration_us - record->client_us;
}

/* A fault that a call is made to suffer, for tests of clients. All zeroes: none. */
struct grpc_fault {
    int64_t delay_us;      /* before its handler gets the message */
    enum status_code code; /* not STATUS_OK: it ends with this … */
    uint32_t after;        /* … after so many messages of the answer */
    const char *words;     /* of that status: a literal */
};

struct grpc_server_options {
    size_t max_message_size;         /* bytes of one request message, inflated */
    size_t max_buffered_requests;    /* bytes of all request messages of one connection */
    struct request_room *room;       /* of all long ones; outlives the server. NULL: any */
    const atomic_bool *is_short;     /* of memory: calls for data are RESOURCE_EXHAUSTED; or NULL */
    uint32_t max_concurrent_streams; /* of one connection */
    int64_t stall_timeout_us; /* a peer that neither reads nor sends for so long is dropped */
    int64_t slow_us;          /* see grpc_call_is_slow; INT64_MAX: no call is */
    bool wants_steps;         /* calls are told by their steps, too: see call_steps.h */

    /* Asked on the loop's thread before a handler gets a message: what is not OK ends the call.
     * `peer` is what grpc_connection_set_peer was given. NULL: all are admitted. */
    status (*admit)(void *context, void *peer, struct grpc_call *call, size_t method_index,
                    bytes request);

    /* Asked on the loop's thread about each call that was admitted, except those of bidirectional
     * methods. NULL: all are left alone. */
    struct grpc_fault (*inject)(void *context, size_t method_index, bytes request);

    /* Asked on the loop's thread about each call, except those of bidirectional methods, when its
     * handler would get the message: true, the call is taken, and answered as a handler would.
     * NULL: none is. */
    bool (*take)(void *context, struct grpc_call *call, const struct grpc_service *service,
                 const struct grpc_method *method, bytes request);

    /* Gets requests by HTTP/2 that are not gRPC's, and name no method of it, on the loop's thread:
     * it answers them as a call, see grpc_call_answer_http. `body` has data == NULL if it is larger
     * than LIMIT_HTTP_BODY_BYTES. They are neither admitted nor reported. NULL: they are refused.
     */
    void (*http)(void *context, void *peer, struct grpc_call *call, bytes body);

    /* From grpc_headers_create: every answer has them. They outlive every answer. NULL: none. */
    const struct metadata *headers;

    /* Called on the loop's thread of each call when it has ended; may be NULL. */
    void (*on_call_end)(void *context, const struct grpc_call_record *record);
    void *context;
};

/* The defaults of the settings, the values of base/limits.h, and no observer. */
void grpc_server_options_init(struct grpc_server_options *options);

/* The services (and the array's entries' own arrays) must live as long as the server; the array of
 * pointers is copied. INVALID_ARGUMENT if two methods have one path. */
status grpc_server_create(const struct grpc_server_options *options,
                          const struct grpc_service *const *services, size_t service_count,
                          struct grpc_server **out);

/* When no connection is left and grpc_server_call_count is 0; NULL is fine. */
void grpc_server_destroy(struct grpc_server *server);

/* Methods of all services: the range of grpc_call_record.method_index. */
size_t grpc_server_method_count(const struct grpc_server *server);

/* Calls whose handler has not finished, those of closed connections included. Any thread. */
size_t grpc_server_call_count(const struct grpc_server *server);

/* --- a connection; all on its loop's thread --- */

/* What the connections of one loop keep for their next calls. Destroyed when no connection is left
 * and grpc_server_call_count is 0; NULL is fine. */
status grpc_spares_create(struct grpc_spares **out);
void grpc_spares_destroy(struct grpc_spares *spares);

/* `output_ready` is not called from within create, output or destroy, and must not call any of them
 * itself. After create there is output to fetch (the settings). */
status grpc_connection_create(struct grpc_server *server, struct loop *loop,
                              struct grpc_spares *spares, void *context,
                              void (*output_ready)(void *context), struct grpc_connection **out);

/* Who is at the other end, for `admit`; at first NULL. */
void grpc_connection_set_peer(struct grpc_connection *connection, void *peer);

/* The connection is one of the few beyond the most that there may be: calls for data are
 * RESOURCE_EXHAUSTED, and with the first of them the client is asked to leave. Before any call. */
void grpc_connection_set_reserved(struct grpc_connection *connection);

/* See grpc_call_wants_small_messages; before any call. */
void grpc_connection_want_small_messages(struct grpc_connection *connection);

/* Calls of the connection whose handler has not finished are cancelled and live on until it has. */
void grpc_connection_destroy(struct grpc_connection *connection);

/* Takes what was read from the socket, any number of bytes; nothing of `input` is kept. Handlers
 * and their callbacks run inside. */
void grpc_connection_receive(struct grpc_connection *connection, bytes input);

/* Fills at most `capacity` (at least 1) vectors with what to write and returns their count; 0 if
 * there is nothing. The memory stays valid until grpc_connection_sent or destroy. Asking again
 * before it was sent gives the same bytes. */
size_t grpc_connection_output(struct grpc_connection *connection, struct iovec *vectors,
                              size_t capacity);

/* The first `size` bytes of the output have been written. There may be more: ask until there is
 * nothing, or come back when the socket has room; no output_ready reminds of it. */
void grpc_connection_sent(struct grpc_connection *connection, size_t size);

/* --- what runs; on the connection's loop --- */

/* A call whose request has been routed to a method and whose stream is open. */
struct grpc_running {
    const struct grpc_service *service;
    const struct grpc_method *method;
    uint64_t connection_id; /* these two are no other's in this process */
    int32_t stream_id;
    struct grpc_call *call;
    void *peer;
    const void *note;
    bytes request;    /* as far as it has come */
    int64_t begun_us; /* clock_steady_us */
    int64_t deadline_us;
    size_t request_bytes;
    size_t response_bytes;
    int64_t items;
    int64_t seen;
    const char *profile;
    enum call_step step;
    bool is_cancelled;
};

/* The latest first. `each` must not end calls. */
void grpc_connection_visit(const struct grpc_connection *connection, void *context,
                           void (*each)(void *context, const struct grpc_running *call));

/* Ends the call of that stream with the status, which is taken, as if its deadline had passed:
 * its handler is told, and what it has begun to write is written. False if there is none, or it
 * has been answered. */
bool grpc_connection_end_call(struct grpc_connection *connection, int32_t stream_id, status s);

uint64_t grpc_connection_id(const struct grpc_connection *connection);

/* Lets no new call begin (GOAWAY); those that run end in peace, then the connection is finished. */
void grpc_connection_drain(struct grpc_connection *connection);

/* Whether it has no call open: it may be closed for being idle, by way of drain. */
bool grpc_connection_is_idle(const struct grpc_connection *connection);

/* True when no more will come of it: drained, closed by the peer, or broken by it. */
bool grpc_connection_is_finished(const struct grpc_connection *connection);

#endif
