/* Tests of the locks of ranges: which locker may have what, which waits, and which gives way. */
#include "base/testing/testing.h"
#include "datastore/commit/range_locks.h"

#include <pthread.h>
#include <sched.h>

enum { MOST_WAITING = 3, ROWS = 4, THREADS = 6, ROUNDS = 300, MOST_US = 30000000 };

/* A clock that a test sets. */
struct hands {
    struct clock clock;
    atomic_llong us;
};

static int64_t read_hands(struct clock *clock)
{
    return atomic_load(&((struct hands *)(void *)clock)->us);
}

struct fixture {
    struct hands hands;
    struct metrics *metrics;
    struct ds_range_locks *locks;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->hands.clock = (struct clock){read_hands, read_hands};
    assert_ok(metrics_create(&f->metrics));
    assert_ok(ds_range_locks_create(&f->hands.clock, f->metrics, MOST_WAITING, &f->locks));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ds_range_locks_destroy(f->locks);
    metrics_destroy(f->metrics);
    free(f);
    return 0;
}

/* --- one locker --- */

static void begin(struct ds_locker *locker, uint64_t age)
{
    *locker = (struct ds_locker){.age = age, .arena = arena_create(1 << 20), .until_us = INT64_MAX};
    assert_non_null(locker->arena);
}

static void end(struct fixture *f, struct ds_locker *locker)
{
    ds_range_locks_release(f->locks, locker);
    arena_destroy(locker->arena);
}

static status share(struct fixture *f, struct ds_locker *locker, const char *from, const char *to)
{
    const struct ds_read_range range = {bytes_of(from), bytes_of(to)};
    return ds_range_locks_share(f->locks, locker, &range, 1, NULL);
}

static status claim(struct fixture *f, struct ds_locker *locker, const bytes *rows, size_t count)
{
    return ds_range_locks_claim(f->locks, locker, (struct ds_claim){rows, count}, NULL);
}

static status claim_one(struct fixture *f, struct ds_locker *locker, const char *row)
{
    bytes *copy = arena_alloc(locker->arena, sizeof *copy);
    assert_non_null(copy);
    *copy = bytes_of(row);
    return claim(f, locker, copy, 1);
}

/* --- others, on threads --- */

struct other {
    struct fixture *f;
    struct ds_locker locker;
    const char *row; /* what it claims, or shares */
    bool shares;
    enum status_code code;
    pthread_t thread;
};

static void *want(void *argument)
{
    struct other *other = argument;
    status s = other->shares ? share(other->f, &other->locker, other->row, "")
                             : claim_one(other->f, &other->locker, other->row);
    other->code = s.code;
    status_free(s);
    if (s.code == STATUS_ABORTED)
        ds_range_locks_release(other->f->locks, &other->locker);
    return NULL;
}

/* Until that many have begun to wait; they must within some seconds. */
static void await_waits(struct fixture *f, int64_t count)
{
    int64_t begun_us = clock_steady_us(clock_system());
    while (metrics_value(f->metrics, METRIC_datastore_lock_waits_total) < count) {
        assert_true(clock_steady_us(clock_system()) - begun_us < MOST_US);
        sched_yield();
    }
}

static void go(struct fixture *f, struct other *other, bool shares, const char *row)
{
    other->f = f;
    other->shares = shares;
    other->row = row;
    assert_int_equal(pthread_create(&other->thread, NULL, want, other), 0);
}

static enum status_code come_back(struct other *other)
{
    assert_int_equal(pthread_join(other->thread, NULL), 0);
    return other->code;
}

/* --- tests --- */

static void many_may_share_unclaimed_rows(void **state)
{
    struct fixture *f = *state;
    struct ds_locker a, b, elsewhere;
    begin(&a, 1);
    begin(&b, 2);
    begin(&elsewhere, 3);
    elsewhere.database = f;
    assert_ok(share(f, &a, "b", "d"));
    assert_ok(share(f, &b, "c", ""));
    assert_ok(claim_one(f, &a, "b1")); /* its own */
    assert_ok(claim_one(f, &elsewhere, "c"));
    assert_ok(claim_one(f, &b, "a"));
    assert_int_equal(metrics_value(f->metrics, METRIC_datastore_lock_waits_total), 0);
    end(f, &a);
    end(f, &b);
    end(f, &elsewhere);
}

