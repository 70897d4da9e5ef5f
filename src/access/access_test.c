/* Tests of access control without a network: every row of rpcs.def against every role, policies and
 * what they are inherited by, token files, signed tokens, requests that name too much or nothing.
 */
#include "access/access.h"

#include "access/jwt.h"
#include "access/policy_file.h"
#include "access/rules.h"
#include "access/tokens.h"
#include "base/testing/testing.h"
#include "base/varint.h"

#define BYTES(text) bytes_make(text, sizeof(text) - 1)

/* --- rules --- */

/* A request whose one field, or that of its one sub-message, is the text. */
static struct buffer request_with(const uint32_t numbers[RULE_DEPTH_MOST], bytes text)
{
    enum { LENGTH_PREFIXED = 2 };
    struct buffer inner = {0}, outer = {0};
    bool is_nested = numbers[1] != 0;
    buffer_append_varint(&inner, (numbers[is_nested] << 3) | LENGTH_PREFIXED);
    buffer_append_varint(&inner, text.size);
    buffer_append_bytes(&inner, text);
    if (!is_nested)
        return inner;
    buffer_append_varint(&outer, (numbers[0] << 3) | LENGTH_PREFIXED);
    buffer_append_varint(&outer, inner.size);
    buffer_append_bytes(&outer, buffer_bytes(&inner));
    buffer_free(&inner);
    return outer;
}

/* Grants a set on anything that is the name of something. */
static bool grant_set(void *context, bytes name, struct granted *out)
{
    const struct permission_set *set = context;
    out->set = *set;
    return resource_kind(name, &out->kind);
}

/* The rows of the rule for the same field and kind as the row at `index`. */
static struct permission_set demanded(const struct rule *rule, size_t index)
{
    struct permission_set set = {{0}};
    for (size_t i = 0; i < rule->count; i++)
        if (strcmp(rule->rows[i].field, rule->rows[index].field) == 0 &&
            rule->rows[i].kind == rule->rows[index].kind &&
            rule->rows[i].permission != PERMISSION_NONE)
            set.words[rule->rows[i].permission / 64] |= 1ull << rule->rows[i].permission % 64;
    return set;
}

static bool contains(struct permission_set set, struct permission_set part)
{
    return (part.words[0] & ~set.words[0]) == 0 && (part.words[1] & ~set.words[1]) == 0;
}

static void append_empty(struct buffer *request, uint32_t number)
{
    buffer_append_varint(request, number << 3 | 2);
    buffer_append_varint(request, 0);
}

static void check_row(const struct rule *rule, size_t index)
{
    enum access_kind kind = rule->rows[index].kind;
    const char *name =
        kind == KIND_OPERATION ? "operations/projects/p/instances/i/operations/1" : kind_form(kind);
    struct buffer request = request_with(rule->fields[index], bytes_of(name));
    struct permission_set needed = demanded(rule, index);
    for (size_t i = 0; i < rule->count; i++)
        if (rule->when[i] != 0)
            append_empty(&request, rule->when[i]);
    bytes resource = {0};
    for (size_t i = 0; role_name(i) != NULL; i++) {
        struct permission_set set;
        assert_true(role_find(bytes_of(role_name(i)), &set));
        status s = rule_check(rule, buffer_bytes(&request), grant_set, &set, &resource);
        assert_status(s, contains(set, needed) ? STATUS_OK : STATUS_PERMISSION_DENIED);
        assert_true(bytes_equal(resource, bytes_of(name)));
    }
    /* One permission less is too few, all but these are too few, these are enough. */
    struct permission_set others = {{~needed.words[0], ~needed.words[1]}};
    bool demands = (needed.words[0] | needed.words[1]) != 0;
    assert_status(rule_check(rule, buffer_bytes(&request), grant_set, &others, &resource),
                  demands ? STATUS_PERMISSION_DENIED : STATUS_OK);
    assert_status(rule_check(rule, buffer_bytes(&request), grant_set, &needed, &resource),
                  STATUS_OK);
    buffer_free(&request);
}

