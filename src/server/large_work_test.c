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

static void it_waits_for_as_much_as_it_takes(void **state)
{
    struct large_rooms rooms;
    pthread_t thread;
    (void)state;
    init(&rooms, "512MB");
    assert_in_range(rooms.takes, 200 * MB, 220 * MB);
    atomic_store(&resident, 320 * MB);
    assert_int_equal(pthread_create(&thread, NULL, begin, &rooms), 0);
    while (large_rooms_want(&rooms) == 0)
        poll(NULL, 0, LOOK_MS);
    assert_int_equal(large_rooms_want(&rooms), rooms.takes);
    assert_true(request_room_is_wanted(&rooms.requests)); /* no more comes meanwhile */
    atomic_store(&resident, 290 * MB);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(large_rooms_want(&rooms), 0);
    assert_true(request_room_is_wanted(&rooms.values));
    large_work_changes(&rooms, STORE_LARGE_ENDS);
    assert_false(request_room_is_wanted(&rooms.values));
    large_rooms_destroy(&rooms);
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
    assert_int_equal(large_rooms_want(&rooms), 0);
    large_rooms_destroy(&rooms);
}

/* They do not end before the flush. Before, it waited as long as it would for any, and they for it.
 */
static void it_does_not_wait_for_what_waits_for_it(void **state)
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

static void it_waits_for_nothing_where_there_is_much(void **state)
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
        cmocka_unit_test(it_waits_for_as_much_as_it_takes),
        cmocka_unit_test(a_flush_waits_for_less),
        cmocka_unit_test(it_does_not_wait_for_what_waits_for_it),
        cmocka_unit_test(it_waits_for_nothing_where_there_is_much),
    };
    return cmocka_run_group_tests_name("cmd_large_work", tests, NULL, NULL);
}
