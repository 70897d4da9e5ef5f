/* Calls against a server that answers well, badly, late or not at all. */
#include "aws/dynamo_table.h"
#include "aws/testing/testing.h"

#include "base/testing/testing.h"

static const struct aws_credentials credentials = {
    .access_key = "AK", .secret_key = "secret", .session_token = "token", .region = "eu-west-1"};

struct fixture {
    struct fake_server server;
    struct loop *loop;
    struct dynamo_client *client;
    const char *const *script; /* bodies, by the number of the request; NULL at the end */
    const int *statuses;
    struct buffer requests; /* all of them */
    unsigned asked;
};

static void answer_script(void *context, unsigned number, const char *request, struct buffer *out)
{
    struct fixture *f = context;
    buffer_append_bytes(&f->requests, bytes_of(request));
    f->asked = number + 1;
    fake_answer(out, f->statuses[number], f->script[number]);
}

static void start(struct fixture *f, int64_t patience_us)
{
    f->server.context = f;
    if (f->server.answer == NULL)
        f->server.answer = answer_script;
    fake_server_start(&f->server);
    assert_ok(loop_create(clock_system(), &f->loop));
    const struct dynamo_client_options options = {.loop = f->loop,
                                                  .endpoint = f->server.url,
                                                  .credentials = &credentials,
                                                  .patience_us = patience_us};
    assert_ok(dynamo_client_create(&options, &f->client));
}

static void stop(struct fixture *f)
{
    dynamo_client_destroy(f->client);
    loop_destroy(f->loop);
    fake_server_stop(&f->server);
    buffer_free(&f->requests);
}

static status ask(struct fixture *f, json_t **out)
{
    return dynamo_client_call(f->client, DYNAMO_TABLES, "Scan", json_pack("{s:s}", "a", "b"), NULL,
                              out);
}

static void a_call_is_signed_and_answered(void **state)
{
    static const char *const wanted[] = {
        "POST / HTTP/1.1\r\n",
        "x-amz-target: DynamoDB_20120810.Scan\r\n",
        "content-type: application/x-amz-json-1.0\r\n",
        "x-amz-security-token: token\r\n",
        "authorization: AWS4-HMAC-SHA256 Credential=AK/",
        "/eu-west-1/dynamodb/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-",
        ";x-amz-security-token;x-amz-target, Signature=",
        "\r\n\r\n{\"a\":\"b\"}",
    };
    struct fixture f = {.script = (const char *[]){"{\"n\":7}"}, .statuses = (int[]){200}};
    json_t *answer;
    int64_t server_us;
    (void)state;
    start(&f, 0);
    assert_ok(dynamo_client_call(f.client, DYNAMO_TABLES, "Scan", json_pack("{s:s}", "a", "b"),
                                 &server_us, &answer));
    assert_int_equal(json_integer_value(json_object_get(answer, "n")), 7);
    assert_int_equal(server_us, 1440938160000000);
    json_decref(answer);
    buffer_append_byte(&f.requests, '\0');
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_non_null(strstr((const char *)f.requests.data, wanted[i]));
    stop(&f);
}

#define THROTTLED                                                                                  \
    "{\"__type\":\"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException\","     \
    "\"message\":\"slow down\"}"

static void passing_failures_are_asked_again(void **state)
{
    struct fixture f = {.script = (const char *[]){THROTTLED, "oops", "", "{\"n\":7}"},
                        .statuses = (int[]){400, 500, 429, 200}};
    json_t *answer;
    (void)state;
    start(&f, 0);
    assert_ok(ask(&f, &answer));
    assert_int_equal(json_integer_value(json_object_get(answer, "n")), 7);
    json_decref(answer);
    assert_int_equal(f.asked, 4);
    stop(&f);
}

