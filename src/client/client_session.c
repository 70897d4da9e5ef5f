/* SIGINT is blocked, and read from a signalfd while a call runs: there is no handler, and no moment
 * at which a signal would be in the way. */
#include "client/client_session.h"

#include "base/check.h"
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "os/tls.h"
#include "wire/grpc_text.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    UNARY_TIMEOUT_US = 60 * 1000 * 1000,
    DETAILS_LIMIT = 1 << 20, /* bytes of memory for reading an error's details */
};

/* A server, and the connection to it. */
struct side {
    struct endpoint endpoint;
    struct grpc_link *link; /* NULL: not connected */
    bool link_has_served;   /* a call has ended well on it */
};

struct client_session {
    struct loop *loop;
    bool owns_loop;
    struct side data;
    struct side admin; /* for administrative calls, if they have a server of their own */
    bool has_admin;
    const char *app_profile;
    struct buffer instance; /* its full name, and a NUL */
    struct buffer routing;  /* the header x-goog-request-params */
    int signals;            /* a signalfd; -1: none */
    struct watch signal_watch;
    bool is_interrupted;
    atomic_bool is_cancelled; /* client_session_cancel was called */
    struct task cancel;       /* posted once, then */
    atomic_bool is_ending;    /* the next one has been posted */
    struct task end_call;
    uint32_t window;   /* 0: client_session_narrow was not called */
    uint64_t received; /* bytes since it was */

    const struct session_call *call; /* the running one, or NULL */
    struct client_call *running;
    status failure; /* of its messages; owned */
    status result;  /* owned */
    bool is_expired;
};

/* --- connecting --- */

static void disconnect(struct side *side)
{
    grpc_link_destroy(side->link);
    side->link = NULL;
    side->link_has_served = false;
}

void client_session_disconnect(struct client_session *session)
{
    disconnect(&session->data);
    disconnect(&session->admin);
}

/* The server that answers such calls. */
static struct side *side_of(struct client_session *session, const char *path)
{
    bool is_admin = strstr(path, ".admin.") != NULL;
    return is_admin && session->has_admin ? &session->admin : &session->data;
}

static status connect_side(struct client_session *session, struct side *side)
{
    if (side->link != NULL && grpc_link_is_lost(side->link))
        side->link_has_served = false;
    TRY(endpoint_connect(&side->endpoint, session->loop, &side->link));
    if (session->window > 0 && side == &session->data)
        grpc_link_narrow(side->link, session->window, &session->received);
    return status_ok();
}

void client_session_narrow(struct client_session *session, uint32_t window)
{
    session->window = window;
}

uint64_t client_session_received(const struct client_session *session)
{
    return session->received;
}

/* --- interrupts --- */

static void take_signals(struct client_session *session)
{
    struct signalfd_siginfo info;
    while (session->signals >= 0 && read(session->signals, &info, sizeof info) == sizeof info)
        session->is_interrupted = true;
}

static void signal_ready(struct watch *watch, uint32_t events)
{
    struct client_session *session = LIST_ENTRY(watch, struct client_session, signal_watch);
    (void)events;
    take_signals(session);
    if (session->running != NULL)
        client_call_cancel(session->running);
    else
        loop_stop(session->loop);
}

static status watch_signals(struct client_session *session)
{
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    if (sigprocmask(SIG_BLOCK, &interrupt, NULL) != 0)
        return status_from_errno(errno, "cannot block SIGINT");
    session->signals = signalfd(-1, &interrupt, SFD_NONBLOCK | SFD_CLOEXEC);
    if (session->signals < 0)
        return status_from_errno(errno, "cannot watch for SIGINT");
    session->signal_watch = (struct watch){.fd = session->signals, .ready = signal_ready};
    return loop_watch(session->loop, &session->signal_watch, EPOLLIN);
}

static void cancel(struct task *task)
{
    struct client_session *session = LIST_ENTRY(task, struct client_session, cancel);
    if (session->running != NULL)
        client_call_cancel(session->running);
    else
        loop_stop(session->loop);
}

void client_session_cancel(struct client_session *session)
{
    DCHECK(session->owns_loop);
    if (!atomic_exchange(&session->is_cancelled, true))
        loop_post(session->loop, &session->cancel);
}

static void end_call(struct task *task)
{
    struct client_session *session = LIST_ENTRY(task, struct client_session, end_call);
    atomic_store(&session->is_ending, false);
    if (session->running != NULL)
        client_call_cancel(session->running);
}

void client_session_end_call(struct client_session *session)
{
    DCHECK(session->owns_loop);
    if (!atomic_exchange(&session->is_ending, true))
        loop_post(session->loop, &session->end_call);
}

/* --- making and ending --- */

static status name_things(struct client_session *session,
                          const struct client_session_options *options)
{
    buffer_append_format(&session->instance, "projects/%s/instances/%s", options->target.project,
                         options->target.instance);
    buffer_append_byte(&session->instance, '\0');
    if (session->instance.failed)
        return status_out_of_memory();
    endpoint_append_routing(&session->routing, "name", client_session_instance(session));
    endpoint_append_routing(&session->routing, "app_profile_id", options->target.app_profile);
    session->app_profile = options->target.app_profile;
    return session->routing.failed ? status_out_of_memory() : status_ok();
}

