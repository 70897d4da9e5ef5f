/* See tracer.h.
 *
 * Invariants
 *  1. `ring`, `first`, `count` and `is_ending` are the lock's.
 *  2. The tracer's thread holds the lock while it takes a batch out of the ring, not while it
 *     encodes or sends: a thread that adds a span waits for a copy at most.
 *  3. A span that was added is sent, or counted as dropped. */
#include "introspect/tracer.h"

#include "base/limits.h"
#include "introspect/span.h"
#include "os/thread.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    BATCH_MOST = 512,
    GATHER_US = 1000 * 1000, /* how long a span waits for company */
    SEND_TIMEOUT_US = 5 * 1000 * 1000,
    ATTEMPTS = 3,
    RETRY_AFTER_US = 1000 * 1000, /* and twice as long each time */
    FLUSH_US = 3 * 1000 * 1000,   /* of all that waits, at the end */
    ARENA_BYTES = 16 << 20,
    COMPLAIN_EVERY_US = 60 * 1000 * 1000,
};

struct tracer {
    struct tracer_options options;
    atomic_uint_fast64_t requests; /* without a parent, so far */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct span *ring; /* LIMIT_SPANS_QUEUED */
    size_t first;
    size_t count;
    bool is_ending;

    /* The thread's. */
    struct span *batch; /* BATCH_MOST */
    struct arena *arena;
    struct buffer encoded;
    int64_t ends_us;       /* steady clock, when no more is sent; 0: it goes on */
    int64_t complained_us; /* steady clock; 0: never */
};

/* --- waiting --- */

/* With the lock held: until the time has passed, a batch is full, or the end. */
static void wait_for_batch(struct tracer *tracer, int64_t us)
{
    const struct timespec until = thread_time_in(us);
    int error = 0;
    while (error == 0 && !tracer->is_ending && tracer->count < BATCH_MOST)
        error = pthread_cond_timedwait(&tracer->wake, &tracer->lock, &until);
}

/* Before a batch is sent again; false if there is an end to come to. */
static bool pause_for(struct tracer *tracer, int64_t us)
{
    const struct timespec until = thread_time_in(us);
    int error = 0;
    pthread_mutex_lock(&tracer->lock);
    while (error == 0 && !tracer->is_ending)
        error = pthread_cond_timedwait(&tracer->wake, &tracer->lock, &until);
    bool goes_on = !tracer->is_ending;
    pthread_mutex_unlock(&tracer->lock);
    return goes_on;
}

/* --- sending --- */

static int64_t now_us(void)
{
    return clock_steady_us(clock_system());
}

/* How long a request may take. */
static int64_t time_left(const struct tracer *tracer)
{
    if (tracer->ends_us == 0)
        return SEND_TIMEOUT_US;
    int64_t left = tracer->ends_us - now_us();
    return left < SEND_TIMEOUT_US ? left : SEND_TIMEOUT_US;
}

static status send_once(struct tracer *tracer)
{
    int64_t left_us = time_left(tracer);
    if (left_us <= 0)
        return status_make(STATUS_DEADLINE_EXCEEDED, "the server ends");
    return tracer->options.send(tracer->options.context, buffer_bytes(&tracer->encoded), left_us);
}

static status send_batch(struct tracer *tracer)
{
    int64_t pause_us = RETRY_AFTER_US;
    status s = send_once(tracer);
    for (int i = 1; i < ATTEMPTS && s.code == STATUS_UNAVAILABLE; i++) {
        if (!pause_for(tracer, pause_us))
            break;
        status_free(s);
        s = send_once(tracer);
        pause_us *= 2;
    }
    return s;
}

/* Complains once a minute, which is enough. */
static void complain(struct tracer *tracer, status s, size_t count)
{
    int64_t now = now_us();
    if (tracer->complained_us != 0 && now - tracer->complained_us < COMPLAIN_EVERY_US)
        return;
    tracer->complained_us = now;
    log_warn(tracer->options.log, "spans are lost: the collector did not take them",
             LOG_INT("spans", count), LOG_STR("error", status_message(s)));
}

static size_t count_spans(const struct span *spans, size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += span_count(&spans[i]);
    return total;
}

static void export_batch(struct tracer *tracer, size_t count)
{
    size_t spans = count_spans(tracer->batch, count);
    arena_reset(tracer->arena);
    buffer_clear(&tracer->encoded);
    status s = spans_encode(tracer->batch, count, tracer->options.version, tracer->arena,
                            &tracer->encoded);
    if (status_is_ok(s))
        s = send_batch(tracer);
    enum metric fate = METRIC_trace_spans_sent_total;
    if (!status_is_ok(s)) {
        fate = METRIC_trace_spans_dropped_total;
        complain(tracer, s, spans);
    }
    metrics_add(tracer->options.metrics, fate, (int64_t)spans);
    status_free(s);
}

