/* Which requests pass the guard against pages from elsewhere, and which do not. */
#include "wire/browser_guard.h"

#include "base/testing/testing.h"

static const struct browser_guard guard = {.allowed_hosts = "db.example.com, Other.example.com"};

static bool admits(const struct browser_guard *by, struct browser_marks marks)
{
    status s = browser_guard_admit(by, &marks);
    bool is_admitted = status_is_ok(s);
    assert_true(is_admitted || s.code == STATUS_PERMISSION_DENIED);
    status_free(s);
    return is_admitted;
}

/* A browser's request from the page of that host itself. */
static bool knows(const char *host)
{
    return admits(&guard, (struct browser_marks){.host = bytes_of(host), .is_browser = true});
}

static void hosts(void **state)
{
    (void)state;
    static const char *const known[] = {
        "127.0.0.1",      "127.0.0.1:8086",      "10.1.2.3:8086",       "[::1]:8086",
        "[::1]",          "[2001:db8::7]:80",    "localhost",           "localhost:8086",
        "LOCALHOST",      "localhost.",          "trestle.localhost:1", "trestle:8086",
        "db.example.com", "db.example.com:8086", "DB.example.COM.",     "other.example.com:1",
    };
    static const char *const unknown[] = {
        "",
        ":8086",
        "evil.example",
        "evil.example:8086",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8086",
        "db.example.com.evil.example",
        "xdb.example.com",
        "example.com",
        ".localhost.example",
        "[evil.example]",
        "127.0.0.1.",
        "1.2.3",
        "[::1]evil.example",
        "evil.example,db.example.com",
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!knows(known[i]))
            print_error("%s\n", known[i]);
        assert_true(knows(known[i]));
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        bool is_address_with_dot = strcmp(unknown[i], "127.0.0.1.") == 0; /* the same address */
        if (knows(unknown[i]) != is_address_with_dot)
            print_error("%s\n", unknown[i]);
        assert_true(knows(unknown[i]) == is_address_with_dot);
    }
}

static void other_clients_may_use_any_name(void **state)
{
    (void)state;
    assert_true(
        admits(&guard, (struct browser_marks){.host = bytes_of("trestle.svc.cluster.local")}));
    assert_true(admits(&guard, (struct browser_marks){.host = {NULL, 0}}));
    const struct browser_guard none = {.any_host = true};
    assert_true(admits(&none, (struct browser_marks){.host = bytes_of("a.b"), .is_browser = true}));
}

static bool admits_from(const char *site, const char *origin, const char *mode, bool only_looks)
{
    return admits(&guard, (struct browser_marks){.host = bytes_of("localhost:8086"),
                                                 .origin = bytes_of(origin),
                                                 .site = bytes_of(site),
                                                 .mode = bytes_of(mode),
                                                 .is_browser = true,
                                                 .only_looks = only_looks});
}

static void sites(void **state)
{
    (void)state;
    for (int only_looks = 0; only_looks < 2; only_looks++) {
        assert_true(admits_from("same-origin", "", "cors", only_looks));
        assert_true(admits_from("none", "", "navigate", only_looks));
        assert_true(admits_from("same-origin", "null", "cors", only_looks));
        assert_false(admits_from("cross-site", "", "no-cors", only_looks));
        assert_false(admits_from("same-site", "", "no-cors", only_looks));
        assert_false(admits_from("cross-site", "http://localhost:8086", "cors", only_looks));
        assert_true(admits_from("", "http://localhost:8086", "", only_looks));
        assert_true(admits_from("", "https://LOCALHOST:8086", "", only_looks));
        assert_false(admits_from("", "http://localhost:8087", "", only_looks));
        assert_false(admits_from("", "http://localhost", "", only_looks));
        assert_false(admits_from("", "https://evil.example", "", only_looks));
        assert_false(admits_from("", "null", "", only_looks));
        assert_false(admits_from("", "file://", "", only_looks));
    }
    assert_true(admits_from("cross-site", "", "navigate", true));       /* a link */
    assert_false(admits_from("cross-site", "null", "navigate", false)); /* a form */
}

static void lists_of_hosts(void **state)
{
    (void)state;
    assert_ok(browser_guard_check_hosts(NULL));
    assert_ok(browser_guard_check_hosts("db.example.com"));
    assert_ok(browser_guard_check_hosts("a, b-2.example"));
    static const char *const wrong[] = {"",         "a,",   "a,,b", "a b",
                                        "http://a", "a:80", "*.a",  "[::1]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_status(browser_guard_check_hosts(wrong[i]), STATUS_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts),
        cmocka_unit_test(other_clients_may_use_any_name),
        cmocka_unit_test(sites),
        cmocka_unit_test(lists_of_hosts),
    };
    return cmocka_run_group_tests_name("wire_browser_guard", tests, NULL, NULL);
}
