/* Tests of commits in flight: which watches learn of them, and until when. */
#include "base/testing/testing.h"
#include "datastore/commit/in_flight.h"

struct fixture {
    struct ds_sequencer sequencer;
    struct ds_in_flight in_flight;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    ds_sequencer_init(&f->sequencer);
    ds_in_flight_init(&f->in_flight);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ds_in_flight_free(&f->in_flight);
    ds_sequencer_free(&f->sequencer);
    free(f);
    return 0;
}

static struct ds_watch watch_of(const struct ds_read_range *ranges, size_t count, int64_t after_us)
{
    return (struct ds_watch){.ranges = ranges, .count = count, .after_us = after_us};
}

/* Whether a watch of one range that begins now is met. */
static bool meets(struct fixture *f, const char *from, const char *to, struct ds_turn *moment)
{
    const struct ds_read_range range = {bytes_of(from), bytes_of(to)};
    struct ds_watch watch = watch_of(&range, 1, 0);
    ds_in_flight_watch(&f->in_flight, &watch);
    bool is_met = ds_watch_is_met(&f->in_flight, &watch, &f->sequencer, moment);
    ds_in_flight_unwatch(&f->in_flight, &watch);
    return is_met;
}

static void a_later_watch_learns_of_a_commit(void **state)
{
    struct fixture *f = *state;
    const bytes keys[] = {bytes_of("m"), bytes_of("c")};
    struct ds_turn earlier = {0}, writer = {0}, later = {0};
    struct ds_flight flight = {.keys = keys, .count = 2, .moment = &writer};
    ds_in_flight_add(&f->in_flight, &flight);
    ds_sequencer_draw(&f->sequencer, 100, &earlier);
    assert_false(meets(f, "a", "", &earlier)); /* the writer has not drawn its own */
    ds_sequencer_draw(&f->sequencer, 100, &writer);
    ds_sequencer_draw(&f->sequencer, 100, &later);
    assert_false(meets(f, "a", "", &earlier));
    assert_false(meets(f, "a", "", &writer));
    assert_true(meets(f, "a", "d", &later));
    assert_true(meets(f, "c", "c1", &later));
    assert_true(meets(f, "d", "", &later));
    assert_false(meets(f, "a", "c", &later));
    assert_false(meets(f, "d", "m", &later));
    assert_false(meets(f, "n", "", &later));
    ds_flight_fail(&flight);
    assert_false(meets(f, "a", "", &later));
    ds_sequencer_end(&f->sequencer, &earlier);
    ds_sequencer_end(&f->sequencer, &writer);
    ds_sequencer_end(&f->sequencer, &later);
    ds_in_flight_remove(&f->in_flight, &flight);
    ds_in_flight_remove(&f->in_flight, &flight);
}

/* A commit that has ended when the watch is asked may have been applied behind where its owner was
 * looking. */
static void a_watch_learns_of_an_ended_commit(void **state)
{
    struct fixture *f = *state;
    static const char *const froms[] = {"a", "c", "e"};
    const bytes key = bytes_of("c");
    struct ds_read_range ranges[3];
    struct ds_watch before, watches[3], late;
    struct ds_turn writer = {0}, own = {0};
    struct ds_flight flight = {.keys = &key, .count = 1, .moment = &writer};
    for (int i = 0; i < 3; i++) {
        ranges[i] = (struct ds_read_range){bytes_of(froms[i]), bytes_of(i == 0 ? "b" : "d")};
        watches[i] = watch_of(&ranges[i], 1, 0);
    }
    ranges[2].to = bytes_of("");
    ds_in_flight_add(&f->in_flight, &flight);
    for (int i = 0; i < 3; i++)
        ds_in_flight_watch(&f->in_flight, &watches[i]);
    ds_sequencer_draw(&f->sequencer, 100, &writer);
    before = watch_of(ranges, 3, writer.at_us); /* it has read what the writer wrote */
    ds_in_flight_watch(&f->in_flight, &before);
    ds_sequencer_end(&f->sequencer, &writer);
    ds_in_flight_remove(&f->in_flight, &flight);
    late = watch_of(ranges, 3, 0); /* it looks at the table from now on */
    ds_in_flight_watch(&f->in_flight, &late);
    ds_sequencer_draw(&f->sequencer, 100, &own);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ds_watch_is_met(&f->in_flight, &watches[i], &f->sequencer, &own), i == 1);
    assert_false(ds_watch_is_met(&f->in_flight, &before, &f->sequencer, &own));
    assert_false(ds_watch_is_met(&f->in_flight, &late, &f->sequencer, &own));
    ds_sequencer_end(&f->sequencer, &own);
    for (int i = 0; i < 3; i++)
        ds_in_flight_unwatch(&f->in_flight, &watches[i]);
    ds_in_flight_unwatch(&f->in_flight, &before);
    ds_in_flight_unwatch(&f->in_flight, &late);
    ds_in_flight_unwatch(&f->in_flight, &late);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_later_watch_learns_of_a_commit),
        TEST(a_watch_learns_of_an_ended_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
