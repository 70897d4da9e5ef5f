/* Which request messages get room, which wait, in which order, and that all get it in the end. */
#include "wire/request_room.h"

#include "base/limits.h"
#include "base/testing/testing.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    MB = 1 << 20,
    MOST = 64 * MB,
    QUARTER = MOST / 4,
    PARTS = QUARTER / LIMIT_STREAM_WINDOW_BYTES
};

struct waiting {
    struct request_waiter waiter;
    int granted; /* how often */
};

static void count_grant(struct request_waiter *waiter)
{
    LIST_ENTRY(waiter, struct waiting, waiter)->granted++;
}

/* Whether it has room at once. */
static bool ask(struct request_room *room, struct waiting *waiting, size_t size)
{
    *waiting = (struct waiting){.waiter = {.size = size, .granted = count_grant}};
    return request_room_ask(room, &waiting->waiter);
}

static void give_back_long(struct request_room *room, size_t size)
{
    request_room_give_back(room, (struct request_share){.long_bytes = size});
}

static void give_back_short(struct request_room *room, size_t size)
{
    request_room_give_back(room, (struct request_share){.short_bytes = size});
}

static void assert_empty(struct request_room *room)
{
    assert_int_equal(room->held.long_bytes + room->held.short_bytes + room->parts, 0);
    assert_true(list_is_empty(&room->waiting));
    request_room_destroy(room);
}

static void long_messages_are_granted_in_order(void **state)
{
    struct request_room room;
    struct waiting first, second, third;
    (void)state;
    request_room_init(&room, MOST);
    assert_true(ask(&room, &first, 40 * MB));
    assert_false(ask(&room, &second, MOST)); /* the largest */
    assert_false(ask(&room, &third, MB));    /* would fit, but came later */
    give_back_long(&room, 40 * MB);
    assert_int_equal(second.granted, 1);
    assert_int_equal(third.granted, 0);
    give_back_long(&room, MOST);
    assert_int_equal(third.granted, 1);
    give_back_long(&room, MB);
    assert_int_equal(first.granted, 0);
    assert_empty(&room);
}

static void short_messages_keep_to_their_quarter_while_one_waits(void **state)
{
    struct request_room room;
    struct waiting first, second;
    (void)state;
    request_room_init(&room, MOST);
    assert_true(request_room_take_short(&room, MOST)); /* no other one wants it */
    assert_true(request_room_take_short(&room, QUARTER));
    assert_false(request_room_take_short(&room, 1));
    assert_false(ask(&room, &first, MOST));
    give_back_short(&room, MOST);
    assert_int_equal(first.granted, 1);
    assert_false(request_room_take_short(&room, 1));
    assert_false(ask(&room, &second, MB));
    give_back_short(&room, QUARTER);
    assert_true(request_room_take_short(&room, QUARTER));
    assert_false(request_room_take_short(&room, 1));
    give_back_long(&room, MOST);
    assert_int_equal(second.granted, 1);
    give_back_long(&room, MB);
    give_back_short(&room, QUARTER);
    assert_empty(&room);
}

/* Though more is free: it is for the one that waits. */
static void short_messages_leave_what_is_free_to_one_that_waits(void **state)
{
    struct request_room room;
    struct waiting first, second;
    (void)state;
    request_room_init(&room, MOST);
    assert_true(ask(&room, &first, MOST / 2));
    assert_false(ask(&room, &second, MOST));
    assert_true(request_room_take_short(&room, QUARTER));
    assert_false(request_room_take_short(&room, 1));
    give_back_long(&room, MOST / 2);
    assert_int_equal(second.granted, 1);
    give_back_long(&room, MOST);
    give_back_short(&room, QUARTER);
    assert_empty(&room);
}

static void a_message_larger_than_all_is_granted_when_alone(void **state)
{
    struct request_room room;
    struct waiting first, second;
    (void)state;
    request_room_init(&room, MOST);
    assert_true(ask(&room, &first, MB));
    assert_false(ask(&room, &second, 2 * (size_t)MOST));
    give_back_long(&room, MB);
    assert_int_equal(second.granted, 1);
    give_back_long(&room, 2 * (size_t)MOST);
    assert_empty(&room);
}

