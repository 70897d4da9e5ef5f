/* The store's large work waits until there is memory for it, and says that it does. */
#include "server/large_work.h"

#include "base/testing/testing.h"

#include <poll.h>
#include <pthread.h>

enum { MB = 1 << 20, LOOK_MS = 5 };

static _Atomic uint64_t resident;

static uint64_t fake_resident(void)
{
    return atomic_load(&resident);
}

static void init(struct large_rooms *rooms, const char *memory)
{
    struct settings settings;
    const char *const arguments[] = {"--memory", memory, NULL}, *const none[] = {NULL};
    assert_ok(settings_read(arguments, none, &settings));
    large_rooms_init(rooms, &settings);
    settings_free(&settings);
    rooms->resident = fake_resident;
}

static void *begin(void *rooms)
{
    large_work_changes(rooms, STORE_LARGE_WAITS);
    large_work_changes(rooms, STORE_LARGE_BEGINS);
    return NULL;
}

static void large_work_waits_for_as_much_as_it_takes(void **state)
{
    struct large_rooms rooms;
    pthread_t thread;
    (void)state;
    init(&rooms, "512MB");
    assert_in_range(rooms.takes, 200 * MB, 220 * MB);
    atomic_store(&resident, 320 * MB);
    assert_int_equal(pthread_create(&thread, NULL, begin, &rooms), 0);
    while (large_rooms_look(&rooms, 0).wanted == 0)
        poll(NULL, 0, LOOK_MS);
    assert_int_equal(large_rooms_look(&rooms, 0).wanted, rooms.takes);
    assert_true(request_room_is_wanted(&rooms.requests)); /* no more comes meanwhile */
    atomic_store(&resident, 290 * MB);                    /* a sixteenth is for others */
    poll(NULL, 0, 10 * LOOK_MS);
    assert_int_equal(large_rooms_look(&rooms, 0).wanted, rooms.takes);
    atomic_store(&resident, 265 * MB);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(large_rooms_look(&rooms, 0).wanted, 0);
    assert_true(request_room_is_wanted(&rooms.values));
    assert_true(large_rooms_look(&rooms, 0).is_busy);
    large_work_changes(&rooms, STORE_LARGE_ENDS);
    assert_false(large_rooms_look(&rooms, 0).is_busy);
    assert_false(request_room_is_wanted(&rooms.values));
    large_rooms_destroy(&rooms);
}

/* What waits may have sent less where there is little memory, so more may wait. */
static void with_little_memory_more_requests_wait(void **state)
{
    static const char *const memory[] = {"512MB", "1GB"};
    static const unsigned most[] = {170, 128};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct large_rooms rooms;
        unsigned count = 0;
        init(&rooms, memory[i]);
        while (count <= most[i] && request_room_take_part(&rooms.requests))
            count++;
        assert_int_equal(count, most[i]);
        while (count-- > 0)
            request_room_return_part(&rooms.requests);
        large_rooms_destroy(&rooms);
    }
}

/* Of the largest cells a flush holds three, a compaction five. */
static void a_flush_waits_for_less(void **state)
{
    struct large_rooms rooms;
    (void)state;
    init(&rooms, "512MB");
    rooms.patience.memory = INT64_MAX / 2;
    atomic_store(&resident, 350 * MB);
    large_work_changes(&rooms, STORE_LARGE_WAITS);
    large_work_changes(&rooms, STORE_LARGE_FLUSH_BEGINS);
    large_work_changes(&rooms, STORE_LARGE_ENDS);
    assert_int_equal(large_rooms_look(&rooms, 0).wanted, 0);
    large_rooms_destroy(&rooms);
}

/* --- what the rooms may have together --- */

struct waiting {
    struct request_waiter waiter;
    int granted; /* how often */
};

static void count_grant(struct request_waiter *waiter)
{
    LIST_ENTRY(waiter, struct waiting, waiter)->granted++;
}

