/* Calls of ReadRows whose large values wait for room in memory: which wait, and which let go. */
#include "bigtable/testing/read_rows_testing.h"
#include "wire/request_room.h"

/* Other calls: those that hold of room for a megabyte, and one that waits. */
static struct others {
    struct request_room room;
    struct request_waiter waiter;
    int granted;
} others;

static void count_grant(struct request_waiter *waiter)
{
    assert_ptr_equal(waiter, &others.waiter);
    others.granted++;
}

static struct step huge_deferred(const char *key)
{
    struct step huge = large_deferred(key);
    huge.cells = 3;
    huge.value_size = 3 * KIB * KIB;
    return huge;
}

static void others_hold(size_t size)
{
    request_room_take_anyway(&others.room, (struct request_share){.long_bytes = size});
}

static void others_give_back(size_t size)
{
    request_room_give_back(&others.room, (struct request_share){.long_bytes = size});
}

/* Whether they have it at once. */
static bool others_ask(void)
{
    others.waiter = (struct request_waiter){.size = KIB * KIB, .granted = count_grant};
    return request_room_ask(&others.room, &others.waiter);
}

static int setup_room(void **state)
{
    world_setup(state);
    others = (struct others){.granted = 0};
    request_room_init(&others.room, KIB * KIB);
    fake.values = &others.room;
    return 0;
}

static int teardown_room(void **state)
{
    assert_int_equal(others.room.held.long_bytes, 0);
    assert_true(list_is_empty(&others.room.waiting));
    request_room_destroy(&others.room);
    return world_teardown(state);
}

static void client_goes_on(void)
{
    fake.call.is_congested = false;
    fake.call.on_writable(fake.call.context);
    fake_run();
}

static void cancel_call(void)
{
    fake.call.is_cancelled = true;
    fake.call.on_cancel(fake.call.context);
    fake_run();
}

/* A row of one value of 4 MB, whose client stops within it. */
static void stop_within_a_value(void)
{
    struct step large = huge_deferred("a");
    large.cells = 1;
    large.value_size = 4 * KIB * KIB;
    STEPS(large, found("b"));
    fake.call.congests_after = 1;
    read_all();
    assert_false(fake.call.is_finished);
    assert_true(world.scan.is_value_held);
    assert_int_equal(others.room.held.long_bytes, 2 * large.value_size);
}

static void a_large_value_waits_for_room(void **state)
{
    (void)state;
    for (int on_disk = 0; on_disk < 2; on_disk++) {
        struct step large = huge_deferred("b");
        large.values_are_on_disk = on_disk;
        world.scan.next = world.scan.loads = world.rows = world.value_bytes = 0;
        world.scan.is_destroyed = false;
        STEPS(found("a"), large, found("c"));
        others_hold(KIB * KIB);
        read_all();
        assert_false(fake.call.is_finished);
        assert_int_equal(world.rows, 1); /* what was there is not held back */
        assert_int_equal(world.scan.loads, 0);
        others_give_back(KIB * KIB);
        fake_run();
        assert_finished(STATUS_OK);
        assert_int_equal(world.rows, 3);
        assert_int_equal(world.scan.loads, 3);
        assert_int_equal(world.value_bytes, 9 * KIB * KIB + 20);
    }
}

static void small_values_never_wait(void **state)
{
    (void)state;
    struct step large = huge_deferred("b");
    large.value_size = 2 * KIB * KIB;
    STEPS(large);
    others_hold(KIB * KIB);
    read_all();
    assert_finished(STATUS_OK);
    others_give_back(KIB * KIB);
}

static void cancelling_ends_a_call_that_waits_for_room(void **state)
{
    (void)state;
    STEPS(huge_deferred("a"));
    others_hold(KIB * KIB);
    read_all();
    cancel_call();
    assert_finished(STATUS_CANCELLED);
    assert_true(list_is_empty(&others.room.waiting));
    others_give_back(KIB * KIB);
}

static void a_call_is_cancelled_when_room_is_granted(void **state)
{
    (void)state;
    STEPS(huge_deferred("a"));
    others_hold(KIB * KIB);
    read_all();
    others_give_back(KIB * KIB); /* its loop has not heard of it */
    cancel_call();
    assert_finished(STATUS_CANCELLED);
    assert_int_equal(world.scan.loads, 0);
}

/* How large a row is, is not known before it is read. */
static void a_row_of_large_blocks_waits_for_room(void **state)
{
    (void)state;
    struct step on_disk = huge_deferred("b");
    on_disk.is_on_disk = on_disk.values_are_on_disk = true;
    on_disk.block_size = 9 * KIB * KIB;
    struct step small = found("c");
    small.is_on_disk = true;
    STEPS(found("a"), on_disk, small);
    others_hold(KIB * KIB);
    read_all();
    assert_false(fake.call.is_finished);
    assert_int_equal(world.rows, 1);
    assert_int_equal(world.refusals, 1);
    others_give_back(KIB * KIB);
    fake_run();
    assert_finished(STATUS_OK);
    assert_int_equal(world.rows, 3);
    assert_int_equal(world.refusals, 1);
    assert_true(world.bound.most == SIZE_MAX);
}

/* Of which nothing is wanted, or which is left out by a filter. */
static void room_for_a_row_is_free_when_it_has_no_large_values(void **state)
{
    (void)state;
    struct step on_disk = found("a");
    on_disk.is_on_disk = true;
    on_disk.block_size = 9 * KIB * KIB;
    struct step large = found("b");
    large.value_size = 100 * KIB;
    STEPS(on_disk, large, found("c"));
    fake.call.congests_after = 1;
    read_all();
    assert_false(fake.call.is_finished);
    assert_int_equal(world.refusals, 1);
    assert_int_equal(others.room.held.long_bytes, 0);
    client_goes_on();
    assert_finished(STATUS_OK);
}

