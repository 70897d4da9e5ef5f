/* Tests of the event loop: order, wake-ups, timers on a clock that the test turns, and watches
 * that vanish while their events are being handed out. */
#include "os/loop.h"

#include "base/check.h"
#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"
#include "base/testing/testing_clock.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct fixture {
    struct turned_clock clock;
    struct loop *loop;
    char trace[4096]; /* one letter a callback, in the order they ran */
    size_t traced;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->clock.clock = (struct clock)TURNED_CLOCK;
    assert_ok(loop_create(&f->clock.clock, &f->loop));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    loop_destroy(f->loop);
    free(f);
    return 0;
}

static void trace(struct fixture *f, char letter)
{
    assert_true(f->traced < sizeof f->trace - 1);
    f->trace[f->traced++] = letter;
}

/* A task that leaves a letter and may stop the loop. */
struct letter {
    struct task task;
    struct fixture *f;
    char letter;
    bool stops;
};

static void run_letter(struct task *task)
{
    struct letter *l = LIST_ENTRY(task, struct letter, task);
    trace(l->f, l->letter);
    if (l->stops)
        loop_stop(l->f->loop);
}

static struct letter letter(struct fixture *f, char c, bool stops)
{
    return (struct letter){.task.run = run_letter, .f = f, .letter = c, .stops = stops};
}

static void posts_run_in_order(void **state)
{
    struct fixture *f = *state;
    struct letter a = letter(f, 'a', false), b = letter(f, 'b', false);
    struct letter c = letter(f, 'c', true), d = letter(f, 'd', false);
    struct list batch = {0};
    list_append(&batch, &b.task.link);
    list_append(&batch, &c.task.link);
    loop_post(f->loop, &a.task);
    loop_post_list(f->loop, &batch);
    assert_true(list_is_empty(&batch));
    loop_post_list(f->loop, &batch);
    loop_post(f->loop, &d.task); /* posted before the stop, which c asks for while running */
    loop_run(f->loop);
    assert_string_equal(f->trace, "abcd");
}

struct chain {
    struct task task;
    struct letter *next;
    struct letter *deferred;
};

static void run_chain(struct task *task)
{
    struct chain *chain = LIST_ENTRY(task, struct chain, task);
    loop_defer(chain->deferred->f->loop, &chain->deferred->task);
    loop_post(chain->next->f->loop, &chain->next->task);
}

static void deferred_tasks_end_the_turn(void **state)
{
    struct fixture *f = *state;
    struct letter deferred = letter(f, 'd', false), same_turn = letter(f, 'a', false);
    struct letter next_turn = letter(f, 'n', true);
    struct chain chain = {.task.run = run_chain, .next = &next_turn, .deferred = &deferred};
    loop_post(f->loop, &chain.task);
    loop_post(f->loop, &same_turn.task);
    loop_run(f->loop);
    assert_string_equal(f->trace, "adn");
}

static void run_again(struct task *task)
{
    struct letter *l = LIST_ENTRY(task, struct letter, task);
    trace(l->f, l->letter);
    if (l->f->traced == 3)
        loop_stop(l->f->loop);
    else
        loop_defer(l->f->loop, task);
}

static void a_deferred_task_may_come_back(void **state)
{
    struct fixture *f = *state;
    struct letter again = letter(f, 'r', false);
    again.task.run = run_again;
    loop_defer(f->loop, &again.task);
    loop_run(f->loop);
    assert_string_equal(f->trace, "rrr");
}

struct forgetting {
    struct task task;
    struct letter *forgotten;
};

static void run_forgetting(struct task *task)
{
    struct forgetting *f = LIST_ENTRY(task, struct forgetting, task);
    loop_forget(f->forgotten->f->loop, &f->forgotten->task);
}

