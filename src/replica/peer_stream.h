/* A call that is answered for long, by a thread of its own: which reads, sends, and rests where
 * there is nothing to send, or where the client does not keep up.
 *
 *     begin ──► thread: `run` sends … rests … sends ──► its last act: the loop ends the call
 *                          ▲
 *        a wake, room, the client's end, the server's
 *
 * Invariant: the thread alone sends, and the call ends on its loop after the thread has posted that
 * as its last act. So no callback comes to a stream that has gone. */
#ifndef TRESTLE_REPLICA_PEER_STREAM_H
#define TRESTLE_REPLICA_PEER_STREAM_H

#include "os/loop.h"
#include "replica/link_rate.h"
#include "wire/grpc.h"

#include <pthread.h>

/* A member of what the thread works on. All but the first three are private. */
struct peer_stream {
    struct grpc_call *call;
    const char *name;                          /* the thread's */
    status (*run)(struct peer_stream *stream); /* what the call ends with */
    void (*ended)(struct peer_stream *stream); /* frees it; just before the call ends */
    pthread_t thread;
    struct task end;
    status result;
    int64_t rested_us; /* in all: it was not slow for that */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_woken;
    bool is_leaving; /* the server wants its clients to go */
};

/* The call is the stream's from here on; after a failure it is not, and `ended` is not called. On
 * the call's loop. */
status peer_stream_begin(struct peer_stream *stream);

/* --- on its thread --- */

/* Whether the client still waits, and may. */
bool peer_stream_goes_on(struct peer_stream *stream);
/* Until it is woken, or that has passed. */
void peer_stream_rest(struct peer_stream *stream, int64_t us);
/* Until the client has taken what there is, or has gone. */
void peer_stream_await_client(struct peer_stream *stream);

/* Until something may go to the cluster of that number, or the client has gone. */
void peer_stream_await_rate(struct peer_stream *stream, struct link_rate *rate, unsigned number);

/* Ends its rest, or the next one. Any thread. */
void peer_stream_wake(struct peer_stream *stream);

#endif
