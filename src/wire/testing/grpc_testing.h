/* What the tests of the gRPC server share: a server in memory, on a clock that the test turns, with
 * a service whose handlers do what the request says.
 *
 * The connection only ever runs on its loop's thread, inside of loop_run: testing_turn. */
#ifndef TRESTLE_WIRE_TESTING_GRPC_TESTING_H
#define TRESTLE_WIRE_TESTING_GRPC_TESTING_H

#include "base/testing/testing.h"
#include "wire/grpc_client.h"
#include "wire/grpc_server.h"

enum { TESTING_KEPT = 64 };

struct testing {
    struct clock clock; /* first: the clock finds the rest */
    int64_t now_us;
    struct loop *loop;
    struct task task;
    struct grpc_server_options options;
    struct grpc_service service;
    const struct grpc_service *more[3]; /* services of the test's own; may be NULL */
    struct grpc_server *server;
    struct grpc_spares *spares;
    struct grpc_connection *connection;
    int signals; /* output_ready calls */

    struct buffer to_server; /* received in pieces of `piece` bytes */
    struct buffer from_server;
    size_t piece;    /* 0: all at once */
    bool is_stalled; /* the server is not asked for output */
    bool is_unread;  /* it is asked, but the socket takes nothing */
    int writes;      /* batches that the server gave */
    size_t sent;     /* bytes of it that a client of ours has taken */

    /* What the handlers saw. */
    struct grpc_call *held;               /* by the Hold method, until the test finishes it */
    struct grpc_call *kept[TESTING_KEPT]; /* by the Keep method, likewise */
    int kept_count;
    int handled;     /* handlers begun */
    int cancelled;   /* on_cancel calls */
    size_t to_flood; /* bytes the Flood method has still to send */
    int flood_pauses;
    struct buffer header; /* of "x-test-bin", as the Echo method saw it */
    struct grpc_call_record last_record;
    int records;
};

/* Creates everything but the client; `options` may have been changed before. */
void testing_start(struct testing *t);
void testing_stop(struct testing *t);

/* One turn of the loop: the server receives, handlers run, timers, what was posted, and output is
 * appended to from_server. */
void testing_turn(struct testing *t);
void testing_advance(struct testing *t, int64_t us);

/* A client of our own on the same connection. */
struct outcome {
    int messages;
    size_t bytes;
    struct buffer last; /* message */
    bool ended;
    enum status_code code;
    struct buffer words;
    struct buffer details; /* grpc-status-details-bin as it came */
    struct buffer header;  /* x-answer, x-trailer */
    struct buffer trailer;
};

struct testing_client {
    struct testing *t;
    struct grpc_client *client;
};

void testing_client_start(struct testing_client *c, struct testing *t);
void testing_client_stop(struct testing_client *c);

/* Hands the client's output to the server, which sees it in its next turn; whether there was any.
 */
bool testing_client_flush(struct testing_client *c);

/* Moves bytes both ways until neither side has more. */
void testing_pump(struct testing_client *c);

/* Options for a call of a method of the test's service, to be changed at will. */
struct client_call_options testing_options(const char *path, struct outcome *outcome);
struct client_call *testing_call(struct testing_client *c,
                                 const struct client_call_options *options, bytes request);
void outcome_free(struct outcome *outcome);

#endif
