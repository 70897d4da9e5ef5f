/* The inside of the server side of gRPC, shared by
 *
 *     grpc_server.c      what all connections share: routes, limits
 *     grpc_connection.c  a connection's life, its bytes, nghttp2's callbacks
 *     grpc_request.c     from headers and DATA to a handler's call
 *     grpc_admission.c   bounds on the messages that wait for that
 *     grpc_fault.c       calls that are delayed or fail on purpose
 *     grpc_call.c        a call's life, and what its handler asks
 *     grpc_running.c     what runs, for looks at it
 *     grpc_answer.c      from messages and a status to HEADERS, DATA and trailers
 *
 * A call's life
 *
 *     receiving ──request whole──▶ held ──handler finished──▶ answered ──trailers sent──▶ free
 *         │                         │
 *         └──refused──▶ answered    └──stream closed──▶ held, cancelled ──finished──▶ free
 *
 * Invariants
 *  1. A call is freed when its stream is closed (`open` is false), its handler has finished (`held`
 *     is false), and no function of ours still needs it (`pins` is 0).
 *  2. `connection` is NULL once that has been destroyed; such a call is held.
 *  3. Everything here belongs to the loop's thread, save the atomics; other threads hand messages
 *     and the status over by way of `inbox`.
 *  4. A call that ends while a message is under way (`body_left`) sends no trailers: its stream is
 *     reset.
 *  5. `inbox` is not empty exactly from the first push until the task runs; on the loop's thread a
 *     call with an empty inbox has no task posted. */
#ifndef TRESTLE_WIRE_GRPC_PRIVATE_H
#define TRESTLE_WIRE_GRPC_PRIVATE_H

#include "base/limits.h"
#include "wire/call_steps.h"
#include "wire/grpc_server.h"
#include "wire/h2_guard.h"
#include "wire/h2_memory.h"
#include "wire/h2_output.h"
#include "wire/metadata.h"
#include "wire/request_room.h"

#include <stdatomic.h>

#define GRPC_SERVER_MAGIC     0x47535256u
#define GRPC_CONNECTION_MAGIC 0x47434f4eu
#define GRPC_CALL_MAGIC       0x4743414cu

/* --- grpc_server.c --- */

struct grpc_route {
    struct buffer path; /* "/google.bigtable.v2.Bigtable/MutateRow" */
    const struct grpc_service *service;
    const struct grpc_method *method;
    size_t index;
};

struct grpc_server {
    uint32_t magic;
    struct grpc_server_options options;
    size_t method_count;
    struct grpc_route *routes; /* open addressing; no method: a free slot */
    size_t slot_mask;          /* slots - 1, a power of two */
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *h2_options;
    atomic_size_t call_count;      /* calls that are held */
    struct request_room *room;     /* NULL: there is no bound */
    _Atomic(uint64_t) connections; /* that there have been: the next one's id */
};

const struct grpc_route *grpc_server_route(const struct grpc_server *server, bytes path);

/* --- calls --- */

struct grpc_spares {
    struct h2_memory memory;
    struct h2_batches batches;
    struct grpc_call *calls; /* by `next` */
    size_t call_count;
    unsigned ended; /* connections, since all was last freed */
};

struct grpc_header {
    nghttp2_rcbuf *name;
    nghttp2_rcbuf *value;
};

struct grpc_call {
    uint32_t magic;
    int32_t stream_id;
    struct grpc_server *server;
    struct grpc_spares *spares;
    struct grpc_connection *connection;
    uint64_t connection_id; /* its id, which is known afterwards, too */
    struct loop *loop;
    struct grpc_call *previous; /* in the connection's list of calls */
    struct grpc_call *next;
    unsigned pins;
    bool open;     /* the HTTP/2 stream is */
    bool held;     /* by its handler */
    bool was_held; /* the request was whole, or for a bidirectional method begun */
    bool admitted; /* its message may be buffered */
    bool has_message;
    bool told_cancelled; /* the handler has been */
    bool told_end; /* the handler of a bidirectional method has been told of the last message */
    bool is_to_be_told; /* on the connection's list `writable` */
    bool headers_sent;
    bool ended;    /* the status to send is decided, in `final` */
    bool reported; /* to the server's observer */