static void a_claim_waits_for_a_share(void **state)
{
    struct fixture *f = *state;
    struct ds_locker reader;
    struct other writer;
    begin(&reader, 1);
    begin(&writer.locker, 2);
    assert_ok(share(f, &reader, "b", "d"));
    go(f, &writer, false, "c");
    await_waits(f, 1);
    end(f, &reader);
    assert_int_equal(come_back(&writer), STATUS_OK);
    end(f, &writer.locker);
}

static void a_share_waits_for_a_claim(void **state)
{
    struct fixture *f = *state;
    struct ds_locker writer;
    struct other reader;
    begin(&writer, 1);
    begin(&reader.locker, 2);
    assert_ok(claim_one(f, &writer, "c"));
    go(f, &reader, true, "b");
    await_waits(f, 1);
    end(f, &writer);
    assert_int_equal(come_back(&reader), STATUS_OK);
    end(f, &reader.locker);
}

static void a_locker_that_waits_too_long_is_told(void **state)
{
    struct fixture *f = *state;
    struct ds_locker reader;
    struct other writer;
    begin(&reader, 1);
    begin(&writer.locker, 2);
    assert_ok(share(f, &reader, "c", "d"));
    go(f, &writer, false, "c");
    await_waits(f, 1);
    atomic_store(&f->hands.us, 2000000);
    assert_int_equal(come_back(&writer), STATUS_ABORTED);
    assert_int_equal(metrics_value(f->metrics, METRIC_datastore_lock_timeouts_total), 1);
    end(f, &reader);
    end(f, &writer.locker);
}

/* Both have read what both write: the younger gives way, whichever came last. */
static void the_youngest_of_a_circle_gives_way(void **state)
{
    struct fixture *f = *state;
    for (int turn = 0; turn < 2; turn++) {
        struct other older, younger;
        begin(&older.locker, 1);
        begin(&younger.locker, 2);
        assert_ok(share(f, &older.locker, "a", "b"));
        assert_ok(share(f, &younger.locker, "a", "b"));
        go(f, turn == 0 ? &older : &younger, false, "a1");
        await_waits(f, 2 * turn + 1);
        go(f, turn == 0 ? &younger : &older, false, "a2");
        assert_int_equal(come_back(&younger), STATUS_ABORTED);
        assert_int_equal(come_back(&older), STATUS_OK);
        end(f, &older.locker);
        end(f, &younger.locker);
    }
    assert_int_equal(metrics_value(f->metrics, METRIC_datastore_lock_victims_total), 2);
}

/* a shares x, b shares y, c shares z; a claims y, b claims z, c claims x. */
static void circles_may_be_large(void **state)
{
    struct fixture *f = *state;
    struct other of[3];
    static const char *const reads[] = {"x", "y", "z"}, *const behind[] = {"x1", "y1", "z1"};
    for (size_t i = 0; i < 3; i++) {
        begin(&of[i].locker, 10 - i);
        assert_ok(share(f, &of[i].locker, reads[i], behind[i]));
    }
    for (size_t i = 0; i < 3; i++) {
        go(f, &of[i], false, reads[(i + 1) % 3]);
        await_waits(f, (int64_t)i + 1);
    }
    assert_int_equal(come_back(&of[0]), STATUS_ABORTED);
    assert_int_equal(come_back(&of[2]), STATUS_OK);
    end(f, &of[2].locker);
    assert_int_equal(come_back(&of[1]), STATUS_OK);
    end(f, &of[0].locker);
    end(f, &of[1].locker);
}

static void a_reader_does_not_pass_an_older_commit(void **state)
{
    struct fixture *f = *state;
    struct ds_locker reader, older;
    struct other writer, younger;
    begin(&older, 1);
    begin(&writer.locker, 2);
    begin(&reader, 3);
    begin(&younger.locker, 4);
    assert_ok(share(f, &reader, "a", "b"));
    go(f, &writer, false, "a");
    await_waits(f, 1);
    assert_ok(share(f, &older, "a", "b"));
    go(f, &younger, true, "a");
    await_waits(f, 2);
    end(f, &older);
    end(f, &reader);
    assert_int_equal(come_back(&writer), STATUS_OK);
    end(f, &writer.locker);
    assert_int_equal(come_back(&younger), STATUS_OK);
    end(f, &younger.locker);
}

