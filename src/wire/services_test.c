/* Tests of the health and reflection services, called through the server. */
#include "wire/testing/grpc_testing.h"

#include "wire/health.h"
#include "wire/proto.h"
#include "wire/reflection.h"

#include "grpc/health/v1/health.pb-c.h"
#include "grpc/reflection/v1/reflection.pb-c.h"
#include "proto/descriptors.h"

#include <stdio.h>

struct fixture {
    struct testing t;
    struct testing_client c;
    struct outcome outcome;
    struct health *health;
    struct reflection *reflection;
    struct arena *arena;
    struct buffer request;
};

static int set_up(void **state)
{
    static const struct grpc_service named = {.name = "google.bigtable.v2.Bigtable"};
    const struct grpc_service *const services[] = {&named};
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    assert_ok(health_create(services, 1, &f->health));
    assert_ok(reflection_create(services, 1, proto_descriptor_set(), &f->reflection));
    f->t.more[0] = health_service(f->health);
    f->t.more[1] = reflection_service_v1(f->reflection);
    f->t.more[2] = reflection_service_v1alpha(f->reflection);
    testing_start(&f->t);
    testing_client_start(&f->c, &f->t);
    f->arena = arena_create(1 << 20);
    assert_non_null(f->arena);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    testing_client_stop(&f->c);
    testing_stop(&f->t);
    health_destroy(f->health);
    reflection_destroy(f->reflection);
    outcome_free(&f->outcome);
    arena_destroy(f->arena);
    buffer_free(&f->request);
    free(f);
    return 0;
}

static void ask(struct fixture *f, const char *path, const ProtobufCMessage *request)
{
    struct client_call_options options = testing_options(path, &f->outcome);
    buffer_clear(&f->request);
    proto_encode(request, &f->request);
    testing_call(&f->c, &options, buffer_bytes(&f->request));
    testing_pump(&f->c);
}

static void *answer(struct fixture *f, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message;
    assert_ok(proto_decode(type, buffer_bytes(&f->outcome.last), f->arena, &message));
    return message;
}

static int health_answer(struct fixture *f)
{
    Health__HealthCheckResponse *response = answer(f, &health__health_check_response__descriptor);
    return (int)response->status;
}

static Reflection__ServerReflectionResponse *reflection_answer(struct fixture *f)
{
    return answer(f, &reflection__server_reflection_response__descriptor);
}

/* --- health --- */

static void check(struct fixture *f, const char *service)
{
    Health__HealthCheckRequest request = HEALTH__HEALTH_CHECK_REQUEST__INIT;
    request.service = service;
    f->outcome.ended = false;
    ask(f, "/grpc.health.v1.Health/Check", &request.base);
    assert_true(f->outcome.ended);
}

static void test_check(void **state)
{
    struct fixture *f = *state;
    check(f, "");
    assert_int_equal(f->outcome.code, STATUS_OK);
    assert_int_equal(health_answer(f), 2); /* NOT_SERVING */
    health_set(f->health, true);
    check(f, "google.bigtable.v2.Bigtable");
    assert_int_equal(health_answer(f), 1); /* SERVING */
    check(f, "google.bigtable.v2.Nonsense");
    assert_int_equal(f->outcome.code, STATUS_NOT_FOUND);
}

static void test_list(void **state)
{
    struct fixture *f = *state;
    Health__HealthListRequest request = HEALTH__HEALTH_LIST_REQUEST__INIT;
    ask(f, "/grpc.health.v1.Health/List", &request.base);
    assert_int_equal(f->outcome.code, STATUS_OK);
    Health__HealthListResponse *response = answer(f, &health__health_list_response__descriptor);
    assert_int_equal(response->n_statuses, 2);
    assert_string_equal(response->statuses[1]->key, "google.bigtable.v2.Bigtable");
    assert_int_equal(response->statuses[1]->value->status, 2);
}

static void test_watch_is_told_of_changes(void **state)
{
    struct fixture *f = *state;
    Health__HealthCheckRequest request = HEALTH__HEALTH_CHECK_REQUEST__INIT;
    ask(f, "/grpc.health.v1.Health/Watch", &request.base);
    assert_int_equal(f->outcome.messages, 1);
    assert_int_equal(health_answer(f), 2);
    health_set(f->health, true);
    testing_pump(&f->c);
    assert_int_equal(f->outcome.messages, 2);
    assert_int_equal(health_answer(f), 1);
    health_set(f->health, true); /* no change */
    testing_pump(&f->c);
    assert_int_equal(f->outcome.messages, 2);
    health_shut_down(f->health);
    testing_pump(&f->c);
    assert_int_equal(f->outcome.messages, 3);
    assert_int_equal(health_answer(f), 2);
    assert_true(f->outcome.ended);
    assert_int_equal(f->outcome.code, STATUS_UNAVAILABLE);
    assert_int_equal(grpc_server_call_count(f->t.server), 0);
}

