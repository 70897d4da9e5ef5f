/* Access control when memory runs out, at each allocation in turn: nothing leaks (the sanitizers
 * look), what was in force stays so, and no client gets in by it or is told that its token is bad.
 */
#include "access/access.h"

#include "access/audit_trail.h"
#include "access/jwt.h"
#include "access/policy_file.h"
#include "access/tokens.h"
#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"
#include "base/varint.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ARENA_LIMIT = 1 << 20, MOST_ALLOCATIONS = 1000 };

#define TABLE "projects/p/instances/i/tables/t"

/* --- a call, as access control sees it --- */

struct grpc_call {
    struct arena *arena;
    const char *credential;
    const void *note;
};

struct arena *grpc_call_arena(struct grpc_call *call)
{
    return call->arena;
}

bool grpc_call_header(struct grpc_call *call, const char *name, bytes *value)
{
    assert_string_equal(name, "authorization");
    *value = bytes_of(call->credential);
    return true;
}

void grpc_call_set_note(struct grpc_call *call, const void *note)
{
    call->note = note;
}

const void *grpc_call_note(const struct grpc_call *call)
{
    return call->note;
}

/* --- its files --- */

static const char admin_token[] = "admin's";
static const char reader_token[] = "reader's";
static const char keys[] = "{\"keys\": [{\"kty\": \"OKP\", \"crv\": \"Ed25519\", \"kid\": \"a\", "
                           "\"x\": \"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}";
static const char policy[] =
    "{\"*\": {\"bindings\": [{\"role\": \"roles/owner\", \"members\": [\"user:admin\"]}]},"
    " \"projects/p\": {\"bindings\": [{\"role\": \"roles/bigtable.viewer\", \"members\": "
    "[\"user:reader\", \"allAuthenticatedUsers\"]}]}}";

struct fixture {
    char directory[32];
    char token_file[64];
    char key_file[64];
    char policy_file[64];
    struct log log;
    struct audit *audit;
    struct access_options options;
    struct grpc_method methods[2];
    struct grpc_service service;
    const struct grpc_service *services[1];
    struct access *access;
};

static void write_file(const char *path, bytes text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text.data, text.size), text.size);
    assert_int_equal(close(fd), 0);
}

