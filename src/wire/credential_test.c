/* Tests of credentials as time goes by. */
#include "wire/credential.h"

#include "base/testing/testing.h"
#include "base/testing/testing_clock.h"
#include "os/testing/testing.h"
#include "wire/grpc_text.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MINUTE_US = 60 * 1000 * 1000 };

struct fixture {
    char path[64];
    char key_path[80];
    struct turned_clock clock;
    struct credential *credential;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(f->path, sizeof f->path, "/tmp/trestle-credential-XXXXXX");
    int fd = mkstemp(f->path);
    assert_true(fd >= 0);
    close(fd);
    snprintf(f->key_path, sizeof f->key_path, "%s.key", f->path);
    f->clock.clock = (struct clock)TURNED_CLOCK;
    f->clock.now_us = 1700000000ll * 1000 * 1000;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    credential_destroy(f->credential);
    unlink(f->path);
    unlink(f->key_path);
    free(f);
    return 0;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void assert_header(struct fixture *f, const char *expected)
{
    bytes header;
    assert_ok(credential_header(f->credential, &header));
    assert_int_equal(header.size, strlen(expected));
    assert_memory_equal(header.data, expected, header.size);
}

/* --- tokens --- */

static void no_credential_without_options(void **state)
{
    struct fixture *f = *state;
    const struct credential_options options = {.host = "h", .clock = &f->clock.clock};
    assert_ok(credential_create(&options, &f->credential));
    assert_null(f->credential);
}

static void a_file_is_looked_at_again(void **state)
{
    struct fixture *f = *state;
    const struct credential_options options = {.token_file = f->path, .clock = &f->clock.clock};
    write_file(f->path, "one\nignored\n");
    assert_ok(credential_create(&options, &f->credential));
    assert_header(f, "Bearer one");
    write_file(f->path, "two");
    assert_header(f, "Bearer one");
    f->clock.now_us += MINUTE_US;
    assert_header(f, "Bearer two");
    assert_int_equal(unlink(f->path), 0);
    f->clock.now_us += MINUTE_US;
    assert_header(f, "Bearer two");
    write_file(f->path, "three");
    f->clock.now_us += MINUTE_US;
    assert_header(f, "Bearer three");
}

/* --- accounts --- */

static void write_account(struct fixture *f)
{
    char pem[8192] = {0};
    testing_write_key(f->key_path, "RSA");
    FILE *file = fopen(f->key_path, "r");
    assert_non_null(file);
    assert_true(fread(pem, 1, sizeof pem - 1, file) > 0);
    assert_int_equal(fclose(file), 0);
    json_t *json = json_pack("{s:s, s:s, s:s}", "client_email", "a@example.com", "private_key", pem,
                             "private_key_id", "id");
    char *text = json_dumps(json, 0);
    assert_non_null(text);
    write_file(f->path, text);
    free(text);
    json_decref(json);
}

/* The part of the token with this number, as JSON. */
static json_t *part_of(struct fixture *f, int number)
{
    bytes header;
    uint8_t decoded[4096];
    size_t size;
    assert_ok(credential_header(f->credential, &header));
    assert_true(bytes_start_with(header, bytes_of("Bearer ")));
    char *text = bytes_to_string(bytes_from(header, strlen("Bearer ")));
    char *at = text;
    for (; number > 0; number--)
        at = strchr(at, '.') + 1;
    assert_true(base64_decode(bytes_make(at, strcspn(at, ".")), decoded, &size));
    free(text);
    json_t *json = json_loadb((const char *)decoded, size, 0, NULL);
    assert_non_null(json);
    return json;
}

static void assert_claims(struct fixture *f, int64_t signed_us)
{
    const json_int_t signed_s = signed_us / (MINUTE_US / 60);
    json_t *claims = part_of(f, 1);
    json_t *expected = json_pack("{s:s, s:s, s:s, s:I, s:I}", "iss", "a@example.com", "sub",
                                 "a@example.com", "aud", "https://bigtable.googleapis.com/", "iat",
                                 signed_s, "exp", signed_s + 3600);
    assert_true(json_equal(claims, expected));
    json_decref(claims);
    json_decref(expected);
}

static void an_account_signs_again_in_time(void **state)
{
    struct fixture *f = *state;
    const int64_t begun_us = f->clock.now_us;
    const struct credential_options options = {
        .account_file = f->path, .host = "bigtable.googleapis.com", .clock = &f->clock.clock};
    write_account(f);
    assert_ok(credential_create(&options, &f->credential));
    json_t *header = part_of(f, 0);
    assert_string_equal(json_string_value(json_object_get(header, "alg")), "RS256");
    assert_string_equal(json_string_value(json_object_get(header, "kid")), "id");
    json_decref(header);
    assert_claims(f, begun_us);
    f->clock.now_us = begun_us + 49ll * MINUTE_US;
    assert_claims(f, begun_us);
    f->clock.now_us = begun_us + 50ll * MINUTE_US;
    assert_claims(f, f->clock.now_us);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_credential_without_options, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_is_looked_at_again, setup, teardown),
        cmocka_unit_test_setup_teardown(an_account_signs_again_in_time, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
