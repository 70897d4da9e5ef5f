/* See router.h. */
#include "replica/router.h"

#include "base/check.h"
#include "bigtable/peers_hook.h"
#include "replica/data_router.h"
#include "replica/own_routes.h"
#include "replica/sites.h"
#include "wire/proto.h"

#include <stdlib.h>

struct router {
    struct router_options options;
    struct forwarder *forwarder;
    struct data_router data;
    pthread_mutex_t lock;
    bool (*knows_schema_since)(void *context, int64_t since_us); /* lock; NULL: nobody says */
    void *schema;                                                /* lock */
};

enum { MIRROR_US = 20 * 1000 * 1000, LOOK_US = 10 * 1000 };

/* --- what is asked --- */

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

static bool was_forwarded(struct grpc_call *call)
{
    bytes by;
    return grpc_call_header(call, ACCESS_FORWARDED_BY, &by);
}

static bool leads(const struct router *router)
{
    return peers_leader(router->options.peers) == peers_own_number(router->options.peers);
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

/* To that server, and nowhere else. */
static bool send_to(struct router *router, struct grpc_call *call, unsigned peer,
                    const struct grpc_service *service, const struct grpc_method *method,
                    bytes request, bool awaits_mirror)
{
    struct forward_target *target = arena_zalloc(grpc_call_arena(call), sizeof *target);
    const struct forwarded forwarded = {.service = service,
                                        .method = method,
                                        .targets = target,
                                        .target_count = 1,
                                        .before_end = awaits_mirror ? await_mirror : NULL,
                                        .context = router};
    if (target == NULL) {
        grpc_call_finish(call, status_out_of_memory());
        return true;
    }
    target->peer = peer;
    forward_call(router->forwarder, call, request, &forwarded);
    return true;
}

static bool send_to_leader(struct router *router, struct grpc_call *call,
                           const struct grpc_service *service, const struct grpc_method *method,
                           bytes request, bool awaits_mirror)
{
    return send_to(router, call, peers_leader(router->options.peers), service, method, request,
                   awaits_mirror);
}

/* Rows are dropped where they are. */
static bool take_drop(const struct router *router, struct grpc_call *call,
                      const struct grpc_service *service, const struct grpc_method *method,
                      bytes request)
{
    if (strcmp(method->name, "DropRowRange") != 0)
        return false;
    bytes instance = sites_instance_of(peek(request, 1));
    status s = check_is_here(router->options.bigtable, instance);
    bool is_taken = !status_is_ok(s) && instance.size > 0 &&
                    data_router_take(&router->data, call, service, method, request);
    status_free(s);
    return is_taken;
}

static bool take_backup(struct router *router, struct grpc_call *call,
                        const struct grpc_service *service, const struct grpc_method *method,
                        bytes request)
{
    unsigned peer = own_route_of_backup(router->options.peers, router->options.bigtable->control,
                                        method->name, request);
    return peer != 0 && peer != peers_own_number(router->options.peers) &&
           send_to(router, call, peer, service, method, request, false);
}

static bool take_administration(struct router *router, struct grpc_call *call,
                                const struct grpc_service *service,
                                const struct grpc_method *method, bytes request)
{
    return take_drop(router, call, service, method, request) ||
           take_backup(router, call, service, method, request) ||
           (!leads(router) && !is_own_method(method->name) && !is_of_backup(request) &&
            send_to_leader(router, call, service, method, request, true));
}

/* Whether it is to be known elsewhere, if it is known anywhere. Operations have their names in
 * field 1; a list its parent in field 4: of Datastore's it is "projects/P". */
static bool is_operation_of_others(const struct router *router, struct grpc_call *call,
                                   const struct grpc_method *method, bytes request)
{
    static const char project[] = "projects/";
    bool is_list = strcmp(method->name, "ListOperations") == 0;
    bytes name = peek(request, is_list ? 4 : 1);
    if (is_list)
        return bytes_start_with(name, bytes_of(project));
    const char *text = arena_string(grpc_call_arena(call), name);
    return text != NULL &&
           !control_has(router->options.bigtable->control, RESOURCE_OPERATION, text);
}

static bool take_operation(struct router *router, struct grpc_call *call,
                           const struct grpc_service *service, const struct grpc_method *method,
                           bytes request)
{
    if (!is_operation_of_others(router, call, method, request))
        return false;
    bool is_list = strcmp(method->name, "ListOperations") == 0;
    unsigned peer = is_list ? peers_leader(router->options.peers)
                            : own_route_of_operation(router->options.peers, request);
    return peer != peers_own_number(router->options.peers) &&
           send_to(router, call, peer, service, method, request, false);
}

/* Databases are at the server that leads, and nowhere else. */
static bool is_datastore(const struct grpc_service *service)
{
    static const char *const services[] = {
        "google.datastore.v1.Datastore",
        "google.datastore.admin.v1.DatastoreAdmin",
        "google.firestore.admin.v1.FirestoreAdmin",
    };
    for (size_t i = 0; i < sizeof services / sizeof *services; i++)
        if (strcmp(service->name, services[i]) == 0)
            return true;
    return false;
}

/* --- all of it --- */

static bool take_any(struct router *router, struct grpc_call *call,
                     const struct grpc_service *service, const struct grpc_method *method,
                     bytes request)
{
    if (strncmp(service->name, "google.bigtable.admin.", strlen("google.bigtable.admin.")) == 0)
        return take_administration(router, call, service, method, request);
    if (is_datastore(service))
        return !leads(router) && send_to_leader(router, call, service, method, request, false);
    return strcmp(service->name, "google.longrunning.Operations") == 0 &&
           take_operation(router, call, service, method, request);
}

static bool is_data(const struct grpc_service *service)
{
    return strcmp(service->name, "google.bigtable.v2.Bigtable") == 0;
}

bool router_take(struct router *router, struct grpc_call *call, const struct grpc_service *service,
                 const struct grpc_method *method, bytes request)
{
    if (peers_own_number(router->options.peers) == 0)
        return false;
    if (was_forwarded(call))
        return is_data(service) && data_router_refuse(&router->data, call, method, request);
    return is_data(service) ? data_router_take(&router->data, call, service, method, request)
                            : take_any(router, call, service, method, request);
}

status router_create(const struct router_options *options, struct router **out)
{
    struct router *router = *out = calloc(1, sizeof *router);
    if (router == NULL)
        return status_out_of_memory();
    router->options = *options;
    pthread_mutex_init(&router->lock, NULL);
    status s = forwarder_create(options->peers, options->metrics, &router->forwarder);
    router->data = (struct data_router){.bigtable = options->bigtable,
                                        .peers = options->peers,
                                        .location = options->location,
                                        .forwarder = router->forwarder};
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