static status open_session(struct client_session *session,
                           const struct client_session_options *options)
{
    struct endpoint_options admin = options->target.server;
    TRY(endpoint_open(&options->target.server, &session->data.endpoint));
    admin.address = options->target.admin_address;
    session->has_admin = admin.address != NULL;
    if (session->has_admin)
        TRY(endpoint_open(&admin, &session->admin.endpoint));
    TRY(name_things(session, options));
    session->loop = options->loop;
    session->owns_loop = options->loop == NULL;
    if (session->owns_loop)
        TRY(loop_create(clock_system(), &session->loop));
    return options->is_interruptible ? watch_signals(session) : status_ok();
}

status client_session_create(const struct client_session_options *options,
                             struct client_session **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    (*out)->signals = -1;
    (*out)->cancel.run = cancel;
    (*out)->end_call.run = end_call;
    status s = open_session(*out, options);
    if (!status_is_ok(s)) {
        client_session_destroy(*out);
        *out = NULL;
    }
    return s;
}

void client_session_destroy(struct client_session *session)
{
    if (session == NULL)
        return;
    client_session_disconnect(session);
    if (session->signals >= 0) {
        loop_unwatch(session->loop, &session->signal_watch);
        close(session->signals);
    }
    if (session->owns_loop)
        loop_destroy(session->loop);
    endpoint_close(&session->data.endpoint);
    endpoint_close(&session->admin.endpoint);
    buffer_free(&session->instance);
    buffer_free(&session->routing);
    free(session);
}

const char *client_session_address(const struct client_session *session)
{
    return session->data.endpoint.identity.authority;
}

const char *client_session_instance(const struct client_session *session)
{
    return (const char *)session->instance.data;
}

const char *client_session_app_profile(const struct client_session *session)
{
    return session->app_profile;
}

struct loop *client_session_loop(const struct client_session *session)
{
    return session->loop;
}

const struct endpoint *client_session_endpoint(const struct client_session *session)
{
    return &session->data.endpoint;
}

/* --- why a call failed --- */

static bool has_violation(bytes value, const char *type, struct arena *arena)
{
    ProtobufCMessage *message;
    status s = proto_decode(&rpc__precondition_failure__descriptor, value, arena, &message);
    if (!status_is_ok(s)) {
        status_free(s);
        return false;
    }
    const Rpc__PreconditionFailure *failure = (const void *)message;
    for (size_t i = 0; i < failure->n_violations; i++)
        if (strstr(failure->violations[i]->type, type) != NULL)
            return true;
    return false;
}

static bool details_have_violation(bytes wire, const char *type, struct arena *arena)
{
    ProtobufCMessage *message;
    status s = proto_decode(&rpc__status__descriptor, wire, arena, &message);
    if (!status_is_ok(s)) {
        status_free(s);
        return false;
    }
    const Rpc__Status *details = (const void *)message;
    for (size_t i = 0; i < details->n_details; i++) {
        const Pb__Any *detail = details->details[i];
        if (strstr(detail->type_url, "google.rpc.PreconditionFailure") != NULL &&
            has_violation(proto_bytes(detail->value), type, arena))
            return true;
    }
    return false;
}

/* Whether the error's details have a violation of the type. */
static bool says(const struct client_call *call, const char *type)
{
    bytes text;
    struct arena *arena = arena_create(DETAILS_LIMIT);
    bool found = false;
    if (arena != NULL && client_call_metadata(call, "grpc-status-details-bin", &text)) {
        uint8_t *wire = arena_alloc(arena, base64_decoded_most(text.size));
        size_t size = 0;
        found = wire != NULL && base64_decode(text, wire, &size) &&
                details_have_violation(bytes_make(wire, size), type, arena);
    }
    arena_destroy(arena);
    return found;
}

/* UNAVAILABLE, in the words of what the connection died of. */
static status explain_loss(const struct side *side, status s)
{
    status cause = grpc_link_failure(side->link);
    if (status_is_ok(cause) || s.code != STATUS_UNAVAILABLE) {
        status_free(cause);
        return s;
    }
    status_free(s);
    s = status_make(STATUS_UNAVAILABLE, "%s: %s", side->endpoint.identity.authority,
                    status_message(cause));
    status_free(cause);
    return s;
}

/* --- a call --- */

static void call_took(void *context, struct client_call *call, bytes message)
{
    struct client_session *session = context;
    if (!status_is_ok(session->failure))
        return;
    session->failure = session->call->on_message(session->call->context, message);
    if (!status_is_ok(session->failure))
        client_call_cancel(call);
}

static void call_ended(void *context, struct client_call *call, status s)
{
    struct client_session *session = context;
    session->is_expired =
        s.code == STATUS_FAILED_PRECONDITION && says(call, "PREPARED_QUERY_EXPIRED");
    session->running = NULL;
    session->result = s;
    loop_stop(session->loop);
}

