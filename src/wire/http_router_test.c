/* Tests of the router, with the rules of the interface. */
#include "wire/http_router.h"

#include "base/testing/testing.h"
#include "wire/json.h"

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

#include <stdio.h>

static const ProtobufCServiceDescriptor *const services[] = {
    &bt__bigtable__descriptor,
    &bt_admin__bigtable_instance_admin__descriptor,
    &bt_admin__bigtable_table_admin__descriptor,
    &location__locations__descriptor,
    &lro__operations__descriptor,
    &ds__datastore__descriptor,
    &ds_admin__datastore_admin__descriptor,
    &fs_admin__firestore_admin__descriptor,
    &insight__insight__descriptor,
    &wb__whole_backups__descriptor,
    &replica__replication__descriptor,
};
enum { SERVICES = sizeof services / sizeof *services };

static int set_up(void **state)
{
    struct http_router *router;
    assert_ok(
        http_router_create(proto_http_rules, proto_http_rule_count, services, SERVICES, &router));
    *state = router;
    return 0;
}

static int tear_down(void **state)
{
    http_router_destroy(*state);
    return 0;
}

/* The path goes to that method, with that request, as JSON. */
static void expect(void **state, const char *verb, const char *path, const char *method,
                   const char *request)
{
    const struct json_style style = {.compact = true};
    const struct http_route *route;
    struct buffer wire = {0}, json = {0};
    struct arena *arena = arena_create(1 << 20);
    ProtobufCMessage *message;
    assert_ok(http_router_find(*state, verb, bytes_of(path), &route));
    assert_string_equal(strrchr(route->rule->method, '/') + 1, method);
    assert_ok(http_route_bind(route, bytes_of(path), &wire));
    assert_ok(proto_decode(route->request, buffer_bytes(&wire), arena, &message));
    json_encode(message, &style, &json);
    buffer_append_byte(&json, '\0');
    assert_string_equal((const char *)json.data, request);
    buffer_free(&wire);
    buffer_free(&json);
    arena_destroy(arena);
}

static void expect_none(void **state, const char *verb, const char *path)
{
    const struct http_route *route;
    status s = http_router_find(*state, verb, bytes_of(path), &route);
    assert_int_equal(s.code, STATUS_NOT_FOUND);
    assert_string_equal(status_message(s), "Method not found.");
    assert_null(route);
    status_free(s);
}

static void test_verbs(void **state)
{
    expect(state, "GET", "/v2/projects/p/instances/i", "GetInstance",
           "{\"name\":\"projects/p/instances/i\"}");
    expect(state, "PUT", "/v2/projects/p/instances/i", "UpdateInstance",
           "{\"name\":\"projects/p/instances/i\"}");
    expect(state, "PATCH", "/v2/projects/p/instances/i", "PartialUpdateInstance",
           "{\"instance\":{\"name\":\"projects/p/instances/i\"}}");
    expect(state, "DELETE", "/v2/projects/p/instances/i", "DeleteInstance",
           "{\"name\":\"projects/p/instances/i\"}");
    expect_none(state, "POST", "/v2/projects/p/instances/i");
    expect_none(state, "get", "/v2/projects/p/instances/i");
}

static void test_custom_verbs(void **state)
{
    expect(state, "POST", "/v2/projects/p/instances/i/tables/t:readRows", "ReadRows",
           "{\"tableName\":\"projects/p/instances/i/tables/t\"}");
    expect(state, "GET", "/v2/projects/p/instances/i/tables/t:sampleRowKeys", "SampleRowKeys",
           "{\"tableName\":\"projects/p/instances/i/tables/t\"}");
    expect(state, "POST", "/v2/projects/p/instances/i/tables:restore", "RestoreTable",
           "{\"parent\":\"projects/p/instances/i\"}");
    expect(state, "POST", "/v2/projects/p/instances/i/clusters/c/backups:copy", "CopyBackup",
           "{\"parent\":\"projects/p/instances/i/clusters/c\"}");
    expect_none(state, "POST", "/v2/projects/p/instances/i/tables/t:nothing");
    expect_none(state, "POST", "/v2/projects/p/instances/i/tables/:readRows");
}

static void test_additional_bindings(void **state)
{
    expect(state, "POST", "/v2/projects/p/instances/i/tables/t/authorizedViews/v:readRows",
           "ReadRows",
           "{\"authorizedViewName\":\"projects/p/instances/i/tables/t/authorizedViews/v\"}");
    expect(state, "POST", "/v2/projects/p/instances/i/materializedViews/v:readRows", "ReadRows",
           "{\"materializedViewName\":\"projects/p/instances/i/materializedViews/v\"}");
    expect(state, "POST", "/v2/projects/p/instances/i/clusters/c/backups/b:getIamPolicy",
           "GetIamPolicy", "{\"resource\":\"projects/p/instances/i/clusters/c/backups/b\"}");
}

/* A list of operations fits the rule of one operation, too. */
static void test_operations(void **state)
{
    expect(state, "GET", "/v2/operations/projects/p/instances/i/operations", "ListOperations",
           "{\"name\":\"operations/projects/p/instances/i\"}");
    expect(state, "GET", "/v2/operations/projects/p/instances/i/locations/z/operations/2",
           "GetOperation",
           "{\"name\":\"operations/projects/p/instances/i/locations/z/operations/2\"}");
    expect(state, "POST", "/v2/operations/a/b:cancel", "CancelOperation",
           "{\"name\":\"operations/a/b\"}");
    expect(state, "DELETE", "/v2/operations/1", "DeleteOperation", "{\"name\":\"operations/1\"}");
    expect_none(state, "GET", "/v2/operations");
    expect_none(state, "GET", "/v2/operations/");
}

