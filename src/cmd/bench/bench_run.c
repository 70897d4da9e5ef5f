/* The closed loop, and the paced one.
 *
 * A caller has at most one call open. When it ends, the caller looks whether it got what it asked
 * for and makes the next, until the run is over; the run ends with the last caller's call.
 *
 * With a rate, request n is due n / rate seconds after the beginning. Callers without a call are
 * idle until the next request is due. If none is idle then, the request is late, and its latency
 * counts from when it was due: a server that answers nothing for a second does not get away with
 * one slow request. */
#include "client/endpoint.h"
#include "cmd/bench/bench.h"

#include <stdlib.h>

enum {
    ARENA_LIMIT = 1 << 30,
    CALL_TIMEOUT_US = 300 * 1000 * 1000, /* an emulator looks at every entity for a query */
    US_PER_S = 1000000,
};

struct bench_client {
    struct loop *loop;
    struct endpoint endpoint;
    size_t link_count;
    struct grpc_link *links[];
};

/* --- connections --- */

static status connect_all(struct bench_client *client, const struct bench_options *options)
{
    const struct endpoint_options server = {.address = options->endpoint,
                                            .ca = options->ca,
                                            .token_file = options->token,
                                            .tls = options->ca != NULL};
    TRY(endpoint_open(&server, &client->endpoint));
    TRY(loop_create(clock_system(), &client->loop));
    for (; client->link_count < options->connections; client->link_count++)
        TRY(grpc_link_create(client->loop, client->endpoint.addresses,
                             client->endpoint.address_count, &client->endpoint.identity,
                             &client->links[client->link_count]));
    return status_ok();
}

status bench_client_create(const struct bench_options *options, struct bench_client **out)
{
    *out = calloc(1, sizeof **out + options->connections * sizeof(*out)->links[0]);
    return *out == NULL ? status_out_of_memory() : connect_all(*out, options);
}

void bench_client_destroy(struct bench_client *client)
{
    if (client == NULL)
        return;
    for (size_t i = 0; i < client->link_count; i++)
        grpc_link_destroy(client->links[i]);
    loop_destroy(client->loop);
    endpoint_close(&client->endpoint);
    free(client);
}

/* --- one call --- */

struct single_call {
    struct loop *loop;
    struct buffer *answer; /* NULL: not wanted */
    status result;
};

static void single_call_ended(void *context, struct client_call *call, status s)
{
    (void)call;
    struct single_call *single = context;
    single->result = s;
    loop_stop(single->loop);
}

static void single_call_took(void *context, struct client_call *call, bytes message)
{
    (void)call;
    struct single_call *single = context;
    if (single->answer != NULL)
        buffer_append_bytes(single->answer, message);
}

status bench_ask(struct bench_client *client, const char *method, struct buffer *message,
                 struct buffer *answer)
{
    struct single_call call = {.loop = client->loop, .answer = answer};
    struct client_call_options options = {.path = method,
                                          .timeout_us = CALL_TIMEOUT_US,
                                          .context = &call,
                                          .on_message = single_call_took,
                                          .on_end = single_call_ended};
    struct client_call *started;
    TRY(grpc_link_call(client->links[0], &options, message, &started));
    loop_run(client->loop);
    return call.result;
}

status bench_call(struct bench_client *client, const char *method, struct buffer *message)
{
    return bench_ask(client, method, message, NULL);
}

/* --- many calls --- */

struct run {
    struct bench_client *client;
    struct bench_context *context;
    const struct bench_mix *mix;
    struct bench_result *result;
    uint64_t started;    /* requests so far */
    uint64_t operations; /* requests at most */
    int64_t began_us;
    bool is_over;
    size_t active;     /* callers with an open call */
    struct list idle;  /* callers that wait for the next request to be due */
    struct timer pace; /* when it is due; set while a caller is idle */
    struct timer end;
    status failure; /* what ended the run early; owned */
};

struct caller {
    struct link link_of_idle;
    struct run *run;
    struct grpc_link *link;
    struct arena *arena;
    const struct bench_workload *workload;
    struct bench_answer answer;
    uint64_t number;
    int64_t began_us;
    status failure; /* of the open call's messages; owned */
};

