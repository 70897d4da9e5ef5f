/* See router.h. */
#include "replica/router.h"

#include "base/check.h"
#include "bigtable/served_by.h"
#include "wire/proto.h"

#include <stdlib.h>

struct router {
    struct router_options options;
    struct forwarder *forwarder;
    pthread_mutex_t lock;
    bool (*knows_schema_since)(void *context, int64_t since_us); /* lock; NULL: nobody says */
    void *schema;                                                /* lock */
};

enum { LIST_BYTES = 1 << 20, MIRROR_US = 20 * 1000 * 1000, LOOK_US = 10 * 1000 };

/* --- what is asked --- */

/* The fields of a method's request that say whose it is. Those that are 0 it has not. */
struct data_method {
    const char *name;
    uint32_t table;
    uint32_t view;
    uint32_t materialized_view;
    uint32_t profile;
};

static const struct data_method data_methods[] = {
    {"ReadRows", 1, 9, 11, 5},
    {"SampleRowKeys", 1, 4, 5, 2},
    {"MutateRow", 1, 6, 0, 4},
    {"MutateRows", 1, 5, 0, 3},
    {"CheckAndMutateRow", 1, 9, 0, 7},
    {"ReadModifyWriteRow", 1, 6, 0, 4},
    {"PrepareQuery", 1, 0, 0, 2},
    {"ExecuteQuery", 1, 0, 0, 2},
    {"GenerateInitialChangeStreamPartitions", 1, 0, 0, 2},
    {"ReadChangeStream", 1, 0, 0, 2},
};

/* What is each cluster's own, or asked of what is here; all else that is administered is shared. */
static const char *const own_methods[] = {
    "Get",
    "List",
    "TestIamPermissions",
    "DropRowRange",
    "GenerateConsistencyToken",
    "CheckConsistency",
    "CreateBackup",
    "UpdateBackup",
    "DeleteBackup",
    "CopyBackup",
    "RestoreTable",
};

static bool is_own_method(const char *name)
{
    for (size_t i = 0; i < sizeof own_methods / sizeof *own_methods; i++)
        if (strncmp(name, own_methods[i], strlen(own_methods[i])) == 0)
            return true;
    return false;
}

static bytes peek(bytes request, uint32_t field)
{
    bytes value = bytes_make(NULL, 0);
    return field != 0 && proto_peek(request, &field, 1, &value) ? value : bytes_make(NULL, 0);
}

/* A backup's policy: a request's `resource` is its field 1, as most names are. */
static bool is_of_backup(bytes request)
{
    static const char collection[] = "/backups/";
    bytes name = peek(request, 1);
    return name.size > 0 && memmem(name.data, name.size, collection, sizeof collection - 1) != NULL;
}

static const struct data_method *find_data_method(const char *name)
{
    for (size_t i = 0; i < sizeof data_methods / sizeof *data_methods; i++)
        if (strcmp(data_methods[i].name, name) == 0)
            return &data_methods[i];
    return NULL;
}

/* "projects/P/instances/I" of a name under it; empty: it is no such name. */
static bytes instance_of(bytes name)
{
    size_t slashes = 0, size = 0;
    while (size < name.size && (slashes += name.data[size] == '/') < 4)
        size++;
    return slashes >= 3 ? bytes_make(name.data, size) : bytes_make(NULL, 0);
}

static bytes resource_of(const struct data_method *method, bytes request)
{
    bytes name = peek(request, method->table);
    if (name.size == 0)
        name = peek(request, method->view);
    return name.size > 0 ? name : peek(request, method->materialized_view);
}

/* --- peers --- */

/* The number of the peer that serves the location; 0: none does. */
static unsigned peer_at(const struct router *router, const char *location)
{
    const Replica__PeerList *list = NULL;
    unsigned number = 0;
    struct arena *arena = arena_create(LIST_BYTES);
    if (arena == NULL)
        return 0;
    status s = peers_list(router->options.peers, arena, &list);
    for (size_t i = 0; status_is_ok(s) && list != NULL && i < list->n_peers; i++)
        if (strcmp(list->peers[i]->location, location) == 0)
            number = list->peers[i]->number;
    status_free(s);
    arena_destroy(arena);
    return number;
}

static bool was_forwarded(struct grpc_call *call)
{
    bytes by;
    return grpc_call_header(call, ACCESS_FORWARDED_BY, &by);
}

/* --- data --- */

static status find_served(const struct router *router, struct grpc_call *call, bytes instance,
                          bytes profile, struct served *out)
{
    const char *id = arena_string(grpc_call_arena(call), profile);
    return id == NULL ? status_out_of_memory()
                      : served_by_find(router->options.bigtable->served_by, instance, id, out);
}

static bool take_data(const struct router *router, struct grpc_call *call,
                      const struct grpc_service *service, const struct data_method *method,
                      bytes request)
{
    struct served served;
    bytes instance = instance_of(resource_of(method, request));
    if (instance.size == 0)
        return false;
    status s = find_served(router, call, instance, peek(request, method->profile), &served);
    if (!status_is_ok(s) || strcmp(served.zone_id, router->options.location) == 0) {
        status_free(s); /* the method meets it itself */
        return false;
    }
    unsigned peer = peer_at(router, served.zone_id);
    if (peer == 0 || peer == peers_own_number(router->options.peers))
        return false;
    const struct forwarded forwarded = {
        .peer = peer, .service = service->name, .method = method->name, .params = served.params};
    forward_call(router->forwarder, call, request, &forwarded);
    return true;
}

