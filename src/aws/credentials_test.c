/* Credentials and regions, from the environment and from files of profiles. */
#include "aws/credentials.h"

#include "base/testing/testing.h"

#include <stdio.h>
#include <unistd.h>

enum { ARENA_LIMIT = 1 << 20 };

static const char *const names[] = {
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
    "AWS_REGION",        "AWS_DEFAULT_REGION",
};

static const char credentials_file[] = "aws_credentials_test.ini";
static const char config_file[] = "aws_config_test.ini";

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    setenv("AWS_SHARED_CREDENTIALS_FILE", credentials_file, 1);
    setenv("AWS_CONFIG_FILE", config_file, 1);
    *state = arena_create(ARENA_LIMIT);
    return *state == NULL;
}

static int teardown(void **state)
{
    unlink(credentials_file);
    unlink(config_file);
    arena_destroy(*state);
    return 0;
}

static void the_environment_comes_first(void **state)
{
    struct aws_credentials found;
    write_file(credentials_file, "[default]\naws_access_key_id=no\naws_secret_access_key=no\n");
    setenv("AWS_ACCESS_KEY_ID", "AK", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    setenv("AWS_DEFAULT_REGION", "eu-west-1", 1);
    assert_ok(aws_credentials_find(NULL, *state, &found));
    assert_string_equal(found.access_key, "AK");
    assert_string_equal(found.secret_key, "secret");
    assert_null(found.session_token);
    assert_string_equal(found.region, "eu-west-1");
    setenv("AWS_SESSION_TOKEN", "token", 1);
    setenv("AWS_REGION", "eu-west-2", 1);
    assert_ok(aws_credentials_find(NULL, *state, &found));
    assert_string_equal(found.session_token, "token");
    assert_string_equal(found.region, "eu-west-2");
    assert_ok(aws_credentials_find("eu-west-3", *state, &found));
    assert_string_equal(found.region, "eu-west-3");
}

static void profiles_are_read_from_files(void **state)
{
    struct aws_credentials found;
    write_file(credentials_file, "# a comment = no\n[default]\naws_access_key_id = one\r\n"
                                 "aws_secret_access_key = 1/+=\n\n[ work ]\n"
                                 "  aws_access_key_id=two\naws_secret_access_key\t=\t2\n"
                                 "aws_session_token=t");
    write_file(config_file, "[default]\nregion = r1\n[profile work]\n; region = no\nregion = r2\n");
    assert_ok(aws_credentials_find(NULL, *state, &found));
    assert_string_equal(found.access_key, "one");
    assert_string_equal(found.secret_key, "1/+=");
    assert_null(found.session_token);
    assert_string_equal(found.region, "r1");
    setenv("AWS_PROFILE", "work", 1);
    assert_ok(aws_credentials_find(NULL, *state, &found));
    assert_string_equal(found.access_key, "two");
    assert_string_equal(found.secret_key, "2");
    assert_string_equal(found.session_token, "t");
    assert_string_equal(found.region, "r2");
}

static void a_missing_credential_is_told(void **state)
{
    struct aws_credentials found;
    assert_status(aws_credentials_find("r", *state, &found), STATUS_UNAUTHENTICATED);
    write_file(credentials_file, "[other]\naws_access_key_id=x\naws_secret_access_key=y\n[]\n[\n=");
    assert_status(aws_credentials_find("r", *state, &found), STATUS_UNAUTHENTICATED);
    setenv("AWS_ACCESS_KEY_ID", "AK", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    assert_status(aws_credentials_find(NULL, *state, &found), STATUS_INVALID_ARGUMENT);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_environment_comes_first),
        TEST(profiles_are_read_from_files),
        TEST(a_missing_credential_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