/* --- the thread --- */

/* With the lock held. */
static size_t take_batch(struct tracer *tracer)
{
    size_t taken = 0;
    for (; taken < BATCH_MOST && tracer->count > 0; taken++) {
        tracer->batch[taken] = tracer->ring[tracer->first];
        tracer->first = (tracer->first + 1) % LIMIT_SPANS_QUEUED;
        tracer->count--;
    }
    return taken;
}

/* 0 when all is over. */
static size_t next_batch(struct tracer *tracer)
{
    pthread_mutex_lock(&tracer->lock);
    size_t count = 0;
    while (count == 0 && !(tracer->is_ending && tracer->count == 0)) {
        wait_for_batch(tracer, GATHER_US);
        count = take_batch(tracer);
    }
    if (tracer->is_ending && tracer->ends_us == 0)
        tracer->ends_us = now_us() + FLUSH_US;
    pthread_mutex_unlock(&tracer->lock);
    return count;
}

static void *run(void *argument)
{
    struct tracer *tracer = argument;
    size_t count;
    while ((count = next_batch(tracer)) > 0)
        export_batch(tracer, count);
    return NULL;
}

/* --- life --- */

static void free_tracer(struct tracer *tracer)
{
    pthread_cond_destroy(&tracer->wake);
    pthread_mutex_destroy(&tracer->lock);
    arena_destroy(tracer->arena);
    buffer_free(&tracer->encoded);
    free(tracer->batch);
    free(tracer->ring);
    free(tracer);
}

static status start(struct tracer *tracer)
{
    tracer->ring = malloc(LIMIT_SPANS_QUEUED * sizeof *tracer->ring);
    tracer->batch = malloc(BATCH_MOST * sizeof *tracer->batch);
    tracer->arena = arena_create(ARENA_BYTES);
    if (tracer->ring == NULL || tracer->batch == NULL || tracer->arena == NULL)
        return status_out_of_memory();
    return thread_start(&tracer->thread, "traces", run, tracer);
}

status tracer_create(const struct tracer_options *options, struct tracer **out)
{
    *out = NULL;
    struct tracer *tracer = calloc(1, sizeof *tracer);
    if (tracer == NULL)
        return status_out_of_memory();
    tracer->options = *options;
    pthread_mutex_init(&tracer->lock, NULL);
    thread_init_steady_wake(&tracer->wake);
    status s = start(tracer);
    if (!status_is_ok(s)) {
        free_tracer(tracer);
        return s;
    }
    *out = tracer;
    return status_ok();
}

void tracer_destroy(struct tracer *tracer)
{
    if (tracer == NULL)
        return;
    pthread_mutex_lock(&tracer->lock);
    tracer->is_ending = true;
    pthread_cond_signal(&tracer->wake);
    pthread_mutex_unlock(&tracer->lock);
    pthread_join(tracer->thread, NULL);
    free_tracer(tracer);
}

/* --- requests --- */

/* The client's context; without one that of a new trace, of which one in so many is sampled. */
static void find_parent(struct tracer *tracer, const struct grpc_call_record *record,
                        struct trace_context *out)
{
    uint64_t one_in = tracer->options.one_in;
    bytes header;
    if (grpc_call_header(record->call, "traceparent", &header) && trace_context_parse(header, out))
        return;
    *out = (struct trace_context){.is_sampled = false};
    if (one_in > 0)
        out->is_sampled =
            atomic_fetch_add_explicit(&tracer->requests, 1, memory_order_relaxed) % one_in == 0;
}

static bool is_new(const struct trace_context *context)
{
    static const uint8_t none[SPAN_ID_SIZE];
    return memcmp(context->span_id, none, sizeof none) == 0;
}

static void add(struct tracer *tracer, const struct span *span)
{
    pthread_mutex_lock(&tracer->lock);
    bool fits = tracer->count < LIMIT_SPANS_QUEUED;
    if (fits)
        tracer->ring[(tracer->first + tracer->count++) % LIMIT_SPANS_QUEUED] = *span;
    bool is_full_batch = tracer->count == BATCH_MOST;
    pthread_mutex_unlock(&tracer->lock);
    if (is_full_batch)
        pthread_cond_signal(&tracer->wake);
    if (!fits)
        metrics_add(tracer->options.metrics, METRIC_trace_spans_dropped_total,
                    (int64_t)span_count(span));
}

void tracer_add(struct tracer *tracer, const struct grpc_call_record *record, bool is_slow)
{
    struct trace_context parent;
    struct span span;
    find_parent(tracer, record, &parent);
    if (!parent.is_sampled && !is_slow)
        return;
    if (is_new(&parent))
        arc4random_buf(parent.trace_id, sizeof parent.trace_id);
    span_make(record, &parent, is_slow, clock_wall_us(tracer->options.clock), &span);
    add(tracer, &span);
}