static void no_call_waits_for_room_for_ever(void **state)
{
    (void)state;
    STEPS(huge_deferred("a"));
    others_hold(KIB * KIB);
    read_all();
    fake_time_is_over();
    assert_finished(STATUS_RESOURCE_EXHAUSTED);
    assert_true(fake.call.has_details);
    others_give_back(KIB * KIB);
}

static void time_is_over_when_room_is_granted(void **state)
{
    (void)state;
    STEPS(huge_deferred("a"));
    others_hold(KIB * KIB);
    read_all();
    others_give_back(KIB * KIB);
    fake_time_is_over();
    fake_run();
    assert_finished(STATUS_OK);
}

/* While no other call asks it is left with its value. */
static void a_client_that_stops_lets_go_for_others(void **state)
{
    (void)state;
    stop_within_a_value();
    fake_time_is_over();
    fake_time_is_over();
    assert_true(world.scan.is_value_held);
    assert_false(others_ask());
    fake_time_is_over();
    assert_false(world.scan.is_value_held);
    assert_int_equal(others.granted, 1);
    assert_int_equal(others.room.held.long_bytes, KIB * KIB);
    fake.call.congests_after = 0;
    client_goes_on();
    assert_false(fake.call.is_finished); /* now it is the one that waits */
    others_give_back(KIB * KIB);
    fake_run();
    assert_finished(STATUS_OK);
    assert_int_equal(world.scan.loads, 2);
    assert_int_equal(world.rows, 2);
    assert_int_equal(world.value_bytes, 4 * KIB * KIB + 10);
}

static void a_client_that_goes_on_keeps_its_value(void **state)
{
    (void)state;
    stop_within_a_value();
    assert_false(others_ask());
    fake.call.congests_after = 0;
    client_goes_on();
    assert_finished(STATUS_OK);
    assert_int_equal(world.scan.loads, 1);
    assert_int_equal(others.granted, 1);
    others_give_back(KIB * KIB);
}

static void a_cancelled_call_frees_its_room(void **state)
{
    (void)state;
    stop_within_a_value();
    assert_false(others_ask());
    cancel_call();
    assert_finished(STATUS_CANCELLED);
    assert_int_equal(others.granted, 1);
    others_give_back(KIB * KIB);
}

/* Rows may follow for hours. */
static void a_sent_row_frees_its_room(void **state)
{
    (void)state;
    struct step after = found("b");
    after.is_on_disk = true;
    STEPS(huge_deferred("a"), after);
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    begin(&request);
    for (int turns = 0; list_is_empty(&fake.pool); turns++) {
        assert_true(turns < 100 && !list_is_empty(&fake.loop));
        struct link *link = list_take(&fake.loop);
        struct task *task = LIST_ENTRY(link, struct task, link);
        task->run(task);
    }
    assert_int_equal(world.rows, 1);
    assert_int_equal(others.room.held.long_bytes, 0);
    fake_run();
    assert_finished(STATUS_OK);
}

/* Others may have it while the scan goes on to look for one that passes. */
static void a_row_turned_away_frees_its_room(void **state)
{
    (void)state;
    struct step away = {.outcome = ROW_ABSENT, .key = "a", .is_on_disk = true};
    away.block_size = 9 * KIB * KIB;
    STEPS(away, found("b"));
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    begin(&request);
    for (int turns = 0; world.scan.next == 0; turns++) {
        assert_true(turns < 100);
        struct link *link = list_take(list_is_empty(&fake.loop) ? &fake.pool : &fake.loop);
        assert_non_null(link);
        struct task *task = LIST_ENTRY(link, struct task, link);
        task->run(task);
    }
    assert_int_equal(world.refusals, 1);
    assert_int_equal(others.room.held.long_bytes, 0);
    fake_run();
    assert_finished(STATUS_OK);
    assert_int_equal(world.rows, 1);
}

static void without_memory_for_a_timer_no_call_waits_for_room(void **state)
{
    (void)state;
    fake.timers_fail = true;
    STEPS(huge_deferred("a"));
    read_all();
    assert_finished(STATUS_RESOURCE_EXHAUSTED);
}

static void without_memory_for_a_timer_a_client_that_stops_lets_go(void **state)
{
    (void)state;
    stop_within_a_value();
    fake.timers_fail = true;
    client_goes_on(); /* for one piece */
    assert_false(fake.call.is_finished);
    assert_false(world.scan.is_value_held);
    assert_int_equal(others.room.held.long_bytes, 0);
    cancel_call();
    assert_finished(STATUS_CANCELLED);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup_room, teardown_room)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_large_value_waits_for_room),
        TEST(small_values_never_wait),
        TEST(cancelling_ends_a_call_that_waits_for_room),
        TEST(a_call_is_cancelled_when_room_is_granted),
        TEST(a_row_of_large_blocks_waits_for_room),
        TEST(room_for_a_row_is_free_when_it_has_no_large_values),
        TEST(no_call_waits_for_room_for_ever),
        TEST(time_is_over_when_room_is_granted),
        TEST(a_client_that_stops_lets_go_for_others),
        TEST(a_client_that_goes_on_keeps_its_value),
        TEST(a_cancelled_call_frees_its_room),
        TEST(a_sent_row_frees_its_room),
        TEST(a_row_turned_away_frees_its_room),
        TEST(without_memory_for_a_timer_no_call_waits_for_room),
        TEST(without_memory_for_a_timer_a_client_that_stops_lets_go),
    };
    return cmocka_run_group_tests_name("read_rows_room", tests, NULL, NULL);
}
