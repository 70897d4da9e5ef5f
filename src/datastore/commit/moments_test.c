/* Tests of the order of commits: who may enter when, and what the present is. */
#include "base/testing/testing.h"
#include "datastore/commit/moments.h"

#include <sched.h>
#include <stdatomic.h>

enum { COMMITS = 8, ROUNDS = 200 };

/* Moments in the order in which they entered. */
static struct ds_moment *entries[4];
static size_t entry_count;

static int setup(void **state)
{
    struct ds_moments *moments = calloc(1, sizeof *moments);
    assert_non_null(moments);
    ds_moments_init(moments);
    *state = moments;
    return 0;
}

static int teardown(void **state)
{
    ds_moments_free(*state);
    free(*state);
    return 0;
}

static void moments_rise(void **state)
{
    struct ds_moments *moments = *state;
    struct ds_moment first, second, third;
    ds_moment_draw(moments, 100, &first);
    ds_moment_draw(moments, 100, &second);
    ds_moment_draw(moments, 50, &third); /* a clock set back */
    assert_int_equal(first.at_us, 100);
    assert_int_equal(second.at_us, 101);
    assert_int_equal(third.at_us, 102);
    ds_moment_end(moments, &first);
    ds_moment_end(moments, &second);
    ds_moment_end(moments, &third);
}

static void the_present_is_before_what_is_not_applied(void **state)
{
    struct ds_moments *moments = *state;
    struct ds_moment first, second;
    assert_int_equal(ds_moments_present(moments, 100), 100);
    ds_moment_draw(moments, 90, &first);
    assert_int_equal(first.at_us, 101); /* after what was shown as the present */
    ds_moment_draw(moments, 120, &second);
    assert_int_equal(ds_moments_present(moments, 130), 100);
    ds_moment_end(moments, &first);
    assert_int_equal(ds_moments_present(moments, 130), 119);
    ds_moment_end(moments, &second);
    assert_int_equal(ds_moments_present(moments, 110), 120);
    assert_int_equal(ds_moments_present(moments, 130), 130);
}

/* --- turns --- */

static void note_entry(struct ds_moment *moment)
{
    entries[entry_count++] = moment;
}

static void who_comes_later_waits_for_no_turn(void **state)
{
    struct ds_moments *moments = *state;
    struct ds_moment first, second, third, fourth;
    struct ds_moment *const all[] = {&first, &second, &third, &fourth};
    entry_count = 0;
    for (size_t i = 0; i < 4; i++) {
        ds_moment_draw(moments, 100, all[i]);
        all[i]->enter = note_entry;
    }
    ds_moment_ready(moments, &third);
    ds_moment_ready(moments, &second);
    assert_int_equal(entry_count, 0);
    ds_moment_ready(moments, &first);
    assert_int_equal(entry_count, 3);
    assert_ptr_equal(entries[0], &first);
    assert_ptr_equal(entries[1], &second);
    assert_ptr_equal(entries[2], &third);
    ds_moment_applied(moments, &second);
    assert_int_equal(ds_moments_present(moments, 0), first.at_us - 1);
    ds_moment_applied(moments, &first);
    assert_int_equal(ds_moments_present(moments, 0), second.at_us);
    ds_moment_give_up(moments, &fourth);
    assert_int_equal(entry_count, 3);
    ds_moment_applied(moments, &third);
    for (size_t i = 0; i < 4; i++)
        ds_moment_end(moments, all[i]);
}

/* --- several at once --- */

struct shared {
    struct ds_moments *moments;
    atomic_llong last_entered;
    atomic_llong acknowledged; /* the latest */
};

/* A commit in the arms of one of the threads. */
struct commit {
    struct ds_moment moment;
    struct shared *shared;
    atomic_int is_past;
};

static void entered(struct ds_moment *moment)
{
    struct commit *commit = LIST_ENTRY(moment, struct commit, moment);
    assert_true(atomic_exchange(&commit->shared->last_entered, moment->at_us) < moment->at_us);
    ds_moment_applied(commit->shared->moments, moment);
}

static void is_past(struct ds_moment *moment)
{
    struct commit *commit = LIST_ENTRY(moment, struct commit, moment);
    assert_true(ds_moments_present(commit->shared->moments, 0) >= moment->at_us);
    atomic_store(&commit->shared->acknowledged, moment->at_us);
    atomic_store(&commit->is_past, 1);
}

static void commit_once(struct shared *shared, int i)
{
    struct commit commit = {.shared = shared};
    bool waits = i % 2 == 0;
    ds_moment_draw(shared->moments, 0, &commit.moment);
    commit.moment.enter = entered;
    commit.moment.past = waits ? NULL : is_past;
    if (i % 5 == 2)
        ds_moment_wait_for_earlier(shared->moments, &commit.moment);
    if (i % 7 == 3)
        ds_moment_give_up(shared->moments, &commit.moment);
    else if (i % 14 != 4) /* that one is ended without being ready */
        ds_moment_ready(shared->moments, &commit.moment);
    if (waits) {
        ds_moment_end(shared->moments, &commit.moment);
        assert_true(ds_moments_present(shared->moments, 0) >= commit.moment.at_us);
    }
    while (!waits && !atomic_load(&commit.is_past))
        sched_yield();
}

static void *commit_often(void *argument)
{
    for (int i = 0; i < ROUNDS; i++)
        commit_once(argument, i);
    return NULL;
}

/* Whoever reads sees all that was acknowledged before. */
static void *read_often(void *argument)
{
    struct shared *shared = argument;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t acknowledged = atomic_load(&shared->acknowledged);
        int64_t present = ds_moments_present(shared->moments, 0);
        assert_true(present >= acknowledged);
        ds_moments_reach(shared->moments, present);
    }
    return NULL;
}

static void commits_enter_in_the_order_of_their_moments(void **state)
{
    struct shared shared = {.moments = *state};
    pthread_t threads[COMMITS + 1];
    for (int i = 0; i <= COMMITS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < COMMITS ? commit_often : read_often, &shared), 0);
    for (int i = 0; i <= COMMITS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void *reach_later(void *argument)
{
    struct shared *shared = argument;
    ds_moments_reach(shared->moments, 150);
    assert_int_equal(atomic_load(&shared->acknowledged), 100);
    return NULL;
}

static void a_time_is_waited_for(void **state)
{
    struct shared shared = {.moments = *state};
    struct ds_moment early, late;
    pthread_t thread;
    ds_moment_draw(shared.moments, 100, &early);
    ds_moment_draw(shared.moments, 200, &late);
    assert_int_equal(pthread_create(&thread, NULL, reach_later, &shared), 0);
    atomic_store(&shared.acknowledged, early.at_us);
    ds_moment_end(shared.moments, &early);
    assert_int_equal(pthread_join(thread, NULL), 0); /* `late` is after it */
    ds_moment_end(shared.moments, &late);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(moments_rise),
        TEST(the_present_is_before_what_is_not_applied),
        TEST(who_comes_later_waits_for_no_turn),
        TEST(commits_enter_in_the_order_of_their_moments),
        TEST(a_time_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
