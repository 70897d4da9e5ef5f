/* ReadRows against a scan, a client, a loop and a pool that do what the test says. */
#include "bigtable/testing/read_rows_testing.h"

/* --- tests --- */

static void rows_share_a_message(void **state)
{
    (void)state;
    STEPS(found("a"), found("b"), found("c"));
    read_all();
    assert_finished(STATUS_OK);
    assert_int_equal(world.rows, 3);
    assert_string_equal(world.keys[2], "c");
    assert_int_equal(fake.call.messages, 1);
    assert_int_equal(world.range_count, 1);
}

static void a_scan_is_told_with_what_it_saw(void **state)
{
    (void)state;
    STEPS(found("a"), found("b"), found("c"));
    read_all();
    assert_int_equal(fake.usage.scans, 1);
    assert_int_equal(fake.usage.reads, 1);
    assert_true(fake.usage.scan.is_whole);
    assert_int_equal(fake.usage.scan.answered, 3);
    assert_int_equal(fake.usage.scan.kind, USAGE_ALL_ROWS);
}

static void nothing_found_is_no_message(void **state)
{
    (void)state;
    STEPS({.outcome = ROW_ABSENT, .key = "x"});
    read_all();
    assert_finished(STATUS_OK);
    assert_int_equal(fake.call.messages, 0);
}

static void the_disk_is_read_on_the_pool(void **state)
{
    (void)state;
    struct step on_disk = found("b");
    on_disk.is_on_disk = true;
    STEPS(found("a"), on_disk, found("c"));
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    begin(&request);
    assert_int_equal(world.rows, 1); /* what was there is not held back */
    assert_true(list_is_empty(&fake.loop));
    assert_false(list_is_empty(&fake.pool));
    fake_run();
    assert_finished(STATUS_OK);
    assert_int_equal(world.rows, 3);
}

static void a_full_pool_ends_the_call(void **state)
{
    (void)state;
    struct step on_disk = found("a");
    on_disk.is_on_disk = true;
    STEPS(on_disk);
    fake.pool_is_full = true;
    read_all();
    assert_finished(STATUS_RESOURCE_EXHAUSTED);
}

static void a_slice_ends_when_its_time_is_over(void **state)
{
    (void)state;
    STEPS(found("a"), found("b"), found("c"));
    fake.tick_us = 10 * 1000 * 1000;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    begin(&request);
    assert_int_equal(world.rows, 1);
    assert_false(list_is_empty(&fake.loop));
    fake_run();
    assert_finished(STATUS_OK);
    assert_int_equal(world.rows, 3);
    assert_int_equal(fake.call.messages, 3);
}

static void a_slow_client_pauses_the_scan(void **state)
{
    (void)state;
    struct step large = found("a");
    large.value_size = 100 * KIB;
    struct step second = large;
    second.key = "b";
    STEPS(large, second);
    fake.call.congests_after = 1;
    read_all();
    assert_false(fake.call.is_finished);
    assert_int_equal(fake.call.messages, 1);
    assert_int_equal(world.scan.pauses, 1);
    fake_run();
    assert_int_equal(fake.call.messages, 1);

    fake.call.congests_after = 0;
    fake.call.is_congested = false;
    fake.call.on_writable(fake.call.context);
    fake_run();
    assert_finished(STATUS_OK);
    assert_int_equal(world.rows, 2);
}

/* --- messages and rows --- */

/* Google's client in Go takes a message that ends within a row for the end of the stream. */
static void a_message_ends_with_a_row(void **state)
{
    (void)state;
    struct step row = found("a");
    row.cells = 10;
    row.value_size = 4 * KIB; /* of 40 KiB: the second one passes what a message has */
    struct step second = row, third = row, fourth = found("d");
    second.key = "b";
    third.key = "c";
    third.value_size = 100 * KIB; /* 1,000 KiB: as large as can be */
    STEPS(row, second, third, fourth);
    read_all();
    assert_finished(STATUS_OK);
    assert_int_equal(world.rows, 4);
    assert_int_equal(world.cells, 31);
    assert_int_equal(fake.call.messages, 3);
    assert_int_equal(world.cut_rows, 0);
    assert_int_equal(fake.call.pieces, 0);
}

