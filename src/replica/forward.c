/* See forward.h.
 *
 * Of each peer there is one session, for its endpoint's sake: where it is, and how both know each
 * other. A loop's link to it is made when it is first needed, and anew when it is lost. */
#include "replica/forward.h"

#include "access/access.h"
#include "base/check.h"
#include "tablet/version.h"
#include "wire/grpc_link.h"

#include <stdio.h>
#include <stdlib.h>

struct loop_links {
    struct loop_links *next;
    struct forwarder *forwarder;
    struct task leave;
    struct loop *loop;
    struct grpc_link *of[VERSION_CLUSTERS];
};

struct forwarder {
    struct peers *peers;
    pthread_mutex_t lock;
    struct client_session *sessions[VERSION_CLUSTERS]; /* lock */
    struct loop_links *loops;                          /* lock: the list; links are their loops' */
    size_t leaving;                                    /* lock: loops */
    pthread_cond_t left;
};

/* One call. In its arena. */
struct forwarding {
    struct grpc_call *call;
    struct client_call *sent; /* NULL: it has ended */
    struct forwarded as;
    struct clock *clock;
    bool is_paused;
};

/* --- connections --- */

static struct loop_links *links_of(struct forwarder *forwarder, struct loop *loop)
{
    struct loop_links *links = forwarder->loops;
    while (links != NULL && links->loop != loop)
        links = links->next;
    if (links != NULL)
        return links;
    links = calloc(1, sizeof *links);
    if (links == NULL)
        return NULL;
    links->forwarder = forwarder;
    links->loop = loop;
    links->next = forwarder->loops;
    forwarder->loops = links;
    return links;
}

/* With the lock held. */
static status find_endpoint(struct forwarder *forwarder, unsigned peer,
                            const struct endpoint **endpoint)
{
    if (forwarder->sessions[peer] == NULL)
        TRY(peers_session(forwarder->peers, peer, &forwarder->sessions[peer]));
    *endpoint = client_session_endpoint(forwarder->sessions[peer]);
    return status_ok();
}

static status find_link(struct forwarder *forwarder, struct loop *loop, unsigned peer,
                        struct grpc_link **out)
{
    const struct endpoint *endpoint;
    pthread_mutex_lock(&forwarder->lock);
    struct loop_links *links = links_of(forwarder, loop);
    status s = links == NULL ? status_out_of_memory() : find_endpoint(forwarder, peer, &endpoint);
    pthread_mutex_unlock(&forwarder->lock);
    TRY(s);
    TRY(endpoint_connect(endpoint, loop, &links->of[peer]));
    *out = links->of[peer];
    return status_ok();
}

/* --- the answer --- */

static void look_at_client(struct forwarding *f)
{
    bool is_congested = grpc_call_is_congested(f->call);
    if (f->sent == NULL || is_congested == f->is_paused)
        return;
    f->is_paused = is_congested;
    client_call_pause(f->sent, is_congested);
}

static void writable(void *context)
{
    look_at_client(context);
}

static void cancelled(void *context)
{
    struct forwarding *f = context;
    if (f->sent != NULL)
        client_call_cancel(f->sent);
}

static void pass_message(void *context, struct client_call *sent, bytes message)
{
    struct forwarding *f = context;
    struct buffer copy = {0};
    (void)sent;
    grpc_message_start(&copy);
    buffer_append_bytes(&copy, message);
    grpc_call_send(f->call, &copy);
    look_at_client(f);
}

static void pass_end(void *context, struct client_call *sent, status s)
{
    struct forwarding *f = context;
    (void)sent;
    f->sent = NULL;
    if (status_is_ok(s) && f->as.before_end != NULL)
        f->as.before_end(f->as.context, f->call);
    else
        grpc_call_finish(f->call, s);
}

/* --- the request --- */

static int64_t time_left_us(const struct forwarding *f)
{
    int64_t deadline_us = grpc_call_deadline_us(f->call);
    if (deadline_us == INT64_MAX)
        return INT64_MAX;
    int64_t left_us = deadline_us - clock_steady_us(f->clock);
    return left_us > 0 ? left_us : 1;
}

static void add_header(struct grpc_call *call, const char *name, struct client_metadata *metadata,
                       size_t *count)
{
    bytes value;
    if (grpc_call_header(call, name, &value))
        metadata[(*count)++] = (struct client_metadata){.name = name, .value = value};
}