static void every_row_is_enforced(void **state)
{
    (void)state;
    for (size_t i = 0; i < requirement_count(); i++) {
        const struct requirement *row = requirement_at(i);
        struct rule rule;
        assert_ok(rule_find(row->service, row->method, &rule));
        for (size_t j = 0; j < rule.count; j++)
            check_row(&rule, j);
    }
}

static void a_method_without_a_rule_is_an_error(void **state)
{
    (void)state;
    struct rule rule;
    assert_status(rule_find("google.bigtable.v2.Bigtable", "OpenTable", &rule), STATUS_INTERNAL);
    assert_status(rule_find("some.Service", "Method", &rule), STATUS_INTERNAL);
    assert_ok(rule_find("grpc.health.v1.Health", "Check", &rule));
    assert_int_equal(rule.count, 0);
    assert_false(rule.is_administration);
}

static struct rule find_rule(const char *method)
{
    struct rule rule;
    assert_ok(rule_find("google.bigtable.v2.Bigtable", method, &rule));
    return rule;
}

static void refused(const char *method, bytes request)
{
    struct rule rule = find_rule(method);
    struct permission_set all = {{UINT64_MAX, UINT64_MAX}};
    bytes resource = {0};
    assert_status(rule_check(&rule, request, grant_set, &all, &resource), STATUS_INVALID_ARGUMENT);
}

static void requests_that_name_nothing_are_refused(void **state)
{
    (void)state;
    refused("ReadRows", BYTES(""));
    refused("ReadRows", BYTES("\x0a\x00"));
    refused("ReadRows", BYTES("\x0a\x01"));                /* cut off */
    refused("ReadRows", BYTES("\x0b"));                    /* a group */
    refused("ReadRows", BYTES("\x0a\x0aprojects/p"));      /* not a table */
    refused("ReadRows", BYTES("\x0a\x02x\0"));             /* no name at all */
    refused("PingAndWarm", BYTES("\x0a\x0cprojects/p/i")); /* nor this */
    refused("PingAndWarm", BYTES("\x0a\x0bprojects/p/"));
}

/* As for the decoder the last one counts: else one could be checked and the other used. */
static void the_last_name_counts(void **state)
{
    (void)state;
    struct rule rule = find_rule("PingAndWarm");
    struct permission_set all = {{UINT64_MAX, UINT64_MAX}};
    bytes resource = {0};
    bytes twice = BYTES("\x0a\x16projects/p/instances/a\x0a\x16projects/p/instances/b");
    assert_ok(rule_check(&rule, twice, grant_set, &all, &resource));
    assert_true(bytes_equal(resource, BYTES("projects/p/instances/b")));
    refused("PingAndWarm", BYTES("\x0a\x16projects/p/instances/a\x0a\x00"));
}

/* The resource that the audit log names for a request that no rule was checked on. */
static void a_request_has_a_name(void **state)
{
    (void)state;
    struct rule rule;
    assert_ok(rule_find("google.bigtable.admin.v2.BigtableTableAdmin", "CreateBackup", &rule));
    struct buffer table = request_with(rule.fields[1], bytes_of("a table"));
    assert_true(bytes_equal(rule_name(&rule, buffer_bytes(&table)), bytes_of("a table")));
    assert_int_equal(rule_name(&rule, BYTES("")).size, 0);
    assert_int_equal(rule_name(&rule, BYTES("\x0b")).size, 0);
    buffer_free(&table);
}

/* A caller that may only read can commit a transaction that has only read. */
static void a_row_may_depend_on_a_field(void **state)
{
    (void)state;
    struct rule rule;
    struct permission_set viewer, user;
    bytes resource = {0};
    assert_true(role_find(bytes_of("roles/datastore.viewer"), &viewer));
    assert_true(role_find(bytes_of("roles/datastore.user"), &user));
    assert_ok(rule_find("google.datastore.v1.Datastore", "Commit", &rule));
    assert_false(rule.is_administration);
    struct buffer request = request_with(rule.fields[0], bytes_of("p"));
    assert_ok(rule_check(&rule, buffer_bytes(&request), grant_set, &viewer, &resource));
    append_empty(&request, 6); /* mutations */
    assert_status(rule_check(&rule, buffer_bytes(&request), grant_set, &viewer, &resource),
                  STATUS_PERMISSION_DENIED);
    assert_ok(rule_check(&rule, buffer_bytes(&request), grant_set, &user, &resource));
    buffer_free(&request);
}