static void a_large_row_has_a_message_of_its_own(void **state)
{
    (void)state;
    struct step large = found("b");
    large.cells = 12;
    large.value_size = 4 * KIB * KIB;
    STEPS(found("a"), large, found("c"));
    read_all();
    assert_finished(STATUS_OK);
    assert_int_equal(world.rows, 3);
    assert_int_equal(world.cells, 14);
    assert_int_equal(world.value_bytes, 12 * large.value_size + 20);
    assert_int_equal(fake.call.messages, 3);
    assert_int_equal(world.cut_rows, 0);
    assert_true(fake.call.pieces >= 24);
    assert_true(fake.call.largest < 4 * KIB * KIB);
}

static void a_client_that_wants_small_messages_gets_them(void **state)
{
    (void)state;
    struct step large = found("b");
    large.cells = 12;
    large.value_size = 4 * KIB * KIB;
    STEPS(found("a"), large, found("c"));
    fake.call.wants_small = true;
    read_all();
    assert_finished(STATUS_OK);
    assert_int_equal(world.rows, 3);
    assert_int_equal(world.cells, 14);
    assert_int_equal(world.value_bytes, 12 * large.value_size + 20);
    assert_int_equal(fake.call.pieces, 0);
    assert_true(fake.call.largest < 4 * KIB * KIB);
}

/* The status is for wire/ to turn into a reset. */
static void a_call_may_end_within_a_large_row(void **state)
{
    (void)state;
    struct step large = found("a");
    large.cells = 10;
    large.value_size = 4 * KIB * KIB;
    STEPS(large);
    fake.call.congests_after = 3;
    read_all();
    assert_false(fake.call.is_finished);
    assert_int_equal(fake.call.pieces, 3);
    fake.call.is_cancelled = true;
    fake.call.on_cancel(fake.call.context);
    fake_run();
    assert_finished(STATUS_CANCELLED);
    assert_int_equal(world.rows, 0);
}

/* --- values that are left in the store --- */

static void values_left_in_the_store_are_got_one_by_one(void **state)
{
    (void)state;
    STEPS(found("a"), large_deferred("b"), found("c"));
    read_all();
    assert_finished(STATUS_OK);
    assert_int_equal(world.rows, 3);
    assert_int_equal(world.value_bytes, 10 * 1000 * KIB + 20);
    assert_int_equal(world.cut_rows, 0);
    assert_int_equal(world.scan.loads, 10);
    assert_int_equal(fake.call.messages, 3);
}

/* A large row may be small behind a filter. */
static void a_small_row_may_have_values_in_the_store(void **state)
{
    (void)state;
    struct step small = large_deferred("b");
    small.cells = 2;
    small.value_size = 10;
    small.values_are_on_disk = true;
    STEPS(found("a"), small, found("c"));
    read_all();
    assert_finished(STATUS_OK);
    assert_int_equal(world.rows, 3);
    assert_int_equal(world.cells, 4);
    assert_int_equal(world.cut_rows, 0);
    assert_int_equal(world.scan.loads, 2);
    assert_int_equal(world.scan.misses, 1); /* the rest is got on the pool, too */
}

static void values_on_disk_are_read_on_the_pool(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) {
        struct step large = large_deferred("b");
        large.values_are_on_disk = true;
        fake.call.wants_small = small;
        fake.call.messages = 0;
        fake.call.is_finished = world.scan.is_destroyed = false;
        world.rows = world.value_bytes = world.scan.loads = world.scan.misses = 0;
        world.scan.next = 0;
        STEPS(found("a"), large, found("c"));
        Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
        begin(&request);
        assert_int_equal(world.rows, 1);
        assert_false(list_is_empty(&fake.pool));
        fake_run();
        assert_finished(STATUS_OK);
        assert_int_equal(world.rows, 3);
        assert_int_equal(world.value_bytes, 10 * 1000 * KIB + 20);
        assert_int_equal(world.scan.loads, 10);
    }
}

/* While the client takes its time, the store's memory is given back. */
static void a_slow_client_holds_no_value(void **state)
{
    (void)state;
    STEPS(large_deferred("a"));
    fake.call.congests_after = 1;
    read_all();
    for (int i = 0; !fake.call.is_finished; i++) {
        assert_true(i < 100);
        assert_false(world.scan.is_value_held);
        assert_true(world.scan.has_row || world.rows == 1);
        fake.call.is_congested = false;
        fake.call.on_writable(fake.call.context);
        fake_run();
    }
    assert_finished(STATUS_OK);
    assert_int_equal(world.scan.loads, 10);
    assert_int_equal(world.value_bytes, 10 * 1000 * KIB);
}

