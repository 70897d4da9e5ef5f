/* See grpc_testing.h. */
#include "wire/testing/grpc_testing.h"

#include "base/check.h"

/* --- the service --- */

static void note_cancel(void *context)
{
    struct testing *t = context;
    t->cancelled++;
}

static void send_bytes(struct grpc_call *call, bytes b)
{
    struct buffer message = {0};
    grpc_message_start(&message);
    buffer_append_bytes(&message, b);
    grpc_call_send(call, &message);
}

static void handle_echo(void *context, struct grpc_call *call, bytes request)
{
    struct testing *t = context;
    bytes header;
    t->handled++;
    if (grpc_call_header(call, "x-test-bin", &header))
        buffer_append_bytes(&t->header, header);
    grpc_call_add_header(call, "x-answer", bytes_of("early"));
    grpc_call_add_trailer(call, "x-trailer", bytes_of("late"));
    send_bytes(call, request);
    grpc_call_finish(call, status_ok());
}

/* Fails with what the request says as its words, and with a detail. */
static void handle_fail(void *context, struct grpc_call *call, bytes request)
{
    struct testing *t = context;
    t->handled++;
    status s = status_make(STATUS_ABORTED, "%.*s", (int)request.size, (const char *)request.data);
    status_add_detail(&s, "google.rpc.RetryInfo", bytes_of("x"));
    grpc_call_finish(call, s);
}

static void handle_hold(void *context, struct grpc_call *call, bytes request)
{
    struct testing *t = context;
    (void)request;
    t->handled++;
    t->held = call;
    grpc_call_set_callbacks(call, t, NULL, note_cancel);
}

static void handle_keep(void *context, struct grpc_call *call, bytes request)
{
    struct testing *t = context;
    (void)request;
    t->handled++;
    CHECK(t->kept_count < TESTING_KEPT);
    t->kept[t->kept_count++] = call;
}

/* Waits for its cancellation, then finishes: a scan that is stopped early. */
struct patient {
    struct testing *t;
    struct grpc_call *call;
};

static void give_in(void *context)
{
    struct patient *patient = context;
    patient->t->cancelled++;
    grpc_call_finish(patient->call, status_make(STATUS_CANCELLED, "as asked"));
}

static void handle_wait(void *context, struct grpc_call *call, bytes request)
{
    struct testing *t = context;
    (void)request;
    t->handled++;
    struct patient *patient = arena_alloc(grpc_call_arena(call), sizeof *patient);
    CHECK(patient != NULL);
    *patient = (struct patient){.t = t, .call = call};
    send_bytes(call, bytes_of("first row"));
    grpc_call_set_callbacks(call, patient, NULL, give_in);
}

static void flood(void *context)
{
    enum { CHUNK = 20000 };
    static const uint8_t chunk[CHUNK];
    struct testing *t = context;
    while (t->to_flood > 0 && !grpc_call_is_cancelled(t->held)) {
        if (grpc_call_is_congested(t->held)) {
            t->flood_pauses++;
            return;
        }
        size_t size = t->to_flood < CHUNK ? t->to_flood : CHUNK;
        t->to_flood -= size;
        send_bytes(t->held, bytes_make(chunk, size));
    }
    grpc_call_finish(t->held, status_ok());
    t->held = NULL;
}

static void handle_flood(void *context, struct grpc_call *call, bytes request)
{
    struct testing *t = context;
    (void)request;
    t->handled++;
    t->held = call;
    grpc_call_set_callbacks(call, t, flood, note_cancel);
    flood(t);
}

/* Sends what it may at once, then waits to be cancelled. */
static void handle_pour(void *context, struct grpc_call *call, bytes request)
{
    static const uint8_t chunk[10000];
    struct testing *t = context;
    (void)request;
    t->handled++;
    struct patient *patient = arena_alloc(grpc_call_arena(call), sizeof *patient);
    CHECK(patient != NULL);
    *patient = (struct patient){.t = t, .call = call};
    for (; t->to_flood > 0 && !grpc_call_is_congested(call); t->to_flood -= sizeof chunk)
        send_bytes(call, bytes_make(chunk, sizeof chunk));
    grpc_call_set_callbacks(call, patient, NULL, give_in);
}

static void handle_chat(void *context, struct grpc_call *call, bytes request)
{
    struct testing *t = context;
    t->handled++;
    if (request.data == NULL)
        grpc_call_finish(call, status_ok());
    else
        send_bytes(call, request);
}

static const struct grpc_method methods[] = {
    {"Echo", GRPC_UNARY, handle_echo},
    {"Fail", GRPC_UNARY, handle_fail},
    {"Hold", GRPC_SERVER_STREAMING, handle_hold},
    {"Keep", GRPC_UNARY, handle_keep},
    {"Wait", GRPC_SERVER_STREAMING, handle_wait},
    {"Flood", GRPC_SERVER_STREAMING, handle_flood},
    {"Pour", GRPC_SERVER_STREAMING, handle_pour},
    {"Chat", GRPC_BIDI, handle_chat},
};

/* --- the server --- */

static int64_t hand_us(struct clock *clock)
{
    return ((struct testing *)(void *)clock)->now_us;
}

static void note_signal(void *context)
{
    struct testing *t = context;
    t->signals++;
}

static void note_record(void *context, const struct grpc_call_record *record)
{
    struct testing *t = context;
    t->last_record = *record;
    t->records++;
}

static void receive(struct testing *t)
{
    bytes input = buffer_bytes(&t->to_server);
    while (input.size > 0) {
        size_t size = t->piece == 0 || t->piece > input.size ? input.size : t->piece;
        grpc_connection_receive(t->connection, bytes_make(input.data, size));
        input = bytes_from(input, size);
    }
    buffer_clear(&t->to_server);
}