/* A role of one service grants nothing of the other. */
static void roles_keep_to_their_service(void **state)
{
    (void)state;
    struct permission_set set;
    assert_true(role_find(bytes_of("roles/bigtable.admin"), &set));
    assert_true(permission_set_has(set, PERMISSION_tables_setIamPolicy));
    assert_false(permission_set_has(set, PERMISSION_entities_get));
    assert_true(role_find(bytes_of("roles/datastore.owner"), &set));
    assert_true(permission_set_has(set, PERMISSION_indexes_create));
    assert_false(permission_set_has(set, PERMISSION_tables_get));
    assert_true(role_find(bytes_of("roles/viewer"), &set));
    assert_true(permission_set_has(set, PERMISSION_entities_get));
    assert_true(permission_set_has(set, PERMISSION_tables_readRows));
    assert_false(permission_set_has(set, PERMISSION_entities_update));
}

/* Both of two names in a request are looked at. */
static bool grant_one(void *context, bytes name, struct granted *out)
{
    const char *allowed = context;
    out->set = (struct permission_set){{0}};
    if (bytes_equal(name, bytes_of(allowed)))
        out->set = (struct permission_set){{UINT64_MAX, UINT64_MAX}};
    return resource_kind(name, &out->kind);
}

static void every_name_is_looked_at(void **state)
{
    (void)state;
    static char table[] = "projects/p/instances/i/tables/t";
    static char view[] = "projects/p/instances/i/tables/u/authorizedViews/v";
    struct rule rule = find_rule("ReadRows");
    struct buffer both = request_with(rule.fields[0], bytes_of(table));
    struct buffer second = request_with(rule.fields[1], bytes_of(view));
    bytes resource = {0};
    buffer_append_bytes(&both, buffer_bytes(&second));
    assert_status(rule_check(&rule, buffer_bytes(&both), grant_one, table, &resource),
                  STATUS_PERMISSION_DENIED);
    assert_status(rule_check(&rule, buffer_bytes(&both), grant_one, view, &resource),
                  STATUS_PERMISSION_DENIED);
    buffer_free(&both);
    buffer_free(&second);
}

/* --- policies --- */

static const struct access_binding reader_bob = {.role = "roles/bigtable.reader",
                                                 .members =
                                                     (const char *const[]){"user:bob@example.com"},
                                                 .member_count = 1};

static bool may(const struct policies *policies, const char *principal, const char *resource,
                enum access_permission permission)
{
    struct permission_set set = policies_grant(policies, bytes_of(principal), bytes_of(resource));
    return permission_set_has(set, permission);
}

static void policies_are_inherited_downwards(void **state)
{
    (void)state;
    struct policies policies = {0};
    const char *bob = "user:bob@example.com";
    assert_ok(policies_set(&policies, BYTES("projects/p/instances/i"), &reader_bob, 1));
    assert_true(may(&policies, bob, "projects/p/instances/i/tables/t", PERMISSION_tables_readRows));
    assert_true(may(&policies, bob, "projects/p/instances/i/tables/t/authorizedViews/v",
                    PERMISSION_authorizedViews_readRows));
    assert_true(may(&policies, bob, "operations/projects/p/instances/i/operations/1",
                    PERMISSION_instances_get));
    assert_false(
        may(&policies, bob, "projects/p/instances/i/tables/t", PERMISSION_tables_mutateRows));
    assert_false(
        may(&policies, bob, "projects/p/instances/ii/tables/t", PERMISSION_tables_readRows));
    assert_false(may(&policies, bob, "projects/p", PERMISSION_instances_list));
    assert_false(may(&policies, "user:bo", "projects/p/instances/i", PERMISSION_instances_get));
    assert_false(may(&policies, "", "projects/p/instances/i", PERMISSION_instances_get));
    policies_remove(&policies, BYTES("projects/p/instances/i"));
    assert_false(may(&policies, bob, "projects/p/instances/i", PERMISSION_instances_get));
    policies_free(&policies);
}

