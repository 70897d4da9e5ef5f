/* Tests of sessions: what they stand for, when they end, how many there are. */
#include "console/sessions.h"

#include "base/limits.h"
#include "base/testing/testing.h"
#include "base/testing/testing_clock.h"

enum { SECOND_US = 1000 * 1000 };

struct fixture {
    struct turned_clock clock;
    struct sessions *sessions;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->clock.clock = (struct clock)TURNED_CLOCK;
    f->clock.now_us = 1;
    assert_ok(sessions_create(&f->clock.clock, &f->sessions));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    sessions_destroy(f->sessions);
    free(f);
    return 0;
}

static void pass(struct fixture *f, int64_t seconds)
{
    f->clock.now_us += seconds * SECOND_US;
}

static bool is_there(struct fixture *f, const char *cookie)
{
    bytes credential;
    return sessions_find(f->sessions, bytes_of(cookie), &credential);
}

static void a_cookie_stands_for_its_credential(void **state)
{
    struct fixture *f = *state;
    char alice[TOKEN_TEXT_SIZE], bob[TOKEN_TEXT_SIZE];
    bytes credential;
    assert_ok(sessions_begin(f->sessions, bytes_of("Bearer a"), alice));
    assert_ok(sessions_begin(f->sessions, bytes_of("Bearer b"), bob));
    assert_string_not_equal(alice, bob);
    assert_true(sessions_find(f->sessions, bytes_of(alice), &credential));
    assert_true(bytes_equal(credential, bytes_of("Bearer a")));
    assert_true(sessions_find(f->sessions, bytes_of(bob), &credential));
    assert_true(bytes_equal(credential, bytes_of("Bearer b")));
}

static void other_cookies_have_no_session(void **state)
{
    struct fixture *f = *state;
    char cookie[TOKEN_TEXT_SIZE];
    bytes credential;
    assert_false(sessions_find(f->sessions, bytes_of(""), &credential));
    assert_ok(sessions_begin(f->sessions, bytes_of("Bearer a"), cookie));
    cookie[10] ^= 1;
    assert_false(sessions_find(f->sessions, bytes_of(cookie), &credential));
    assert_int_equal(credential.size, 0);
    assert_false(is_there(f, "Bearer a"));
}

static void a_logout_ends_one_session_alone(void **state)
{
    struct fixture *f = *state;
    char alice[TOKEN_TEXT_SIZE], bob[TOKEN_TEXT_SIZE];
    assert_ok(sessions_begin(f->sessions, bytes_of("Bearer a"), alice));
    assert_ok(sessions_begin(f->sessions, bytes_of("Bearer b"), bob));
    sessions_end(f->sessions, bytes_of(alice));
    sessions_end(f->sessions, bytes_of("no cookie"));
    assert_false(is_there(f, alice));
    assert_true(is_there(f, bob));
}

static void an_idle_one_ends(void **state)
{
    struct fixture *f = *state;
    char cookie[TOKEN_TEXT_SIZE];
    assert_ok(sessions_begin(f->sessions, bytes_of("Bearer a"), cookie));
    pass(f, LIMIT_CONSOLE_IDLE_SECONDS - 1);
    assert_true(is_there(f, cookie)); /* and is not idle any more */
    pass(f, LIMIT_CONSOLE_IDLE_SECONDS - 1);
    assert_true(is_there(f, cookie));
    pass(f, LIMIT_CONSOLE_IDLE_SECONDS);
    assert_false(is_there(f, cookie));
    assert_int_equal(sessions_count(f->sessions), 0); /* nor is its token kept */
}

static void no_session_lasts_for_ever(void **state)
{
    struct fixture *f = *state;
    char cookie[TOKEN_TEXT_SIZE];
    int64_t step = LIMIT_CONSOLE_IDLE_SECONDS / 2;
    assert_ok(sessions_begin(f->sessions, bytes_of("Bearer a"), cookie));
    for (int64_t at = step; at < LIMIT_CONSOLE_SESSION_SECONDS; at += step) {
        pass(f, step);
        assert_true(is_there(f, cookie));
    }
    pass(f, step);
    assert_false(is_there(f, cookie));
}

static void the_least_used_makes_room(void **state)
{
    struct fixture *f = *state;
    char first[TOKEN_TEXT_SIZE], second[TOKEN_TEXT_SIZE], cookie[TOKEN_TEXT_SIZE];
    assert_ok(sessions_begin(f->sessions, bytes_of("Bearer 1"), first));
    pass(f, 1);
    assert_ok(sessions_begin(f->sessions, bytes_of("Bearer 2"), second));
    for (int i = 2; i < LIMIT_CONSOLE_SESSIONS; i++) {
        pass(f, 1);
        assert_ok(sessions_begin(f->sessions, bytes_of("Bearer n"), cookie));
    }
    assert_int_equal(sessions_count(f->sessions), LIMIT_CONSOLE_SESSIONS);
    assert_true(is_there(f, first)); /* so that the second is the one that was idle for longest */
    assert_ok(sessions_begin(f->sessions, bytes_of("Bearer n"), cookie));
    assert_int_equal(sessions_count(f->sessions), LIMIT_CONSOLE_SESSIONS);
    assert_true(is_there(f, first));
    assert_false(is_there(f, second));
}

/* As a page does that is left open. */
static void a_look_keeps_no_session_alive(void **state)
{
    struct fixture *f = *state;
    char cookie[TOKEN_TEXT_SIZE];
    bytes credential;
    assert_ok(sessions_begin(f->sessions, bytes_of("Bearer a"), cookie));
    pass(f, LIMIT_CONSOLE_IDLE_SECONDS - 1);
    assert_true(sessions_look(f->sessions, bytes_of(cookie), &credential));
    assert_true(bytes_equal(credential, bytes_of("Bearer a")));
    pass(f, 2);
    assert_false(sessions_look(f->sessions, bytes_of(cookie), &credential));
    assert_int_equal(credential.size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_look_keeps_no_session_alive, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cookie_stands_for_its_credential, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_cookies_have_no_session, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_logout_ends_one_session_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_idle_one_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_session_lasts_for_ever, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_least_used_makes_room, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("sessions", tests, NULL, NULL);
}