static void caller_is_free(struct caller *caller);
static status send_request(struct caller *caller);

static int64_t now_us(const struct run *run)
{
    return clock_steady_us(loop_clock(run->client->loop));
}

static void keep_first(status *kept, status s)
{
    if (status_is_ok(*kept))
        *kept = s;
    else
        status_free(s);
}

/* Takes how the call ended, and says what it means for what was asked. */
static status judge(struct caller *caller, status ended)
{
    status s = caller->failure;
    caller->failure = status_ok();
    keep_first(&s, ended);
    if (status_is_ok(s) && caller->answer.rows_answered != caller->answer.rows)
        s = status_make(STATUS_DATA_LOSS, "%llu rows answered of %llu",
                        (unsigned long long)caller->answer.rows_answered,
                        (unsigned long long)caller->answer.rows);
    return s;
}

/* Makes the request that follows one that went well; false if there is none. */
static bool go_on(struct caller *caller, status *s)
{
    if (!status_is_ok(*s) || caller->workload->then == NULL)
        return false;
    caller->workload = caller->workload->then;
    *s = send_request(caller);
    return status_is_ok(*s);
}

static void call_ended(void *context, struct client_call *call, status ended)
{
    (void)call;
    struct caller *caller = context;
    struct run *run = caller->run;
    struct bench_result *result = run->result;
    status s = judge(caller, ended);
    if (go_on(caller, &s))
        return;
    result->requests++;
    result->rows += caller->answer.rows_answered;
    histogram_add(&result->latencies, (uint64_t)(now_us(run) - caller->began_us));
    if (!status_is_ok(s)) {
        result->errors++;
        run->is_over |= s.code == STATUS_UNAVAILABLE; /* the server may be gone */
        keep_first(&result->first_error, s);
    }
    run->active--;
    caller_is_free(caller);
}

static void took_message(void *context, struct client_call *call, bytes message)
{
    (void)call;
    struct caller *caller = context;
    arena_reset(caller->arena);
    keep_first(&caller->failure,
               caller->workload->response(message, caller->arena, &caller->answer));
}

static status send_request(struct caller *caller)
{
    struct bench_context *context = caller->run->context;
    struct buffer message = {0};
    arena_reset(caller->arena);
    grpc_message_start(&message);
    status s = caller->workload->request(context, caller->number, caller->arena, &message,
                                         &caller->answer);
    if (!status_is_ok(s)) {
        buffer_free(&message);
        return s;
    }
    struct client_call_options options = {.path = caller->workload->method,
                                          .timeout_us = CALL_TIMEOUT_US,
                                          .metadata = caller->workload->header,
                                          .metadata_count = caller->workload->header != NULL,
                                          .context = caller,
                                          .on_message = took_message,
                                          .on_end = call_ended};
    struct client_call *call;
    return grpc_link_call(caller->link, &options, &message, &call);
}

static status make_call(struct caller *caller, int64_t began_us)
{
    struct run *run = caller->run;
    caller->workload = run->mix->parts[bench_random(&run->context->random) >> 63];
    caller->answer = (struct bench_answer){0};
    caller->number = run->started;
    caller->began_us = began_us;
    return send_request(caller);
}

static bool is_finished(const struct run *run)
{
    return run->is_over || run->started >= run->operations;
}

static void end_if_finished(struct run *run)
{
    if (is_finished(run) && run->active == 0)
        loop_stop(run->client->loop);
}

/* `began_us`: from when on the answer is waited for. */
static void start_call(struct caller *caller, int64_t began_us)
{
    struct run *run = caller->run;
    status s = make_call(caller, began_us);
    if (status_is_ok(s)) {
        run->started++;
        run->active++;
        return;
    }
    keep_first(&run->failure, s);
    run->is_over = true;
}

/* --- the pace --- */

static int64_t next_due_us(const struct run *run)
{
    return run->began_us + (int64_t)(run->started * US_PER_S / run->context->options->rate);
}

static void await_next(struct run *run)
{
    if (list_is_empty(&run->idle) || is_finished(run))
        return;
    status s = loop_timer_set(run->client->loop, &run->pace, next_due_us(run));
    run->is_over |= !status_is_ok(s);
    keep_first(&run->failure, s);
}