    /* The request. */
    const struct grpc_route *route;
    status refusal;    /* what is wrong with the headers; the first cause found */
    bool is_too_large; /* of its headers */
    bool is_post;
    bool is_grpc;             /* by its content type */
    bool is_http;             /* goes to the server's option `http`: `route` is NULL */
    bool takes_gzip;          /* the client has said so, in grpc-accept-encoding */
    bool answers_gzip;        /* we do, since it also sends gzip; fixed before the handler runs */
    bool tells_encodings;     /* the answer lists what we take: the client uses one */
    nghttp2_rcbuf *authority; /* NULL: none came */
    size_t header_count;
    struct grpc_header headers[LIMIT_METADATA_FIELDS];
    struct message_reader reader;
    size_t reserved;   /* bytes of the connection's budget for request messages */
    size_t promised;   /* bytes it waits for, while it is not admitted */
    size_t unconsumed; /* bytes received whose credit is held back until it is admitted */
    struct link admission_link;
    struct request_share share; /* of the server's room: `reserved`, once it is admitted */
    bool has_part;              /* of that room, while it is not admitted */
    bool waits_for_room;        /* it is asked for, or being granted: the call is pinned */
    struct request_waiter waiter;
    struct task granted;
    struct arena *arena;
    int64_t begun_us;
    uint64_t begun_turn;  /* the connection's */
    int64_t arriving_us;  /* until the request was whole, if it took more than one turn */
    unsigned idle_sweeps; /* since bytes last came or went */
    int64_t timeout_us;   /* INT64_MAX: none */
    struct timer deadline;
    struct grpc_fault fault; /* `after` counts down */
    struct timer delay;      /* set: the request is whole, and no handler has it yet */

    /* The answer. */
    unsigned http_code;        /* of one that is no gRPC call; 0: not said yet */
    const char *http_type;     /* of its content; NULL: not said */
    const char *http_caching;  /* NULL: it may not be kept */
    size_t output_limit;       /* above it the call is congested; fixed before the handler runs */
    bool wants_small_messages; /* the connection does; fixed before the handler runs */
    struct message_queue queue;
    size_t body_left; /* bytes of the message under way that have not been queued; 0: between two */
    const void *note; /* see grpc_call_set_note */
    bytes explanation;        /* see grpc_call_explain */
    const char *profile;      /* see grpc_call_set_profile */
    struct call_steps *steps; /* in the arena; NULL: not wanted */
    const struct metadata *shared_headers[GRPC_SHARED_MOST];
    size_t shared_count;
    const struct metadata *shared_trailers; /* NULL: none */
    struct metadata header_metadata;
    struct metadata trailer_metadata;
    status final;
    size_t request_bytes;
    size_t response_bytes;
    void *context;
    void (*on_writable)(void *context);
    void (*on_cancel)(void *context);
    void (*on_drain)(void *context); /* NULL: nobody wants to know, or it has been told */
    bool (*rescue)(void *context, struct grpc_call *call); /* NULL: nobody would, or it has been */
    void *rescue_context;
    struct link writable_link;

    /* Any thread. */
    _Atomic(unsigned char) step; /* enum call_step, for looks at what runs */
    _Atomic(int64_t) items;      /* see grpc_call_count */
    _Atomic(int64_t) seen;
    atomic_bool cancelled;
    atomic_bool lost;           /* a message could not be made: later ones must not be sent */
    atomic_bool wants_writable; /* grpc_call_is_congested has said yes */
    atomic_int_fast64_t congested_since_us; /* set before wants_writable is */
    atomic_int_fast64_t congested_us;       /* all of it so far, added up on the loop's thread */
    atomic_size_t unsent; /* bytes of messages that are not framed, those in the inbox too */
    _Atomic(struct link *) inbox; /* newest first: messages, and finish_mark */
    struct link finish_mark;
    status handed_over; /* with finish_mark */
    struct task task;
};

/* --- grpc_connection.c --- */

struct token_bucket {
    int64_t tokens;
    int64_t refilled_us;
};

struct grpc_connection {
    uint32_t magic;
    struct grpc_server *server;
    struct grpc_spares *spares;
    struct loop *loop;
    void *context;
    void (*output_ready)(void *context);
    void *peer; /* see grpc_connection_set_peer */
    uint64_t id;
    nghttp2_session *session;
    unsigned idle_sweeps; /* since output was last written, or begun */
    bool is_broken;       /* beyond repair: nothing more is read or written */
    bool is_deaf;         /* nothing more is read */
    bool is_signalled;    /* output_ready has been called since the last output */
    bool is_draining;
    bool wants_small_messages; /* see grpc_call_wants_small_messages */
    bool is_reserved;          /* see grpc_connection_set_reserved */
    struct grpc_call *calls;
    size_t call_count;        /* of `calls` */
    uint64_t turn;            /* goes up with each grpc_connection_receive */
    int64_t turn_us;          /* when its first call began; 0: none has */
    size_t buffered;          /* sum of the calls' `reserved` */
    struct list waiting;      /* calls to be admitted, by admission_link */
    struct list writable;     /* calls to be told, by writable_link */
    size_t header_bytes;      /* of the header block that is coming in */
    struct grpc_call *opened; /* by the last header block that came; NULL: none, or gone */
    const struct grpc_route *last_route; /* of the last request; NULL: none was found */
    struct token_bucket nuisances;
    struct timer sweep; /* looks for peers that stall */
    struct h2_guard guard;
    struct h2_output output;
};