/* A value of which the client has a part stays held: it would be read again for each piece. */
static void a_slow_client_holds_the_value_it_is_in(void **state)
{
    (void)state;
    struct step large = large_deferred("a");
    large.cells = 1;
    large.value_size = 4 * KIB * KIB;
    STEPS(large);
    fake.call.congests_after = 1;
    read_all();
    assert_false(fake.call.is_finished);
    assert_true(world.scan.is_value_held);
    fake.call.congests_after = 0;
    fake.call.is_congested = false;
    fake.call.on_writable(fake.call.context);
    fake_run();
    assert_finished(STATUS_OK);
    assert_int_equal(world.scan.loads, 1);
    assert_int_equal(world.value_bytes, large.value_size);
}

static void a_value_that_fails_ends_the_call_within_its_row(void **state)
{
    (void)state;
    struct step large = large_deferred("a");
    large.fails_at_load = 3;
    STEPS(large, found("b"));
    read_all();
    assert_finished(STATUS_ABORTED);
    assert_int_equal(world.rows, 0);
    assert_int_equal(fake.call.pieces, 3);
}

/* The cells are still needed, so the scan may not let go of them. */
static void a_slow_client_within_a_row_keeps_the_row(void **state)
{
    (void)state;
    struct step large = found("a");
    large.cells = 10;
    large.value_size = 4 * KIB * KIB;
    STEPS(large);
    fake.call.congests_after = 1;
    read_all();
    assert_false(fake.call.is_finished);
    assert_int_equal(world.scan.pauses, 0);
    assert_true(world.scan.has_row);
    for (int i = 0; !fake.call.is_finished; i++) {
        assert_true(i < 100);
        fake.call.is_congested = false;
        fake.call.on_writable(fake.call.context);
        fake_run();
    }
    assert_finished(STATUS_OK);
    assert_int_equal(world.cells, 10);
    assert_int_equal(world.value_bytes, 10 * large.value_size);
    assert_true(fake.call.largest < 4 * KIB * KIB);
}

static void cancelling_ends_a_call_that_waits(void **state)
{
    (void)state;
    struct step large = found("a");
    large.value_size = 100 * KIB;
    STEPS(large, found("b"));
    fake.call.congests_after = 1;
    read_all();
    assert_false(fake.call.is_finished);
    fake.call.is_cancelled = true;
    fake.call.on_cancel(fake.call.context);
    fake_run();
    assert_finished(STATUS_CANCELLED);
}

static void cancelling_ends_a_call_at_its_next_row(void **state)
{
    (void)state;
    STEPS(found("a"), found("b"));
    fake.tick_us = 10 * 1000 * 1000;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    begin(&request);
    fake.call.is_cancelled = true;
    fake.call.on_cancel(fake.call.context);
    fake_run();
    assert_finished(STATUS_CANCELLED);
    assert_int_equal(world.rows, 1);
}

static void a_caller_who_may_no_longer_read_gets_no_more(void **state)
{
    (void)state;
    STEPS(found("a"), found("b"));
    fake.tick_us = 10 * 1000 * 1000;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    begin(&request);
    fake.call.is_refused = true;
    fake_run();
    assert_finished(STATUS_PERMISSION_DENIED);
    assert_int_equal(world.rows, 1);
}

static void a_slow_client_who_may_no_longer_read_gets_no_more(void **state)
{
    (void)state;
    struct step large = found("a");
    large.value_size = 100 * KIB;
    STEPS(large, found("b"));
    fake.call.congests_after = 1;
    read_all();
    fake.call.is_refused = true;
    fake_run();
    assert_false(fake.call.is_finished); /* it is not asked while nothing goes out */
    fake.call.is_congested = false;
    fake.call.on_writable(fake.call.context);
    fake_run();
    assert_finished(STATUS_PERMISSION_DENIED);
    assert_int_equal(world.rows, 1);
}

static void a_limit_stops_the_scan(void **state)
{
    (void)state;
    STEPS(found("a"), found("b"), found("c"));
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    request.rows_limit = 2;
    begin(&request);
    fake_run();
    assert_finished(STATUS_OK);
    assert_int_equal(world.rows, 2);
    assert_int_equal(world.scan.next, 2);
}

