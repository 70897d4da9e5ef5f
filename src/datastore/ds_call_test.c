/* Tests of a call's way through the frame, over calls and a pool that are faked here. */
#include "datastore/ds_call.h"

#include "base/testing/testing.h"

#include "google/datastore/v1/datastore.pb-c.h"

#include <stdio.h>

/* --- the fakes --- */

struct grpc_call {
    struct arena *arena;
    const char *routing; /* the header; NULL: none */
    bool is_cancelled;
    struct buffer answer;
    int messages;
    bool is_finished;
    enum status_code code;
    char words[200];
};

static struct {
    struct task *waiting;
    bool is_full;
    int runs;
} pool;

bool pool_submit(struct pool *unused, struct task *task)
{
    (void)unused;
    assert_null(pool.waiting);
    if (!pool.is_full)
        pool.waiting = task;
    return !pool.is_full;
}

struct arena *grpc_call_arena(struct grpc_call *call)
{
    return call->arena;
}

bool grpc_call_header(struct grpc_call *call, const char *name, bytes *value)
{
    assert_string_equal(name, "x-goog-request-params");
    if (call->routing != NULL)
        *value = bytes_of(call->routing);
    return call->routing != NULL;
}

uint64_t grpc_call_connection(const struct grpc_call *call)
{
    (void)call;
    return 7;
}

int64_t grpc_call_deadline_us(const struct grpc_call *call)
{
    (void)call;
    return 12345;
}

bool grpc_call_is_cancelled(const struct grpc_call *call)
{
    return call->is_cancelled;
}

void grpc_call_step(struct grpc_call *call, enum call_step step)
{
    assert_false(call->is_finished);
    assert_true(step == CALL_AWAITS_THREAD || step == CALL_WORKS);
}

void grpc_message_start(struct buffer *message)
{
    buffer_clear(message);
}

void grpc_call_send(struct grpc_call *call, struct buffer *message)
{
    assert_false(call->is_finished);
    call->messages++;
    call->answer = *message;
    *message = (struct buffer){0};
}

void grpc_call_finish(struct grpc_call *call, status s)
{
    assert_false(call->is_finished);
    call->is_finished = true;
    call->code = s.code;
    snprintf(call->words, sizeof call->words, "%s", status_message(s));
    status_free(s);
}

/* --- methods --- */

static struct datastore datastore;

static status allocate(struct ds_call *call, const ProtobufCMessage *request,
                       ProtobufCMessage **response)
{
    const Ds__AllocateIdsRequest *asked = (const void *)request;
    Ds__AllocateIdsResponse *answer = arena_alloc(call->arena, sizeof *answer);
    pool.runs++;
    assert_ptr_equal(call->datastore, &datastore);
    assert_string_equal(call->project_id, "p");
    assert_string_equal(call->database_id, "d");
    assert_int_equal(call->deadline_us, 12345);
    assert_int_equal(call->caller, 7);
    assert_non_null(answer);
    ds__allocate_ids_response__init(answer);
    answer->n_keys = asked->n_keys;
    answer->keys = asked->keys;
    *response = &answer->base;
    return status_ok();
}

static status refuse(struct ds_call *call, const ProtobufCMessage *request,
                     ProtobufCMessage **response)
{
    (void)call;
    (void)request;
    (void)response;
    return status_make(STATUS_ABORTED, "too much contention");
}

static struct ds_call *left_open;

static status answer_later(struct ds_call *call, const ProtobufCMessage *request,
                           ProtobufCMessage **response)
{
    (void)request;
    left_open = call;
    *response = NULL;
    return status_ok();
}

/* A locate function as of requests that say in a name where they go. */
static status locate(struct ds_call *call, const ProtobufCMessage *request)
{
    assert_string_equal(((const Ds__AllocateIdsRequest *)request)->project_id, "p");
    call->project_id = "of a name";
    return status_ok();
}

#define METHOD(runs)                                                                               \
    .name = "AllocateIds", .request = &ds__allocate_ids_request__descriptor, .run = (runs)

static const struct ds_method allocating = {METHOD(allocate)};
static const struct ds_method refusing = {METHOD(refuse)};
static const struct ds_method taking_time = {METHOD(answer_later)};
static const struct ds_method located = {METHOD(answer_later), .locate = locate};

/* --- calls --- */

static int set_up(void **state)
{
    static struct grpc_call call;
    call = (struct grpc_call){.arena = arena_create(1 << 20)};
    assert_non_null(call.arena);
    memset(&pool, 0, sizeof pool);
    *state = &call;
    return 0;
}

static int tear_down(void **state)
{
    struct grpc_call *call = *state;
    buffer_free(&call->answer);
    arena_destroy(call->arena);
    return 0;
}

static void start(struct grpc_call *call, const struct ds_method *method)
{
    Ds__AllocateIdsRequest request = DS__ALLOCATE_IDS_REQUEST__INIT;
    Ds__Key key = DS__KEY__INIT;
    Ds__Key *keys[] = {&key};
    struct buffer wire = {0};
    bytes copy;
    request.project_id = "p";
    request.database_id = "d";
    request.n_keys = 1;
    request.keys = keys;
    proto_encode(&request.base, &wire);
    copy = arena_copy(call->arena, buffer_bytes(&wire));
    assert_int_equal(copy.size, wire.size);
    buffer_free(&wire);
    ds_call_start(&datastore, call, copy, method);
}