/* Before the turn, and in it by a task that was deferred before. */
static void a_deferred_task_is_taken_back(void **state)
{
    struct fixture *f = *state;
    struct letter before = letter(f, 'b', false), amid = letter(f, 'm', false);
    struct letter last = letter(f, 'l', true);
    struct forgetting forgetting = {.task.run = run_forgetting, .forgotten = &amid};
    loop_defer(f->loop, &before.task);
    loop_defer(f->loop, &forgetting.task);
    loop_defer(f->loop, &amid.task);
    loop_defer(f->loop, &last.task);
    loop_forget(f->loop, &before.task);
    loop_run(f->loop);
    loop_forget(f->loop, &before.task);
    assert_string_equal(f->trace, "l");
    loop_defer(f->loop, &last.task);
    loop_forget(f->loop, &last.task);
    loop_defer(f->loop, &before.task);
    before.stops = true;
    loop_run(f->loop);
    assert_string_equal(f->trace, "lb");
}

enum { POSTS = 20000, POSTERS = 3 };

struct count_task {
    struct task task;
    struct post_count *count;
};

struct post_count {
    struct loop *loop;
    size_t ran;
    struct count_task tasks[POSTERS][POSTS];
};

static void run_count(struct task *task)
{
    struct post_count *count = LIST_ENTRY(task, struct count_task, task)->count;
    CHECK(loop_is_current(count->loop));
    if (++count->ran == (size_t)POSTERS * POSTS)
        loop_stop(count->loop);
}

struct poster {
    struct post_count *count;
    struct count_task *tasks;
};

static void *post_all(void *argument)
{
    struct poster *poster = argument;
    CHECK(!loop_is_current(poster->count->loop));
    for (size_t i = 0; i < POSTS; i++) {
        poster->tasks[i] = (struct count_task){.task.run = run_count, .count = poster->count};
        loop_post(poster->count->loop, &poster->tasks[i].task);
    }
    return NULL;
}

