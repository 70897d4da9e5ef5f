/* Tests of jobs in pieces: each waits once, what is urgent comes first, nothing waits for ever, and
 * what is long keeps nothing else from its turn, but what works on the same. Where threads must
 * meet they do so at barriers. */
#include "os/job_pool.h"

#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"
#include "os/testing/job_testing.h"
#include "os/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { URGENT, LONG, KINDS };
enum { PATIENCE = 3 };

static const struct job_kind kinds[KINDS] = {
    [URGENT] = {.patience = 0, .at_once = 2},
    [LONG] = {.patience = PATIENCE, .at_once = 1},
};

static struct job_pool *start(unsigned threads)
{
    struct job_pool *pool;
    assert_ok(job_pool_create(threads, kinds, KINDS, "test", &pool));
    return pool;
}

static void stop(struct job_pool *pool)
{
    job_pool_stop(pool);
    job_pool_destroy(pool);
}

/* --- a job that stands --- */

static void count_end(struct pool_job *job)
{
    LIST_ENTRY(job, struct door, job)->ends++;
}

/* Returns when its piece has begun. */
static void let_stand(struct job_pool *pool, struct door *door, unsigned kind, const void *owner)
{
    door_init(door, kind, owner, count_end);
    assert_true(job_pool_submit(pool, &door->job));
    door_await(door);
}

/* --- jobs that write down when they ran --- */

struct diary {
    pthread_mutex_t lock;
    char pieces[32];
    char ends[32];
};

struct written {
    struct pool_job job;
    struct diary *diary;
    char letter;
    unsigned pieces; /* that are left */
};

static void write_down(struct diary *diary, char *line, char letter)
{
    pthread_mutex_lock(&diary->lock);
    line[strlen(line)] = letter;
    pthread_mutex_unlock(&diary->lock);
}

static bool write_piece(struct pool_job *job)
{
    struct written *written = LIST_ENTRY(job, struct written, job);
    write_down(written->diary, written->diary->pieces, written->letter);
    return --written->pieces > 0;
}

static void write_end(struct pool_job *job)
{
    struct written *written = LIST_ENTRY(job, struct written, job);
    write_down(written->diary, written->diary->ends, written->letter);
}

static struct written writing(struct diary *diary, unsigned kind, char letter, unsigned pieces)
{
    return (struct written){.job = {.kind = kind, .run = write_piece, .ended = write_end},
                            .diary = diary,
                            .letter = letter,
                            .pieces = pieces};
}

static struct diary new_diary(void)
{
    struct diary diary = {.pieces = "", .ends = ""};
    pthread_mutex_init(&diary.lock, NULL);
    return diary;
}

/* --- the tests --- */

static void a_job_ends_after_its_last_piece(void **state)
{
    (void)state;
    struct diary diary = new_diary();
    struct written job = writing(&diary, LONG, 'l', 3);
    struct job_pool *pool = start(2);
    assert_true(job_pool_submit(pool, &job.job));
    job_pool_wait(pool);
    assert_string_equal(diary.pieces, "lll");
    assert_string_equal(diary.ends, "l");
    job.pieces = 1; /* and can be had again */
    assert_true(job_pool_submit(pool, &job.job));
    job_pool_wait(pool);
    assert_string_equal(diary.ends, "ll");
    struct job_counts counts = job_pool_counts(pool, LONG);
    assert_int_equal(counts.begun, 4);
    assert_int_equal(counts.queued + counts.running, 0);
    assert_true(counts.took_us >= 0);
    assert_int_equal(job_pool_counts(pool, URGENT).begun, 0);
    stop(pool);
}

