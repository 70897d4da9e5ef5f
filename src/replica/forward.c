/* See forward.h.
 *
 * Of each peer there is one session, for its endpoint's sake: where it is, and how both know each
 * other; another one when the peers have become others, as one that has moved. A loop's link to it
 * is made when it is first needed, and anew when it is lost. */
#include "replica/forward.h"

#include "access/access.h"
#include "base/check.h"
#include "base/metrics.h"
#include "tablet/version.h"
#include "wire/grpc_link.h"
#include "wire/grpc_text.h"

#include <stdio.h>
#include <stdlib.h>

struct loop_links {
    struct loop_links *next;
    struct forwarder *forwarder;
    struct task leave;
    struct loop *loop;
    struct grpc_link *of[VERSION_CLUSTERS];
};

/* A peer as it was known once. Links and calls refer to it: it stays until the end. */
struct known_peer {
    struct known_peer *former;
    struct client_session *session;
    uint64_t generation; /* of the peers, before it was looked up */
};

struct forwarder {
    struct peers *peers;
    struct metrics *metrics; /* may be NULL */
    pthread_mutex_t lock;
    struct known_peer *known[VERSION_CLUSTERS]; /* lock: the list; what is in it stays as it is */
    struct loop_links *loops;                   /* lock: the list; links are their loops' */
    size_t leaving;                             /* lock: loops */
    pthread_cond_t left;
};

/* One target of a call. */
struct attempt {
    struct forwarding *f;
    const struct forward_target *target;
    const struct client_session *session;
    struct grpc_link *link;
    struct client_call *sent; /* NULL: it has not begun, or has ended */
};