static void run_pool(void)
{
    struct task *task = pool.waiting;
    assert_non_null(task);
    pool.waiting = NULL;
    task->run(task);
}

static void expect_end(const struct grpc_call *call, enum status_code code, const char *words)
{
    assert_true(call->is_finished);
    assert_null(pool.waiting);
    assert_string_equal(call->words, words);
    assert_int_equal(call->code, code);
    assert_int_equal(call->messages, code == STATUS_OK ? 1 : 0);
}

/* --- tests --- */

static void a_method_runs_on_the_pool(void **state)
{
    struct grpc_call *call = *state;
    ProtobufCMessage *message;
    start(call, &allocating);
    assert_int_equal(pool.runs, 0);
    run_pool();
    expect_end(call, STATUS_OK, "");
    assert_ok(proto_decode(&ds__allocate_ids_response__descriptor, buffer_bytes(&call->answer),
                           call->arena, &message));
    assert_int_equal(((const Ds__AllocateIdsResponse *)(const void *)message)->n_keys, 1);
}

static void a_failure_is_the_end(void **state)
{
    start(*state, &refusing);
    run_pool();
    expect_end(*state, STATUS_ABORTED, "too much contention");
}

static void a_method_may_answer_later(void **state)
{
    struct grpc_call *call = *state;
    Ds__AllocateIdsResponse answer = DS__ALLOCATE_IDS_RESPONSE__INIT;
    start(call, &taking_time);
    run_pool();
    assert_false(call->is_finished);
    ds_call_finish(left_open, status_ok(), &answer.base);
    expect_end(call, STATUS_OK, "");
}

static void a_method_may_say_where_its_requests_go(void **state)
{
    struct grpc_call *call = *state;
    start(call, &located);
    run_pool();
    assert_string_equal(left_open->project_id, "of a name");
    ds_call_finish(left_open, status_make(STATUS_ABORTED, "seen"), NULL);
    expect_end(call, STATUS_ABORTED, "seen");
}

static void a_call_of_a_gone_client_is_not_run(void **state)
{
    struct grpc_call *call = *state;
    start(call, &allocating);
    call->is_cancelled = true;
    run_pool();
    expect_end(call, STATUS_CANCELLED, "The call was cancelled");
    assert_int_equal(pool.runs, 0);
}

static void a_full_pool_is_said(void **state)
{
    pool.is_full = true;
    start(*state, &allocating);
    expect_end(*state, STATUS_RESOURCE_EXHAUSTED, "Too many requests wait for a thread");
}

static void a_malformed_request_never_runs(void **state)
{
    struct grpc_call *call = *state;
    ds_call_start(&datastore, call, bytes_of("\x42"), &allocating);
    assert_true(call->is_finished);
    assert_int_equal(call->code, STATUS_INVALID_ARGUMENT);
    assert_null(pool.waiting);
}

static void a_request_goes_where_its_header_says(void **state)
{
    struct grpc_call *call = *state;
    call->routing = "project_id=p&database_id=e";
    start(call, &allocating);
    expect_end(call, STATUS_INVALID_ARGUMENT,
               "The request is for the database 'd' of the project 'p', but its routing header "
               "(x-goog-request-params) is for another");
}

static void check(const char *project_id, const char *database_id, const char *words)
{
    status s = ds_check_database(project_id, database_id);
    assert_string_equal(status_message(s), words == NULL ? "" : words);
    assert_status(s, words == NULL ? STATUS_OK : STATUS_INVALID_ARGUMENT);
}

static void names_of_databases(void **state)
{
    (void)state;
    char long_name[130];
    memset(long_name, 'x', sizeof long_name);
    long_name[129] = '\0';
    check("p", long_name, "The database_id is longer than 128 bytes.");
    long_name[128] = '\0';
    check("p", long_name, NULL);
    check("example.com:p", "", NULL);
    check("", "d", "The project_id is empty.");
    check("a/b", "", "The project_id has a character that it cannot have, at byte 1.");
    check("p", "a\x7f", "The database_id has a character that it cannot have, at byte 1.");
    check("p", "\n", "The database_id has a character that it cannot have, at byte 0.");
    check("p", "(default)",
          "The database_id is \"(default)\": leave it empty for the default database.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_method_runs_on_the_pool),
        TEST(a_failure_is_the_end),
        TEST(a_method_may_answer_later),
        TEST(a_method_may_say_where_its_requests_go),
        TEST(a_call_of_a_gone_client_is_not_run),
        TEST(a_full_pool_is_said),
        TEST(a_malformed_request_never_runs),
        TEST(a_request_goes_where_its_header_says),
        TEST(names_of_databases),
    };
    return cmocka_run_group_tests_name("datastore_ds_call", tests, NULL, NULL);
}