static void threads_wake_the_loop(void **state)
{
    struct fixture *f = *state;
    struct post_count *count = calloc(1, sizeof *count);
    assert_non_null(count);
    count->loop = f->loop;
    pthread_t threads[POSTERS];
    struct poster posters[POSTERS];
    for (size_t i = 0; i < POSTERS; i++) {
        posters[i] = (struct poster){.count = count, .tasks = count->tasks[i]};
        assert_int_equal(pthread_create(&threads[i], NULL, post_all, &posters[i]), 0);
    }
    loop_run(f->loop);
    for (size_t i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(count->ran, POSTERS * POSTS);
    free(count);
}

/* --- timers --- */

struct alarm {
    struct timer timer;
    struct fixture *f;
    char letter;
};

static void ring(struct timer *timer)
{
    struct alarm *alarm = LIST_ENTRY(timer, struct alarm, timer);
    assert_int_equal(timer->heap_slot, 0);
    trace(alarm->f, alarm->letter);
}

/* Turns the clock one microsecond a turn of the loop, and stops at the end. */
struct hands {
    struct task task;
    struct fixture *f;
    int64_t end;
};

static void turn_hands(struct task *task)
{
    struct hands *hands = LIST_ENTRY(task, struct hands, task);
    if (++hands->f->clock.now_us > hands->end)
        loop_stop(hands->f->loop);
    else
        loop_post(hands->f->loop, task);
}

static void run_until(struct fixture *f, int64_t end)
{
    struct hands hands = {.task.run = turn_hands, .f = f, .end = end};
    loop_post(f->loop, &hands.task);
    loop_run(f->loop);
}

static void timers_ring_in_order(void **state)
{
    struct fixture *f = *state;
    enum { COUNT = 26 };
    struct alarm alarms[COUNT];
    for (int i = 0; i < COUNT; i++) {
        int place = i * 7 % COUNT; /* 7 and 26 have no common factor: every letter once */
        alarms[place] = (struct alarm){.timer.run = ring, .f = f, .letter = (char)('a' + place)};
        assert_ok(loop_timer_set(f->loop, &alarms[place].timer, 10 + place));
    }
    run_until(f, 100);
    assert_string_equal(f->trace, "abcdefghijklmnopqrstuvwxyz");
}

static void timers_move_and_clear(void **state)
{
    struct fixture *f = *state;
    struct alarm a = {.timer.run = ring, .f = f, .letter = 'a'};
    struct alarm b = {.timer.run = ring, .f = f, .letter = 'b'};
    struct alarm c = {.timer.run = ring, .f = f, .letter = 'c'};
    assert_ok(loop_timer_set(f->loop, &a.timer, 10));
    assert_ok(loop_timer_set(f->loop, &b.timer, 20));
    assert_ok(loop_timer_set(f->loop, &c.timer, 30));
    assert_ok(loop_timer_set(f->loop, &c.timer, 5));
    assert_ok(loop_timer_set(f->loop, &a.timer, 40));
    loop_timer_clear(f->loop, &b.timer);
    loop_timer_clear(f->loop, &b.timer);
    run_until(f, 50);
    assert_string_equal(f->trace, "ca");
}

/* A heap of many timers, set, moved and cleared at random, rings each in the order of its time. */
static void timers_keep_order_at_random(void **state)
{
    struct fixture *f = *state;
    enum { COUNT = 300, CHANGES = 2000, SPAN = 500 };
    struct alarm *alarms = calloc(COUNT, sizeof *alarms);
    assert_non_null(alarms);
    int64_t due[COUNT];
    uint64_t random = 42;
    for (int i = 0; i < COUNT; i++) {
        alarms[i] = (struct alarm){.timer.run = ring, .f = f, .letter = 'x'};
        due[i] = 0;
    }
    for (int i = 0; i < CHANGES; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        size_t which = (random >> 33) % COUNT;
        due[which] = (random >> 20) % 4 == 0 ? 0 : 1 + (int64_t)((random >> 44) % SPAN);
        if (due[which] == 0)
            loop_timer_clear(f->loop, &alarms[which].timer);
        else
            assert_ok(loop_timer_set(f->loop, &alarms[which].timer, due[which]));
    }
    size_t expected = 0;
    for (int64_t now = 1; now <= SPAN; now++) {
        for (int i = 0; i < COUNT; i++)
            expected += due[i] == now;
        f->clock.now_us = now;
        struct letter stop = letter(f, 's', true);
        loop_post(f->loop, &stop.task);
        loop_run(f->loop);
        assert_int_equal(f->traced, expected + (size_t)now); /* one 's' a step */
    }
    free(alarms);
}

static void ring_again_now(struct timer *timer)
{
    struct alarm *alarm = LIST_ENTRY(timer, struct alarm, timer);
    trace(alarm->f, alarm->letter);
    assert_ok(loop_timer_set(alarm->f->loop, timer, alarm->f->clock.now_us));
}

static void a_timer_for_now_does_not_spin(void **state)
{
    struct fixture *f = *state;
    struct alarm a = {.timer.run = ring_again_now, .f = f, .letter = 'a'};
    struct letter stop = letter(f, 's', true);
    assert_ok(loop_timer_set(f->loop, &a.timer, 0));
    loop_post(f->loop, &stop.task);
    loop_run(f->loop);
    assert_string_equal(f->trace, "asa"); /* once a turn; the stop is seen in the second */
}

/* --- watches --- */

struct reader {
    struct watch watch;
    struct fixture *f;
    struct reader *other; /* unwatched as soon as this one is ready */
    char letter;
};

static void read_one(struct watch *watch, uint32_t events)
{
    struct reader *reader = LIST_ENTRY(watch, struct reader, watch);
    assert_true(events & EPOLLIN);
    trace(reader->f, reader->letter);
    char byte;
    assert_int_equal(read(watch->fd, &byte, 1), 1);
    if (reader->other != NULL)
        loop_unwatch(reader->f->loop, &reader->other->watch);
    loop_stop(reader->f->loop);
}

static void unwatched_events_are_not_delivered(void **state)
{
    struct fixture *f = *state;
    int one[2], two[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, one), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, two), 0);
    struct reader a = {.watch = {.fd = one[0], .ready = read_one}, .f = f, .letter = 'r'};
    struct reader b = {.watch = {.fd = two[0], .ready = read_one}, .f = f, .letter = 'r'};
    a.other = &b; /* whichever is handed out first unwatches the other */
    b.other = &a;
    assert_ok(loop_watch(f->loop, &a.watch, EPOLLIN));
    assert_ok(loop_watch(f->loop, &b.watch, EPOLLIN));
    assert_int_equal(write(one[1], "x", 1), 1);
    assert_int_equal(write(two[1], "x", 1), 1);
    loop_run(f->loop);
    assert_string_equal(f->trace, "r");
    for (int i = 0; i < 2; i++) {
        close(one[i]);
        close(two[i]);
    }
}