/* One call. In its arena, as its attempts are. */
struct forwarding {
    struct forwarder *forwarder;
    struct grpc_call *call;
    bytes request;
    struct forwarded as;
    struct clock *clock;
    struct timer timer;       /* until another one is asked, too */
    struct attempt *attempts; /* one for each target */
    size_t tried;             /* the first ones, in their order */
    size_t under_way;
    struct attempt *chosen; /* whose answer it is; NULL: that is open */
    status failure;         /* of the last that failed, if none is chosen */
    bool is_paused;
    bool is_cancelled;
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
static status know_anew(struct forwarder *forwarder, unsigned peer)
{
    struct known_peer *known = calloc(1, sizeof *known);
    if (known == NULL)
        return status_out_of_memory();
    known->generation = peers_generation(forwarder->peers);
    status s = peers_session(forwarder->peers, peer, &known->session);
    if (!status_is_ok(s)) {
        free(known);
        return s;
    }
    known->former = forwarder->known[peer];
    forwarder->known[peer] = known;
    return status_ok();
}

/* With the lock held. */
static status find_session(struct forwarder *forwarder, unsigned peer,
                           const struct client_session **out)
{
    const struct known_peer *known = forwarder->known[peer];
    if (known == NULL || known->generation != peers_generation(forwarder->peers))
        TRY(know_anew(forwarder, peer));
    *out = forwarder->known[peer]->session;
    return status_ok();
}

static status find_link(struct forwarder *forwarder, struct loop *loop, struct attempt *attempt)
{
    unsigned peer = attempt->target->peer;
    pthread_mutex_lock(&forwarder->lock);
    struct loop_links *links = links_of(forwarder, loop);
    status s =
        links == NULL ? status_out_of_memory() : find_session(forwarder, peer, &attempt->session);
    pthread_mutex_unlock(&forwarder->lock);
    TRY(s);
    TRY(endpoint_connect(client_session_endpoint(attempt->session), loop, &links->of[peer]));
    attempt->link = links->of[peer];
    return status_ok();
}

/* --- one or the other --- */

static void keep_failure(struct forwarding *f, status s)
{
    status_free(f->failure);
    f->failure = s;
}

static struct loop *loop_of(const struct forwarding *f)
{
    return grpc_call_loop(f->call);
}

static void cancel(struct attempt *attempt)
{
    if (attempt->sent != NULL)
        client_call_cancel(attempt->sent);
}

/* From now on it alone answers. */
static void choose(struct forwarding *f, struct attempt *attempt)
{
    f->chosen = attempt;
    loop_timer_clear(loop_of(f), &f->timer);
    keep_failure(f, status_ok());
    if (attempt->target->params != NULL && attempt->target->peer != 0)
        grpc_call_share_headers(f->call, attempt->target->params);
    for (size_t i = 0; i < f->tried; i++)
        if (&f->attempts[i] != attempt)
            cancel(&f->attempts[i]);
}

/* Ends the call; takes the status. */
static void end(struct forwarding *f, status s)
{
    if (status_is_ok(s) && f->as.before_end != NULL)
        f->as.before_end(f->as.context, f->call);
    else
        grpc_call_finish(f->call, s);
}

static void serve_here(struct forwarding *f, struct attempt *attempt)
{
    const struct forwarded *as = &f->as;
    choose(f, attempt);
    grpc_call_set_callbacks(f->call, NULL, NULL, NULL);
    as->method->handle(as->service->context, f->call, f->request);
}

/* --- the answer --- */

static void look_at_client(struct forwarding *f)
{
    bool is_congested = grpc_call_is_congested(f->call);
    if (f->chosen == NULL || f->chosen->sent == NULL || is_congested == f->is_paused)
        return;
    f->is_paused = is_congested;
    client_call_pause(f->chosen->sent, is_congested);
}

static void writable(void *context)
{
    look_at_client(context);
}

/* The last that ends would end the call, and with it what this goes through. */
static void cancelled(void *context)
{
    struct forwarding *f = context;
    f->is_cancelled = true;
    loop_timer_clear(loop_of(f), &f->timer);
    f->under_way++;
    for (size_t i = 0; i < f->tried; i++)
        cancel(&f->attempts[i]);
    f->under_way--;
    if (f->under_way == 0) {
        keep_failure(f, status_ok());
        grpc_call_finish(f->call, status_make(STATUS_CANCELLED, "the client has gone"));
    }
}

static void pass_message(void *context, struct client_call *sent, bytes message)
{
    struct attempt *attempt = context;
    struct forwarding *f = attempt->f;
    struct buffer copy = {0};
    (void)sent;
    if (f->chosen == NULL)
        choose(f, attempt);
    grpc_message_start(&copy);
    buffer_append_bytes(&copy, message);
    grpc_call_send(f->call, &copy);
    look_at_client(f);
}

/* Whether the server may have done something for it. */
static bool was_taken(const struct attempt *attempt, const struct client_call *sent)
{
    bytes says_not;
    return grpc_link_has_moved(attempt->link) && client_call_was_taken(sent) &&
           !client_call_metadata(sent, FORWARD_NOT_TAKEN, &says_not);
}

static bool may_turn_elsewhere(const struct attempt *attempt, const struct client_call *sent,
                               status s)
{
    return s.code == STATUS_UNAVAILABLE && (attempt->f->as.may_repeat || !was_taken(attempt, sent));
}

/* What this side says of an answer that never came: from where. The server's own words stay. */
static status name_server(const struct attempt *attempt, status s)
{
    const char *address = client_session_address(attempt->session);
    status lost = grpc_link_failure(attempt->link);
    bool is_known = grpc_link_is_lost(attempt->link) && !status_is_ok(lost);
    status named = status_make(s.code, "The server at %s, which was to answer, did not: %s",
                               address, status_message(is_known ? lost : s));
    status_free(lost);
    status_free(s);
    return named;
}

/* Of a failure: in whose words it is, and with what comes beside them. */
static status take_words(const struct attempt *attempt, const struct client_call *sent, status s)
{
    bytes text;
    if (status_is_ok(s) || client_call_metadata(sent, "grpc-status", &text))
        return s;
    return name_server(attempt, s);
}

static void go_on(struct forwarding *f);

/* Of the status, by which clients know what to do about it. */
static void pass_details(struct grpc_call *call, const struct client_call *sent)
{
    static const char NAME[] = "grpc-status-details-bin";
    bytes text;
    size_t size;
    if (!client_call_metadata(sent, NAME, &text))
        return;
    uint8_t *details = arena_alloc(grpc_call_arena(call), base64_decoded_most(text.size));
    if (details != NULL && base64_decode(text, details, &size))
        grpc_call_add_trailer(call, NAME, bytes_make(details, size));
}

static void pass_end(void *context, struct client_call *sent, status s)
{
    struct attempt *attempt = context;
    struct forwarding *f = attempt->f;
    attempt->sent = NULL;
    f->under_way--;
    if (f->is_cancelled || (f->chosen != NULL && f->chosen != attempt)) {
        status_ignore(s); /* who cancelled it goes on from there */
        return;
    }
    bool turns = f->chosen == NULL && may_turn_elsewhere(attempt, sent, s);
    s = take_words(attempt, sent, s);
    if (turns) {
        keep_failure(f, s);
        go_on(f);
        return;
    }
    if (f->chosen == NULL)
        choose(f, attempt);
    pass_details(f->call, sent);
    end(f, s);
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

static status send_on(struct forwarding *f, struct attempt *attempt)
{
    char path[256], number[16];
    struct buffer message = {0};
    struct client_metadata metadata[GRPC_LINK_METADATA_MOST];
    size_t count = 0;
    TRY(find_link(f->forwarder, loop_of(f), attempt));
    snprintf(path, sizeof path, "/%s/%s", f->as.service->name, f->as.method->name);
    snprintf(number, sizeof number, "%u", peers_own_number(f->forwarder->peers));
    metadata[count++] =
        (struct client_metadata){.name = ACCESS_FORWARDED_BY, .value = bytes_of(number)};
    add_header(f->call, "x-goog-request-params", metadata, &count);
    add_header(f->call, "bigtable-features", metadata, &count);
    const struct client_call_options options = {.path = path,
                                                .timeout_us = time_left_us(f),
                                                .metadata = metadata,
                                                .metadata_count = count,
                                                .context = attempt,
                                                .on_message = pass_message,
                                                .on_end = pass_end};
    grpc_message_start(&message);
    buffer_append_bytes(&message, f->request);
    return grpc_link_call(attempt->link, &options, &message, &attempt->sent);
}

/* What is left then is enough for one more; without a deadline nobody is in a hurry. */
static void set_timer(struct forwarding *f)
{
    int64_t left_us = time_left_us(f);
    if (!f->as.may_repeat || f->tried == f->as.target_count || left_us == INT64_MAX)
        return;
    status_ignore(loop_timer_set(loop_of(f), &f->timer, clock_steady_us(f->clock) + left_us / 2));
}

/* One that was tried elsewhere before. */
static void count_here(const struct forwarding *f)
{
    if (f->forwarder->metrics != NULL && f->tried > 1)
        metrics_add(f->forwarder->metrics, METRIC_forwarded_again_total, 1);
}

static void count_attempt(const struct forwarding *f)
{
    struct metrics *metrics = f->forwarder->metrics;
    if (metrics == NULL)
        return;
    metrics_add(metrics, METRIC_forwarded_calls_total, 1);
    if (f->tried > 1)
        metrics_add(metrics, METRIC_forwarded_again_total, 1);
}

static status cannot_reach(const struct attempt *attempt, status s)
{
    const struct client_session *session = attempt->session; /* NULL: it is not known where */
    status named =
        status_make(STATUS_UNAVAILABLE, "The server%s%s that is to answer cannot be reached: %s",
                    session == NULL ? "" : " at ",
                    session == NULL ? "" : client_session_address(session), status_message(s));
    status_free(s);
    return named;
}

/* Where the next attempt is, or was, made: true, and the call may be gone. */
static bool try_next(struct forwarding *f)
{
    while (f->tried < f->as.target_count) {
        struct attempt *attempt = &f->attempts[f->tried];
        attempt->f = f;
        attempt->target = &f->as.targets[f->tried++];
        if (attempt->target->peer == 0) {
            count_here(f);
            serve_here(f, attempt);
            return true;
        }
        status s = send_on(f, attempt);
        count_attempt(f);
        if (status_is_ok(s)) {
            f->under_way++;
            set_timer(f);
            return true;
        }
        keep_failure(f, cannot_reach(attempt, s));
    }
    return false;
}

static bool is_next_here(const struct forwarding *f)
{
    return f->tried < f->as.target_count && f->as.targets[f->tried].peer == 0;
}

/* After one has failed. Here is not asked while another one is. */
static void go_on(struct forwarding *f)
{
    bool waits = f->under_way > 0 && is_next_here(f);
    if (waits || try_next(f) || f->under_way > 0)
        return;
    status s = f->failure;
    f->failure = status_ok();
    choose(f, &f->attempts[f->tried - 1]);
    end(f, s);
}

static void ask_another(struct timer *timer)
{
    struct forwarding *f =
        (struct forwarding *)(void *)((char *)timer - offsetof(struct forwarding, timer));
    (void)try_next(f);
}

void forward_call(struct forwarder *forwarder, struct grpc_call *call, bytes request,
                  const struct forwarded *forwarded)
{
    struct arena *arena = grpc_call_arena(call);
    struct forwarding *f = arena_zalloc(arena, sizeof *f);
    struct attempt *attempts = arena_zalloc(arena, forwarded->target_count * sizeof *attempts);
    if (f == NULL || attempts == NULL || grpc_call_is_cancelled(call)) {
        grpc_call_finish(call, status_out_of_memory()); /* or nobody hears it */
        return;
    }
    *f = (struct forwarding){.forwarder = forwarder,
                             .call = call,
                             .request = request,
                             .as = *forwarded,
                             .clock = loop_clock(grpc_call_loop(call)),
                             .timer = {.run = ask_another},
                             .attempts = attempts,
                             .failure = status_ok()};
    grpc_call_set_callbacks(call, f, writable, cancelled);
    go_on(f);
}

/* --- making and ending --- */

status forwarder_create(struct peers *peers, struct metrics *metrics, struct forwarder **out)
{
    struct forwarder *forwarder = *out = calloc(1, sizeof *forwarder);
    if (forwarder == NULL)
        return status_out_of_memory();
    forwarder->peers = peers;
    forwarder->metrics = metrics;
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

static void forget(struct known_peer *known)
{
    while (known != NULL) {
        struct known_peer *former = known->former;
        client_session_destroy(known->session);
        free(known);
        known = former;
    }
}

void forwarder_destroy(struct forwarder *forwarder)
{
    if (forwarder == NULL)
        return;
    CHECK(forwarder->loops == NULL);
    for (unsigned i = 0; i < VERSION_CLUSTERS; i++)
        forget(forwarder->known[i]);
    pthread_mutex_destroy(&forwarder->lock);
    pthread_cond_destroy(&forwarder->left);
    free(forwarder);
}