static void patience_ends(void **state)
{
    struct fixture f = {.script = (const char *[]){THROTTLED, "", ""},
                        .statuses = (int[]){400, 400, 400}};
    json_t *answer;
    (void)state;
    start(&f, 1);
    assert_status(ask(&f, &answer), STATUS_RESOURCE_EXHAUSTED);
    stop(&f);
}

static void failures_are_named(void **state)
{
    static const struct {
        int http_status;
        const char *body;
        enum status_code code;
        const char *message;
    } cases[] = {
        {400, "{\"__type\":\"x#ResourceNotFoundException\",\"message\":\"no table\"}",
         STATUS_NOT_FOUND, "Scan: HTTP status 400, ResourceNotFoundException: no table"},
        {400, "{\"__type\":\"UnrecognizedClientException\",\"Message\":\"who?\"}",
         STATUS_UNAUTHENTICATED, "Scan: HTTP status 400, UnrecognizedClientException: who?"},
        {400, "{\"__type\":\"x#ValidationException\"}", STATUS_INVALID_ARGUMENT,
         "Scan: HTTP status 400, ValidationException"},
        {403, "<html>", STATUS_FAILED_PRECONDITION, "Scan: HTTP status 403"},
        {302, "", STATUS_FAILED_PRECONDITION, "Scan: HTTP status 302"},
        {400, "{\"__type\":7,\"message\":[]}", STATUS_FAILED_PRECONDITION, "Scan: HTTP status 400"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f = {.script = &cases[i].body, .statuses = &cases[i].http_status};
        json_t *answer;
        start(&f, 0);
        status s = ask(&f, &answer);
        assert_string_equal(status_message(s), cases[i].message);
        assert_status(s, cases[i].code);
        stop(&f);
    }
}

static void an_answer_without_json_is_damaged(void **state)
{
    struct fixture f = {.script = (const char *[]){"{\"n\":"}, .statuses = (int[]){200}};
    json_t *answer;
    (void)state;
    start(&f, 0);
    assert_status(ask(&f, &answer), STATUS_DATA_LOSS);
    assert_null(answer);
    stop(&f);
}

/* --- connections that break --- */

static void cut_then_answer(void *context, unsigned number, const char *request, struct buffer *out)
{
    (void)context;
    (void)request;
    if (number == 0)
        return; /* closed without a word */
    if (number == 1)
        buffer_append_bytes(out, bytes_of("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"n\""));
    else
        fake_answer(out, 200, "{\"n\":7}");
}

static void cut_connections_are_made_again(void **state)
{
    struct fixture f = {.server = {.answer = cut_then_answer}};
    json_t *answer;
    (void)state;
    start(&f, 0);
    assert_ok(ask(&f, &answer));
    assert_int_equal(json_integer_value(json_object_get(answer, "n")), 7);
    json_decref(answer);
    stop(&f);
}

static void speak_otherwise(void *context, unsigned number, const char *request, struct buffer *out)
{
    (void)context;
    (void)number;
    (void)request;
    buffer_append_bytes(out, bytes_of("\x16\x03\x01 this is no HTTP"));
}

static void an_answer_without_http_is_told(void **state)
{
    struct fixture f = {.server = {.answer = speak_otherwise}};
    json_t *answer;
    (void)state;
    start(&f, 0);
    assert_status(ask(&f, &answer), STATUS_FAILED_PRECONDITION);
    stop(&f);
}

static void flood(void *context, unsigned number, const char *request, struct buffer *out)
{
    const size_t size = 40 << 20;
    (void)context;
    (void)number;
    (void)request;
    buffer_append_bytes(out, bytes_of("HTTP/1.1 200 OK\r\n\r\n"));
    uint8_t *body = buffer_reserve(out, size);
    if (body == NULL)
        return;
    memset(body, '[', size);
    out->size += size;
}

static void an_answer_has_a_limit(void **state)
{
    struct fixture f = {.server = {.answer = flood}};
    json_t *answer;
    (void)state;
    start(&f, 0);
    status s = ask(&f, &answer);
    assert_string_equal(status_message(s), "Scan: the answer has more than 33554432 bytes");
    assert_status(s, STATUS_RESOURCE_EXHAUSTED);
    stop(&f);
}

static void a_missing_server_is_told(void **state)
{
    struct fixture f = {.script = NULL};
    json_t *answer;
    (void)state;
    start(&f, 1);
    fake_server_stop(&f.server);
    assert_status(ask(&f, &answer), STATUS_UNAVAILABLE);
    dynamo_client_destroy(f.client);
    loop_destroy(f.loop);
}

/* --- endpoints --- */

static void endpoints_are_looked_at(void **state)
{
    static const struct {
        const char *endpoint;
        enum status_code code;
    } cases[] = {
        {"http://localhost:8000", STATUS_OK},
        {"https://localhost/", STATUS_OK},
        {"HTTP://h", STATUS_OK},
        {"localhost:8000", STATUS_INVALID_ARGUMENT},
        {"http://", STATUS_INVALID_ARGUMENT},
        {"http:///", STATUS_INVALID_ARGUMENT},
        {"file:///etc/passwd", STATUS_INVALID_ARGUMENT},
        {"http://user@host", STATUS_INVALID_ARGUMENT},
        {"http://host/path", STATUS_INVALID_ARGUMENT},
        {NULL, STATUS_OK},
    };
    struct loop *loop;
    (void)state;
    assert_ok(loop_create(clock_system(), &loop));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct dynamo_client_options options = {
            .loop = loop, .endpoint = cases[i].endpoint, .credentials = &credentials};
        struct dynamo_client *client;
        assert_status(dynamo_client_create(&options, &client), cases[i].code);
        dynamo_client_destroy(client);
    }
    loop_destroy(loop);
}