static void others_go_on_while_a_long_piece_stands(void **state)
{
    (void)state;
    struct door door;
    struct diary diary = new_diary();
    struct written second = writing(&diary, LONG, 'l', 1);
    struct written urgent = writing(&diary, URGENT, 'u', 4);
    struct job_pool *pool = start(2);
    let_stand(pool, &door, LONG, NULL);
    assert_true(job_pool_submit(pool, &second.job)); /* of its kind one at a time */
    assert_true(job_pool_submit(pool, &urgent.job));
    while (job_pool_counts(pool, URGENT).begun < 4 || job_pool_counts(pool, URGENT).running > 0)
        sched_yield();
    assert_int_equal(job_pool_counts(pool, LONG).queued, 1);
    assert_int_equal(job_pool_counts(pool, LONG).running, 1);
    let_go(&door);
    job_pool_wait(pool);
    assert_string_equal(diary.pieces, "uuuul");
    assert_int_equal(door.ends, 1);
    stop(pool);
    close_door(&door);
}

static void what_has_no_patience_comes_first(void **state)
{
    (void)state;
    struct door door;
    struct diary diary = new_diary();
    struct written late = writing(&diary, LONG, 'l', 1);
    struct written urgent = writing(&diary, URGENT, 'u', 1);
    struct job_pool *pool = start(1);
    let_stand(pool, &door, URGENT, NULL);
    assert_true(job_pool_submit(pool, &late.job));
    assert_true(job_pool_submit(pool, &urgent.job));
    let_go(&door);
    job_pool_wait(pool);
    assert_string_equal(diary.pieces, "ul");
    stop(pool);
    close_door(&door);
}

/* With each piece of the urgent one the patient one comes nearer to its turn. */
static void patience_has_an_end(void **state)
{
    (void)state;
    struct door door;
    struct diary diary = new_diary();
    struct written patient = writing(&diary, LONG, 'l', 2);
    struct written urgent = writing(&diary, URGENT, 'u', 9);
    struct job_pool *pool = start(1);
    let_stand(pool, &door, URGENT, NULL);
    assert_true(job_pool_submit(pool, &patient.job));
    assert_true(job_pool_submit(pool, &urgent.job));
    let_go(&door);
    job_pool_wait(pool);
    assert_string_equal(diary.pieces, "uuuuluuuulu");
    stop(pool);
    close_door(&door);
}

static void jobs_of_a_kind_take_turns(void **state)
{
    (void)state;
    struct door door;
    struct diary diary = new_diary();
    struct written a = writing(&diary, LONG, 'a', 3), b = writing(&diary, LONG, 'b', 2);
    struct job_pool *pool = start(1);
    let_stand(pool, &door, LONG, NULL);
    assert_true(job_pool_submit(pool, &a.job));
    assert_true(job_pool_submit(pool, &b.job));
    let_go(&door);
    job_pool_wait(pool);
    assert_string_equal(diary.pieces, "ababa");
    assert_string_equal(diary.ends, "ba");
    stop(pool);
    close_door(&door);
}

/* The others pass, also those of the same kind that stand behind it. */
static void jobs_of_an_owner_run_one_at_a_time(void **state)
{
    (void)state;
    struct door door;
    struct diary diary = new_diary();
    struct written same = writing(&diary, URGENT, 's', 1), other = writing(&diary, URGENT, 'o', 1);
    struct written alone = writing(&diary, URGENT, 'a', 1);
    struct job_pool *pool = start(2);
    same.job.owner = &door;
    other.job.owner = &diary;
    let_stand(pool, &door, LONG, &door);
    assert_true(job_pool_submit(pool, &same.job));
    assert_true(job_pool_submit(pool, &other.job));
    assert_true(job_pool_submit(pool, &alone.job));
    while (job_pool_counts(pool, URGENT).begun < 2)
        sched_yield();
    assert_int_equal(job_pool_counts(pool, URGENT).queued, 1);
    let_go(&door);
    job_pool_wait(pool);
    assert_string_equal(diary.pieces, "oas");
    stop(pool);
    close_door(&door);
}