static void a_waiter_that_leaves_lets_others_in(void **state)
{
    struct request_room room;
    struct waiting first, second, third;
    (void)state;
    request_room_init(&room, MOST);
    assert_true(ask(&room, &first, 40 * MB));
    assert_false(ask(&room, &second, 30 * MB));
    assert_false(ask(&room, &third, 20 * MB));
    assert_true(request_room_leave(&room, &second.waiter));
    assert_int_equal(third.granted, 1);
    assert_false(request_room_leave(&room, &third.waiter)); /* it is held */
    assert_int_equal(second.granted, 0);
    give_back_long(&room, 60 * MB);
    assert_empty(&room);
}

static void a_growing_message_does_not_wait(void **state)
{
    struct request_room room;
    struct waiting first, second;
    (void)state;
    request_room_init(&room, MOST);
    assert_true(ask(&room, &first, 40 * MB));
    assert_false(ask(&room, &second, 40 * MB));
    assert_true(request_room_take_long(&room, 24 * MB));
    assert_false(request_room_take_long(&room, 1));
    give_back_long(&room, 64 * MB);
    assert_int_equal(second.granted, 1);
    give_back_long(&room, 40 * MB);
    assert_empty(&room);
}

static void parts_are_bounded(void **state)
{
    struct request_room room;
    (void)state;
    request_room_init(&room, MOST);
    for (int i = 0; i < PARTS; i++)
        assert_true(request_room_take_part(&room));
    assert_false(request_room_take_part(&room));
    request_room_return_part(&room);
    assert_true(request_room_take_part(&room));
    for (int i = 0; i < PARTS; i++)
        request_room_return_part(&room);
    assert_empty(&room);
}

static void smaller_parts_are_more(void **state)
{
    enum { PART = LIMIT_STREAM_WINDOW_BYTES / 4 };
    struct request_room room;
    (void)state;
    request_room_init(&room, MOST);
    request_room_set_part(&room, PART);
    for (int i = 0; i < 4 * PARTS; i++)
        assert_true(request_room_take_part(&room));
    assert_int_equal(room.parts, QUARTER);
    assert_false(request_room_take_part(&room));
    for (int i = 0; i < 4 * PARTS; i++)
        request_room_return_part(&room);
    assert_empty(&room);
}

/* What has room keeps it; those that wait are granted in their order when it is opened. */
static void a_closed_room_grants_nothing(void **state)
{
    struct request_room room;
    struct waiting first, second, third;
    (void)state;
    request_room_init(&room, MOST);
    assert_true(ask(&room, &first, 10 * MB));
    request_room_close(&room);
    request_room_close(&room);
    assert_false(ask(&room, &second, 10 * MB));
    assert_true(request_room_is_wanted(&room));
    assert_false(request_room_await_empty(&room, 0));
    assert_true(request_room_take_long(&room, MB)); /* what has been let in may grow */
    give_back_long(&room, 11 * MB);
    assert_true(request_room_await_empty(&room, 0));
    assert_false(ask(&room, &third, MOST));
    request_room_open(&room);
    assert_int_equal(second.granted, 0);
    request_room_open(&room);
    assert_int_equal(second.granted, 1);
    assert_int_equal(third.granted, 0);
    give_back_long(&room, 10 * MB);
    assert_int_equal(third.granted, 1);
    give_back_long(&room, MOST);
    assert_empty(&room);
}

static void short_messages_keep_to_their_quarter_in_a_closed_room(void **state)
{
    struct request_room room;
    (void)state;
    request_room_init(&room, MOST);
    request_room_close(&room);
    assert_true(request_room_take_short(&room, QUARTER));
    assert_false(request_room_take_short(&room, 1));
    request_room_open(&room);
    assert_true(request_room_take_short(&room, MOST));
    give_back_short(&room, QUARTER + MOST);
    assert_empty(&room);
}

