/* Tests of the order of commits: which may enter when, and what the present is. */
#include "base/testing/testing.h"
#include "datastore/commit/sequencer.h"

#include <sched.h>
#include <stdatomic.h>

enum { COMMITS = 8, ROUNDS = 200 };

/* Moments in the order in which they entered. */
static struct ds_turn *entries[4];
static size_t entry_count;

static int setup(void **state)
{
    struct ds_sequencer *sequencer = calloc(1, sizeof *sequencer);
    assert_non_null(sequencer);
    ds_sequencer_init(sequencer);
    *state = sequencer;
    return 0;
}

static int teardown(void **state)
{
    ds_sequencer_free(*state);
    free(*state);
    return 0;
}

static void moments_rise(void **state)
{
    struct ds_sequencer *sequencer = *state;
    struct ds_turn first, second, third;
    ds_sequencer_draw(sequencer, 100, &first);
    ds_sequencer_draw(sequencer, 100, &second);
    ds_sequencer_draw(sequencer, 50, &third); /* a clock set back */
    assert_int_equal(first.at_us, 100);
    assert_int_equal(second.at_us, 101);
    assert_int_equal(third.at_us, 102);
    ds_sequencer_end(sequencer, &first);
    ds_sequencer_end(sequencer, &second);
    ds_sequencer_end(sequencer, &third);
}

static void the_present_is_before_what_is_not_applied(void **state)
{
    struct ds_sequencer *sequencer = *state;
    struct ds_turn first, second;
    assert_int_equal(ds_sequencer_read_timestamp(sequencer, 100), 100);
    ds_sequencer_draw(sequencer, 90, &first);
    assert_int_equal(first.at_us, 101); /* after what was shown as the present */
    ds_sequencer_draw(sequencer, 120, &second);
    assert_int_equal(ds_sequencer_read_timestamp(sequencer, 130), 100);
    ds_sequencer_end(sequencer, &first);
    assert_int_equal(ds_sequencer_read_timestamp(sequencer, 130), 119);
    ds_sequencer_end(sequencer, &second);
    assert_int_equal(ds_sequencer_read_timestamp(sequencer, 110), 120);
    assert_int_equal(ds_sequencer_read_timestamp(sequencer, 130), 130);
}

/* --- turns --- */

static void note_entry(struct ds_turn *turn)
{
    entries[entry_count++] = turn;
}

static void a_later_moment_blocks_no_thread(void **state)
{
    struct ds_sequencer *sequencer = *state;
    struct ds_turn first, second, third, fourth;
    struct ds_turn *const all[] = {&first, &second, &third, &fourth};
    entry_count = 0;
    for (size_t i = 0; i < 4; i++) {
        ds_sequencer_draw(sequencer, 100, all[i]);
        all[i]->enter = note_entry;
    }
    ds_sequencer_ready(sequencer, &third);
    ds_sequencer_ready(sequencer, &second);
    assert_int_equal(entry_count, 0);
    ds_sequencer_ready(sequencer, &first);
    assert_int_equal(entry_count, 3);
    assert_ptr_equal(entries[0], &first);
    assert_ptr_equal(entries[1], &second);
    assert_ptr_equal(entries[2], &third);
    ds_sequencer_applied(sequencer, &second);
    assert_int_equal(ds_sequencer_read_timestamp(sequencer, 0), first.at_us - 1);
    ds_sequencer_applied(sequencer, &first);
    assert_int_equal(ds_sequencer_read_timestamp(sequencer, 0), second.at_us);
    ds_sequencer_give_up(sequencer, &fourth);
    assert_int_equal(entry_count, 3);
    ds_sequencer_applied(sequencer, &third);
    for (size_t i = 0; i < 4; i++)
        ds_sequencer_end(sequencer, all[i]);
}

/* --- several at once --- */

struct shared {
    struct ds_sequencer *sequencer;
    atomic_llong last_entered;
    atomic_llong acknowledged; /* the latest */
};

/* A commit in the arms of one of the threads. */
struct commit {
    struct ds_turn turn;
    struct shared *shared;
    atomic_int is_past;
};

static void entered(struct ds_turn *turn)
{
    struct commit *commit = LIST_ENTRY(turn, struct commit, turn);
    assert_true(atomic_exchange(&commit->shared->last_entered, turn->at_us) < turn->at_us);
    ds_sequencer_applied(commit->shared->sequencer, turn);
}

static void is_past(struct ds_turn *turn)
{
    struct commit *commit = LIST_ENTRY(turn, struct commit, turn);
    assert_true(ds_sequencer_read_timestamp(commit->shared->sequencer, 0) >= turn->at_us);
    atomic_store(&commit->shared->acknowledged, turn->at_us);
    atomic_store(&commit->is_past, 1);
}

static void commit_once(struct shared *shared, int i)
{
    struct commit commit = {.shared = shared};
    bool waits = i % 2 == 0;
    ds_sequencer_draw(shared->sequencer, 0, &commit.turn);
    commit.turn.enter = entered;
    commit.turn.past = waits ? NULL : is_past;
    if (i % 5 == 2)
        ds_sequencer_wait_for_earlier(shared->sequencer, &commit.turn);
    if (i % 7 == 3)
        ds_sequencer_give_up(shared->sequencer, &commit.turn);
    else if (i % 14 != 4) /* that one is ended without being ready */
        ds_sequencer_ready(shared->sequencer, &commit.turn);
    if (waits) {
        ds_sequencer_end(shared->sequencer, &commit.turn);
        assert_true(ds_sequencer_read_timestamp(shared->sequencer, 0) >= commit.turn.at_us);
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

/* A reader sees all that was acknowledged before. */
static void *read_often(void *argument)
{
    struct shared *shared = argument;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t acknowledged = atomic_load(&shared->acknowledged);
        int64_t present = ds_sequencer_read_timestamp(shared->sequencer, 0);
        assert_true(present >= acknowledged);
        ds_sequencer_wait_until(shared->sequencer, present);
    }
    return NULL;
}

static void commits_enter_in_the_order_of_their_moments(void **state)
{
    struct shared shared = {.sequencer = *state};
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
    ds_sequencer_wait_until(shared->sequencer, 150);
    assert_int_equal(atomic_load(&shared->acknowledged), 100);
    return NULL;
}

static void a_time_is_waited_for(void **state)
{
    struct shared shared = {.sequencer = *state};
    struct ds_turn early, late;
    pthread_t thread;
    ds_sequencer_draw(shared.sequencer, 100, &early);
    ds_sequencer_draw(shared.sequencer, 200, &late);
    assert_int_equal(pthread_create(&thread, NULL, reach_later, &shared), 0);
    atomic_store(&shared.acknowledged, early.at_us);
    ds_sequencer_end(shared.sequencer, &early);
    assert_int_equal(pthread_join(thread, NULL), 0); /* `late` is after it */
    ds_sequencer_end(shared.sequencer, &late);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(moments_rise),
        TEST(the_present_is_before_what_is_not_applied),
        TEST(a_later_moment_blocks_no_thread),
        TEST(commits_enter_in_the_order_of_their_moments),
        TEST(a_time_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
