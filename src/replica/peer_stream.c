/* See peer_stream.h. */
#include "replica/peer_stream.h"

#include "base/check.h"
#include "os/thread.h"

enum { CONGESTED_US = 1000 * 1000 /* until one looks again, should a callback be missed */ };

/* --- rest --- */

void peer_stream_wake(struct peer_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->is_woken = true;
    pthread_cond_signal(&stream->wake);
    pthread_mutex_unlock(&stream->lock);
}

static void woken(void *context)
{
    peer_stream_wake(context);
}

static void told_to_leave(void *context)
{
    struct peer_stream *stream = context;
    pthread_mutex_lock(&stream->lock);
    stream->is_leaving = true;
    pthread_mutex_unlock(&stream->lock);
    peer_stream_wake(stream);
}

void peer_stream_rest(struct peer_stream *stream, int64_t us)
{
    struct timespec until = thread_time_in(us);
    int64_t from_ns = thread_steady_ns();
    pthread_mutex_lock(&stream->lock);
    while (!stream->is_woken &&
           pthread_cond_clockwait(&stream->wake, &stream->lock, CLOCK_MONOTONIC, &until) == 0)
        ;
    stream->is_woken = false;
    pthread_mutex_unlock(&stream->lock);
    stream->rested_us += (thread_steady_ns() - from_ns) / 1000;
}

bool peer_stream_goes_on(struct peer_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    bool is_leaving = stream->is_leaving;
    pthread_mutex_unlock(&stream->lock);
    return !is_leaving && !grpc_call_is_cancelled(stream->call);
}

void peer_stream_await_client(struct peer_stream *stream)
{
    while (grpc_call_is_congested(stream->call) && peer_stream_goes_on(stream))
        peer_stream_rest(stream, CONGESTED_US);
}

void peer_stream_await_rate(struct peer_stream *stream, struct link_rate *rate, unsigned number)
{
    int64_t wait_us;
    while ((wait_us = link_rate_wait_us(rate, number)) > 0 && peer_stream_goes_on(stream))
        peer_stream_rest(stream, wait_us < CONGESTED_US ? wait_us : CONGESTED_US);
}

/* --- the thread --- */

static void *run(void *argument)
{
    struct peer_stream *stream = argument;
    stream->result = stream->run(stream);
    loop_post(grpc_call_loop(stream->call), &stream->end);
    return NULL;
}

static void release(struct peer_stream *stream)
{
    pthread_mutex_destroy(&stream->lock);
    pthread_cond_destroy(&stream->wake);
}

static void end(struct task *task)
{
    struct peer_stream *stream = LIST_ENTRY(&task->link, struct peer_stream, end.link);
    struct grpc_call *call = stream->call;
    status result = stream->result;
    pthread_join(stream->thread, NULL); /* it has nothing left to do */
    release(stream);
    grpc_call_rested(call, stream->rested_us);
    stream->ended(stream);
    grpc_call_finish(call, result);
}

status peer_stream_begin(struct peer_stream *stream)
{
    DCHECK(loop_is_current(grpc_call_loop(stream->call)));
    stream->end.run = end;
    pthread_mutex_init(&stream->lock, NULL);
    thread_init_steady_wake(&stream->wake);
    grpc_call_set_callbacks(stream->call, stream, woken, woken);
    grpc_call_set_on_drain(stream->call, told_to_leave);
    status s = thread_start(&stream->thread, stream->name, run, stream);
    if (status_is_ok(s))
        return s;
    grpc_call_set_callbacks(stream->call, NULL, NULL, NULL);
    grpc_call_set_on_drain(stream->call, NULL);
    release(stream);
    return s;
}
