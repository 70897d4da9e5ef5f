#include "tablet/row_locks.h"

#include "base/testing/testing.h"

#include <pthread.h>

/* Rows whose stripes differ, and one whose stripe is that of another. */
enum { ROW = 1, OTHER_ROW = 2 };

struct witness {
    struct row_lock_waiter waiter;
    struct row_locks *locks;
    unsigned *turn;      /* counts those that were granted */
    unsigned granted_at; /* 0: not yet */
};

static void note_turn(struct row_lock_waiter *waiter)
{
    struct witness *witness = (struct witness *)waiter;
    witness->granted_at = ++*witness->turn;
}

static void note_turn_and_release(struct row_lock_waiter *waiter)
{
    note_turn(waiter);
    row_lock_release(((struct witness *)waiter)->locks, ROW);
}

static int setup(void **state)
{
    struct row_locks *locks;
    assert_ok(row_locks_create(&locks));
    *state = locks;
    return 0;
}

static int teardown(void **state)
{
    row_locks_destroy(*state);
    return 0;
}

static void a_free_row_is_had_at_once(void **state)
{
    struct row_lock_waiter waiter = {.granted = NULL};
    assert_true(row_lock_acquire(*state, ROW, &waiter));
    assert_true(row_lock_acquire(*state, OTHER_ROW, &waiter));
    row_lock_release(*state, ROW);
    assert_true(row_lock_acquire(*state, ROW, &waiter));
    row_lock_release(*state, ROW);
    row_lock_release(*state, OTHER_ROW);
}

static void waiters_get_the_lock_in_turn(void **state)
{
    struct row_locks *locks = *state;
    unsigned turn = 0;
    struct witness witness[3];
    struct row_lock_waiter first = {.granted = NULL};
    assert_true(row_lock_acquire(locks, ROW, &first));
    for (unsigned i = 0; i < 3; i++) {
        witness[i] = (struct witness){.waiter.granted = note_turn, .locks = locks, .turn = &turn};
        assert_false(row_lock_acquire(locks, ROW, &witness[i].waiter));
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(turn, i);
        row_lock_release(locks, ROW);
        assert_int_equal(witness[i].granted_at, i + 1);
    }
    row_lock_release(locks, ROW);
}

/* Waiters that are done at once must not nest: a million stack frames would not fit. */
static void a_long_queue_needs_no_deep_stack(void **state)
{
    enum { WAITERS = 1000 * 1000 };
    struct row_locks *locks = *state;
    unsigned turn = 0;
    struct witness *witness = calloc(WAITERS, sizeof *witness);
    assert_non_null(witness);
    struct row_lock_waiter first = {.granted = NULL};
    assert_true(row_lock_acquire(locks, ROW, &first));
    for (unsigned i = 0; i < WAITERS; i++) {
        witness[i] = (struct witness){
            .waiter.granted = note_turn_and_release, .locks = locks, .turn = &turn};
        assert_false(row_lock_acquire(locks, ROW, &witness[i].waiter));
    }
    row_lock_release(locks, ROW);
    assert_int_equal(turn, WAITERS);
    assert_int_equal(witness[WAITERS - 1].granted_at, WAITERS);
    free(witness);
}

static void stripe_remembers_its_newest_sequence(void **state)
{
    struct row_lock_waiter waiter = {.granted = NULL};
    assert_true(row_lock_acquire(*state, ROW, &waiter));
    row_lock_note_sequence(*state, ROW, 20);
    row_lock_note_sequence(*state, ROW, 10);
    assert_int_equal(row_lock_sequence(*state, ROW), 20);
    row_lock_release(*state, ROW);
}

static void a_try_does_not_wait(void **state)
{
    unsigned turn = 0;
    struct witness witness = {.waiter.granted = note_turn, .locks = *state, .turn = &turn};
    assert_true(row_lock_try(*state, ROW));
    assert_false(row_lock_try(*state, ROW));
    assert_true(row_lock_try(*state, OTHER_ROW));
    assert_false(row_lock_acquire(*state, ROW, &witness.waiter));
    row_lock_release(*state, ROW);
    assert_int_equal(witness.granted_at, 1);
    assert_false(row_lock_try(*state, ROW)); /* it is the waiter's */
    row_lock_release(*state, ROW);
    row_lock_release(*state, OTHER_ROW);
}

static void release_all_stamps_every_stripe(void **state)
{
    row_locks_acquire_all(*state);
    assert_false(row_lock_try(*state, ROW));
    row_locks_release_all(*state, 30);
    for (uint64_t row = 0; row < 10000; row++) {
        assert_true(row_lock_try(*state, row));
        assert_int_equal(row_lock_sequence(*state, row), 30);
        row_lock_release(*state, row);
    }
}