static void statistics_come_last(void **state)
{
    (void)state;
    STEPS(found("a"), found("b"));
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    request.request_stats_view = BT__READ_ROWS_REQUEST__REQUEST_STATS_VIEW__REQUEST_STATS_FULL;
    begin(&request);
    fake_run();
    assert_finished(STATUS_OK);
    assert_non_null(world.stats);
    const Bt__FullReadStatsView *full = world.stats->full_read_stats_view;
    assert_int_equal(full->read_iteration_stats->rows_returned_count, 2);
    assert_int_equal(full->read_iteration_stats->cells_returned_count, 2);
    assert_int_equal(full->read_iteration_stats->rows_seen_count, ROWS_SEEN);
    assert_int_equal(full->read_iteration_stats->cells_seen_count, CELLS_SEEN);
}

/* An interleave may let a cell through several times. */
static void statistics_return_no_more_than_was_seen(void **state)
{
    (void)state;
    STEPS({.outcome = ROW_FOUND, .key = "a", .cells = CELLS_SEEN + 1, .value_size = 1});
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    request.request_stats_view = BT__READ_ROWS_REQUEST__REQUEST_STATS_VIEW__REQUEST_STATS_FULL;
    begin(&request);
    fake_run();
    assert_finished(STATUS_OK);
    const Bt__FullReadStatsView *full = world.stats->full_read_stats_view;
    assert_int_equal(full->read_iteration_stats->cells_returned_count, CELLS_SEEN + 1);
    assert_int_equal(full->read_iteration_stats->cells_seen_count, CELLS_SEEN + 1);
}

static void statistics_come_even_if_no_row_does(void **state)
{
    (void)state;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    request.request_stats_view = BT__READ_ROWS_REQUEST__REQUEST_STATS_VIEW__REQUEST_STATS_FULL;
    STEPS({.outcome = ROW_END});
    begin(&request);
    fake_run();
    assert_finished(STATUS_OK);
    assert_int_equal(fake.call.messages, 1);
    assert_non_null(world.stats);
}

static void progress_is_told_only_where_understood(void **state)
{
    (void)state;
    STEPS(found("a"), {.outcome = ROW_ABSENT, .key = "m"}, found("z"));
    read_all();
    assert_string_equal(world.last_scanned, "");
    assert_int_equal(world.rows, 2);
}

static void progress_is_told_in_a_message_of_its_own(void **state)
{
    (void)state;
    STEPS(found("a"), {.outcome = ROW_ABSENT, .key = "m"}, found("z"));
    fake.call.features = "IAE="; /* last_scanned_row_responses */
    read_all();
    assert_finished(STATUS_OK);
    assert_string_equal(world.last_scanned, "m");
    assert_int_equal(world.rows, 2);
    assert_int_equal(fake.call.messages, 3);
}

/* The end of a tablet may come right after a row, or before any. */
static void progress_that_is_none_is_not_told(void **state)
{
    (void)state;
    STEPS({.outcome = ROW_ABSENT, .key = ""}, found("m"), {.outcome = ROW_ABSENT, .key = "m"},
          {.outcome = ROW_ABSENT, .key = "a"}, found("z"));
    fake.call.features = "IAE="; /* last_scanned_row_responses */
    read_all();
    assert_finished(STATUS_OK);
    assert_string_equal(world.last_scanned, "");
    assert_int_equal(world.rows, 2);
}

static void a_row_too_large_fails_after_those_before_it(void **state)
{
    (void)state;
    STEPS(found("a"), {.outcome = ROW_TOO_LARGE, .key = "huge"}, found("z"));
    read_all();
    assert_finished(STATUS_FAILED_PRECONDITION);
    assert_int_equal(world.rows, 1);
    assert_true(fake.call.has_details);
}

static void refuse(Bt__ReadRowsRequest *request, enum status_code code)
{
    begin(request);
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, code);
    assert_int_equal(fake.call.messages, 0);
}

static void reverse_scans_need_the_feature(void **state)
{
    (void)state;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    request.reversed = true;
    refuse(&request, STATUS_UNIMPLEMENTED);
}

static void features_come_padded_or_not(void **state)
{
    (void)state;
    static const char *const both[] = {"CAE=", "CAE"}; /* reverse_scans */
    for (size_t i = 0; i < 2; i++) {
        Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
        STEPS(found("a"));
        world.scan.next = 0;
        world.scan.is_destroyed = fake.call.is_finished = false;
        fake.call.messages = 0;
        fake.call.features = both[i];
        request.reversed = true;
        begin(&request);
        fake_run();
        assert_finished(STATUS_OK);
    }
}

static void features_that_are_garbage_flag_nothing(void **state)
{
    (void)state;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    fake.call.features = "!!!";
    request.reversed = true;
    refuse(&request, STATUS_UNIMPLEMENTED);
}