static bool ask(struct request_room *room, struct waiting *waiting, size_t size)
{
    *waiting = (struct waiting){.waiter = {.size = size, .granted = count_grant}};
    return request_room_ask(room, &waiting->waiter);
}

static void give_back(struct request_room *room, size_t size)
{
    request_room_give_back(room, (struct request_share){.long_bytes = size});
}

/* Each room has a place, but together they would take more than there is: what killed a server of
 * 512 MB. An append to a cell of 38 MB takes 228 while it lasts, a write of such a cell 114. */
static void the_rooms_together_keep_within_the_memory(void **state)
{
    struct large_rooms rooms;
    struct waiting value, request;
    (void)state;
    init(&rooms, "512MB");
    atomic_store(&resident, 240 * MB);
    assert_true(ask(&rooms.values, &value, 228 * MB));
    assert_false(ask(&rooms.requests, &request, 38 * MB));
    assert_true(large_rooms_look(&rooms, 0).is_wanted);
    assert_true(request_room_is_wanted(&rooms.values)); /* whose holder may let go */
    give_back(&rooms.values, 228 * MB);
    assert_int_equal(request.granted, 0); /* the memory may not be free yet */
    assert_false(large_rooms_look(&rooms, 0).is_wanted);
    assert_int_equal(request.granted, 1);
    assert_false(request_room_is_wanted(&rooms.values));
    give_back(&rooms.requests, 38 * MB);
    large_rooms_destroy(&rooms);
}

/* One that has a room for itself waits all the same, until others have given memory back. */
static void what_is_asked_for_waits_for_memory(void **state)
{
    struct large_rooms rooms;
    struct waiting value;
    (void)state;
    init(&rooms, "512MB");
    atomic_store(&resident, 260 * MB);
    assert_false(ask(&rooms.values, &value, 228 * MB));
    assert_true(large_rooms_look(&rooms, 0).is_wanted);
    assert_int_equal(value.granted, 0);
    atomic_store(&resident, 252 * MB);
    assert_true(large_rooms_look(&rooms, 40 * MB).is_wanted); /* which the store may take before */
    assert_false(large_rooms_look(&rooms, 0).is_wanted);
    assert_int_equal(value.granted, 1);
    give_back(&rooms.values, 228 * MB);
    large_rooms_destroy(&rooms);
}

static bool is_granted_within(struct large_rooms *rooms, struct waiting *waiting, int looks)
{
    for (int i = 0; i < looks && waiting->granted == 0; i++)
        (void)large_rooms_look(rooms, 0);
    return waiting->granted > 0;
}

/* Others that need less come in time after time: then they wait, too. But not for good, if what is
 * waited for does not come. */
static void who_needs_much_has_a_turn(void **state)
{
    struct large_rooms rooms;
    struct waiting value, first, second, third;
    (void)state;
    init(&rooms, "512MB");
    atomic_store(&resident, 200 * MB);
    assert_true(ask(&rooms.requests, &first, 20 * MB));
    assert_false(ask(&rooms.values, &value, 228 * MB));
    assert_false(is_granted_within(&rooms, &value, 19));
    assert_true(ask(&rooms.requests, &second, 20 * MB)); /* as long as it is patient */
    give_back(&rooms.requests, 20 * MB);
    assert_false(is_granted_within(&rooms, &value, 2));
    assert_false(ask(&rooms.requests, &third, 20 * MB));
    assert_true(request_room_is_wanted(&rooms.requests));
    assert_false(is_granted_within(&rooms, &third, 300));
    assert_true(is_granted_within(&rooms, &third, 100)); /* twenty seconds */
    give_back(&rooms.requests, 20 * MB);
    give_back(&rooms.requests, 20 * MB);
    assert_true(is_granted_within(&rooms, &value, 1));
    give_back(&rooms.values, 228 * MB);
    large_rooms_destroy(&rooms);
}