static void rows_of_different_tables_have_different_hashes(void **state)
{
    (void)state;
    assert_int_not_equal(row_lock_hash(1, bytes_of("a")), row_lock_hash(2, bytes_of("a")));
    assert_int_not_equal(row_lock_hash(1, bytes_of("a")), row_lock_hash(1, bytes_of("b")));
    assert_int_equal(row_lock_hash(1, bytes_of("a")), row_lock_hash(1, bytes_of("a")));
}

/* --- threads: counters that are not atomic, each guarded by a row lock --- */

enum { ROWS = 4, THREADS = 4, ROUNDS = 5000 };

struct shared {
    struct row_locks *locks;
    unsigned counters[ROWS];
    unsigned sum; /* guarded by all locks together */
};

/* Adds one under the lock, on whichever thread gets it; `done` tells the caller. */
struct increment {
    struct row_lock_waiter waiter;
    struct shared *shared;
    unsigned row;
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
};

static void increment(struct row_lock_waiter *waiter)
{
    struct increment *self = (struct increment *)waiter;
    self->shared->counters[self->row]++;
    row_lock_release(self->shared->locks, self->row);
    pthread_mutex_lock(&self->lock);
    self->is_done = true;
    pthread_cond_signal(&self->done);
    pthread_mutex_unlock(&self->lock);
}

static void *increment_often(void *argument)
{
    struct shared *shared = argument;
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct increment self = {.waiter.granted = increment,
                                 .shared = shared,
                                 .row = i % ROWS,
                                 .lock = PTHREAD_MUTEX_INITIALIZER,
                                 .done = PTHREAD_COND_INITIALIZER};
        if (row_lock_acquire(shared->locks, self.row, &self.waiter))
            increment(&self.waiter);
        pthread_mutex_lock(&self.lock);
        while (!self.is_done)
            pthread_cond_wait(&self.done, &self.lock);
        pthread_mutex_unlock(&self.lock);
    }
    return NULL;
}

/* While all are held no counter moves. */
static void *take_all_sometimes(void *argument)
{
    struct shared *shared = argument;
    for (unsigned i = 0; i < 20; i++) {
        row_locks_acquire_all(shared->locks);
        shared->sum = 0;
        for (unsigned row = 0; row < ROWS; row++)
            shared->sum += shared->counters[row];
        unsigned again = 0;
        for (unsigned row = 0; row < ROWS; row++)
            again += shared->counters[row];
        assert_int_equal(again, shared->sum);
        row_locks_release_all(shared->locks, 0);
    }
    return NULL;
}

/* While several are held none of theirs moves; a row given twice is no trouble. */
static void *take_some_often(void *argument)
{
    struct shared *shared = argument;
    for (unsigned i = 0; i < ROUNDS / 10; i++) {
        uint64_t rows[] = {(i + 2) % ROWS, i % ROWS, (i + 1) % ROWS, i % ROWS};
        size_t count = 4;
        row_locks_acquire_many(shared->locks, rows, &count);
        assert_true(count <= 3);
        for (size_t k = 0; k < count; k++)
            shared->counters[rows[k]]++;
        for (size_t k = 0; k < count; k++)
            shared->counters[rows[k]]--;
        row_locks_release_many(shared->locks, rows, count, 0);
    }
    return NULL;
}

static void one_at_a_time_has_a_row(void **state)
{
    struct shared shared = {.locks = *state};
    void *(*const others[])(void *) = {take_all_sometimes, take_all_sometimes, take_some_often,
                                       take_some_often};
    enum { OTHERS = sizeof others / sizeof *others };
    pthread_t threads[THREADS + OTHERS];
    for (unsigned i = 0; i < THREADS + OTHERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL,
                                        i < THREADS ? increment_often : others[i - THREADS],
                                        &shared),
                         0);
    for (unsigned i = 0; i < THREADS + OTHERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (unsigned row = 0; row < ROWS; row++)
        assert_int_equal(shared.counters[row], THREADS * ROUNDS / ROWS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_free_row_is_had_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(waiters_get_the_lock_in_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(a_long_queue_needs_no_deep_stack, setup, teardown),
        cmocka_unit_test_setup_teardown(stripe_remembers_its_newest_sequence, setup, teardown),
        cmocka_unit_test_setup_teardown(a_try_does_not_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(release_all_stamps_every_stripe, setup, teardown),
        cmocka_unit_test(rows_of_different_tables_have_different_hashes),
        cmocka_unit_test_setup_teardown(one_at_a_time_has_a_row, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