/* --- administration --- */

/* What the leader has done is to be here, too. In the call's arena. */
struct awaiting {
    struct router *router;
    struct grpc_call *call;
    struct timer timer;
    int64_t since_us; /* clock_steady_us */
};

static int64_t now_us(struct grpc_call *call)
{
    return clock_steady_us(loop_clock(grpc_call_loop(call)));
}

static bool is_mirrored(struct router *router, int64_t since_us)
{
    pthread_mutex_lock(&router->lock);
    bool is_so =
        router->knows_schema_since == NULL || router->knows_schema_since(router->schema, since_us);
    pthread_mutex_unlock(&router->lock);
    return is_so;
}

static void look(struct timer *timer)
{
    struct awaiting *awaiting =
        (struct awaiting *)(void *)((char *)timer - offsetof(struct awaiting, timer));
    int64_t now = now_us(awaiting->call);
    bool is_over = now - awaiting->since_us > MIRROR_US || grpc_call_is_cancelled(awaiting->call) ||
                   is_mirrored(awaiting->router, awaiting->since_us);
    status s = is_over ? status_ok()
                       : loop_timer_set(grpc_call_loop(awaiting->call), timer, now + LOOK_US);
    if (is_over || !status_is_ok(s))
        grpc_call_finish(awaiting->call, status_ok());
    status_free(s);
}

static void await_mirror(void *context, struct grpc_call *call)
{
    struct awaiting *awaiting = arena_zalloc(grpc_call_arena(call), sizeof *awaiting);
    if (awaiting == NULL) {
        grpc_call_finish(call, status_ok());
        return;
    }
    *awaiting = (struct awaiting){
        .router = context, .call = call, .timer = {.run = look}, .since_us = now_us(call)};
    grpc_call_set_callbacks(call, NULL, NULL, NULL);
    look(&awaiting->timer);
}

static bool take_administration(struct router *router, struct grpc_call *call,
                                const struct grpc_service *service,
                                const struct grpc_method *method, bytes request)
{
    const struct forwarded forwarded = {.peer = peers_leader(router->options.peers),
                                        .service = service->name,
                                        .method = method->name,
                                        .before_end = await_mirror,
                                        .context = router};
    if (is_own_method(method->name) || is_of_backup(request))
        return false;
    forward_call(router->forwarder, call, request, &forwarded);
    return true;
}

/* Operations have their names in field 1. */
static bool take_operation(const struct router *router, struct grpc_call *call,
                           const struct grpc_service *service, const struct grpc_method *method,
                           bytes request)
{
    const struct forwarded forwarded = {.peer = peers_leader(router->options.peers),
                                        .service = service->name,
                                        .method = method->name};
    const char *name = arena_string(grpc_call_arena(call), peek(request, 1));
    if (name == NULL || strcmp(method->name, "ListOperations") == 0 ||
        control_has(router->options.bigtable->control, RESOURCE_OPERATION, name))
        return false;
    forward_call(router->forwarder, call, request, &forwarded);
    return true;
}

/* --- all of it --- */

static bool take(struct router *router, struct grpc_call *call, const struct grpc_service *service,
                 const struct grpc_method *method, bytes request)
{
    bool leads = peers_leader(router->options.peers) == peers_own_number(router->options.peers);
    if (strcmp(service->name, "google.bigtable.v2.Bigtable") == 0) {
        const struct data_method *data = find_data_method(method->name);
        return data != NULL && take_data(router, call, service, data, request);
    }
    if (leads)
        return false;
    if (strncmp(service->name, "google.bigtable.admin.", strlen("google.bigtable.admin.")) == 0)
        return take_administration(router, call, service, method, request);
    return strcmp(service->name, "google.longrunning.Operations") == 0 &&
           take_operation(router, call, service, method, request);
}

bool router_take(struct router *router, struct grpc_call *call, const struct grpc_service *service,
                 const struct grpc_method *method, bytes request)
{
    return peers_own_number(router->options.peers) != 0 && !was_forwarded(call) &&
           take(router, call, service, method, request);
}

status router_create(const struct router_options *options, struct router **out)
{
    struct router *router = *out = calloc(1, sizeof *router);
    if (router == NULL)
        return status_out_of_memory();
    router->options = *options;
    pthread_mutex_init(&router->lock, NULL);
    status s = forwarder_create(options->peers, &router->forwarder);
    if (!status_is_ok(s)) {
        router_destroy(router);
        *out = NULL;
    }
    return s;
}

void router_set_schema(struct router *router,
                       bool (*knows_schema_since)(void *context, int64_t since_us), void *context)
{
    pthread_mutex_lock(&router->lock);
    router->knows_schema_since = knows_schema_since;
    router->schema = context;
    pthread_mutex_unlock(&router->lock);
}

void router_rest(struct router *router)
{
    if (router != NULL)
        forwarder_rest(router->forwarder);
}

void router_destroy(struct router *router)
{
    if (router == NULL)
        return;
    forwarder_destroy(router->forwarder);
    pthread_mutex_destroy(&router->lock);
    free(router);
}