/* --- tables --- */

static void tables_are_described(void **state)
{
    struct fixture f = {
        .script =
            (const char *[]){
                "{\"Table\":{\"KeySchema\":[{\"AttributeName\":\"s\",\"KeyType\":\"RANGE\"},"
                "{\"AttributeName\":\"p\",\"KeyType\":\"HASH\"}],\"LatestStreamArn\":\"arn\","
                "\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":"
                "\"NEW_IMAGE\"}}}",
                "{\"Table\":{\"KeySchema\":[{\"AttributeName\":\"p\",\"KeyType\":\"HASH\"}],"
                "\"LatestStreamArn\":\"old\"}}",
                "{\"Table\":[]}"},
        .statuses = (int[]){200, 200, 200}};
    struct arena *arena = arena_create(1 << 20);
    struct dynamo_table table;
    (void)state;
    start(&f, 0);
    assert_ok(dynamo_table_describe(f.client, "T", arena, &table));
    assert_string_equal(table.partition_key, "p");
    assert_string_equal(table.sort_key, "s");
    assert_string_equal(table.stream, "arn");
    assert_string_equal(table.stream_view, "NEW_IMAGE");
    assert_int_equal(table.server_us, 1440938160000000);
    assert_ok(dynamo_table_describe(f.client, "T", arena, &table));
    assert_null(table.sort_key);
    assert_null(table.stream);
    assert_status(dynamo_table_describe(f.client, "T", arena, &table), STATUS_DATA_LOSS);
    stop(&f);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_signed_and_answered),
        cmocka_unit_test(passing_failures_are_asked_again),
        cmocka_unit_test(patience_ends),
        cmocka_unit_test(failures_are_named),
        cmocka_unit_test(an_answer_without_json_is_damaged),
        cmocka_unit_test(cut_connections_are_made_again),
        cmocka_unit_test(an_answer_without_http_is_told),
        cmocka_unit_test(an_answer_has_a_limit),
        cmocka_unit_test(a_missing_server_is_told),
        cmocka_unit_test(endpoints_are_looked_at),
        cmocka_unit_test(tables_are_described),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
