/* Random histories of a server over several lives: each life is a process, and ends by a kill, the
 * last as the history does. What a history knows lies in memory that all of them share.
 *
 * The test that tells them is the first of its program: the process has to have no threads yet,
 * which a fork would leave behind. */
#ifndef TRESTLE_CLUSTER_TESTING_LIVES_TESTING_H
#define TRESTLE_CLUSTER_TESTING_LIVES_TESTING_H

#include "cluster/testing/testing.h"
#include "os/stacks.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* The first member of a test's history. */
struct lives {
    const char *program; /* the test's, for who tells a history again */
    struct test_run run;
    char directory[64];
    uint64_t seed;
    uint64_t random;
    unsigned count; /* of those that have begun */
    unsigned step;  /* of the history */
};

static inline unsigned lives_random(struct lives *lives, unsigned end)
{
    lives->random ^= lives->random << 13;
    lives->random ^= lives->random >> 7;
    lives->random ^= lives->random << 17;
    return (unsigned)((lives->random >> 11) % end);
}

/* Ten minutes: that says that a life hangs, never that a machine has much else to do. Where its
 * threads stand is all that is known of it afterwards. */
static inline void *lives_watch(void *unused)
{
    enum { MOST_SECONDS = 600 };
    struct stacks *stacks;
    struct buffer text = {0};
    (void)unused;
    poll(NULL, 0, MOST_SECONDS * 1000);
    status s = stacks_open(&stacks);
    if (status_is_ok(s))
        s = stacks_write(stacks, &text);
    fprintf(stderr, "a life goes on for %d seconds: %s\n%.*s", MOST_SECONDS, status_message(s),
            (int)text.size, (const char *)text.data);
    _exit(1);
}

/* Without the destructors, which its threads would be in the way of. */
static inline void lives_leave(void)
{
    fflush(NULL);
    _exit(1);
}

/* In a process of its own. A failed assertion cmocka tells here, and goes on with the other tests
 * as if this were the parent, up to the end of `main`. */
static inline void lives_live(struct lives *lives, void (*live)(struct lives *lives))
{
    pthread_t watch;
    assert_int_equal(atexit(lives_leave), 0);
    assert_int_equal(pthread_create(&watch, NULL, lives_watch, NULL), 0);
    live(lives);
    _exit(0);
}

/* False: there is another one. */
static inline bool lives_one_was_last(struct lives *lives, void (*live)(struct lives *lives))
{
    int how;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        lives_live(lives, live);
    assert_int_equal(waitpid(child, &how, 0), child);
    bool is_killed = WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
    if (!is_killed && !(WIFEXITED(how) && WEXITSTATUS(how) == 0))
        fail_msg("life %u went wrong at step %u; again: %s 1 %u %llu", lives->count, lives->step,
                 lives->program, lives->run.changes, (unsigned long long)lives->seed);
    return !is_killed;
}

static inline void lives_begin(struct lives *lives, const char *program, const struct test_run *run,
                               unsigned number)
{
    lives->program = program;
    lives->run = *run;
    lives->seed = run->seed + number;
    lives->random = lives->seed * 0x9e3779b97f4a7c15 + 1;
    snprintf(lives->directory, sizeof lives->directory, "/tmp/trestle-lives-XXXXXX");
    assert_non_null(mkdtemp(lives->directory));
}

/* Tells `run->rounds` histories; each has so many bytes, all zeroes but `lives`. */
static inline void lives_tell(const char *program, const struct test_run *run, size_t size,
                              void (*live)(struct lives *lives))
{
    unsigned count = 0;
    struct lives *lives =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(lives != MAP_FAILED);
    for (unsigned i = 0; i < run->rounds; i++) {
        memset(lives, 0, size);
        lives_begin(lives, program, run, i);
        while (!lives_one_was_last(lives, live))
            ;
        count += lives->count;
    }
    print_message("# %u histories, %u kills, seed %llu\n", run->rounds, count - run->rounds,
                  (unsigned long long)run->seed);
    munmap(lives, size);
}

/* Writes that are under way at once: a kill may fall amid them. */
enum { MOST_OF_BURST = 16, BURST_KEY_SIZE = 8 };
struct burst {
    struct test_write writes[MOST_OF_BURST];
    char keys[MOST_OF_BURST][BURST_KEY_SIZE];
    struct event event;
    unsigned count;
};

static inline void burst_begin(struct burst *burst)
{
    event_init(&burst->event);
    burst->count = 0;
}

static inline void burst_post(struct burst *burst, struct cluster_fixture *f, const char *key,
                              struct row_change *change)
{
    unsigned i = burst->count++;
    assert_true(i < MOST_OF_BURST);
    snprintf(burst->keys[i], BURST_KEY_SIZE, "%s", key);
    post_write(f, &burst->writes[i], bytes_of(burst->keys[i]), change, &burst->event);
}

static inline void burst_await(struct burst *burst)
{
    assert_ok(event_wait(&burst->event, burst->count));
}

#endif
