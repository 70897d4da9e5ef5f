/* Tests of what commits are about to write: who learns of it, and until when. */
#include "base/testing.h"
#include "datastore/in_flight.h"

struct fixture {
    struct ds_moments moments;
    struct ds_in_flight in_flight;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    ds_moments_init(&f->moments);
    ds_in_flight_init(&f->in_flight);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ds_in_flight_free(&f->in_flight);
    ds_moments_free(&f->moments);
    free(f);
    return 0;
}

static bool meets(struct fixture *f, const char *from, const char *to, struct ds_moment *moment)
{
    return ds_in_flight_meets(&f->in_flight, bytes_of(from), bytes_of(to), &f->moments, moment);
}

static void enter(struct ds_moment *moment)
{
    (void)moment;
}

static void who_comes_later_learns_of_it(void **state)
{
    struct fixture *f = *state;
    const bytes keys[] = {bytes_of("m"), bytes_of("c")};
    struct ds_moment earlier = {0}, writer = {0}, later = {0};
    struct ds_flight flight = {.keys = keys, .count = 2, .moment = &writer};
    ds_in_flight_add(&f->in_flight, &flight);
    ds_moment_draw(&f->moments, 100, &earlier);
    assert_false(meets(f, "a", "", &earlier)); /* the writer has not drawn its own */
    ds_moment_draw(&f->moments, 100, &writer);
    ds_moment_draw(&f->moments, 100, &later);
    assert_false(meets(f, "a", "", &earlier));
    assert_false(meets(f, "a", "", &writer));
    assert_true(meets(f, "a", "d", &later));
    assert_true(meets(f, "c", "c1", &later));
    assert_true(meets(f, "d", "", &later));
    assert_false(meets(f, "a", "c", &later));
    assert_false(meets(f, "d", "m", &later));
    assert_false(meets(f, "n", "", &later));
    writer.enter = enter;
    ds_moment_ready(&f->moments, &writer);
    assert_true(meets(f, "a", "", &later));
    ds_moment_applied(&f->moments, &writer); /* though the one before it is not */
    assert_false(meets(f, "a", "", &later));
    ds_moment_end(&f->moments, &earlier);
    ds_moment_end(&f->moments, &writer);
    ds_moment_end(&f->moments, &later);
    ds_in_flight_remove(&f->in_flight, &flight);
    ds_in_flight_remove(&f->in_flight, &flight);
}

static void what_is_given_up_is_nothing(void **state)
{
    struct fixture *f = *state;
    const bytes key = bytes_of("c");
    struct ds_moment earlier = {0}, writer = {0}, later = {0};
    struct ds_flight flight = {.keys = &key, .count = 1, .moment = &writer};
    struct ds_flight other = {.keys = &key, .count = 1, .moment = &later};
    ds_in_flight_add(&f->in_flight, &flight);
    ds_in_flight_add(&f->in_flight, &other);
    ds_moment_draw(&f->moments, 100, &earlier);
    ds_moment_draw(&f->moments, 100, &writer);
    ds_moment_draw(&f->moments, 100, &later);
    assert_true(meets(f, "a", "", &later));
    ds_moment_give_up(&f->moments, &writer);
    assert_false(meets(f, "a", "", &later));
    ds_in_flight_remove(&f->in_flight, &flight);
    ds_in_flight_remove(&f->in_flight, &other);
    ds_moment_end(&f->moments, &earlier);
    ds_moment_end(&f->moments, &writer);
    ds_moment_end(&f->moments, &later);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_comes_later_learns_of_it),
        TEST(what_is_given_up_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