/* Tells nghttp2 which callbacks to use: once a server. */
void grpc_connection_set_callbacks(nghttp2_session_callbacks *callbacks);

/* Says that there may be something to write. */
void grpc_connection_signal(struct grpc_connection *connection);

/* The peer did something that is only harmful if done often. */
void grpc_connection_count_nuisance(struct grpc_connection *connection);

/* --- grpc_call.c --- */

/* A connection has ended. What it left here to be kept lies in its midst, and holds pages that are
 * free otherwise: after some of them all is freed. */
void grpc_spares_count_ended(struct grpc_spares *spares);

/* NULL without memory. */
struct grpc_call *grpc_call_create(struct grpc_connection *connection, int32_t stream_id);

/* Keeps the call from being freed; unpin frees it if it is time. */
void grpc_call_pin(struct grpc_call *call);
void grpc_call_unpin(struct grpc_call *call);

/* The client waits for the answer no more: tells the handler. */
void grpc_call_cancel(struct grpc_call *call);
void grpc_call_drain(struct grpc_call *call); /* the client is asked to leave */

/* The stream has been closed, or the whole connection. Either may free the call. */
void grpc_call_close(struct grpc_call *call);
void grpc_call_detach(struct grpc_call *call);

/* Gives the call to its handler. */
void grpc_call_hold(struct grpc_call *call);

/* Bytes of the call's messages have been framed, or dropped. */
void grpc_call_count_sent(struct grpc_call *call, size_t size);

/* Tells the observer how the call ended, once. */
void grpc_call_report(struct grpc_call *call);

/* --- grpc_request.c --- */

/* As it comes in. */
struct request_field {
    bytes name, value;
    struct grpc_header kept; /* the same, to be kept */
};

/* One header field; `list_bytes` counts it and those before it. */
void grpc_request_header(struct grpc_call *call, const struct request_field *field,
                         size_t list_bytes);
void grpc_request_headers_end(struct grpc_call *call);
void grpc_request_data(struct grpc_call *call, bytes data);
void grpc_request_end(struct grpc_call *call);

/* Gives the whole request to its handler. */
void grpc_request_handle(struct grpc_call *call);

/* Tells a bidirectional method's handler, once, that no more messages come. */
void grpc_request_tell_end(struct grpc_call *call);

/* The request is not needed any more: frees its memory, and admits others that waited for it. */
void grpc_request_release(struct grpc_call *call);

/* --- grpc_admission.c --- */

/* Bytes that a call may send before its message is admitted; a longer one waits for room. */
size_t grpc_admission_unasked(const struct grpc_server *server);

/* A message of so many bytes is about to come. It has room, or waits for it (`admitted` is false),
 * or is refused. */
status grpc_admission_ask(struct grpc_call *call, size_t size);

/* The message, or a body of HTTP's, has grown. */
status grpc_admission_grow(struct grpc_call *call);

/* Returns credit for bytes that came on the stream, or keeps it back until the call is admitted. */
void grpc_admission_credit(struct grpc_call *call, size_t size);

/* Gives back what the call holds, or ends its waiting; more than once is fine. */
void grpc_admission_end(struct grpc_call *call);

/* RESOURCE_EXHAUSTED with these words and the advice to try again soon. */
status grpc_admission_refusal(const char *words);

/* --- grpc_fault.c --- */

/* Asks the server's `inject` about a whole request, and gives it to its handler, now or later, or
 * fails it. */
void grpc_fault_begin(struct grpc_call *call);

/* A message of an answer that is to be cut short has been queued. */
void grpc_fault_count_message(struct grpc_call *call);

/* --- grpc_answer.c --- */

void grpc_answer_message(struct grpc_call *call, struct message *message);

/* Takes the status. The first one given is what the client sees. */
void grpc_answer_end(struct grpc_call *call, status s);

/* Answers a request that is not gRPC at all. */
void grpc_answer_http_error(struct grpc_call *call, const char *http_status);

/* nghttp2's callback that asks for more of the answer. */
ssize_t grpc_answer_read(nghttp2_session *session, int32_t stream_id, uint8_t *to, size_t length,
                         uint32_t *flags, nghttp2_data_source *source, void *user_data);

#endif
