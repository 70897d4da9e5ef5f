/* See data_router.h. */
#include "replica/data_router.h"

#include "bigtable/nearness.h"
#include "bigtable/peers_hook.h"
#include "bigtable/served_by.h"
#include "bigtable/services.h"
#include "replica/peers.h"
#include "replica/request_traits.h"
#include "replica/sites.h"
#include "tablet/version.h"
#include "wire/proto.h"

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
    {"DropRowRange", 1, 0, 0, 0, REPEATS_NEVER, 0, 0, ROW_KEY_NONE, 0},
};

static bytes peek(bytes request, uint32_t field)
{
    bytes value = bytes_make(NULL, 0);
    return field != 0 && proto_peek(request, &field, 1, &value) ? value : bytes_make(NULL, 0);
}

static const struct data_method *find_data_method(const char *name)
{
    for (size_t i = 0; i < sizeof data_methods / sizeof *data_methods; i++)
        if (strcmp(data_methods[i].name, name) == 0)
            return &data_methods[i];
    return NULL;
}

static bytes resource_of(const struct data_method *method, bytes request)
{
    bytes name = peek(request, method->table);
    if (name.size == 0)
        name = peek(request, method->view);
    return name.size > 0 ? name : peek(request, method->materialized_view);
}

/* A call, and what it is about. */
struct asked {
    const struct data_router *router;
    const struct grpc_service *service;
    const struct grpc_method *grpc_method;
    const struct data_method *method;
    bytes request;
    bytes instance;
};

/* False: it is about no instance. */
static bool find_subject(const struct grpc_method *method, bytes request, struct asked *out)
{
    out->method = find_data_method(method->name);
    if (out->method != NULL)
        out->instance = sites_instance_of(resource_of(out->method, request));
    return out->method != NULL && out->instance.size > 0;
}

static status find_served(const struct asked *asked, struct grpc_call *call, struct served *out)
{
    const char *id =
        arena_string(grpc_call_arena(call), peek(asked->request, asked->method->profile));
    return id == NULL
               ? status_out_of_memory()
               : served_by_find(asked->router->bigtable->served_by, asked->instance, id, out);
}

static bool may_repeat(const struct asked *asked)
{
    const struct data_method *method = asked->method;
    return method->repeats == REPEATS_ALWAYS ||
           (method->repeats == REPEATS_BY_MUTATIONS &&
            mutations_may_repeat(asked->request, method->mutations, method->entry));
}

static bool leads(const struct data_router *router)
{
    return peers_leader(router->peers) == peers_own_number(router->peers);
}

static bool is_here(const struct data_router *router, const struct served_place *place)
{
    return strcmp(place->zone_id, router->location) == 0;
}

static status check_rows(const struct data_router *router, bytes instance)
{
    TRY(check_is_whole(router->bigtable));
    return check_is_here(router->bigtable, instance);
}

static bool has_rows(const struct data_router *router, bytes instance)
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
static void add_place(const struct data_router *router, const struct served_place *place,
                      struct targets *targets)
{
    bool is_silent;
    unsigned peer = peers_at(router->peers, place->zone_id, &is_silent);
    if (peer == 0)
        peer = peers_leader(router->peers);
    if (is_here(router, place) || peer == peers_own_number(router->peers))
        add_target(targets, 0, place, !has_rows(router, targets->instance));
    else
        add_target(targets, peer, place, is_silent);
}

static void add_leader(const struct data_router *router, const struct served_place *place,
                       struct targets *targets)
{
    add_target(targets, leads(router) ? 0 : peers_leader(router->peers), place, false);
}

static void add_late(struct targets *targets)
{
    for (size_t i = 0; i < targets->late_count; i++)
        targets->list[targets->count++] = targets->late[i];
    targets->late_count = 0;
}

/* By how much each wants the row: the next after the first is where it goes if that fails. */
static void add_by_affinity(const struct data_router *router, const struct served_choice *choice,
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
    const struct data_router *router = asked->router;
    const struct served_choice *choice = served->choice;
    if (!served->has_cluster)
        return leads(router);
    if (choice == NULL)
        return strcmp(served->zone_id, router->location) == 0;
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

bool data_router_take(const struct data_router *router, struct grpc_call *call,
                      const struct grpc_service *service, const struct grpc_method *method,
                      bytes request)
{
    struct served served;
    struct asked asked = {
        .router = router, .service = service, .grpc_method = method, .request = request};
    if (!find_subject(method, request, &asked))
        return false;
    status s = find_served(&asked, call, &served);
    bool is_taken = status_is_ok(s) && take_served(&asked, call, &served);
    status_free(s); /* the method meets it itself */
    return is_taken;
}

bool data_router_refuse(const struct data_router *router, struct grpc_call *call,
                        const struct grpc_method *method, bytes request)
{
    struct asked asked;
    if (!find_subject(method, request, &asked))
        return false;
    status s = check_rows(router, asked.instance);
    if (status_is_ok(s))
        return false;
    grpc_call_add_trailer(call, FORWARD_NOT_TAKEN, bytes_of("1"));
    grpc_call_finish(call, s);
    return true;
}