static void interest_changes(void **state)
{
    struct fixture *f = *state;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    struct reader a = {.watch = {.fd = pair[0], .ready = read_one}, .f = f, .letter = 'r'};
    assert_ok(loop_watch(f->loop, &a.watch, 0));
    assert_int_equal(write(pair[1], "x", 1), 1);
    struct letter stop = letter(f, 's', true);
    loop_post(f->loop, &stop.task);
    loop_run(f->loop);
    assert_ok(loop_watch_change(f->loop, &a.watch, EPOLLIN));
    loop_run(f->loop);
    assert_string_equal(f->trace, "sr");
    loop_unwatch(f->loop, &a.watch);
    close(pair[0]);
    close(pair[1]);
}

static void a_bad_descriptor_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct watch watch = {.fd = -1};
    assert_status(loop_watch(f->loop, &watch, EPOLLIN), STATUS_UNAVAILABLE);
}

/* A timer that cannot be set is not set, and the others ring. */
static void set_timers_in_need(void *context)
{
    struct fixture *f = context;
    enum { COUNT = 200 };
    struct alarm alarms[COUNT];
    struct loop *loop;
    size_t set = 0;
    f->traced = 0;
    status s = loop_create(&f->clock.clock, &loop);
    if (status_is_ok(s)) {
        for (int i = 0; i < COUNT; i++) {
            alarms[i] = (struct alarm){.timer.run = ring, .f = f, .letter = 'x'};
            status one = loop_timer_set(loop, &alarms[i].timer, 0);
            assert_true(one.code == STATUS_OK || one.code == STATUS_RESOURCE_EXHAUSTED);
            set += status_is_ok(one);
            status_free(one);
        }
        loop_stop(loop);
        loop_run(loop);
    }
    assert_int_equal(f->traced, set);
    status_free(s);
    loop_destroy(loop);
}

/* Longer than what counts as slow, and the tick of the clock that it is measured by. */
static void dawdle(struct task *task)
{
    (void)task;
    usleep(2 * LOOP_SLOW_US);
}

static void slow_turns_are_counted(void **state)
{
    struct fixture *f = *state;
    struct task slow = {.run = dawdle};
    loop_stop(f->loop);
    loop_run(f->loop);
    assert_int_equal(loop_slowness(f->loop).longest_us, 0);
    loop_post(f->loop, &slow);
    loop_stop(f->loop);
    loop_run(f->loop);
    assert_true(loop_slowness(f->loop).turns >= 1);
    assert_true(loop_slowness(f->loop).longest_us >= LOOP_SLOW_US);
}

static void memory_runs_out_anywhere(void **state)
{
    failmalloc_each(set_timers_in_need, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(posts_run_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(deferred_tasks_end_the_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_deferred_task_may_come_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_deferred_task_is_taken_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(threads_wake_the_loop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(timers_ring_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(timers_move_and_clear, set_up, tear_down),
        cmocka_unit_test_setup_teardown(timers_keep_order_at_random, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_timer_for_now_does_not_spin, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unwatched_events_are_not_delivered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(interest_changes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_bad_descriptor_is_an_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(slow_turns_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(memory_runs_out_anywhere, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