static void the_youngest_of_too_many_gives_way(void **state)
{
    struct fixture *f = *state;
    struct ds_locker reader;
    struct other writers[MOST_WAITING + 1];
    static const uint64_t ages[] = {4, 6, 5, 3};
    begin(&reader, 1);
    assert_ok(share(f, &reader, "a", "z"));
    static const char *const rows[] = {"b", "c", "d", "e"};
    for (size_t i = 0; i <= MOST_WAITING; i++) {
        begin(&writers[i].locker, ages[i]);
        go(f, &writers[i], false, rows[i]);
        await_waits(f, (int64_t)i + 1);
    }
    assert_int_equal(come_back(&writers[1]), STATUS_ABORTED);
    end(f, &reader);
    for (size_t i = 0; i <= MOST_WAITING; i++) {
        if (i != 1)
            assert_int_equal(come_back(&writers[i]), STATUS_OK);
        end(f, &writers[i].locker);
    }
}

static void expired_locks_are_free(void **state)
{
    struct fixture *f = *state;
    struct ds_locker reader, writer;
    begin(&reader, 1);
    begin(&writer, 2);
    assert_ok(share(f, &reader, "a", "z"));
    ds_locker_leave(&reader, 50);
    atomic_store(&f->hands.us, 50);
    assert_true(ds_locker_keep(&reader, 50));
    ds_locker_leave(&reader, 60);
    atomic_store(&f->hands.us, 61);
    assert_ok(claim_one(f, &writer, "b"));
    assert_false(ds_locker_keep(&reader, 55)); /* also with an earlier look at the clock */
    end(f, &reader);
    end(f, &writer);
}

static void shared_ranges_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct ds_locker reader, writer;
    static char large[1 << 20];
    begin(&reader, 1);
    begin(&writer, 2);
    const struct ds_read_range ranges[] = {{bytes_of("a"), bytes_of("b")},
                                           {bytes_make(large, sizeof large), bytes_of("")}};
    status s = ds_range_locks_share(f->locks, &reader, ranges, 2, NULL);
    assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    assert_ok(claim_one(f, &writer, "a"));
    end(f, &reader);
    end(f, &writer);
}

/* --- many at once --- */

struct shared {
    struct fixture *f;
    atomic_int readers[ROWS], writers[ROWS];
    atomic_uint age;
    atomic_int done;
};

static const char *const names[ROWS + 1] = {"a", "b", "c", "d", "e"};

static void check_rows(struct shared *shared, size_t from, size_t to, size_t written)
{
    for (size_t i = from; i < to; i++) {
        atomic_fetch_add(&shared->readers[i], 1);
        assert_int_equal(atomic_load(&shared->writers[i]), 0);
    }
    atomic_fetch_sub(&shared->readers[written], 1); /* which it writes itself */
    assert_int_equal(atomic_fetch_add(&shared->writers[written], 1), 0);
    assert_int_equal(atomic_load(&shared->readers[written]), 0);
    atomic_fetch_sub(&shared->writers[written], 1);
    atomic_fetch_add(&shared->readers[written], 1);
    for (size_t i = from; i < to; i++)
        atomic_fetch_sub(&shared->readers[i], 1);
}

static void *read_and_write(void *argument)
{
    struct shared *shared = argument;
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct ds_locker locker;
        size_t from = i % (ROWS - 1), to = from + 1 + i % 2;
        begin(&locker, atomic_fetch_add(&shared->age, 1));
        status s = share(shared->f, &locker, names[from], names[to]);
        if (status_is_ok(s)) {
            sched_yield();
            s = claim_one(shared->f, &locker, names[from]);
        }
        if (status_is_ok(s)) {
            check_rows(shared, from, to, from);
            atomic_fetch_add(&shared->done, 1);
        }
        status_free(s);
        end(shared->f, &locker);
    }
    return NULL;
}

static void a_claim_excludes_other_lockers(void **state)
{
    struct shared shared = {.f = *state};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_and_write, &shared), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(atomic_load(&shared.done) >= ROUNDS); /* the oldest always comes through */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(many_may_share_unclaimed_rows),
        TEST(a_claim_waits_for_a_share),
        TEST(a_share_waits_for_a_claim),
        TEST(a_locker_that_waits_too_long_is_told),
        TEST(the_youngest_of_a_circle_gives_way),
        TEST(circles_may_be_large),
        TEST(a_reader_does_not_pass_an_older_commit),
        TEST(the_youngest_of_too_many_gives_way),
        TEST(expired_locks_are_free),
        TEST(shared_ranges_are_bounded),
        TEST(a_claim_excludes_other_lockers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