/* What write buffers may still grow by is not free; but while a write waits they do not grow. */
static void write_buffers_have_their_share(void **state)
{
    struct large_rooms rooms;
    pthread_t thread;
    (void)state;
    init(&rooms, "512MB");
    rooms.patience.memory = INT64_MAX / 2;
    atomic_store(&resident, 250 * MB);
    (void)large_rooms_look(&rooms, 60 * MB);
    large_work_changes(&rooms, STORE_WRITES_WAIT);
    (void)begin(&rooms);
    large_work_changes(&rooms, STORE_LARGE_ENDS);
    large_work_changes(&rooms, STORE_WRITES_GO_ON);
    assert_int_equal(pthread_create(&thread, NULL, begin, &rooms), 0);
    while (large_rooms_look(&rooms, 60 * MB).wanted == 0)
        poll(NULL, 0, LOOK_MS);
    (void)large_rooms_look(&rooms, 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    large_work_changes(&rooms, STORE_LARGE_ENDS);
    large_rooms_destroy(&rooms);
}

/* As before, while the store works. */
static void a_closed_room_wants_no_memory(void **state)
{
    struct large_rooms rooms;
    struct waiting value;
    (void)state;
    init(&rooms, "512MB");
    atomic_store(&resident, 0);
    large_work_changes(&rooms, STORE_LARGE_WAITS);
    assert_false(ask(&rooms.values, &value, MB));
    assert_false(large_rooms_look(&rooms, 0).is_wanted);
    assert_int_equal(value.granted, 0);
    large_work_changes(&rooms, STORE_LARGE_ENDS);
    assert_int_equal(value.granted, 1);
    give_back(&rooms.values, MB);
    large_rooms_destroy(&rooms);
}

/* The writes do not end before the flush. Once it waited for them in full, and they for it. */
static void a_flush_does_not_wait_for_writes_that_wait_for_it(void **state)
{
    struct large_rooms rooms;
    pthread_t thread;
    (void)state;
    init(&rooms, "512MB");
    atomic_store(&resident, 0);
    rooms.patience.requests = rooms.patience.values = INT64_MAX / 2;
    rooms.patience.values_of_writes = 0;
    assert_true(request_room_take_long(&rooms.requests, 40 * MB));
    assert_true(request_room_take_long(&rooms.values, 40 * MB));
    assert_int_equal(pthread_create(&thread, NULL, begin, &rooms), 0);
    large_work_changes(&rooms, STORE_WRITES_WAIT);
    assert_int_equal(pthread_join(thread, NULL), 0);
    large_work_changes(&rooms, STORE_WRITES_GO_ON);
    large_work_changes(&rooms, STORE_LARGE_ENDS);
    request_room_give_back(&rooms.requests, (struct request_share){.long_bytes = 40 * MB});
    request_room_give_back(&rooms.values, (struct request_share){.long_bytes = 40 * MB});
    (void)begin(&rooms);
    large_work_changes(&rooms, STORE_LARGE_ENDS);
    large_rooms_destroy(&rooms);
}

static void large_work_waits_for_nothing_with_ample_memory(void **state)
{
    struct large_rooms rooms;
    (void)state;
    init(&rooms, "4GB");
    atomic_store(&resident, 4096ull * MB);
    (void)begin(&rooms);
    assert_false(request_room_is_wanted(&rooms.requests));
    large_work_changes(&rooms, STORE_LARGE_ENDS);
    large_rooms_destroy(&rooms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_work_waits_for_as_much_as_it_takes),
        cmocka_unit_test(with_little_memory_more_requests_wait),
        cmocka_unit_test(a_flush_waits_for_less),
        cmocka_unit_test(the_rooms_together_keep_within_the_memory),
        cmocka_unit_test(what_is_asked_for_waits_for_memory),
        cmocka_unit_test(who_needs_much_has_a_turn),
        cmocka_unit_test(write_buffers_have_their_share),
        cmocka_unit_test(a_closed_room_wants_no_memory),
        cmocka_unit_test(a_flush_does_not_wait_for_writes_that_wait_for_it),
        cmocka_unit_test(large_work_waits_for_nothing_with_ample_memory),
    };
    return cmocka_run_group_tests_name("cmd_large_work", tests, NULL, NULL);
}