/* The timer is coarser than the pace. A request that it wakes is not late by the server's fault,
 * and counts from now. */
static void next_is_due(struct timer *timer)
{
    struct run *run = LIST_ENTRY(timer, struct run, pace);
    int64_t now = now_us(run);
    while (!list_is_empty(&run->idle) && !is_finished(run) && next_due_us(run) <= now)
        start_call(LIST_ENTRY(list_take(&run->idle), struct caller, link_of_idle), now);
    await_next(run);
    end_if_finished(run);
}

static void start_or_idle(struct caller *caller)
{
    struct run *run = caller->run;
    int64_t due_us = next_due_us(run);
    if (list_is_empty(&run->idle) && due_us <= now_us(run)) {
        start_call(caller, due_us);
        return;
    }
    list_append(&run->idle, &caller->link_of_idle);
    await_next(run);
}

/* Makes the caller's next call, if there is one to make; the last caller to stop ends the run. */
static void caller_is_free(struct caller *caller)
{
    struct run *run = caller->run;
    if (!is_finished(run)) {
        if (run->context->options->rate == 0)
            start_call(caller, now_us(run));
        else
            start_or_idle(caller);
    }
    end_if_finished(run);
}

static void time_is_over(struct timer *timer)
{
    struct run *run = LIST_ENTRY(timer, struct run, end);
    run->is_over = true;
    end_if_finished(run);
}

/* --- a run --- */

/* The usage between two looks. */
static struct bench_usage usage_since(const struct bench_usage *before,
                                      const struct bench_usage *after)
{
    struct bench_usage since = *after;
    if (after->cpu_us >= 0)
        since.cpu_us -= before->cpu_us;
    if (after->written_bytes >= 0)
        since.written_bytes -= before->written_bytes;
    return since;
}

static void run_callers(struct run *run, struct caller *callers, size_t count)
{
    const struct bench_options *options = run->context->options;
    struct loop *loop = run->client->loop;
    struct bench_usage before = bench_usage_of(options->server_pid);
    run->began_us = now_us(run);
    if (run->mix->rows == NULL)
        keep_first(&run->failure,
                   loop_timer_set(loop, &run->end, run->began_us + options->duration));
    for (size_t i = 0; i < count; i++)
        caller_is_free(&callers[i]);
    loop_run(loop);
    loop_timer_clear(loop, &run->end);
    loop_timer_clear(loop, &run->pace);
    run->result->duration_us = now_us(run) - run->began_us;
    struct bench_usage after = bench_usage_of(options->server_pid);
    run->result->server = usage_since(&before, &after);
}

static uint64_t operations_of(const struct bench_mix *mix, const struct bench_options *options)
{
    if (mix->rows != NULL)
        return (mix->rows(options) + options->batch - 1) / options->batch;
    return options->operations == 0 ? UINT64_MAX : options->operations;
}

static status make_callers(struct run *run, struct caller *callers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        callers[i].run = run;
        callers[i].link = run->client->links[i % run->client->link_count];
        callers[i].arena = arena_create(ARENA_LIMIT);
        if (callers[i].arena == NULL)
            return status_out_of_memory();
    }
    return status_ok();
}

static void free_callers(struct caller *callers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        arena_destroy(callers[i].arena);
        status_free(callers[i].failure);
    }
    free(callers);
}

status bench_run(struct bench_client *client, struct bench_context *context,
                 const struct bench_mix *mix, struct bench_result *out)
{
    const struct bench_options *options = context->options;
    size_t count = options->connections * options->streams;
    struct run run = {.client = client,
                      .context = context,
                      .mix = mix,
                      .result = out,
                      .operations = operations_of(mix, options),
                      .pace = {.run = next_is_due},
                      .end = {.run = time_is_over}};
    struct caller *callers = calloc(count, sizeof *callers);
    if (callers == NULL)
        return status_out_of_memory();
    *out = (struct bench_result){0};
    status s = make_callers(&run, callers, count);
    if (status_is_ok(s)) {
        run_callers(&run, callers, count);
        s = run.failure;
    }
    free_callers(callers, count);
    return s;
}