static void write_files(struct fixture *f)
{
    struct buffer tokens = {0};
    token_write_line(admin_token, "user:admin", INT64_MAX, &tokens);
    token_write_line(reader_token, "user:reader", INT64_MAX, &tokens);
    write_file(f->token_file, buffer_bytes(&tokens));
    write_file(f->key_file, bytes_of(keys));
    write_file(f->policy_file, bytes_of(policy));
    buffer_free(&tokens);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(f->directory, sizeof f->directory, "access-test-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->token_file, sizeof f->token_file, "%s/tokens", f->directory);
    snprintf(f->key_file, sizeof f->key_file, "%s/keys", f->directory);
    snprintf(f->policy_file, sizeof f->policy_file, "%s/policy", f->directory);
    write_files(f);
    f->log = (struct log){.fd = STDERR_FILENO, .level = LOG_ERROR, .clock = clock_system()};
    f->methods[0] = (struct grpc_method){.name = "GetTable"};
    f->methods[1] = (struct grpc_method){.name = "DeleteTable"};
    f->service = (struct grpc_service){
        .name = "google.bigtable.admin.v2.BigtableTableAdmin", f->methods, .method_count = 2};
    f->services[0] = &f->service;
    const struct audit_options audit = {
        .refusals_most = 1, .log = &f->log, .clock = clock_system()};
    assert_ok(audit_open(&audit, &f->audit));
    f->options = (struct access_options){.data_directory = f->directory,
                                         .token_file = f->token_file,
                                         .jwks_file = f->key_file,
                                         .audience = "a",
                                         .issuer = "i",
                                         .policy_file = f->policy_file,
                                         .log = &f->log,
                                         .audit = f->audit,
                                         .clock = clock_system()};
    assert_ok(access_open(&f->options, f->services, 1, &f->access));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    access_close(f->access);
    audit_close(f->audit);
    unlink(f->token_file);
    unlink(f->key_file);
    unlink(f->policy_file);
    assert_int_equal(rmdir(f->directory), 0);
    free(f);
    return 0;
}

/* --- calls --- */

enum { GET_TABLE, DELETE_TABLE };

/* Admits a call of a new connection. The first `allocations` are granted. */
static enum status_code admit(struct fixture *f, const char *credential, size_t method,
                              size_t allocations, bool *ran_out)
{
    enum { NAME_FIELD = 1 << 3 | 2 };
    struct access_peer *peer = access_peer_create(NULL, "127.0.0.1:1");
    struct grpc_call call = {.arena = arena_create(ARENA_LIMIT), .credential = credential};
    struct buffer request = {0};
    buffer_append_byte(&request, NAME_FIELD);
    buffer_append_varint(&request, strlen(TABLE));
    buffer_append_bytes(&request, bytes_of(TABLE));
    assert_non_null(peer);
    assert_non_null(call.arena);
    failmalloc_start(allocations);
    status s = access_admit(f->access, peer, &call, method, buffer_bytes(&request));
    *ran_out = failmalloc_stop();
    enum status_code code = s.code;
    status_free(s);
    access_peer_destroy(peer);
    arena_destroy(call.arena);
    buffer_free(&request);
    return code;
}

static void assert_admits(struct fixture *f)
{
    bool ran_out;
    size_t plenty = MOST_ALLOCATIONS;
    assert_int_equal(admit(f, "Bearer admin's", DELETE_TABLE, plenty, &ran_out), STATUS_OK);
    assert_int_equal(admit(f, "Bearer reader's", GET_TABLE, plenty, &ran_out), STATUS_OK);
    assert_int_equal(admit(f, "Bearer reader's", DELETE_TABLE, plenty, &ran_out),
                     STATUS_PERMISSION_DENIED);
    assert_int_equal(admit(f, "Bearer nobody's", GET_TABLE, plenty, &ran_out),
                     STATUS_UNAUTHENTICATED);
}

/* Without memory there is this outcome, or none. */
static void admits_or_runs_out(struct fixture *f, const char *credential, size_t method,
                               enum status_code expected)
{
    bool ran_out = true;
    for (size_t count = 0; ran_out; count++) {
        assert_true(count < MOST_ALLOCATIONS);
        enum status_code code = admit(f, credential, method, count, &ran_out);
        assert_true(code == expected || (ran_out && code == STATUS_RESOURCE_EXHAUSTED));
    }
}

static void calls_are_refused_for_want_of_memory(void **state)
{
    struct fixture *f = *state;
    admits_or_runs_out(f, "Bearer admin's", DELETE_TABLE, STATUS_OK);
    admits_or_runs_out(f, "Bearer reader's", DELETE_TABLE, STATUS_PERMISSION_DENIED);
    admits_or_runs_out(f, "Bearer nobody's", GET_TABLE, STATUS_UNAUTHENTICATED);
    admits_or_runs_out(f, "Bearer e30.e30.e30", GET_TABLE, STATUS_UNAUTHENTICATED);
    admits_or_runs_out(f, "", GET_TABLE, STATUS_UNAUTHENTICATED);
    assert_admits(f);
}

/* --- life --- */

static void opens_or_does_not(void *context)
{
    struct fixture *f = context;
    struct access *access;
    status s = access_open(&f->options, f->services, 1, &access);
    assert_true(status_is_ok(s) == (access != NULL));
    assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    access_close(access);
}

static void opening(void **state)
{
    failmalloc_each(opens_or_does_not, *state);
}

/* Each file that is read again comes in force as a whole or not at all. */
static void reading_again(void **state)
{
    struct fixture *f = *state;
    bool ran_out = true;
    for (size_t count = 0; ran_out; count++) {
        assert_true(count < MOST_ALLOCATIONS);
        failmalloc_start(count);
        struct buffer words = {0};
        status s = access_reload(f->access, &words);
        buffer_free(&words);
        ran_out = failmalloc_stop();
        assert_true(status_is_ok(s) || (ran_out && s.code == STATUS_RESOURCE_EXHAUSTED));
        status_free(s);
        assert_admits(f);
    }
}

static void setting_a_policy(void **state)
{
    struct fixture *f = *state;
    const char *const members[] = {"user:reader", "user:other"};
    const struct access_binding admin = {
        .role = "roles/bigtable.admin", .members = members, .member_count = 2};
    bool ran_out = true;
    for (size_t count = 0; ran_out; count++) {
        assert_true(count < MOST_ALLOCATIONS);
        failmalloc_start(count);
        status s = access_set_policy(f->access, bytes_of(TABLE), &admin, 1);
        ran_out = failmalloc_stop();
        if (status_is_ok(s))
            break;
        assert_status(s, STATUS_RESOURCE_EXHAUSTED);
        assert_admits(f);
    }
    assert_int_equal(admit(f, "Bearer reader's", DELETE_TABLE, MOST_ALLOCATIONS, &ran_out),
                     STATUS_OK);
    access_drop_policy(f->access, bytes_of(TABLE));
    assert_admits(f);
}

/* --- the parts --- */

static void reads_tokens(void *context)
{
    const struct buffer *text = context;
    struct tokens tokens;
    status s = tokens_parse("file", buffer_bytes(text), &tokens);
    assert_int_equal(tokens.count, status_is_ok(s) ? 5 : 0);
    assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    tokens_free(&tokens);
}

static void reading_tokens(void **state)
{
    (void)state;
    struct buffer text = {0};
    for (int i = 0; i < 5; i++)
        token_write_line(i % 2 == 0 ? "even" : "odd", "user:a", INT64_MAX, &text);
    failmalloc_each(reads_tokens, &text);
    buffer_free(&text);
}

/* The token is that of RFC 8037, whose payload is no set of claims. */
static void reads_keys_and_checks(void *context)
{
    static const char token[] =
        "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc."
        "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    const struct jwt_expectation expected = {.issuer = "i", .audience = "a"};
    struct jwks *set;
    char *principal = NULL;
    int64_t expires_us;
    (void)context;
    status s = jwks_parse(bytes_of(keys), &set);
    bool has_keys = status_is_ok(s);
    if (has_keys)
        s = jwt_verify(set, &expected, bytes_of(token), 0, &principal, &expires_us);
    assert_true(s.code == STATUS_RESOURCE_EXHAUSTED ||
                (has_keys && s.code == STATUS_UNAUTHENTICATED));
    assert_null(principal);
    status_free(s);
    jwks_destroy(set);
}

static void checking_signed_tokens(void **state)
{
    (void)state;
    failmalloc_each(reads_keys_and_checks, NULL);
}

static void reads_policies(void *context)
{
    struct policies policies = {0};
    (void)context;
    status s = policy_file_parse(bytes_of(policy), &policies);
    assert_int_equal(policies.count, status_is_ok(s) ? 2 : 0);
    assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    policies_free(&policies);
}

static void reading_policies(void **state)
{
    (void)state;
    failmalloc_each(reads_policies, NULL);
}

/* An entry is there as a whole or not at all. */
static void notes_a_call(void *context)
{
    struct audit_trail *trail;
    const struct audit_entry entry = {.principal = bytes_of("user:a"),
                                      .resource = bytes_of(TABLE),
                                      .changes = bytes_of("ADD role=r member=m")};
    (void)context;
    status s = audit_trail_create(0, &trail);
    struct arena *arena = arena_create(ARENA_LIMIT);
    if (status_is_ok(s) && arena != NULL) {
        struct audit_entry *entries;
        size_t count;
        audit_trail_add(trail, &entry);
        status listed = audit_trail_list(trail, 1, arena, &entries, &count);
        assert_true(status_is_ok(listed) || listed.code == STATUS_RESOURCE_EXHAUSTED);
        if (status_is_ok(listed) && count > 0)
            assert_true(bytes_equal(entries[0].resource, bytes_of(TABLE)));
        status_free(listed);
    }
    status_free(s);
    arena_destroy(arena);
    audit_trail_destroy(trail);
}

static void noting_a_call(void **state)
{
    (void)state;
    failmalloc_each(notes_a_call, NULL);
}

static void makes_a_peer(void *context)
{
    (void)context;
    access_peer_destroy(access_peer_create(NULL, "127.0.0.1:1"));
}

static void making_a_peer(void **state)
{
    (void)state;
    failmalloc_each(makes_a_peer, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(calls_are_refused_for_want_of_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(opening, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reading_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(setting_a_policy, set_up, tear_down),
        cmocka_unit_test(reading_tokens),
        cmocka_unit_test(checking_signed_tokens),
        cmocka_unit_test(reading_policies),
        cmocka_unit_test(noting_a_call),
        cmocka_unit_test(making_a_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
