/* See health.h.
 *
 * Invariants
 *  1. `mutex` guards the state and the list of watchers, and is held while a watcher is sent
 *     something, so that one thread at a time uses its call.
 *  2. The thread that takes a watcher off the list finishes its call, and no other does. */
#include "wire/health.h"

#include "wire/proto.h"
#include "wire/proto_call.h"

#include "grpc/health/v1/health.pb-c.h"

#include <pthread.h>
#include <stdlib.h>

/* A call of Watch; in its arena. */
struct watcher {
    struct health *health;
    struct grpc_call *call;
    struct watcher *previous;
    struct watcher *next;
    bool is_listed;
    bool is_known; /* the service that it asks about */
};

struct health {
    struct grpc_service service;
    const char **names;
    size_t name_count;
    pthread_mutex_t mutex;
    bool is_serving;
    bool is_shut_down;
    struct watcher *watchers;
};

typedef Health__HealthCheckResponse__ServingStatus serving_status;
#define SERVING_STATUS(name) HEALTH__HEALTH_CHECK_RESPONSE__SERVING_STATUS__##name

static bool is_known(const struct health *health, const char *name)
{
    for (size_t i = 0; i < health->name_count; i++)
        if (strcmp(name, health->names[i]) == 0)
            return true;
    return false;
}

static serving_status current(const struct health *health)
{
    return health->is_serving ? SERVING_STATUS(SERVING) : SERVING_STATUS(NOT_SERVING);
}

static void send_status(struct grpc_call *call, serving_status state)
{
    Health__HealthCheckResponse response = HEALTH__HEALTH_CHECK_RESPONSE__INIT;
    response.status = state;
    grpc_call_send_proto(call, &response.base);
}

static status decode(struct grpc_call *call, bytes request, const char **name)
{
    ProtobufCMessage *message;
    TRY(proto_decode(&health__health_check_request__descriptor, request, grpc_call_arena(call),
                     &message));
    *name = ((Health__HealthCheckRequest *)message)->service;
    return status_ok();
}

/* --- Check and List --- */

static status check(struct health *health, struct grpc_call *call, bytes request)
{
    const char *name;
    TRY(decode(call, request, &name));
    if (!is_known(health, name))
        return status_make(STATUS_NOT_FOUND, "unknown service");
    pthread_mutex_lock(&health->mutex);
    serving_status state = current(health);
    pthread_mutex_unlock(&health->mutex);
    send_status(call, state);
    return status_ok();
}

static void handle_check(void *context, struct grpc_call *call, bytes request)
{
    grpc_call_finish(call, check(context, call, request));
}

static status list(struct health *health, struct grpc_call *call)
{
    typedef Health__HealthListResponse__StatusesEntry entry;
    struct arena *arena = grpc_call_arena(call);
    entry **entries = arena_alloc(arena, health->name_count * sizeof(entry *));
    Health__HealthCheckResponse *state;
    PROTO_NEW(arena, state, HEALTH__HEALTH_CHECK_RESPONSE__INIT);
    if (entries == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < health->name_count; i++) {
        PROTO_NEW(arena, entries[i], HEALTH__HEALTH_LIST_RESPONSE__STATUSES_ENTRY__INIT);
        entries[i]->key = health->names[i];
        entries[i]->value = state;
    }
    pthread_mutex_lock(&health->mutex);
    state->status = current(health);
    pthread_mutex_unlock(&health->mutex);
    Health__HealthListResponse response = HEALTH__HEALTH_LIST_RESPONSE__INIT;
    response.n_statuses = health->name_count;
    response.statuses = entries;
    grpc_call_send_proto(call, &response.base);
    return status_ok();
}

static void handle_list(void *context, struct grpc_call *call, bytes request)
{
    (void)request; /* has no fields */
    grpc_call_finish(call, list(context, call));
}

/* --- Watch --- */

static void add_watcher(struct watcher *watcher)
{
    struct health *health = watcher->health;
    watcher->is_listed = true;
    watcher->next = health->watchers;
    if (watcher->next != NULL)
        watcher->next->previous = watcher;
    health->watchers = watcher;
}