/* A variable that is a field alone, and a path with two of them. */
static void test_plain_variables(void **state)
{
    expect(state, "POST", "/v1/projects/p:lookup", "Lookup", "{\"projectId\":\"p\"}");
    expect(state, "POST", "/v1/projects/example.com:p:runQuery", "RunQuery",
           "{\"projectId\":\"example.com:p\"}");
    expect(state, "GET", "/v1/projects/p/indexes", "ListIndexes", "{\"projectId\":\"p\"}");
    expect(state, "DELETE", "/v1/projects/p/indexes/a%2Fb", "DeleteIndex",
           "{\"projectId\":\"p\",\"indexId\":\"a/b\"}");
    expect_none(state, "POST", "/v1/projects/:lookup");
    expect_none(state, "POST", "/v1/projects/p/q:lookup");
    expect_none(state, "POST", "/v1/projects/p:nothing");
    expect_none(state, "GET", "/v1/projects/p/indexes/");
}

static void expect_unreadable(const char *path)
{
    const struct http_rule rule = {"/google.datastore.v1.Datastore/Lookup", false, "POST", path,
                                   "*"};
    struct http_router *router;
    status s = http_router_create(&rule, 1, services, SERVICES, &router);
    assert_int_equal(s.code, STATUS_INTERNAL);
    assert_null(router);
    status_free(s);
}

static void test_templates_that_are_none(void **state)
{
    (void)state;
    expect_unreadable("/v1/projects");
    expect_unreadable("/v1/{project_id");
    expect_unreadable("{project_id}");
    expect_unreadable("/v1/{project_id}{database_id}");
    expect_unreadable("/v1/{project_id}/{database_id}/{transaction}");
}

static void test_paths_that_do_not_fit(void **state)
{
    static const char *const paths[] = {
        "",
        "/",
        "v2/projects/p/instances",
        "/v2",
        "/v1/projects/p/instances",
        "/v2/projects/p/instances/",
        "/v2/projects//instances",
        "/v2//projects/p/instances",
        "/v2/projects/p/q/instances",
        "/v2/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a",
    };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        expect_none(state, "GET", paths[i]);
}

static void test_encoded_paths(void **state)
{
    expect(state, "GET", "/v2/projects/a%20b/instances/%c3%A9+", "GetInstance",
           "{\"name\":\"projects/a b/instances/\xc3\xa9+\"}");
    expect(state, "GET", "/v2/projects/example.com:p/instances", "ListInstances",
           "{\"parent\":\"projects/example.com:p\"}");
    static const char *const broken[] = {"%", "%4", "%zz", "%4g"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        char path[80];
        const struct http_route *route;
        struct buffer wire = {0};
        snprintf(path, sizeof path, "/v2/projects/p/instances/%s", broken[i]);
        assert_ok(http_router_find(*state, "GET", bytes_of(path), &route));
        status s = http_route_bind(route, bytes_of(path), &wire);
        assert_int_equal(s.code, STATUS_INVALID_ARGUMENT);
        status_free(s);
        buffer_free(&wire);
    }
}

/* A path that the template fits. */
static void write_path(const char *template, struct buffer *path)
{
    for (const char *c = template; *c != '\0'; c++) {
        if (*c == '{')
            c += strcspn(c, "=}");
        else if (*c == '*')
            c += c[1] == '*';
        else if (*c == '}')
            continue;
        bool is_any = *c == '*' || *c == '}';
        if (*c != '=')
            buffer_append_byte(path, is_any ? 'x' : (uint8_t)*c);
    }
}

/* Every rule's own path, with a name for each asterisk, comes back to its method. */
static void test_every_rule(void **state)
{
    assert_int_equal(proto_http_rule_count, 175);
    for (size_t i = 0; i < proto_http_rule_count; i++) {
        const struct http_rule *rule = &proto_http_rules[i];
        const struct http_route *route;
        struct buffer path = {0}, wire = {0};
        write_path(rule->path, &path);
        assert_ok(http_router_find(*state, rule->verb, buffer_bytes(&path), &route));
        assert_string_equal(route->rule->method, rule->method);
        assert_string_equal(route->rule->path, rule->path);
        assert_ok(http_route_bind(route, buffer_bytes(&path), &wire));
        assert_true(wire.size > 0);
        buffer_free(&path);
        buffer_free(&wire);
    }
}

static void test_services_left_out(void **state)
{
    (void)state;
    struct http_router *router;
    const struct http_route *route;
    assert_ok(http_router_create(proto_http_rules, proto_http_rule_count, services, 1, &router));
    status s = http_router_find(router, "GET", bytes_of("/v2/projects/p/instances"), &route);
    assert_int_equal(s.code, STATUS_NOT_FOUND);
    status_free(s);
    http_router_destroy(router);
}

static void test_queries(void **state)
{
    (void)state;
    struct buffer text = {0};
    assert_true(http_percent_decode(bytes_of("a+b%2Bc%00"), true, &text));
    assert_true(bytes_equal(buffer_bytes(&text), bytes_make("a b+c", 6)));
    assert_false(http_percent_decode(bytes_of("%4"), true, &text));
    buffer_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verbs),
        cmocka_unit_test(test_custom_verbs),
        cmocka_unit_test(test_additional_bindings),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_plain_variables),
        cmocka_unit_test(test_templates_that_are_none),
        cmocka_unit_test(test_paths_that_do_not_fit),
        cmocka_unit_test(test_encoded_paths),
        cmocka_unit_test(test_every_rule),
        cmocka_unit_test(test_services_left_out),
        cmocka_unit_test(test_queries),
    };
    return cmocka_run_group_tests_name("wire_http_router", tests, set_up, tear_down);
}
