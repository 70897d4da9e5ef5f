/* The closed loop.
 *
 * A caller has one call open at any time. When it ends, the caller looks whether it got what it
 * asked for and makes the next, until the run is over; the run ends with the last caller's call. */
#include "cmd/bench.h"
#include "cmd/bench_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    ARENA_LIMIT = 1 << 30,
    CALL_TIMEOUT_US = 60 * 1000 * 1000,
};

struct bench_client {
    struct loop *loop;
    size_t link_count;
    struct bench_link *links[];
};

/* --- connections --- */

static status connect_all(struct bench_client *client, const struct bench_options *options)
{
    struct address address;
    TRY(address_parse(options->endpoint, &address));
    TRY(loop_create(clock_system(), &client->loop));
    for (; client->link_count < options->connections; client->link_count++)
        TRY(bench_link_create(client->loop, &address, options->endpoint,
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
        bench_link_destroy(client->links[i]);
    loop_destroy(client->loop);
    free(client);
}

/* --- one call --- */

struct single_call {
    struct loop *loop;
    status result;
};

static void single_call_ended(void *context, struct client_call *call, status s)
{
    (void)call;
    struct single_call *single = context;
    single->result = s;
    loop_stop(single->loop);
}

status bench_call(struct bench_client *client, const char *method, struct buffer *message)
{
    struct single_call call = {.loop = client->loop};
    struct client_call_options options = {.path = method,
                                          .timeout_us = CALL_TIMEOUT_US,
                                          .context = &call,
                                          .on_end = single_call_ended};
    TRY(bench_link_call(client->links[0], &options, message));
    loop_run(client->loop);
    return call.result;
}

/* --- many calls --- */

struct run {
    struct bench_client *client;
    struct bench_context *context;
    const struct bench_mix *mix;
    struct bench_result *result;
    uint64_t started;    /* requests so far */
    uint64_t operations; /* requests at most */
    bool is_over;
    size_t active; /* callers with an open call */
    struct timer timer;
    status failure; /* what ended the run early; owned */
};

struct caller {
    struct run *run;
    struct bench_link *link;
    struct arena *arena;
    const struct bench_workload *workload;
    struct bench_answer answer;
    int64_t began_us;
    status failure; /* of the open call's messages; owned */
};

static void start_call(struct caller *caller);

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

static void call_ended(void *context, struct client_call *call, status ended)
{
    (void)call;
    struct caller *caller = context;
    struct run *run = caller->run;
    struct bench_result *result = run->result;
    status s = judge(caller, ended);
    result->requests++;
    result->rows += caller->answer.rows_answered;
    histogram_add(&result->latencies, (uint64_t)(now_us(run) - caller->began_us));
    if (!status_is_ok(s)) {
        result->errors++;
        run->is_over |= s.code == STATUS_UNAVAILABLE; /* there may be nobody left to ask */
        keep_first(&result->first_error, s);
    }
    run->active--;
    start_call(caller);
}

static void took_message(void *context, struct client_call *call, bytes message)
{
    (void)call;
    struct caller *caller = context;
    arena_reset(caller->arena);
    keep_first(&caller->failure,
               caller->workload->response(message, caller->arena, &caller->answer));
}

static status make_call(struct caller *caller)
{
    struct run *run = caller->run;
    struct bench_context *context = run->context;
    struct buffer message = {0};
    caller->workload = run->mix->parts[bench_random(&context->random) >> 63];
    caller->answer = (struct bench_answer){0};
    arena_reset(caller->arena);
    grpc_message_start(&message);
    status s =
        caller->workload->request(context, run->started, caller->arena, &message, &caller->answer);
    if (!status_is_ok(s)) {
        buffer_free(&message);
        return s;
    }
    struct client_call_options options = {.path = caller->workload->method,
                                          .timeout_us = CALL_TIMEOUT_US,
                                          .context = caller,
                                          .on_message = took_message,
                                          .on_end = call_ended};
    caller->began_us = now_us(run);
    return bench_link_call(caller->link, &options, &message);
}

/* The caller's next call, if there is one to make; the last caller to stop ends the run. */
static void start_call(struct caller *caller)
{
    struct run *run = caller->run;
    if (!run->is_over && run->started < run->operations) {
        status s = make_call(caller);
        if (status_is_ok(s)) {
            run->started++;
            run->active++;
            return;
        }
        keep_first(&run->failure, s);
        run->is_over = true;
    }
    if (run->active == 0)
        loop_stop(run->client->loop);
}

static void time_is_over(struct timer *timer)
{
    struct run *run = LIST_ENTRY(timer, struct run, timer);
    run->is_over = true;
}

/* --- a run --- */

/* User and system time of a process so far; -1 if it cannot be known. */
static int64_t process_cpu_us(uint64_t pid)
{
    enum { LINE_SIZE = 1024, US_PER_S = 1000000 };
    char path[64], line[LINE_SIZE];
    snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
    FILE *file = pid == 0 ? NULL : fopen(path, "r");
    if (file == NULL)
        return -1;
    const char *name_end = fgets(line, sizeof line, file) == NULL ? NULL : strrchr(line, ')');
    fclose(file);
    unsigned long long user, system;
    /* After the name: state, ten numbers, then user and system time in clock ticks. */
    if (name_end == NULL ||
        sscanf(name_end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
               &system) != 2)
        return -1;
    return (int64_t)(user + system) * US_PER_S / sysconf(_SC_CLK_TCK);
}

static void run_callers(struct run *run, struct caller *callers, size_t count)
{
    const struct bench_options *options = run->context->options;
    struct loop *loop = run->client->loop;
    int64_t cpu_before = process_cpu_us(options->server_pid);
    int64_t began_us = now_us(run);
    if (!run->mix->is_load)
        keep_first(&run->failure, loop_timer_set(loop, &run->timer, began_us + options->duration));
    for (size_t i = 0; i < count; i++)
        start_call(&callers[i]);
    loop_run(loop);
    loop_timer_clear(loop, &run->timer);
    run->result->duration_us = now_us(run) - began_us;
    int64_t cpu_after = process_cpu_us(options->server_pid);
    run->result->server_cpu_us = cpu_before < 0 || cpu_after < 0 ? -1 : cpu_after - cpu_before;
}

static uint64_t operations_of(const struct bench_mix *mix, const struct bench_options *options)
{
    if (mix->is_load)
        return (options->rows + options->batch - 1) / options->batch;
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
                      .timer = {.run = time_is_over}};
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