static status send_on(struct forwarder *forwarder, struct forwarding *f, bytes request)
{
    struct grpc_link *link;
    char path[256], number[16];
    struct buffer message = {0};
    struct client_metadata metadata[GRPC_LINK_METADATA_MOST];
    size_t count = 0;
    TRY(find_link(forwarder, grpc_call_loop(f->call), f->as.peer, &link));
    snprintf(path, sizeof path, "/%s/%s", f->as.service, f->as.method);
    snprintf(number, sizeof number, "%u", peers_own_number(forwarder->peers));
    metadata[count++] =
        (struct client_metadata){.name = ACCESS_FORWARDED_BY, .value = bytes_of(number)};
    add_header(f->call, "x-goog-request-params", metadata, &count);
    add_header(f->call, "bigtable-features", metadata, &count);
    const struct client_call_options options = {.path = path,
                                                .timeout_us = time_left_us(f),
                                                .metadata = metadata,
                                                .metadata_count = count,
                                                .context = f,
                                                .on_message = pass_message,
                                                .on_end = pass_end};
    grpc_message_start(&message);
    buffer_append_bytes(&message, request);
    return grpc_link_call(link, &options, &message, &f->sent);
}

void forward_call(struct forwarder *forwarder, struct grpc_call *call, bytes request,
                  const struct forwarded *forwarded)
{
    struct forwarding *f = arena_zalloc(grpc_call_arena(call), sizeof *f);
    if (f == NULL) {
        grpc_call_finish(call, status_out_of_memory());
        return;
    }
    DCHECK(forwarded->peer < VERSION_CLUSTERS);
    *f = (struct forwarding){
        .call = call, .as = *forwarded, .clock = loop_clock(grpc_call_loop(call))};
    if (forwarded->params != NULL)
        grpc_call_share_headers(call, forwarded->params);
    status s = send_on(forwarder, f, request);
    if (!status_is_ok(s)) {
        status unavailable = status_make(STATUS_UNAVAILABLE,
                                         "The cluster that is to answer cannot "
                                         "be reached: %s",
                                         status_message(s));
        status_free(s);
        grpc_call_finish(call, unavailable);
        return;
    }
    grpc_call_set_callbacks(call, f, writable, cancelled);
}

/* --- making and ending --- */

status forwarder_create(struct peers *peers, struct forwarder **out)
{
    struct forwarder *forwarder = *out = calloc(1, sizeof *forwarder);
    if (forwarder == NULL)
        return status_out_of_memory();
    forwarder->peers = peers;
    pthread_mutex_init(&forwarder->lock, NULL);
    pthread_cond_init(&forwarder->left, NULL);
    return status_ok();
}

/* On the loop. */
static void leave(struct task *task)
{
    struct loop_links *links = LIST_ENTRY(&task->link, struct loop_links, leave.link);
    struct forwarder *forwarder = links->forwarder;
    for (unsigned i = 0; i < VERSION_CLUSTERS; i++)
        grpc_link_destroy(links->of[i]);
    pthread_mutex_lock(&forwarder->lock);
    forwarder->leaving--;
    pthread_cond_signal(&forwarder->left);
    pthread_mutex_unlock(&forwarder->lock);
}

void forwarder_rest(struct forwarder *forwarder)
{
    if (forwarder == NULL)
        return;
    pthread_mutex_lock(&forwarder->lock);
    for (struct loop_links *links = forwarder->loops; links != NULL; links = links->next) {
        forwarder->leaving++;
        links->leave.run = leave;
        loop_post(links->loop, &links->leave);
    }
    while (forwarder->leaving > 0)
        pthread_cond_wait(&forwarder->left, &forwarder->lock);
    struct loop_links *links;
    while ((links = forwarder->loops) != NULL) {
        forwarder->loops = links->next;
        free(links);
    }
    pthread_mutex_unlock(&forwarder->lock);
}

void forwarder_destroy(struct forwarder *forwarder)
{
    if (forwarder == NULL)
        return;
    CHECK(forwarder->loops == NULL);
    for (unsigned i = 0; i < VERSION_CLUSTERS; i++)
        client_session_destroy(forwarder->sessions[i]);
    pthread_mutex_destroy(&forwarder->lock);
    pthread_cond_destroy(&forwarder->left);
    free(forwarder);
}
