/* See router.h. */
#include "replica/router.h"

#include "base/check.h"
#include "bigtable/nearness.h"
#include "bigtable/peers_hook.h"
#include "bigtable/served_by.h"
#include "replica/own_routes.h"
#include "replica/request_traits.h"
#include "tablet/version.h"
#include "wire/proto.h"

#include <stdlib.h>

struct router {
    struct router_options options;
    struct forwarder *forwarder;
    pthread_mutex_t lock;
    bool (*knows_schema_since)(void *context, int64_t since_us); /* lock; NULL: nobody says */
    void *schema;                                                /* lock */
};

enum { MIRROR_US = 20 * 1000 * 1000, LOOK_US = 10 * 1000 };

/* --- what is asked --- */

/* Whether a call may be made in two clusters: of mutations it depends on these. Others are for one
 * cluster alone, or their answers are. */
enum repeating { REPEATS_NEVER, REPEATS_ALWAYS, REPEATS_BY_MUTATIONS };

/* The fields of a method's request that say whose it is, and what it is about. Those that are 0 it
 * has not. */
struct data_method {
    const char *name;
    uint32_t table;
    uint32_t view;
    uint32_t materialized_view;
    uint32_t profile;
    enum repeating repeats;
    uint32_t mutations; /* or entries, in which they are the next */
    uint32_t entry;
    enum row_key_place key_place;
    uint32_t key;
};