/* --- threads --- */

enum { THREADS = 6, ROUNDS = 50 };

struct crowd {
    struct request_room room;
    atomic_size_t held; /* by those that have been granted, as they know it */
    atomic_bool is_over;
};

struct member {
    struct request_waiter waiter;
    struct crowd *crowd;
    sem_t granted;
    unsigned seed;
};

static void wake(struct request_waiter *waiter)
{
    assert_int_equal(sem_post(&LIST_ENTRY(waiter, struct member, waiter)->granted), 0);
}

/* Every third that has to wait tries to leave. */
static bool wait_or_leave(struct member *member, int round)
{
    if (round % 3 == 0 && request_room_leave(&member->crowd->room, &member->waiter))
        return false;
    while (sem_wait(&member->granted) != 0)
        continue; /* a signal */
    return true;
}

static void *run_member(void *argument)
{
    struct member *member = argument;
    struct crowd *crowd = member->crowd;
    for (int round = 0; round < ROUNDS; round++) {
        member->waiter.size = (size_t)rand_r(&member->seed) % MOST + 1;
        if (!request_room_ask(&crowd->room, &member->waiter) && !wait_or_leave(member, round))
            continue;
        size_t size = member->waiter.size;
        if (atomic_fetch_add(&crowd->held, size) + size > MOST)
            atomic_store(&crowd->is_over, true);
        sched_yield();
        atomic_fetch_sub(&crowd->held, size);
        give_back_long(&crowd->room, size);
    }
    return NULL;
}

static void *give_back_all(void *argument)
{
    give_back_long(argument, MOST);
    return NULL;
}

static void a_waiter_for_an_empty_room_is_woken(void **state)
{
    enum { LONG_ENOUGH_SECONDS = 600 };
    struct request_room room;
    struct waiting first;
    pthread_t thread;
    (void)state;
    request_room_init(&room, MOST);
    assert_true(ask(&room, &first, MOST));
    request_room_close(&room);
    assert_int_equal(pthread_create(&thread, NULL, give_back_all, &room), 0);
    assert_true(request_room_await_empty(&room, LONG_ENOUGH_SECONDS));
    assert_int_equal(pthread_join(thread, NULL), 0);
    request_room_open(&room);
    assert_empty(&room);
}

static void no_waiter_is_forgotten_by_many_threads(void **state)
{
    static struct crowd crowd;
    struct member members[THREADS];
    pthread_t threads[THREADS];
    (void)state;
    request_room_init(&crowd.room, MOST);
    for (unsigned i = 0; i < THREADS; i++) {
        members[i] = (struct member){.waiter.granted = wake, .crowd = &crowd, .seed = i + 1};
        assert_int_equal(sem_init(&members[i].granted, 0, 0), 0);
        assert_int_equal(pthread_create(&threads[i], NULL, run_member, &members[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        sem_destroy(&members[i].granted);
    }
    assert_false(atomic_load(&crowd.is_over));
    assert_empty(&crowd.room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_messages_are_granted_in_order),
        cmocka_unit_test(short_messages_keep_to_their_quarter_while_one_waits),
        cmocka_unit_test(short_messages_leave_what_is_free_to_one_that_waits),
        cmocka_unit_test(a_message_larger_than_all_is_granted_when_alone),
        cmocka_unit_test(a_waiter_that_leaves_lets_others_in),
        cmocka_unit_test(a_growing_message_does_not_wait),
        cmocka_unit_test(parts_are_bounded),
        cmocka_unit_test(smaller_parts_are_more),
        cmocka_unit_test(a_closed_room_grants_nothing),
        cmocka_unit_test(short_messages_keep_to_their_quarter_in_a_closed_room),
        cmocka_unit_test(a_waiter_for_an_empty_room_is_woken),
        cmocka_unit_test(no_waiter_is_forgotten_by_many_threads),
    };
    return cmocka_run_group_tests_name("wire_request_room", tests, NULL, NULL);
}
