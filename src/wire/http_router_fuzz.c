/* Fuzzer: any verb and path. What is found binds, unless its encoding is broken, and binds the same
 * again; what binds is a message of the route's request type (save that a name may hold bytes that
 * no string may).
 *
 * Input: choices (base/testing/fuzzing.h): a verb, then parts of paths. */
#include "base/testing/fuzzing.h"
#include "wire/http_router.h"
#include "wire/proto.h"

#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "google/cloud/location/locations.pb-c.h"
#include "google/datastore/admin/v1/datastore_admin.pb-c.h"
#include "google/datastore/v1/datastore.pb-c.h"
#include "google/firestore/admin/v1/firestore_admin.pb-c.h"
#include "google/longrunning/operations.pb-c.h"
#include "trestle/backup/v1/whole_backups.pb-c.h"
#include "trestle/insight/v1/insight.pb-c.h"
#include "trestle/replica/v1/replica.pb-c.h"

enum { MOST_PATH = 4 << 10, MOST_BYTES = 32 };

static struct http_router *create_router(void)
{
    static const ProtobufCServiceDescriptor *const services[] = {
        &bt__bigtable__descriptor,
        &bt_admin__bigtable_instance_admin__descriptor,
        &bt_admin__bigtable_table_admin__descriptor,
        &lro__operations__descriptor,
        &location__locations__descriptor,
        &ds__datastore__descriptor,
        &ds_admin__datastore_admin__descriptor,
        &fs_admin__firestore_admin__descriptor,
        &insight__insight__descriptor,
        &wb__whole_backups__descriptor,
        &replica__replication__descriptor,
    };
    struct http_router *router;
    status s = http_router_create(proto_http_rules, proto_http_rule_count, services,
                                  sizeof services / sizeof *services, &router);
    CHECK(status_is_ok(s));
    return router;
}

static void choose_path(struct choices *choices, struct buffer *out)
{
    static const char *const parts[] = {
        "/v2/",
        "projects",
        "/",
        "instances",
        "tables",
        "clusters",
        "backups",
        "operations",
        ":readRows",
        ":cancel",
        ":",
        "%2F",
        "%",
        "%c3",
        "authorizedViews",
        "appProfiles",
        "/v2/projects/p/instances/i",
        "/tables/t",
        "/v2/operations/projects/p",
        "/v1/projects/",
        "indexes",
        ":lookup",
        "databases",
        "collectionGroups",
        "fields",
        "locations",
        "servers",
        ":heat",
        ":advise",
    };
    while (choices->left.size > 0 && out->size < MOST_PATH) {
        unsigned part = choose(choices, 1 + sizeof parts / sizeof *parts);
        buffer_append_bytes(out, part == 0 ? choose_bytes(choices, MOST_BYTES)
                                           : bytes_of(parts[part - 1]));
    }
    CHECK(!out->failed);
}

static bool bind(const struct http_route *route, bytes path, struct buffer *wire)
{
    status s = http_route_bind(route, path, wire);
    bool is_fine = status_is_ok(s);
    CHECK(is_fine || s.code == STATUS_INVALID_ARGUMENT);
    status_free(s);
    return is_fine;
}

static void check_route(const struct http_route *route, bytes path)
{
    struct buffer wire = {0}, again = {0};
    if (bind(route, path, &wire)) {
        struct arena *arena = arena_create(1 << 20);
        ProtobufCMessage *message;
        CHECK(arena != NULL);
        CHECK(bind(route, path, &again));
        CHECK(bytes_equal(buffer_bytes(&wire), buffer_bytes(&again)));
        status s = proto_decode(route->request, buffer_bytes(&wire), arena, &message);
        CHECK(status_is_ok(s) || s.code == STATUS_INVALID_ARGUMENT);
        status_free(s);
        arena_destroy(arena);
    }
    buffer_free(&wire);
    buffer_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const verbs[] = {"GET", "POST", "PUT", "PATCH", "DELETE", ""};
    static struct http_router *router;
    struct choices choices = choices_of(data, size);
    const struct http_route *route;
    struct buffer path = {0};
    if (router == NULL)
        router = create_router();
    const char *verb = verbs[choose(&choices, sizeof verbs / sizeof *verbs)];
    choose_path(&choices, &path);
    status s = http_router_find(router, verb, buffer_bytes(&path), &route);
    CHECK(status_is_ok(s) ? route != NULL : s.code == STATUS_NOT_FOUND && route == NULL);
    if (route != NULL)
        check_route(route, buffer_bytes(&path));
    status_free(s);
    buffer_free(&path);
    return 0;
}
