/* See http2.h.
 *
 * A request lies in its call's arena, and so lives until the call's thread has seen that it is
 * finished. Whichever of its two threads is last to have something to say finishes it:
 *
 * Invariants
 *  1. While NEWS is set, `wake` is posted, and only it may finish the call.
 *  2. Once ENDED is set no news are posted. */
#include "wire/http2.h"

#include "base/check.h"
#include "base/list.h"
#include "wire/http_private.h"

#include <stdatomic.h>

enum {
    NEWS = 1,     /* the handler's thread is to look */
    WRITABLE = 2, /* the client has read */
    GONE = 4,     /* it has gone */
    ENDED = 8,    /* the answer has */
};

struct http2_request {
    struct http_request base;
    uint32_t magic;
    struct grpc_call *call;
    struct loop *loop;
    http_handler *handle;
    void *handle_context;
    struct http_client client;
    bool has_begun;     /* the answer has, for the call */
    bool has_no_body;   /* the answer: it is to HEAD */
    atomic_uint events; /* the bits above */
    struct task start;
    struct task wake;
};

#define HTTP2_REQUEST_MAGIC 0x48325251u

static struct http2_request *request_of(struct http_request *base)
{
    struct http2_request *request = LIST_ENTRY(base, struct http2_request, base);
    CHECK_MAGIC(request, HTTP2_REQUEST_MAGIC);
    return request;
}

/* --- the answer, on the handler's thread --- */

static void begin(struct http2_request *request)
{
    if (!request->has_begun)
        grpc_call_answer_http(request->call, request->base.code, request->base.content_type,
                              request->base.caching);
    request->has_begun = true;
}

static void header(struct http_request *base, const char *name, const char *value)
{
    grpc_call_add_header(request_of(base)->call, name, bytes_of(value));
}

static void add(struct http_request *base, bytes more)
{
    struct http2_request *request = request_of(base);
    begin(request);
    if (more.size > 0 && !request->has_no_body)
        grpc_call_send_http(request->call, more);
}

/* Finishes the call now, or has `wake` do it. */
static void finish(struct http2_request *request)
{
    if ((atomic_fetch_or(&request->events, ENDED) & NEWS) == 0)
        grpc_call_finish(request->call, status_ok());
}

static void end(struct http_request *base)
{
    struct http2_request *request = request_of(base);
    begin(request);
    finish(request);
}

static bool is_congested(struct http_request *base)
{
    return grpc_call_is_congested(request_of(base)->call);
}

static void visit_headers(const struct http_request *base, void *context,
                          void (*each)(void *context, bytes name, bytes value))
{
    const struct http2_request *request = (const struct http2_request *)base;
    grpc_call_visit_headers(request->call, context, each);
}

static void run_start(struct task *task)
{
    struct http2_request *request = LIST_ENTRY(task, struct http2_request, start);
    CHECK_MAGIC(request, HTTP2_REQUEST_MAGIC);
    request->handle(request->handle_context, &request->base);
}

static void run_wake(struct task *task)
{
    struct http2_request *request = LIST_ENTRY(task, struct http2_request, wake);
    CHECK_MAGIC(request, HTTP2_REQUEST_MAGIC);
    struct http_request *base = &request->base;
    unsigned events = atomic_fetch_and(&request->events, ~(unsigned)(NEWS | WRITABLE));
    if ((events & ENDED) != 0) {
        grpc_call_finish(request->call, status_ok());
    } else if ((events & GONE) != 0) {
        if (base->on_gone != NULL)
            base->on_gone(base->context);
        http_request_release(base);
        finish(request);
    } else if (base->on_writable != NULL) {
        base->on_writable(base->context);
    }
}

/* --- news, on the call's thread --- */

static void tell(struct http2_request *request, unsigned event)
{
    unsigned before = atomic_fetch_or(&request->events, event | NEWS);
    if ((before & (NEWS | ENDED)) == 0)
        loop_post(request->loop, &request->wake);
}

static void on_writable(void *context)
{
    tell(context, WRITABLE);
}

static void on_cancel(void *context)
{
    tell(context, GONE);
}

/* --- the beginning --- */

static char *copy(struct arena *arena, const char *text)
{
    return text == NULL ? NULL : arena_string(arena, bytes_of(text));
}

/* NULL without memory. */
static struct http2_request *make_request(struct grpc_call *call, const struct http_client *client)
{
    static const struct http_way way = {visit_headers, header, add, end, is_congested};
    struct arena *arena = grpc_call_arena(call);
    struct http2_request *request = arena_zalloc(arena, sizeof *request);
    bytes method = bytes_of("POST"), target;
    if (request == NULL)
        return NULL;
    if (grpc_call_header(call, ":method", &target))
        method = target;
    grpc_call_header(call, ":path", &target);
    request->base = (struct http_request){.way = &way,
                                          .method = arena_string(arena, method),
                                          .target = arena_string(arena, target),
                                          .client = &request->client,
                                          .code = 200};
    request->client.address = copy(arena, client->address);
    request->client.subject = copy(arena, client->subject);
    bool is_whole = request->base.method != NULL && request->base.target != NULL &&
                    (client->address == NULL) == (request->client.address == NULL) &&
                    (client->subject == NULL) == (request->client.subject == NULL);
    return is_whole ? request : NULL;
}

void http2_handle(struct grpc_call *call, bytes body, const struct http_client *client,
                  struct loop *loop, http_handler *handle, void *context)
{
    struct http2_request *request = make_request(call, client);
    if (request == NULL) {
        grpc_call_finish(call, status_out_of_memory());
        return;
    }
    request->magic = HTTP2_REQUEST_MAGIC;
    request->call = call;
    request->loop = loop;
    request->handle = handle;
    request->handle_context = context;
    request->base.body = body;
    request->base.is_too_large = body.data == NULL;
    request->has_no_body = strcmp(request->base.method, "HEAD") == 0;
    request->start.run = run_start;
    request->wake.run = run_wake;
    loop_post(loop, &request->start);
    grpc_call_set_callbacks(call, request, on_writable, on_cancel);
}