static void a_negative_limit_is_refused(void **state)
{
    (void)state;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    request.rows_limit = -1;
    refuse(&request, STATUS_INVALID_ARGUMENT);
}

static void a_materialized_view_is_read_as_its_table(void **state)
{
    (void)state;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    STEPS(found("a"));
    request.materialized_view_name = MATERIALIZED_NAME;
    fake_call(read_rows, &request.base);
    fake_run();
    assert_finished(STATUS_OK);
}

static void what_no_materialized_view_is_named_is_refused(void **state)
{
    (void)state;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    request.materialized_view_name = MATERIALIZED_NAME "/x";
    fake_call(read_rows, &request.base);
    assert_int_equal(fake.call.code, STATUS_INVALID_ARGUMENT);
}

static void a_table_and_a_view_are_refused(void **state)
{
    (void)state;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    request.authorized_view_name = TABLE_NAME "/authorizedViews/v";
    refuse(&request, STATUS_INVALID_ARGUMENT);
}

static void no_table_and_no_view_are_refused(void **state)
{
    (void)state;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    fake_call(read_rows, &request.base);
    assert_int_equal(fake.call.code, STATUS_INVALID_ARGUMENT);
}

static void read_view(void)
{
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    request.authorized_view_name = VIEW_NAME;
    world.scan.is_destroyed = false;
    world.scan.steps[0].outcome = ROW_END;
    fake_call(read_rows, &request.base);
    fake_run();
}

static void a_view_that_is_not_there_is_refused(void **state)
{
    (void)state;
    read_view();
    assert_int_equal(fake.call.code, STATUS_NOT_FOUND);
}

static void a_view_is_made_once_and_given_back(void **state)
{
    (void)state;
    fake_add_view("a", "f");
    read_view();
    struct resource_kept *made = fake.view->kept;
    assert_non_null(made);
    read_view();
    assert_ptr_equal(fake.view->kept, made);
    assert_finished(STATUS_OK);
    assert_true(world.is_restricted);
    assert_int_equal(world.range_count, 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_share_a_message),
        TEST(a_scan_is_told_with_what_it_saw),
        TEST(nothing_found_is_no_message),
        TEST(the_disk_is_read_on_the_pool),
        TEST(a_full_pool_ends_the_call),
        TEST(a_slice_ends_when_its_time_is_over),
        TEST(a_slow_client_pauses_the_scan),
        TEST(a_message_ends_with_a_row),
        TEST(a_large_row_has_a_message_of_its_own),
        TEST(a_client_that_wants_small_messages_gets_them),
        TEST(a_call_may_end_within_a_large_row),
        TEST(a_slow_client_within_a_row_keeps_the_row),
        TEST(values_left_in_the_store_are_got_one_by_one),
        TEST(a_small_row_may_have_values_in_the_store),
        TEST(values_on_disk_are_read_on_the_pool),
        TEST(a_slow_client_holds_no_value),
        TEST(a_slow_client_holds_the_value_it_is_in),
        TEST(a_value_that_fails_ends_the_call_within_its_row),
        TEST(cancelling_ends_a_call_that_waits),
        TEST(cancelling_ends_a_call_at_its_next_row),
        TEST(a_caller_who_may_no_longer_read_gets_no_more),
        TEST(a_slow_client_who_may_no_longer_read_gets_no_more),
        TEST(a_limit_stops_the_scan),
        TEST(statistics_come_last),
        TEST(statistics_return_no_more_than_was_seen),
        TEST(statistics_come_even_if_no_row_does),
        TEST(progress_is_told_only_where_understood),
        TEST(progress_is_told_in_a_message_of_its_own),
        TEST(progress_that_is_none_is_not_told),
        TEST(a_row_too_large_fails_after_those_before_it),
        TEST(reverse_scans_need_the_feature),
        TEST(features_come_padded_or_not),
        TEST(features_that_are_garbage_flag_nothing),
        TEST(a_negative_limit_is_refused),
        TEST(a_materialized_view_is_read_as_its_table),
        TEST(what_no_materialized_view_is_named_is_refused),
        TEST(a_table_and_a_view_are_refused),
        TEST(no_table_and_no_view_are_refused),
        TEST(a_view_that_is_not_there_is_refused),
        TEST(a_view_is_made_once_and_given_back),
    };
    return cmocka_run_group_tests_name("read_rows", tests, NULL, NULL);
}