static void everybody_and_everybody_known(void **state)
{
    (void)state;
    struct policies policies = {0};
    const struct access_binding bindings[] = {
        {.role = "roles/bigtable.viewer",
         .members = (const char *const[]){"allUsers"},
         .member_count = 1},
        {.role = "roles/bigtable.reader",
         .members = (const char *const[]){"allAuthenticatedUsers", "user:a", "user:a"},
         .member_count = 3},
        {.role = "roles/bigtable.user",
         .members = (const char *const[]){"user:a"},
         .member_count = 1},
    };
    assert_ok(policies_set(&policies, BYTES("*"), bindings, 3));
    const char *table = "projects/q/instances/i/tables/t";
    assert_true(may(&policies, "", table, PERMISSION_tables_get));
    assert_false(may(&policies, "", table, PERMISSION_tables_readRows));
    assert_true(may(&policies, "user:b", table, PERMISSION_tables_readRows));
    assert_false(may(&policies, "user:b", table, PERMISSION_tables_mutateRows));
    assert_true(may(&policies, "user:a", table, PERMISSION_tables_mutateRows));
    assert_false(policies_have_owner(&policies));
    policies_free(&policies);
}

static void a_policy_file(void **state)
{
    (void)state;
    struct policies policies = {0};
    assert_ok(policy_file_parse(
        BYTES("{\"*\": {\"bindings\": [{\"role\": \"roles/owner\", \"members\": [\"user:o\"]}]}}"),
        &policies));
    assert_true(policies_have_owner(&policies));
    policies_free(&policies);
    static const char *const wrong[] = {
        "",
        "[]",
        "{\"*\": []}",
        "{\"projects\": {\"bindings\": []}}",
        "{\"*\": {\"bindings\": [{}]}}",
        "{\"*\": {\"bindings\": [{\"role\": \"roles/x\", \"members\": []}]}}",
        "{\"*\": {\"bindings\": [{\"role\": \"roles/owner\", \"members\": [1]}]}}",
        "{\"*\": {\"bindings\": [{\"role\": \"roles/owner\", \"members\": [\"group:g\"]}]}}",
        ("{\"*\": {\"bindings\": [{\"role\": \"roles/owner\", \"members\": [], \"condition\": "
         "{}}]}}"),
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_status(policy_file_parse(bytes_of(wrong[i]), &policies), STATUS_INVALID_ARGUMENT);
        assert_int_equal(policies.count, 0);
    }
}

/* --- tokens --- */

static void a_line_that_was_written_is_read(void **state)
{
    (void)state;
    struct tokens tokens;
    struct buffer text = {0};
    char token[TOKEN_TEXT_SIZE];
    uint8_t hash[TOKEN_HASH_SIZE];
    buffer_append_format(&text, "# a comment\n\n");
    for (int i = 0; i < 5; i++) {
        assert_ok(token_make(token));
        token_write_line(token, "user:alice", i % 2 == 0 ? INT64_MAX : 2000000000000000, &text);
    }
    assert_ok(tokens_parse("file", buffer_bytes(&text), &tokens));
    assert_int_equal(tokens.count, 5);
    token_hash(bytes_of(token), hash);
    const struct token *found = tokens_find(&tokens, hash);
    assert_non_null(found);
    assert_string_equal(found->principal, "user:alice");
    assert_int_equal(found->expires_us, INT64_MAX);
    hash[0] ^= 1;
    assert_null(tokens_find(&tokens, hash));
    tokens_free(&tokens);
    buffer_free(&text);
}

#define HASH "5433f271f41a71e4b9d7018ad5e184191a3aca9704985b71a3d9985c11d37b17"

