/* Tests of url.h: what of a URL is told. */
#include "base/url.h"

#include "base/testing/testing.h"

static void told(const char *url, const char *expected)
{
    struct buffer out = {0};
    buffer_append_url(&out, url);
    assert_true(bytes_equal(buffer_bytes(&out), bytes_of(expected)));
    buffer_free(&out);
}

static void url_parts_without_secrets_are_told(void **state)
{
    (void)state;
    told("http://collector:4318", "http://collector:4318");
    told("https://[::1]:4318/v1/traces", "https://[::1]:4318/v1/traces");
    told("collector:4318", "collector:4318");
    told("", "");
}

static void users_and_passwords_are_not(void **state)
{
    (void)state;
    told("http://user:hunter2@collector:4318/", "http://collector:4318/");
    told("https://token@collector", "https://collector");
    told("user:hunter2@collector:4318", "collector:4318");
    told("user:hunter2://a@collector", "collector");
}

/* A URL that is wrong is told of, too: that is when it matters. */
static void passwords_may_hold_anything(void **state)
{
    (void)state;
    told("http://user:hunt/er2@collector/p", "http://collector/p");
    told("http://user:hunt@er2@collector", "http://collector");
    told("http://user:hunt?er#2@collector", "http://collector");
    told("http://user:hunter2@", "http://");
}

static void keys_in_queries_are_not(void **state)
{
    (void)state;
    told("https://collector/v1/traces?key=hunter2", "https://collector/v1/traces");
    told("https://collector#hunter2", "https://collector");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(url_parts_without_secrets_are_told),
        cmocka_unit_test(users_and_passwords_are_not),
        cmocka_unit_test(passwords_may_hold_anything),
        cmocka_unit_test(keys_in_queries_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