static void what_waits_is_not_queued_twice(void **state)
{
    (void)state;
    struct door door;
    struct diary diary = new_diary();
    struct written job = writing(&diary, URGENT, 'u', 1);
    struct job_pool *pool = start(1);
    let_stand(pool, &door, URGENT, NULL);
    assert_true(job_pool_submit(pool, &job.job));
    assert_false(job_pool_submit(pool, &job.job));
    assert_int_equal(job_pool_counts(pool, URGENT).queued, 1);
    let_go(&door);
    job_pool_wait(pool);
    assert_string_equal(diary.pieces, "u");
    stop(pool);
    close_door(&door);
}

/* What was to be done may have come after it had looked. */
static void what_runs_runs_once_more(void **state)
{
    (void)state;
    struct door door;
    struct job_pool *pool = start(1);
    let_stand(pool, &door, LONG, NULL);
    assert_false(job_pool_submit(pool, &door.job));
    assert_false(job_pool_submit(pool, &door.job));
    let_go(&door);
    pthread_barrier_wait(&door.entered);
    assert_int_equal(door.ends, 0);
    let_go(&door);
    job_pool_wait(pool);
    assert_int_equal(door.ends, 1);
    assert_int_equal(job_pool_counts(pool, LONG).begun, 2);
    stop(pool);
    close_door(&door);
}

/* --- the end --- */

struct told {
    struct pool_job job;
    struct job_pool *pool;
    pthread_barrier_t entered;
    unsigned ends;
};

static bool go_on_until_stopped(struct pool_job *job)
{
    struct told *told = LIST_ENTRY(job, struct told, job);
    pthread_barrier_wait(&told->entered);
    while (!job_pool_is_stopping(told->pool))
        sched_yield();
    return true;
}

static void count_told(struct pool_job *job)
{
    LIST_ENTRY(job, struct told, job)->ends++;
}

static void a_stop_waits_for_pieces_and_begins_none(void **state)
{
    (void)state;
    struct diary diary = new_diary();
    struct written waiting = writing(&diary, LONG, 'l', 1), late = writing(&diary, LONG, 'x', 1);
    struct job_pool *pool = start(1);
    struct told told = {.job = {.kind = LONG, .run = go_on_until_stopped, .ended = count_told},
                        .pool = pool};
    pthread_barrier_init(&told.entered, NULL, 2);
    assert_true(job_pool_submit(pool, &told.job));
    pthread_barrier_wait(&told.entered);
    assert_true(job_pool_submit(pool, &waiting.job));
    job_pool_stop(pool);
    assert_int_equal(told.ends, 1);
    assert_string_equal(diary.pieces, "");
    assert_string_equal(diary.ends, "l");
    assert_false(job_pool_submit(pool, &late.job));
    assert_string_equal(diary.ends, "l");
    job_pool_wait(pool);
    job_pool_destroy(pool);
    job_pool_destroy(NULL);
    pthread_barrier_destroy(&told.entered);
}

struct owned {
    struct pool_job job;
    atomic_uint *freed;
};

static bool do_nothing(struct pool_job *job)
{
    (void)job;
    return false;
}

static void free_owner(struct pool_job *job)
{
    struct owned *owned = LIST_ENTRY(job, struct owned, job);
    atomic_fetch_add(owned->freed, 1);
    free(owned);
}

static void a_job_may_be_freed_when_it_ends(void **state)
{
    (void)state;
    enum { JOBS = 200 };
    atomic_uint freed = 0;
    struct job_pool *pool = start(2);
    for (unsigned i = 0; i < JOBS; i++) {
        struct owned *owned = malloc(sizeof *owned);
        assert_non_null(owned);
        *owned = (struct owned){.job = {.kind = i % KINDS, .run = do_nothing, .ended = free_owner},
                                .freed = &freed};
        assert_true(job_pool_submit(pool, &owned->job));
    }
    stop(pool); /* whatever has begun by then */
    assert_int_equal(atomic_load(&freed), JOBS);
}

