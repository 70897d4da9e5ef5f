/* See change_calls.h. */
#include "client/change_calls.h"

#include "base/check.h"

#include <stdlib.h>

enum { CALLS_MOST = 90 /* on one link; servers that are known take 100 */ };

struct change_link {
    struct grpc_link *grpc;
    size_t calls;      /* on it */
    bool is_leaving;   /* the server wants no more of them; those that it has go on */
    uint64_t received; /* bytes; nobody asks */
};

struct message {
    struct link link;
    size_t size;
    uint8_t data[];
};

struct change_call {
    struct change_call_options options; /* without what is only needed to make it */
    struct change_link *link;           /* NULL: it has ended */
    struct client_call *call;           /* likewise */
    struct list messages;               /* of struct message */
    size_t waiting_bytes;
    size_t allowed_bytes;
    bool is_paused;
    bool is_dying;
    int64_t heard_us;
    status result; /* once it has ended; owned */
};

static struct loop *loop_of(const struct change_call *call)
{
    return client_session_loop(call->options.session);
}

static int64_t now_us(const struct change_call *call)
{
    return clock_steady_us(loop_clock(loop_of(call)));
}

/* --- links --- */

void change_links_free(struct change_links *links)
{
    for (size_t i = 0; i < links->count; i++) {
        CHECK(links->items[i]->calls == 0);
        grpc_link_destroy(links->items[i]->grpc);
        free(links->items[i]);
    }
    free(links->items);
    *links = (struct change_links){0};
}

static status add_link(struct change_links *links, struct change_link **out)
{
    struct change_link **items = realloc(links->items, (links->count + 1) * sizeof *items);
    if (items == NULL)
        return status_out_of_memory();
    links->items = items;
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    items[links->count++] = *out;
    return status_ok();
}

/* One that takes calls and has room for one, or that nobody uses. */
static struct change_link *find_link(const struct change_links *links)
{
    for (size_t i = 0; i < links->count; i++) {
        struct change_link *link = links->items[i];
        bool takes_none = link->is_leaving || (link->grpc != NULL && grpc_link_is_lost(link->grpc));
        if (takes_none ? link->calls == 0 : link->calls < CALLS_MOST)
            return link;
    }
    return NULL;
}

static status take_link(struct change_call *call)
{
    struct change_links *links = call->options.links;
    struct change_link *link = find_link(links);
    if (link == NULL)
        TRY(add_link(links, &link));
    if (link->is_leaving) {
        grpc_link_destroy(link->grpc);
        link->grpc = NULL;
        link->is_leaving = false;
    }
    TRY(endpoint_connect(client_session_endpoint(call->options.session), loop_of(call),
                         &link->grpc));
    grpc_link_narrow(link->grpc, CHANGE_CALL_WINDOW, &link->received);
    link->calls++;
    call->link = link;
    return status_ok();
}

/* UNAVAILABLE, in the words of what the connection died of. */
static status explain(const struct change_call *call, status s)
{
    if (s.code != STATUS_UNAVAILABLE)
        return s;
    status cause = grpc_link_failure(call->link->grpc);
    if (!status_is_ok(cause)) {
        status_free(s);
        s = status_make(STATUS_UNAVAILABLE, "%s: %s", client_session_address(call->options.session),
                        status_message(cause));
    }
    status_free(cause);
    return s;
}

/* --- a call --- */

static void pause_if_ahead(struct change_call *call)
{
    bool is_ahead = call->waiting_bytes > call->allowed_bytes;
    if (call->call == NULL || is_ahead == call->is_paused)
        return;
    call->is_paused = is_ahead;
    call->heard_us = now_us(call);
    client_call_pause(call->call, is_ahead);
}

static void call_took(void *context, struct client_call *grpc, bytes data)
{
    struct change_call *call = context;
    struct message *message = malloc(sizeof *message + data.size);
    if (message == NULL) { /* it is asked for again, when there may be memory */
        client_call_cancel(grpc);
        return;
    }
    message->size = data.size;
    if (data.size > 0)
        memcpy(message->data, data.data, data.size);
    list_append(&call->messages, &message->link);
    call->waiting_bytes += data.size;
    call->heard_us = now_us(call);
    pause_if_ahead(call);
    call->options.on_news(call->options.context);
}

static void call_ended(void *context, struct client_call *grpc, status s)
{
    struct change_call *call = context;
    (void)grpc;
    call->call = NULL;
    call->result = explain(call, s);
    call->link->calls--;
    call->link = NULL;
    if (!call->is_dying)
        call->options.on_news(call->options.context);
}

static status start(struct change_call *call, const struct change_call_options *options)
{
    const struct client_metadata routing = {.name = "x-goog-request-params",
                                            .value = options->routing};
    const struct client_call_options grpc = {.path = options->path,
                                             .timeout_us = INT64_MAX,
                                             .metadata = &routing,
                                             .metadata_count = 1,
                                             .context = call,
                                             .on_message = call_took,
                                             .on_end = call_ended};
    struct buffer message = {0};
    TRY(take_link(call));
    grpc_message_start(&message);
    proto_encode(options->request, &message);
    if (message.failed) {
        buffer_free(&message);
        return status_out_of_memory();
    }
    status s = grpc_link_call(call->link->grpc, &grpc, &message, &call->call);
    call->link->is_leaving = s.code == STATUS_UNAVAILABLE;
    return s;
}

status change_call_create(const struct change_call_options *options, struct change_call **out)
{
    struct change_call *call = *out = calloc(1, sizeof *call);
    if (call == NULL)
        return status_out_of_memory();
    call->options = *options;
    call->options.request = NULL;
    call->allowed_bytes = CHANGE_CALL_WINDOW;
    call->heard_us = now_us(call);
    status s = start(call, options);
    if (status_is_ok(s))
        return s;
    change_call_destroy(call);
    *out = NULL;
    return s;
}

void change_call_destroy(struct change_call *call)
{
    if (call == NULL)
        return;
    call->is_dying = true;
    if (call->call != NULL)
        client_call_cancel(call->call);
    if (call->link != NULL) /* it was never made */
        call->link->calls--;
    while (!list_is_empty(&call->messages))
        free(LIST_ENTRY(list_take(&call->messages), struct message, link));
    status_free(call->result);
    free(call);
}

/* --- its messages --- */

static struct message *first_of(const struct change_call *call)
{
    return LIST_ENTRY(call->messages.first, struct message, link);
}

bool change_call_message(const struct change_call *call, bytes *message)
{
    if (list_is_empty(&call->messages))
        return false;
    *message = bytes_make(first_of(call)->data, first_of(call)->size);
    return true;
}

void change_call_drop_message(struct change_call *call)
{
    call->waiting_bytes -= first_of(call)->size;
    free(LIST_ENTRY(list_take(&call->messages), struct message, link));
    pause_if_ahead(call);
}

void change_call_allow(struct change_call *call, size_t bytes)
{
    call->allowed_bytes = bytes;
    pause_if_ahead(call);
}

bool change_call_has_ended(struct change_call *call, status *how)
{
    if (call->call != NULL || !list_is_empty(&call->messages))
        return false;
    *how = call->result;
    call->result = status_ok();
    return true;
}

int64_t change_call_heard_us(const struct change_call *call)
{
    return call->is_paused ? now_us(call) : call->heard_us;
}