static void test_watch_of_an_unknown_service(void **state)
{
    struct fixture *f = *state;
    Health__HealthCheckRequest request = HEALTH__HEALTH_CHECK_REQUEST__INIT;
    request.service = "nonsense";
    ask(f, "/grpc.health.v1.Health/Watch", &request.base);
    assert_int_equal(health_answer(f), 3); /* SERVICE_UNKNOWN */
    assert_false(f->outcome.ended);
    testing_client_stop(&f->c); /* leaves while watching */
    testing_stop(&f->t);
    testing_start(&f->t);
    testing_client_start(&f->c, &f->t);
}

/* --- reflection --- */

static void reflect(struct fixture *f, const char *version,
                    Reflection__ServerReflectionRequest__MessageRequestCase what, const char *name)
{
    char path[80];
    snprintf(path, sizeof path, "/grpc.reflection.%s.ServerReflection/ServerReflectionInfo",
             version);
    Reflection__ServerReflectionRequest request = REFLECTION__SERVER_REFLECTION_REQUEST__INIT;
    request.message_request_case = what;
    request.list_services = name; /* all the strings of the union are one */
    f->outcome.ended = false;
    ask(f, path, &request.base);
    assert_true(f->outcome.ended);
    assert_int_equal(f->outcome.code, STATUS_OK);
}

#define ASK(what)    REFLECTION__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##what
#define ANSWER(what) REFLECTION__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##what

static void test_reflection_lists_services(void **state)
{
    static const char *const versions[] = {"v1", "v1alpha"};
    struct fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        reflect(f, versions[i], ASK(LIST_SERVICES), "");
        Reflection__ServerReflectionResponse *r = reflection_answer(f);
        assert_int_equal(r->message_response_case, ANSWER(LIST_SERVICES_RESPONSE));
        assert_int_equal(r->list_services_response->n_service, 3);
        assert_string_equal(r->list_services_response->service[0]->name,
                            "google.bigtable.v2.Bigtable");
    }
}

/* The name of a file is the first field of its descriptor. */
static void assert_file(ProtobufCBinaryData file, const char *name)
{
    assert_true(file.len > strlen(name) + 2);
    assert_memory_equal(file.data + 2, name, strlen(name));
}

static void assert_found(struct fixture *f, const char *symbol, const char *file)
{
    reflect(f, "v1", ASK(FILE_CONTAINING_SYMBOL), symbol);
    Reflection__ServerReflectionResponse *r = reflection_answer(f);
    assert_int_equal(r->message_response_case, ANSWER(FILE_DESCRIPTOR_RESPONSE));
    assert_true(r->file_descriptor_response->n_file_descriptor_proto >= 1);
    assert_file(r->file_descriptor_response->file_descriptor_proto[0], file);
}

static void test_reflection_finds_symbols(void **state)
{
    struct fixture *f = *state;
    assert_found(f, "google.bigtable.v2.Bigtable", "google/bigtable/v2/bigtable.proto");
    assert_found(f, "google.bigtable.v2.Bigtable.ReadRows", "google/bigtable/v2/bigtable.proto");
    assert_found(f, "google.bigtable.v2.RowFilter.Chain", "google/bigtable/v2/data.proto");
    assert_found(f, "google.bigtable.v2.RowFilter.Chain.filters", "google/bigtable/v2/data.proto");
}

static void test_reflection_knows_its_limits(void **state)
{
    static const char *const unknown[] = {"google.bigtable.v2", "google.bigtable.v2.", "",
                                          "google.bigtable.v2.Bigtable.ReadRowz", "."};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        reflect(f, "v1", ASK(FILE_CONTAINING_SYMBOL), unknown[i]);
        Reflection__ServerReflectionResponse *r = reflection_answer(f);
        assert_int_equal(r->message_response_case, ANSWER(ERROR_RESPONSE));
        assert_int_equal(r->error_response->error_code, STATUS_NOT_FOUND);
    }
}

static void test_reflection_sends_imports_along(void **state)
{
    struct fixture *f = *state;
    reflect(f, "v1", ASK(FILE_BY_FILENAME), "google/bigtable/v2/bigtable.proto");
    Reflection__ServerReflectionResponse *r = reflection_answer(f);
    assert_int_equal(r->message_response_case, ANSWER(FILE_DESCRIPTOR_RESPONSE));
    assert_file(r->file_descriptor_response->file_descriptor_proto[0],
                "google/bigtable/v2/bigtable.proto");
    assert_true(r->file_descriptor_response->n_file_descriptor_proto > 1);
    reflect(f, "v1", ASK(FILE_BY_FILENAME), "google/nonsense.proto");
    assert_int_equal(reflection_answer(f)->message_response_case, ANSWER(ERROR_RESPONSE));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_check),
        TEST(test_list),
        TEST(test_watch_is_told_of_changes),
        TEST(test_watch_of_an_unknown_service),
        TEST(test_reflection_lists_services),
        TEST(test_reflection_finds_symbols),
        TEST(test_reflection_knows_its_limits),
        TEST(test_reflection_sends_imports_along),
    };
    return cmocka_run_group_tests_name("wire_services", tests, NULL, NULL);
}