/* --- many at once --- */

enum { SHARED_JOBS = 5, SUBMITTERS = 3, ROUNDS = 2000 };

struct shared {
    struct pool_job job;
    atomic_uint references; /* as an owner would count them */
    atomic_uint wanted;
    atomic_uint done; /* of these */
    atomic_bool is_running;
};

struct submitter {
    struct job_pool *pool;
    struct shared *jobs;
    pthread_t thread;
};

static bool do_all_that_is_wanted(struct pool_job *job)
{
    struct shared *shared = LIST_ENTRY(job, struct shared, job);
    assert_false(atomic_exchange(&shared->is_running, true));
    unsigned wanted = atomic_load(&shared->wanted);
    unsigned done = atomic_load(&shared->done);
    atomic_store(&shared->done, done + (wanted - done + 1) / 2); /* in pieces */
    atomic_store(&shared->is_running, false);
    return atomic_load(&shared->done) < wanted;
}

static void let_go_of(struct pool_job *job)
{
    atomic_fetch_sub(&LIST_ENTRY(job, struct shared, job)->references, 1);
}

static void *submit_many(void *argument)
{
    struct submitter *submitter = argument;
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct shared *shared = &submitter->jobs[i % SHARED_JOBS];
        atomic_fetch_add(&shared->wanted, 1);
        atomic_fetch_add(&shared->references, 1);
        if (!job_pool_submit(submitter->pool, &shared->job))
            atomic_fetch_sub(&shared->references, 1);
    }
    return NULL;
}

static void nothing_that_was_asked_for_is_forgotten(void **state)
{
    (void)state;
    struct shared jobs[SHARED_JOBS] = {0};
    struct submitter submitters[SUBMITTERS];
    struct job_pool *pool = start(3);
    for (unsigned i = 0; i < SHARED_JOBS; i++)
        jobs[i].job = (struct pool_job){.kind = i % KINDS,
                                        .owner = i < 3 ? jobs : NULL,
                                        .run = do_all_that_is_wanted,
                                        .ended = let_go_of};
    for (unsigned i = 0; i < SUBMITTERS; i++) {
        submitters[i] = (struct submitter){.pool = pool, .jobs = jobs};
        assert_ok(thread_start(&submitters[i].thread, "submits", submit_many, &submitters[i]));
    }
    for (unsigned i = 0; i < SUBMITTERS; i++)
        assert_int_equal(pthread_join(submitters[i].thread, NULL), 0);
    job_pool_wait(pool);
    for (unsigned i = 0; i < SHARED_JOBS; i++) {
        assert_int_equal(atomic_load(&jobs[i].done), SUBMITTERS * ROUNDS / SHARED_JOBS);
        assert_int_equal(atomic_load(&jobs[i].references), 0);
    }
    stop(pool);
}

/* --- without memory --- */

static void create_and_stop(void *context)
{
    (void)context;
    struct job_pool *pool;
    status s = job_pool_create(2, kinds, KINDS, "test", &pool);
    if (status_is_ok(s))
        stop(pool);
    else
        assert_null(pool);
    status_free(s);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    failmalloc_each(create_and_stop, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_ends_after_its_last_piece),
        cmocka_unit_test(others_go_on_while_a_long_piece_stands),
        cmocka_unit_test(what_has_no_patience_comes_first),
        cmocka_unit_test(patience_has_an_end),
        cmocka_unit_test(jobs_of_a_kind_take_turns),
        cmocka_unit_test(jobs_of_an_owner_run_one_at_a_time),
        cmocka_unit_test(what_waits_is_not_queued_twice),
        cmocka_unit_test(what_runs_runs_once_more),
        cmocka_unit_test(a_stop_waits_for_pieces_and_begins_none),
        cmocka_unit_test(a_job_may_be_freed_when_it_ends),
        cmocka_unit_test(nothing_that_was_asked_for_is_forgotten),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