static void send_output(struct testing *t)
{
    struct iovec vectors[8];
    size_t count;
    if (t->is_unread) { /* asked once, as on a socket that then takes nothing */
        grpc_connection_output(t->connection, vectors, 8);
        return;
    }
    while (!t->is_stalled && (count = grpc_connection_output(t->connection, vectors, 8)) > 0) {
        size_t size = 0;
        for (size_t i = 0; i < count; i++) {
            buffer_append(&t->from_server, vectors[i].iov_base, vectors[i].iov_len);
            size += vectors[i].iov_len;
        }
        t->writes++;
        grpc_connection_sent(t->connection, size);
    }
}

static void run_turn(struct task *task)
{
    struct testing *t = LIST_ENTRY(task, struct testing, task);
    if (t->connection == NULL)
        return;
    receive(t);
    send_output(t);
}

void testing_turn(struct testing *t)
{
    loop_post(t->loop, &t->task);
    loop_stop(t->loop);
    loop_run(t->loop);
}

void testing_advance(struct testing *t, int64_t us)
{
    t->now_us += us;
    testing_turn(t);
}

void testing_start(struct testing *t)
{
    t->clock = (struct clock){.wall_us = hand_us, .steady_us = hand_us};
    t->now_us = 1000000;
    t->task.run = run_turn;
    t->service = (struct grpc_service){.name = "test.Service",
                                       .methods = methods,
                                       .method_count = sizeof methods / sizeof *methods,
                                       .context = t};
    const struct grpc_service *services[4] = {&t->service};
    size_t service_count = 1;
    for (size_t i = 0; i < 3; i++)
        if (t->more[i] != NULL)
            services[service_count++] = t->more[i];
    if (t->options.max_message_size == 0)
        grpc_server_options_init(&t->options);
    t->options.on_call_end = note_record;
    t->options.context = t;
    assert_ok(loop_create(&t->clock, &t->loop));
    assert_ok(grpc_server_create(&t->options, services, service_count, &t->server));
    assert_ok(grpc_spares_create(&t->spares));
    assert_ok(
        grpc_connection_create(t->server, t->loop, t->spares, t, note_signal, &t->connection));
}

void testing_stop(struct testing *t)
{
    grpc_connection_destroy(t->connection);
    t->connection = NULL;
    testing_turn(t); /* what was posted */
    grpc_server_destroy(t->server);
    grpc_spares_destroy(t->spares);
    loop_destroy(t->loop);
    buffer_free(&t->to_server);
    buffer_free(&t->from_server);
    buffer_free(&t->header);
}

/* --- the client --- */

static void ignore_signal(void *context)
{
    (void)context; /* testing_pump looks by itself */
}

void testing_client_start(struct testing_client *c, struct testing *t)
{
    c->t = t;
    assert_ok(grpc_client_create(t->loop, "test:1", c, ignore_signal, &c->client));
}

void testing_client_stop(struct testing_client *c)
{
    grpc_client_destroy(c->client);
    c->client = NULL;
}

bool testing_client_flush(struct testing_client *c)
{
    struct iovec vectors[8];
    size_t count;
    bool any = false;
    while ((count = grpc_client_output(c->client, vectors, 8)) > 0) {
        size_t size = 0;
        for (size_t i = 0; i < count; i++) {
            buffer_append(&c->t->to_server, vectors[i].iov_base, vectors[i].iov_len);
            size += vectors[i].iov_len;
        }
        grpc_client_sent(c->client, size);
        any = true;
    }
    return any;
}

void testing_pump(struct testing_client *c)
{
    bool moved;
    do {
        moved = testing_client_flush(c);
        testing_turn(c->t);
        testing_turn(c->t); /* what the handlers posted */
        moved |= c->t->from_server.size > 0;
        c->t->sent += c->t->from_server.size;
        grpc_client_receive(c->client, buffer_bytes(&c->t->from_server));
        buffer_clear(&c->t->from_server);
    } while (moved);
}

static void copy_metadata(const struct client_call *call, const char *name, struct buffer *to)
{
    bytes value;
    if (client_call_metadata(call, name, &value))
        buffer_append_bytes(to, value);
}

static void note_message(void *context, struct client_call *call, bytes message)
{
    struct outcome *outcome = context;
    (void)call;
    outcome->messages++;
    outcome->bytes += message.size;
    buffer_clear(&outcome->last);
    buffer_append_bytes(&outcome->last, message);
}

static void note_end(void *context, struct client_call *call, status s)
{
    struct outcome *outcome = context;
    CHECK(!outcome->ended);
    outcome->ended = true;
    outcome->code = s.code;
    buffer_append_bytes(&outcome->words, bytes_of(status_message(s)));
    copy_metadata(call, "grpc-status-details-bin", &outcome->details);
    copy_metadata(call, "x-answer", &outcome->header);
    copy_metadata(call, "x-trailer", &outcome->trailer);
    status_free(s);
}

struct client_call_options testing_options(const char *path, struct outcome *outcome)
{
    return (struct client_call_options){.path = path,
                                        .timeout_us = INT64_MAX,
                                        .context = outcome,
                                        .on_message = note_message,
                                        .on_end = note_end};
}

struct client_call *testing_call(struct testing_client *c,
                                 const struct client_call_options *options, bytes request)
{
    struct buffer message = {0};
    struct client_call *call;
    grpc_message_start(&message);
    buffer_append_bytes(&message, request);
    assert_ok(grpc_client_start(c->client, options, &message, &call));
    return call;
}

void outcome_free(struct outcome *outcome)
{
    buffer_free(&outcome->last);
    buffer_free(&outcome->words);
    buffer_free(&outcome->details);
    buffer_free(&outcome->header);
    buffer_free(&outcome->trailer);
}