static const struct data_method data_methods[] = {
    {"ReadRows", 1, 9, 11, 5, REPEATS_ALWAYS, 0, 0, ROW_KEY_SET, 2},
    {"SampleRowKeys", 1, 4, 5, 2, REPEATS_ALWAYS, 0, 0, ROW_KEY_NONE, 0},
    {"MutateRow", 1, 6, 0, 4, REPEATS_BY_MUTATIONS, 3, 0, ROW_KEY, 2},
    {"MutateRows", 1, 5, 0, 3, REPEATS_BY_MUTATIONS, 2, 2, ROW_KEY_ENTRY, 2},
    {"CheckAndMutateRow", 1, 9, 0, 7, REPEATS_NEVER, 0, 0, ROW_KEY_NONE, 0},
    {"ReadModifyWriteRow", 1, 6, 0, 4, REPEATS_NEVER, 0, 0, ROW_KEY_NONE, 0},
    {"PrepareQuery", 1, 0, 0, 2, REPEATS_ALWAYS, 0, 0, ROW_KEY_NONE, 0},
    {"ExecuteQuery", 1, 0, 0, 2, REPEATS_ALWAYS, 0, 0, ROW_KEY_NONE, 0},
    {"GenerateInitialChangeStreamPartitions", 1, 0, 0, 2, REPEATS_NEVER, 0, 0, ROW_KEY_NONE, 0},
    {"ReadChangeStream", 1, 0, 0, 2, REPEATS_NEVER, 0, 0, ROW_KEY_NONE, 0},
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

static bool was_forwarded(struct grpc_call *call)
{
    bytes by;
    return grpc_call_header(call, ACCESS_FORWARDED_BY, &by);
}

/* --- data --- */

/* A call, and what it is about. */
struct asked {
    const struct router *router;
    const struct grpc_service *service;
    const struct grpc_method *grpc_method;
    const struct data_method *method;
    bytes request;
    bytes instance;
};

static status find_served(const struct asked *asked, struct grpc_call *call, struct served *out)
{
    const char *id =
        arena_string(grpc_call_arena(call), peek(asked->request, asked->method->profile));
    return id == NULL ? status_out_of_memory()
                      : served_by_find(asked->router->options.bigtable->served_by, asked->instance,
                                       id, out);
}

static bool may_repeat(const struct asked *asked)
{
    const struct data_method *method = asked->method;
    return method->repeats == REPEATS_ALWAYS ||
           (method->repeats == REPEATS_BY_MUTATIONS &&
            mutations_may_repeat(asked->request, method->mutations, method->entry));
}

static bool leads(const struct router *router)
{
    return peers_leader(router->options.peers) == peers_own_number(router->options.peers);
}

static bool is_here(const struct router *router, const struct served_place *place)
{
    return strcmp(place->zone_id, router->options.location) == 0;
}

static status check_rows(const struct router *router, bytes instance)
{
    TRY(check_is_whole(router->options.bigtable));
    return check_is_here(router->options.bigtable, instance);
}

static bool has_rows(const struct router *router, bytes instance)
{
    status s = check_rows(router, instance);
    bool is_so = status_is_ok(s);
    status_free(s);
    return is_so;
}

/* Where a call may go, in the order in which it is tried. Those that are not likely to answer come
 * last. */
struct targets {
    bytes instance;
    size_t count;
    struct forward_target list[VERSION_CLUSTERS];
    size_t late_count;
    struct forward_target late[VERSION_CLUSTERS];
};

static void add_target(struct targets *targets, unsigned peer, const struct served_place *place,
                       bool is_late)
{
    size_t *count = is_late ? &targets->late_count : &targets->count;
    struct forward_target *list = is_late ? targets->late : targets->list;
    if (targets->count + targets->late_count < VERSION_CLUSTERS)
        list[(*count)++] = (struct forward_target){.peer = peer, .params = place->params};
}

/* A place that no server serves is at the one that leads (sites.h). */
static void add_place(const struct router *router, const struct served_place *place,
                      struct targets *targets)
{
    bool is_silent;
    unsigned peer = peers_at(router->options.peers, place->zone_id, &is_silent);
    if (peer == 0)
        peer = peers_leader(router->options.peers);
    if (is_here(router, place) || peer == peers_own_number(router->options.peers))
        add_target(targets, 0, place, !has_rows(router, targets->instance));
    else
        add_target(targets, peer, place, is_silent);
}

static void add_leader(const struct router *router, const struct served_place *place,
                       struct targets *targets)
{
    add_target(targets, leads(router) ? 0 : peers_leader(router->options.peers), place, false);
}

static void add_late(struct targets *targets)
{
    for (size_t i = 0; i < targets->late_count; i++)
        targets->list[targets->count++] = targets->late[i];
    targets->late_count = 0;
}

/* By how much each wants the row: the next after the first is where it goes if that fails. */
static void add_by_affinity(const struct router *router, const struct served_choice *choice,
                            bytes row_key, struct targets *targets)
{
    uint64_t below = UINT64_MAX;
    for (size_t i = 0; i < choice->count && i < VERSION_CLUSTERS; i++) {
        const struct served_place *next = NULL;
        uint64_t most = 0;
        for (size_t j = 0; j < choice->count; j++) {
            uint64_t weight = row_affinity_weight(choice->places[j]->cluster_id, row_key);
            bool is_next = weight < below && (next == NULL || weight > most);
            most = is_next ? weight : most;
            next = is_next ? choice->places[j] : next;
        }
        below = most;
        if (next != NULL)
            add_place(router, next, targets);
    }
}

static void add_choice(const struct asked *asked, const struct served_choice *choice,
                       struct targets *targets)
{
    const struct data_method *method = asked->method;
    bytes row_key;
    if (choice->has_row_affinity &&
        request_row_key(asked->request, method->key_place, method->key, &row_key)) {
        add_by_affinity(asked->router, choice, row_key, targets);
        return;
    }
    for (size_t i = 0; i < choice->count; i++)
        add_place(asked->router, choice->places[i], targets);
}

static void add_served(const struct asked *asked, const struct served *served,
                       struct targets *targets)
{
    const struct served_place only = {.params = served->params, .zone_id = served->zone_id};
    if (!served->has_cluster)
        add_leader(asked->router, &only, targets);
    else if (served->choice == NULL)
        add_place(asked->router, &only, targets);
    else
        add_choice(asked, served->choice, targets);
    add_late(targets);
    if (asked->method->repeats == REPEATS_NEVER && targets->count > 1)
        targets->count = 1;
}

/* The targets are others. */
static void send_data(const struct asked *asked, struct grpc_call *call,
                      const struct targets *targets)
{
    size_t size = targets->count * sizeof *targets->list;
    bytes kept = arena_copy(grpc_call_arena(call), bytes_make(targets->list, size));
    if (kept.data == NULL) {
        grpc_call_finish(call, status_out_of_memory());
        return;
    }
    const struct forwarded forwarded = {.service = asked->service,
                                        .method = asked->grpc_method,
                                        .targets =
                                            (const struct forward_target *)(const void *)kept.data,
                                        .target_count = targets->count,
                                        .may_repeat = targets->count > 1 && may_repeat(asked)};
    forward_call(asked->router->forwarder, call, asked->request, &forwarded);
}

/* --- what is served here --- */

static void leave_out_here(struct targets *targets)
{
    size_t count = 0;
    for (size_t i = 0; i < targets->count; i++)
        if (targets->list[i].peer != 0)
            targets->list[count++] = targets->list[i];
    targets->count = count;
}

/* The store here takes nothing, or the like, which may be otherwise elsewhere. */
static bool rescue(void *context, struct grpc_call *call)
{
    const struct asked *asked = context;
    struct targets targets = {.instance = asked->instance};
    struct served served;
    if (!may_repeat(asked))
        return false;
    status s = find_served(asked, call, &served);
    if (status_is_ok(s))
        add_served(asked, &served, &targets);
    status_free(s);
    leave_out_here(&targets);
    if (targets.count > 0)
        send_data(asked, call, &targets);
    return targets.count > 0;
}

/* If it may be served elsewhere as well. Without memory it is not rescued. */
static void serve_here(const struct asked *asked, struct grpc_call *call,
                       const struct served *served)
{
    bool has_others = served->choice != NULL && served->choice->count > 1 &&
                      asked->method->repeats != REPEATS_NEVER;
    struct asked *kept = has_others ? arena_alloc(grpc_call_arena(call), sizeof *kept) : NULL;
    if (kept == NULL)
        return;
    *kept = *asked;
    grpc_call_set_rescue(call, kept, rescue);
}

/* Most calls are served where they come to, and cost no more than this. */
static bool is_served_here(const struct asked *asked, const struct served *served)
{
    const struct router *router = asked->router;
    const struct served_choice *choice = served->choice;
    if (!served->has_cluster)
        return leads(router);
    if (choice == NULL)
        return strcmp(served->zone_id, router->options.location) == 0;
    return !choice->has_row_affinity && is_here(router, choice->places[0]) &&
           has_rows(router, asked->instance);
}

/* False: it is answered here. */
static bool take_served(const struct asked *asked, struct grpc_call *call,
                        const struct served *served)
{
    struct targets targets = {.instance = asked->instance};
    bool is_here = is_served_here(asked, served);
    if (!is_here) {
        add_served(asked, served, &targets);
        is_here = targets.count == 0 || targets.list[0].peer == 0;
    }
    if (is_here)
        serve_here(asked, call, served);
    else
        send_data(asked, call, &targets);
    return !is_here;
}

static bool take_data(const struct router *router, struct grpc_call *call,
                      const struct grpc_service *service, const struct grpc_method *grpc_method,
                      const struct data_method *method, bytes request)
{
    const struct asked asked = {.router = router,
                                .service = service,
                                .grpc_method = grpc_method,
                                .method = method,
                                .request = request,
                                .instance = instance_of(resource_of(method, request))};
    struct served served;
    if (asked.instance.size == 0)
        return false;
    status s = find_served(&asked, call, &served);
    bool is_taken = status_is_ok(s) && take_served(&asked, call, &served);
    status_free(s); /* the method meets it itself */
    return is_taken;
}

/* Of a call that a peer has sent here, and that may be made elsewhere instead. */
static bool refuse_without_rows(const struct router *router, struct grpc_call *call,
                                const struct data_method *method, bytes request)
{
    bytes instance = instance_of(resource_of(method, request));
    status s = instance.size == 0 ? status_ok() : check_rows(router, instance);
    if (status_is_ok(s))
        return false;
    grpc_call_add_trailer(call, FORWARD_NOT_TAKEN, bytes_of("1"));
    grpc_call_finish(call, s);
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
static bool take_drop(struct router *router, struct grpc_call *call,
                      const struct grpc_service *service, const struct grpc_method *method,
                      bytes request)
{
    static const struct data_method drop = {.name = "DropRowRange", .table = 1};
    bytes instance = instance_of(peek(request, drop.table));
    return strcmp(method->name, drop.name) == 0 && instance.size > 0 &&
           !has_rows(router, instance) && take_data(router, call, service, method, &drop, request);
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

bool router_take(struct router *router, struct grpc_call *call, const struct grpc_service *service,
                 const struct grpc_method *method, bytes request)
{
    if (peers_own_number(router->options.peers) == 0)
        return false;
    const struct data_method *data = strcmp(service->name, "google.bigtable.v2.Bigtable") == 0
                                         ? find_data_method(method->name)
                                         : NULL;
    if (was_forwarded(call))
        return data != NULL && refuse_without_rows(router, call, data, request);
    return data != NULL ? take_data(router, call, service, method, data, request)
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