static void add_metadata(struct client_metadata *metadata, size_t *count, const char *name,
                         const char *value)
{
    if (value != NULL)
        metadata[(*count)++] = (struct client_metadata){.name = name, .value = bytes_of(value)};
}

static status send_call(struct client_session *session, const struct session_call *call,
                        bytes routing)
{
    struct client_metadata metadata[GRPC_LINK_METADATA_MOST] = {
        {.name = "x-goog-request-params", .value = routing},
    };
    size_t count = 1;
    add_metadata(metadata, &count, "trestle-explain", call->explain);
    add_metadata(metadata, &count, "bigtable-features", call->features);
    const struct client_call_options options = {.path = call->path,
                                                .timeout_us = call->timeout_us,
                                                .gzip = call->gzip,
                                                .metadata = metadata,
                                                .metadata_count = count,
                                                .message_limit = call->message_limit,
                                                .refused = call->refused,
                                                .context = session,
                                                .on_message = call_took,
                                                .on_end = call_ended};
    struct buffer message = {0};
    grpc_message_start(&message);
    proto_encode(call->request, &message);
    return grpc_link_call(side_of(session, call->path)->link, &options, &message,
                          &session->running);
}

static status start_call(struct client_session *session, const struct session_call *call)
{
    struct buffer routing = {0};
    if (call->table == NULL)
        return send_call(session, call, buffer_bytes(&session->routing));
    endpoint_append_routing(&routing, "table_name", call->table);
    endpoint_append_routing(&routing, "app_profile_id", session->app_profile);
    status s =
        routing.failed ? status_out_of_memory() : send_call(session, call, buffer_bytes(&routing));
    buffer_free(&routing);
    return s;
}

status client_session_stream(struct client_session *session, const struct session_call *call,
                             bool *is_expired)
{
    struct side *side = side_of(session, call->path);
    if (atomic_load(&session->is_cancelled))
        return status_make(STATUS_CANCELLED, "the session is ended");
    TRY(connect_side(session, side));
    take_signals(session);
    session->is_interrupted = session->is_expired = false;
    session->call = call;
    session->failure = session->result = status_ok();
    TRY(start_call(session, call));
    while (session->running != NULL) /* others that share the loop may stop it, too */
        loop_run(session->loop);
    if (is_expired != NULL)
        *is_expired = session->is_expired;
    side->link_has_served |= status_is_ok(session->result);
    if (status_is_ok(session->failure))
        return explain_loss(side, session->result);
    status_free(session->result);
    return session->failure;
}

struct unary_answer {
    const ProtobufCMessageDescriptor *type;
    struct arena *arena;
    const ProtobufCMessage *message;
};

static status take_answer(void *context, bytes message)
{
    struct unary_answer *answer = context;
    ProtobufCMessage *decoded;
    bytes kept = arena_copy(answer->arena, message);
    if (kept.data == NULL)
        return status_out_of_memory();
    TRY(proto_decode(answer->type, kept, answer->arena, &decoded));
    answer->message = decoded;
    return status_ok();
}

status client_session_ask(struct client_session *session, const struct session_call *call,
                          const ProtobufCMessageDescriptor *type, struct arena *arena,
                          const ProtobufCMessage **out)
{
    struct unary_answer answer = {.type = type, .arena = arena};
    struct session_call asking = *call;
    asking.on_message = take_answer;
    asking.context = &answer;
    status s = client_session_stream(session, &asking, NULL);
    *out = answer.message;
    if (status_is_ok(s) && answer.message == NULL)
        return status_make(STATUS_INTERNAL, "the server sent no answer");
    return s;
}

status client_session_call(struct client_session *session, const char *path, const char *explain,
                           const ProtobufCMessage *request, const ProtobufCMessageDescriptor *type,
                           struct arena *arena, const ProtobufCMessage **out)
{
    const struct session_call call = {
        .path = path, .request = request, .explain = explain, .timeout_us = UNARY_TIMEOUT_US};
    struct side *side = side_of(session, path);
    bool is_old = side->link != NULL && side->link_has_served;
    status s = client_session_ask(session, &call, type, arena, out);
    if (s.code != STATUS_UNAVAILABLE || !is_old)
        return s;
    status_free(s);
    disconnect(side);
    return client_session_ask(session, &call, type, arena, out);
}

struct waiting {
    struct timer timer;
    struct loop *loop;
};

static void wait_is_over(struct timer *timer)
{
    loop_stop(((struct waiting *)(void *)timer)->loop);
}

status client_session_wait(struct client_session *session, int64_t us)
{
    struct waiting waiting = {.timer = {.run = wait_is_over}, .loop = session->loop};
    if (atomic_load(&session->is_cancelled))
        return status_make(STATUS_CANCELLED, "the session is ended");
    session->is_interrupted = false;
    int64_t now = clock_steady_us(loop_clock(session->loop));
    TRY(loop_timer_set(session->loop, &waiting.timer, now + us));
    loop_run(session->loop);
    loop_timer_clear(session->loop, &waiting.timer);
    bool is_over = session->is_interrupted || atomic_load(&session->is_cancelled);
    return is_over ? status_make(STATUS_CANCELLED, "interrupted") : status_ok();
}