static void remove_watcher(struct watcher *watcher)
{
    watcher->is_listed = false;
    if (watcher->previous != NULL)
        watcher->previous->next = watcher->next;
    else
        watcher->health->watchers = watcher->next;
    if (watcher->next != NULL)
        watcher->next->previous = watcher->previous;
}

static void tell(const struct watcher *watcher)
{
    send_status(watcher->call,
                watcher->is_known ? current(watcher->health) : SERVING_STATUS(SERVICE_UNKNOWN));
}

static void stop_watching(void *context)
{
    struct watcher *watcher = context;
    struct health *health = watcher->health;
    pthread_mutex_lock(&health->mutex);
    bool is_ours = watcher->is_listed;
    if (is_ours)
        remove_watcher(watcher);
    pthread_mutex_unlock(&health->mutex);
    if (is_ours)
        grpc_call_finish(watcher->call, status_make(STATUS_CANCELLED, "cancelled"));
}

static status shut_down_status(void)
{
    return status_make(STATUS_UNAVAILABLE, "the server stops");
}

/* Whether it has taken the call on; if not, the caller finishes it. */
static status watch(struct health *health, struct grpc_call *call, bytes request)
{
    const char *name;
    TRY(decode(call, request, &name));
    struct watcher *watcher = arena_alloc(grpc_call_arena(call), sizeof *watcher);
    if (watcher == NULL)
        return status_out_of_memory();
    *watcher = (struct watcher){.health = health, .call = call, .is_known = is_known(health, name)};
    grpc_call_set_callbacks(call, watcher, NULL, stop_watching);
    pthread_mutex_lock(&health->mutex);
    bool is_refused = health->is_shut_down;
    if (!is_refused) {
        add_watcher(watcher);
        tell(watcher);
    }
    pthread_mutex_unlock(&health->mutex);
    return is_refused ? shut_down_status() : status_ok();
}

static void handle_watch(void *context, struct grpc_call *call, bytes request)
{
    status s = watch(context, call, request);
    if (!status_is_ok(s))
        grpc_call_finish(call, s);
}

/* --- the state --- */

void health_set(struct health *health, bool serving)
{
    pthread_mutex_lock(&health->mutex);
    bool changes = !health->is_shut_down && serving != health->is_serving;
    if (changes)
        health->is_serving = serving;
    for (struct watcher *watcher = health->watchers; changes && watcher != NULL;
         watcher = watcher->next)
        if (watcher->is_known)
            tell(watcher);
    pthread_mutex_unlock(&health->mutex);
}

void health_shut_down(struct health *health)
{
    health_set(health, false);
    pthread_mutex_lock(&health->mutex);
    health->is_shut_down = true;
    while (health->watchers != NULL) {
        struct watcher *watcher = health->watchers;
        remove_watcher(watcher);
        grpc_call_finish(watcher->call, shut_down_status());
    }
    pthread_mutex_unlock(&health->mutex);
}

status health_create(const struct grpc_service *const *services, size_t service_count,
                     struct health **out)
{
    static const struct grpc_method methods[] = {
        {"Check", GRPC_UNARY, handle_check},
        {"List", GRPC_UNARY, handle_list},
        {"Watch", GRPC_SERVER_STREAMING, handle_watch},
    };
    *out = NULL;
    struct health *health = calloc(1, sizeof *health);
    const char **names = calloc(service_count + 1, sizeof *names);
    if (health == NULL || names == NULL) {
        free(health);
        free(names);
        return status_out_of_memory();
    }
    names[0] = "";
    for (size_t i = 0; i < service_count; i++)
        names[i + 1] = services[i]->name;
    health->names = names;
    health->name_count = service_count + 1;
    health->service = (struct grpc_service){.name = "grpc.health.v1.Health",
                                            .methods = methods,
                                            .method_count = sizeof methods / sizeof *methods,
                                            .context = health};
    pthread_mutex_init(&health->mutex, NULL);
    *out = health;
    return status_ok();
}

void health_destroy(struct health *health)
{
    if (health == NULL)
        return;
    pthread_mutex_destroy(&health->mutex);
    free(health->names);
    free(health);
}

const struct grpc_service *health_service(const struct health *health)
{
    return &health->service;
}