static void wrong_lines_are_named(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "# fine\n5433 user:a",
        HASH,
        HASH " alice",
        HASH " user:",
        HASH " user:a tomorrow",
        HASH " user:a 2027-13-01T00:00:00Z",
        HASH " user:a 2027-01-31T00:00:00Z more",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct tokens tokens;
        status s = tokens_parse("file", bytes_of(wrong[i]), &tokens);
        assert_non_null(strstr(status_message(s), i == 0 ? "file:2: " : "file:1: "));
        assert_status(s, STATUS_INVALID_ARGUMENT);
        assert_int_equal(tokens.count, 0);
    }
}

/* --- signed tokens: the key, the text and the signature are those of RFC 8037, appendix A --- */

static const char rfc_keys[] = "{\"keys\": [{\"kty\": \"OKP\", \"crv\": \"Ed25519\", \"x\": "
                               "\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}";
static const char rfc_token[] =
    "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc."
    "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

static status verify(const char *keys_text, const char *token)
{
    const struct jwt_expectation expected = {.issuer = "i", .audience = "a"};
    struct jwks *keys;
    char *principal;
    int64_t expires_us;
    assert_ok(jwks_parse(bytes_of(keys_text), &keys));
    status s = jwt_verify(keys, &expected, bytes_of(token), 0, &principal, &expires_us);
    jwks_destroy(keys);
    if (status_is_ok(s))
        free(principal);
    return s;
}

/* Its payload is no set of claims, which shows only once the signature was found good. */
static void a_signature_of_the_rfc(void **state)
{
    (void)state;
    char changed[sizeof rfc_token];
    status s = verify(rfc_keys, rfc_token);
    assert_string_equal(status_message(s), "the token is malformed");
    assert_status(s, STATUS_UNAUTHENTICATED);
    memcpy(changed, rfc_token, sizeof changed);
    changed[30] ^= 1;
    s = verify(rfc_keys, changed);
    assert_string_equal(status_message(s), "the token's signature is wrong");
    assert_status(s, STATUS_UNAUTHENTICATED);
}

static void keys_that_are_of_no_use(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "{}",
        "{\"keys\": []}",
        "{\"keys\": [{\"kty\": \"oct\", \"k\": \"AAAA\"}]}",
        "{\"keys\": [{\"kty\": \"OKP\", \"crv\": \"Ed25519\", \"x\": \"AAAA\"}]}",
        "{\"keys\": [{\"kty\": \"RSA\", \"n\": \"AQAB\", \"e\": \"AQAB\"}]}",
        "{\"keys\": [{\"kty\": \"EC\", \"crv\": \"P-256\", \"x\": \"AAAA\", \"y\": \"AAAA\"}]}",
        ("{\"keys\": [{\"kty\": \"OKP\", \"crv\": \"Ed25519\", \"use\": \"enc\", \"x\": "
         "\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}"),
        ("{\"keys\": [{\"kty\": \"OKP\", \"crv\": \"Ed25519\", \"alg\": \"HS256\", \"x\": "
         "\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}"),
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct jwks *keys;
        assert_status(jwks_parse(bytes_of(wrong[i]), &keys), STATUS_INVALID_ARGUMENT);
        assert_null(keys);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_enforced),
        cmocka_unit_test(a_method_without_a_rule_is_an_error),
        cmocka_unit_test(requests_that_name_nothing_are_refused),
        cmocka_unit_test(the_last_name_counts),
        cmocka_unit_test(a_request_has_a_name),
        cmocka_unit_test(a_row_may_depend_on_a_field),
        cmocka_unit_test(roles_keep_to_their_service),
        cmocka_unit_test(every_name_is_looked_at),
        cmocka_unit_test(policies_are_inherited_downwards),
        cmocka_unit_test(everybody_and_everybody_known),
        cmocka_unit_test(a_policy_file),
        cmocka_unit_test(a_line_that_was_written_is_read),
        cmocka_unit_test(wrong_lines_are_named),
        cmocka_unit_test(a_signature_of_the_rfc),
        cmocka_unit_test(keys_that_are_of_no_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
