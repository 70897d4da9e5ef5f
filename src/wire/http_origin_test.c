/* Tests of whose host an origin is: two checks against forged requests rest on it. */
#include "base/testing/testing.h"
#include "wire/http_origin.h"

static bool is_of(const char *origin, const char *host)
{
    return http_origin_is_of(bytes_of(origin), bytes_of(host));
}

static void the_host_that_was_asked(void **state)
{
    (void)state;
    assert_true(is_of("http://127.0.0.1:8086", "127.0.0.1:8086"));
    assert_true(is_of("https://db.example.com", "db.example.com"));
    assert_true(is_of("https://DB.example.com:443", "db.EXAMPLE.com:443"));
    assert_true(is_of("http://[::1]:8086", "[::1]:8086"));
}

static void other_origins_are_refused(void **state)
{
    static const char *const origins[] = {
        "",
        "null",
        "http://",
        "https://",
        "db.example.com",
        "ftp://db.example.com",
        "HTTP//db.example.com",
        "http://db.example.co",
        "http://db.example.com.",
        "http://db.example.com.evil.org",
        "http://evil.org/db.example.com",
        "http://evil.org@db.example.com",
        "http://db.example.com:80",
        "http://http://db.example.com",
    };
    (void)state;
    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++)
        assert_false(is_of(origins[i], "db.example.com"));
}

static void no_origin_is_of_an_empty_host(void **state)
{
    (void)state;
    assert_false(is_of("http://", ""));
    assert_false(is_of("null", ""));
    assert_false(is_of("", ""));
    assert_false(http_origin_is_of(bytes_make(NULL, 0), bytes_make(NULL, 0)));
    assert_false(is_of("http://a", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_that_was_asked),
        cmocka_unit_test(other_origins_are_refused),
        cmocka_unit_test(no_origin_is_of_an_empty_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
