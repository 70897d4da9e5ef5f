/* ReadChangeStream against a stream that does what the test says (testing/table_stream_testing.h).
 * The client here is as strict as Google's in Java, whose rules docs/reference/data-api.md lists.
 */
#include "bigtable/stream_config.h"
#include "bigtable/testing/change_stream_testing.h"

#include <stdio.h>

/* --- changes --- */

static void test_every_kind_of_mutation_is_told_in_its_order(void **state)
{
    (void)state;
    struct request request;
    fake_stream_partition("", "");
    struct change_list *list = fake_stream_record("row", NOW_US - 7);
    const struct list_mutation mutations[] = {
        {.kind = LIST_SET,
         .family = bytes_of("f"),
         .qualifier = bytes_of("q"),
         .timestamp_us = 1000,
         .value = bytes_of("v")},
        {.kind = LIST_SET, .family = bytes_of("f")},
        {.kind = LIST_DELETE_COLUMN, .family = bytes_of("f"), .qualifier = bytes_of("q")},
        {.kind = LIST_DELETE_COLUMN,
         .family = bytes_of("g"),
         .qualifier = bytes_of("q"),
         .timestamp_us = 3,
         .end_us = 5000},
        {.kind = LIST_DELETE_FAMILY, .family = bytes_of("g")},
        {.kind = LIST_ADD_INT, .family = bytes_of("s"), .qualifier = bytes_of("n"), .number = 0},
        {.kind = LIST_ADD_INT,
         .family = bytes_of("s"),
         .qualifier = bytes_of("n"),
         .timestamp_us = 2000,
         .number = -9},
        {.kind = LIST_ADD_BYTES,
         .family = bytes_of("s"),
         .qualifier = bytes_of("n"),
         .value = bytes_of("x")},
        {.kind = LIST_MERGE,
         .family = bytes_of("s"),
         .qualifier = bytes_of(""),
         .timestamp_us = 4000,
         .value = bytes_of("state")},
    };
    for (size_t i = 0; i < sizeof mutations / sizeof *mutations; i++)
        change_list_add(list, &mutations[i]);
    put("gc", NOW_US - 6);
    stream.records[1].kind = STREAM_COLLECTED;
    ask(&request, "", "");
    from_time(&request, NOW_US - 100);
    call(&request);
    assert_int_equal(client.change_count, 2);
    assert_string_equal(client.changes[0].row_key, "row");
    assert_string_equal(client.changes[0].text,
                        "set(f,q,1000,v) set(f,,0,) column(f,q,0,0) column(g,q,3,5000) family(g) "
                        "add(n,0,0) add(n,2000,-9) add(n,0,'x') merge(,4000,'state') ");
    assert_true(client.changes[0].time_us == NOW_US - 7);
    assert_true(client.changes[0].watermark_us == NOW_US - 7);
    let_go();
    assert_int_equal(fake.call.code, STATUS_CANCELLED);
}

static void test_every_change_can_be_gone_on_from(void **state)
{
    (void)state;
    put_ten();
    struct request request;
    ask(&request, "", "");
    from_time(&request, NOW_US - 10000000);
    call(&request);
    assert_keys(0, "ambncodpeq");
    let_go();
    for (size_t i = 0; i < 10; i++) {
        ask(&request, "", "");
        from_token(&request, "", "", client.changes[i].token);
        size_t before = client.change_count;
        call(&request);
        let_go();
        assert_keys(before, &"ambncodpeq"[i + 1]);
    }
}

static void test_only_the_partition_is_told(void **state)
{
    (void)state;
    put_ten();
    stream.partition_count = 0;
    fake_stream_partition("", "m");
    fake_stream_partition("m", "");
    struct request request;
    ask(&request, "", "m");
    from_time(&request, NOW_US - 5000000);
    call(&request);
    assert_keys(0, "de"); /* c has its second before */
    let_go();
}

static struct change_list *put_dropped(const char *key, int64_t time_us)
{
    struct change_list *list = fake_stream_record(key, time_us);
    stream.records[stream.record_count - 1].kind = STREAM_DROPPED;
    const struct list_mutation deletion = {.kind = LIST_DELETE_FAMILY, .family = bytes_of("f")};
    change_list_add(list, &deletion);
    return list;
}

/* A drop's rows stand behind later changes, whose watermarks wait for them. */
static void test_watermarks_wait_for_dropped_rows(void **state)
{
    (void)state;
    struct request request;
    fake_stream_partition("", "");
    put("w", NOW_US - 100);
    put_dropped("d", NOW_US - 500);
    stream.cap_us = NOW_US - 501;
    ask(&request, "", "");
    from_time(&request, NOW_US - 1000);
    call(&request);
    assert_keys(0, "wd");
    assert_true(client.changes[0].watermark_us == NOW_US - 501);
    assert_true(client.changes[1].watermark_us == NOW_US - 501);
    let_go();
}

/* Nor when he goes on from his token. */
static void test_who_begins_after_a_drop_is_not_told_of_it(void **state)
{
    (void)state;
    struct request request;
    fake_stream_partition("", "");
    put("w", NOW_US - 100);
    put_dropped("d", NOW_US - 500);
    put("x", NOW_US - 50);
    stream.cap_us = NOW_US - 501;
    ask(&request, "", "");
    from_time(&request, NOW_US - 200);
    call(&request);
    assert_keys(0, "wx");
    let_go();
    ask(&request, "", "");
    from_token(&request, "", "", client.changes[0].token);
    call(&request);
    assert_keys(2, "x");
    let_go();
}

/* --- large changes --- */

static size_t steps_until_done(void)
{
    size_t steps = 0;
    for (; fake.call.is_congested && !fake.call.is_finished; steps++) {
        assert_true(steps < 10000);
        fake.call.is_congested = false;
        fake.call.congests_after = fake.call.messages + 1;
        fake.call.on_writable(fake.call.context);
        fake_run();
    }
    fake.call.congests_after = 0;
    return steps;
}

static void put_large(void)
{
    struct change_list *list = fake_stream_record("big", NOW_US - 50);
    for (size_t i = 0; i < 3000; i++)
        set_cell(list, "many", 1000, bytes_make(large_value, 101));
    set_cell(list, "first", 1000, bytes_make(large_value, LARGE_BYTES));
    set_cell(list, "second", 1000, bytes_make(large_value, 2 * MIB));
    set_cell(list, "third", 1000, bytes_make(large_value, MIB + 1));
    set_cell(list, "inline", 1000, bytes_make(large_value, MIB));
    change_list_add(
        list, &(const struct list_mutation){.kind = LIST_DELETE_FAMILY, .family = bytes_of("g")});
}

static void time_passes(void)
{
    if (client.change_count == 0)
        fake.now_us += 10000000;
}

/* With a client that stops after each message, and heartbeats that are due all the time. */
static void test_a_large_change_comes_whole_and_alone(void **state)
{
    (void)state;
    struct request request;
    fake_stream_partition("", "");
    put_large();
    put("next", NOW_US - 40);
    stream.on_read = time_passes;
    fake.call.congests_after = 1;
    ask(&request, "", "");
    from_time(&request, NOW_US - 100);
    call(&request);
    size_t steps = steps_until_done();
    assert_true(steps > 100);
    assert_in_range(client.change_count, 2, 2);
    assert_string_equal(
        client.changes[0].text,
        "set(f,104857600 bytes) set(f,2097152 bytes) set(f,1048577 bytes) set(f,1048576 bytes) "
        "family(g) ");
    assert_in_range(fake.call.largest, 16 << 10, 34 << 10);
    assert_true(client.heartbeats > 0);
    let_go();
}

/* Slices are smaller than the log's pieces. */
static void test_a_piece_is_read_once_for_a_client_that_keeps_up(void **state)
{
    (void)state;
    struct request request;
    fake_stream_partition("", "");
    put_large();
    ask(&request, "", "");
    from_time(&request, NOW_US - 100);
    call(&request);
    assert_int_equal(client.change_count, 1);
    assert_int_equal(stream.pieces, LARGE_BYTES / MIB + 2 + 2);
    assert_true(stream.reads > LARGE_BYTES / (200 << 10));
    let_go();
}

/* What waits for a client that does not read is what one read sends. */
static void test_a_client_that_does_not_read_is_not_sent_more(void **state)
{
    (void)state;
    struct request request;
    fake_stream_partition("", "");
    for (size_t i = 0; i < 200; i++)
        set_cell(fake_stream_record("k", NOW_US - 1000 + (int64_t)i), "q", 1000,
                 bytes_make(large_value, 1000));
    fake.call.congests_after = 1;
    ask(&request, "", "");
    from_time(&request, NOW_US - 2000);
    call(&request);
    assert_int_equal(stream.reads, 1);
    assert_in_range(client.change_count, 25, 35);
    steps_until_done();
    assert_int_equal(client.change_count, 200);
    let_go();
}

static void test_a_stream_does_not_end_within_a_change(void **state)
{
    (void)state;
    struct request request;
    fake_stream_partition("", "");
    put_large();
    fake.call.congests_after = 1;
    ask(&request, "", "");
    from_time(&request, NOW_US - 100);
    call(&request);
    assert_true(client.is_inside);
    stream.partition_count = 0;
    fake_stream_partition("", "m");
    fake_stream_partition("m", "");
    steps_until_done();
    assert_int_equal(client.change_count, 1);
    assert_non_null(client.close);
    assert_int_equal(client.close->n_continuation_tokens, 2);
    assert_int_equal(fake.call.code, STATUS_OK);
    put("next", NOW_US - 40);
    ask(&request, "m", "");
    from_token(&request, "m", "", client.close->continuation_tokens[1]->token);
    call(&request);
    assert_keys(1, "n");
    let_go();
}

static void test_a_piece_that_is_gone_ends_the_call(void **state)
{
    (void)state;
    struct request request;
    fake_stream_partition("", "");
    put_large();
    stream.piece_fails = STATUS_OUT_OF_RANGE;
    ask(&request, "", "");
    from_time(&request, NOW_US - 100);
    call(&request);
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, STATUS_OUT_OF_RANGE);
    assert_int_equal(client.change_count, 0);
}

/* --- waiting --- */

static void test_heartbeats_come_while_nothing_does(void **state)
{
    (void)state;
    put_ten();
    struct request request;
    ask(&request, "", "");
    request.heartbeat = (Pb__Duration)PB__DURATION__INIT;
    request.heartbeat.seconds = 1;
    request.message.heartbeat_duration = &request.heartbeat;
    call(&request); /* from now on */
    assert_int_equal(client.change_count + client.heartbeats, 0);
    for (size_t i = 1; i <= 3; i++) {
        assert_in_range(fake.timer->due_us, fake.now_us, fake.now_us + 1000000);
        fake.now_us = fake.timer->due_us;
        stream.watermark_us = fake.now_us;
        fake_time_is_over();
        fake_run();
        assert_int_equal(client.heartbeats, i);
        assert_true(client.watermark_us == stream.watermark_us);
    }
    put("later", fake.now_us);
    let_go();
    ask(&request, "", "");
    from_token(&request, "", "", client.heartbeat_token);
    call(&request);
    assert_keys(0, "l");
    let_go();
}

static void test_a_change_wakes_its_readers(void **state)
{
    (void)state;
    put_ten();
    struct request request;
    ask(&request, "", "");
    call(&request);
    for (size_t i = 0; i < 3; i++) {
        size_t reads = stream.reads;
        put("w", fake.now_us + 1);
        fake_stream_wake();
        fake_run();
        assert_int_equal(client.change_count, i + 1);
        assert_true(stream.reads <= reads + 2);
    }
    let_go();
}

static void put_and_wake(void)
{
    stream.on_read = NULL;
    fake_stream_wake(); /* of a record that this read does not see yet */
}

/* A record that is written after a read began, and before its end is known. */
static void test_no_change_is_slept_through(void **state)
{
    (void)state;
    put_ten();
    struct request request;
    stream.on_read = put_and_wake;
    ask(&request, "", "");
    call(&request);
    assert_int_equal(stream.reads, 2);
    let_go();
}

static void test_a_pool_that_is_full_is_asked_again(void **state)
{
    (void)state;
    put_ten();
    struct request request;
    fake.pool_is_full = true;
    ask(&request, "", "");
    from_time(&request, NOW_US - 1000000);
    call(&request);
    assert_int_equal(stream.reads, 0);
    fake.pool_is_full = false;
    fake_time_is_over();
    fake_run();
    assert_keys(0, "q");
    let_go();
}

static void test_a_timer_that_cannot_be_set_ends_the_call(void **state)
{
    (void)state;
    put_ten();
    struct request request;
    fake.timers_fail = true;
    ask(&request, "", "");
    call(&request);
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, STATUS_RESOURCE_EXHAUSTED);
}

/* Whoever is being woken when the call ends is waited for. */
static void test_a_call_that_is_being_woken_ends_after_that(void **state)
{
    (void)state;
    put_ten();
    struct request request;
    ask(&request, "", "");
    call(&request);
    fake_stream_wake();
    fake.call.is_cancelled = true;
    fake.call.on_cancel(fake.call.context);
    assert_false(fake.call.is_finished);
    fake_run();
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, STATUS_CANCELLED);
}

static void cancel_now(void)
{
    stream.on_read = NULL;
    fake.call.is_cancelled = true;
    fake.call.on_cancel(fake.call.context);
}

static void test_a_call_may_end_while_it_reads_and_while_its_client_does_not(void **state)
{
    (void)state;
    put_ten();
    struct request request;
    stream.on_read = cancel_now;
    ask(&request, "", "");
    from_time(&request, NOW_US - 10000000);
    call(&request);
    assert_int_equal(fake.call.code, STATUS_CANCELLED);
    assert_int_equal(client.change_count, 0);
    fake.call.is_cancelled = false;
    fake.call.congests_after = 1;
    call(&request);
    assert_false(fake.call.is_finished);
    let_go();
    assert_int_equal(fake.call.code, STATUS_CANCELLED);
}

static void drain_now(void)
{
    stream.on_read = NULL;
    fake.call.on_drain(fake.call.context);
}

/* While it waits for changes, while it reads, and while its client does not. */
static void test_a_server_that_stops_does_not_wait_for_readers(void **state)
{
    (void)state;
    put_ten();
    struct request request;
    ask(&request, "", "");
    from_time(&request, NOW_US - 10000000);
    for (size_t i = 0; i < 3; i++) {
        stream.on_read = i == 1 ? drain_now : NULL;
        fake.call.congests_after = i == 2;
        call(&request);
        if (i != 1)
            drain_now();
        fake_run();
        assert_true(fake.call.is_finished);
        assert_int_equal(fake.call.code, STATUS_UNAVAILABLE);
    }
}

static void test_a_reader_who_may_not_any_more_is_ended(void **state)
{
    (void)state;
    put_ten();
    struct request request;
    ask(&request, "", "");
    call(&request);
    fake.call.is_refused = true;
    fake_stream_wake();
    fake_run();
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, STATUS_PERMISSION_DENIED);
}

/* Whatever heartbeats it asked for: it counts among those who read, and need not be told a change.
 */
static void test_a_reader_of_nothing_is_asked_again_whether_he_may(void **state)
{
    (void)state;
    put_ten();
    struct request request;
    ask(&request, "", "");
    request.heartbeat = (Pb__Duration)PB__DURATION__INIT;
    request.heartbeat.seconds = 80000;
    request.message.heartbeat_duration = &request.heartbeat;
    call(&request);
    for (size_t i = 0; i < 3; i++) {
        assert_in_range(fake.timer->due_us, fake.now_us, fake.now_us + 10000000);
        fake.call.is_refused = i == 2;
        fake.now_us = fake.timer->due_us;
        fake_time_is_over();
        fake_run();
        assert_int_equal(client.heartbeats, 0);
    }
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, STATUS_PERMISSION_DENIED);
}

/* --- ends --- */

static void assert_closed_ok(void)
{
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, STATUS_OK);
    assert_non_null(client.close);
    assert_int_equal(client.close->status->code, 0);
    assert_int_equal(client.close->n_continuation_tokens + client.close->n_new_partitions, 0);
}

static void test_both_ends_are_kept_to_the_microsecond(void **state)
{
    (void)state;
    put_ten();
    struct request request;
    ask(&request, "", "");
    from_time(&request, NOW_US - 8000000);
    until(&request, NOW_US - 5000000);
    call(&request);
    assert_keys(0, "bnco");
    assert_closed_ok();
    from_time(&request, NOW_US - 8000000 + 1);
    until(&request, NOW_US - 5000000 - 1);
    call(&request);
    assert_keys(4, "nc");
    assert_closed_ok();
    from_time(&request, NOW_US - 8000000);
    until(&request, NOW_US - 8000000 - 1);
    call(&request);
    assert_keys(6, "");
    assert_closed_ok();
}

static void test_an_end_to_come_closes_by_itself(void **state)
{
    (void)state;
    put_ten();
    struct request request;
    ask(&request, "", "");
    until(&request, NOW_US + 2000000);
    call(&request);
    assert_null(client.close);
    assert_in_range(fake.timer->due_us, NOW_US + 2000000, NOW_US + 2100000);
    fake.now_us = stream.watermark_us = fake.timer->due_us;
    fake_time_is_over();
    fake_run();
    assert_closed_ok();
}

static void assert_successor(size_t i, const char *newer, const char *part)
{
    const Bt__RowRange *new_range = client.close->new_partitions[i]->row_range;
    const Bt__RowRange *range = client.close->continuation_tokens[i]->partition->row_range;
    char got[CLIENT_TEXT];
    assert_int_equal(new_range->start_key_case, BT__ROW_RANGE__START_KEY_START_KEY_CLOSED);
    assert_int_equal(new_range->end_key_case, BT__ROW_RANGE__END_KEY_END_KEY_OPEN);
    snprintf(got, sizeof got, "%.*s-%.*s", (int)new_range->start_key_closed.len,
             (const char *)new_range->start_key_closed.data, (int)new_range->end_key_open.len,
             (const char *)new_range->end_key_open.data);
    assert_string_equal(got, newer);
    snprintf(got, sizeof got, "%.*s-%.*s", (int)range->start_key_closed.len,
             (const char *)range->start_key_closed.data, (int)range->end_key_open.len,
             (const char *)range->end_key_open.data);
    assert_string_equal(got, part);
}

static void test_a_range_that_is_no_partition_closes_with_those_there_are(void **state)
{
    (void)state;
    put_ten();
    stream.partition_count = 0;
    fake_stream_partition("", "c");
    fake_stream_partition("c", "n");
    fake_stream_partition("n", "");
    struct request request;
    ask(&request, "b", "p");
    from_time(&request, NOW_US - 10000000);
    call(&request);
    assert_int_equal(fake.call.code, STATUS_OK);
    assert_int_equal(client.close->status->code, STATUS_OUT_OF_RANGE);
    assert_string_equal(client.close->status->message, "Partition boundaries are misaligned.");
    assert_int_equal(client.close->n_continuation_tokens, 3);
    assert_int_equal(client.close->n_new_partitions, 3);
    assert_successor(0, "-c", "b-c");
    assert_successor(1, "c-n", "c-n");
    assert_successor(2, "n-", "n-p");
    const char *token = client.close->continuation_tokens[1]->token;
    ask(&request, "c", "n");
    from_token(&request, "c", "n", token);
    call(&request);
    assert_keys(0, "mcde");
    let_go();
}

/* Readers stand at different places: after the merge each part goes on from its own. */
static void test_a_merge_carries_every_reader_s_place(void **state)
{
    (void)state;
    put_ten();
    stream.partition_count = 0;
    fake_stream_partition("", "m");
    fake_stream_partition("m", "");
    struct request request;
    const char *tokens[2];
    for (size_t i = 0; i < 2; i++) {
        ask(&request, i == 0 ? "" : "m", i == 0 ? "m" : "");
        from_time(&request, NOW_US - 10000000);
        call(&request);
        let_go();
    }
    assert_keys(0, "abcdemnopq");
    stream.partition_count = 0;
    fake_stream_partition("", "");
    for (size_t i = 0; i < 2; i++) {
        const char *start = i == 0 ? "" : "m", *end = i == 0 ? "m" : "";
        ask(&request, start, end);
        from_token(&request, start, end, client.changes[i == 0 ? 1 : 8].token); /* b; p */
        call(&request);
        assert_int_equal(client.close->n_continuation_tokens, 1);
        assert_successor(0, "-", i == 0 ? "-m" : "m-");
        tokens[i] = client.close->continuation_tokens[0]->token;
    }
    ask(&request, "", "");
    from_token(&request, "m", "", tokens[1]);
    from_token(&request, "", "m", tokens[0]);
    call(&request);
    assert_keys(10, "cdeq");
    let_go();
    ask(&request, "", ""); /* from before all have met */
    from_token(&request, "", "", client.changes[10].token);
    call(&request);
    assert_keys(14, "deq");
    let_go();
}

static void test_a_stream_that_is_switched_off_ends_its_readers(void **state)
{
    (void)state;
    put_ten();
    struct request request;
    ask(&request, "", "");
    for (size_t i = 0; i < 2; i++) {
        stream.facts = (struct stream_facts){.retention_us = 1, .life = FAKE_LIFE};
        call(&request);
        assert_false(fake.call.is_finished);
        stream.facts.life++; /* switched on again, or not */
        stream.facts.retention_us = (int64_t)i;
        fake_stream_wake();
        fake_run();
        assert_true(fake.call.is_finished);
        assert_int_equal(fake.call.code, STATUS_FAILED_PRECONDITION);
    }
}

static void test_what_is_not_kept_any_more_is_refused(void **state)
{
    (void)state;
    put_ten();
    struct request request;
    ask(&request, "", "");
    from_time(&request, NOW_US - 10000000);
    call(&request);
    let_go();
    stream.facts.oldest_us = NOW_US - 5000000;
    ask(&request, "", "");
    from_token(&request, "", "", client.changes[3].token);
    call(&request);
    assert_int_equal(fake.call.code, STATUS_OUT_OF_RANGE);
    ask(&request, "", "");
    from_token(&request, "", "", client.changes[5].token);
    call(&request);
    assert_keys(10, "dpeq");
    let_go();
}

/* --- requests that are refused --- */

static void assert_refused(const struct request *request, enum status_code code)
{
    size_t before = client.change_count;
    call(request);
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, code);
    assert_int_equal(client.change_count, before);
    assert_null(client.close);
}

static void test_partitions_of_another_form_are_refused(void **state)
{
    (void)state;
    struct request request;
    fake_stream_partition("", "");
    ask(&request, "b", "b");
    assert_refused(&request, STATUS_INVALID_ARGUMENT);
    ask(&request, "c", "b");
    assert_refused(&request, STATUS_INVALID_ARGUMENT);
    ask(&request, "", "");
    request.range.start_key_case = BT__ROW_RANGE__START_KEY_START_KEY_OPEN;
    assert_refused(&request, STATUS_INVALID_ARGUMENT);
    ask(&request, "", "");
    request.range.end_key_case = BT__ROW_RANGE__END_KEY__NOT_SET;
    assert_refused(&request, STATUS_INVALID_ARGUMENT);
    request.partition.row_range = NULL;
    assert_refused(&request, STATUS_INVALID_ARGUMENT);
    request.message.partition = NULL;
    assert_refused(&request, STATUS_INVALID_ARGUMENT);
}

static void test_times_are_checked(void **state)
{
    (void)state;
    struct request request;
    put_ten();
    stream.facts.oldest_us = NOW_US - 60000000;
    ask(&request, "", "");
    from_time(&request, NOW_US + 11000000);
    assert_refused(&request, STATUS_INVALID_ARGUMENT);
    from_time(&request, NOW_US - 61000000);
    assert_refused(&request, STATUS_INVALID_ARGUMENT);
    from_time(&request, NOW_US + 2000000); /* a clock that is ahead */
    call(&request);
    put("w", fake.now_us + 1);
    fake_stream_wake();
    fake_run();
    assert_keys(0, "w");
    let_go();
    request.heartbeat = (Pb__Duration)PB__DURATION__INIT;
    request.message.heartbeat_duration = &request.heartbeat;
    assert_refused(&request, STATUS_INVALID_ARGUMENT);
    request.heartbeat.seconds = -1;
    assert_refused(&request, STATUS_INVALID_ARGUMENT);
}

/* The versions' clock is ahead of all others after a start: a stream is switched on then, and read
 * from a client's "now" on. */
static void test_a_reader_begins_with_the_stream_by_its_own_clock(void **state)
{
    (void)state;
    struct request request;
    fake_stream_partition("", "");
    put("w", NOW_US + 1100000);
    fake.lead_us = 1000000;
    stream.facts.oldest_us = NOW_US + 1000000;
    ask(&request, "", "");
    from_time(&request, NOW_US);
    call(&request);
    assert_keys(0, "w");
    let_go();
    from_time(&request, NOW_US - 1);
    assert_refused(&request, STATUS_INVALID_ARGUMENT);
    fake.lead_us = 0;
    fake.now_us += 1000000;
    from_time(&request, NOW_US);
    assert_refused(&request, STATUS_INVALID_ARGUMENT);
}

/* Then there were changes before it, and it is no silent jump to begin without them. */
static void test_a_start_before_what_is_left_is_refused(void **state)
{
    (void)state;
    struct request request;
    put_ten();
    stream.facts.oldest_us = NOW_US - 60000000;
    stream.facts.logged_us = NOW_US - 5000000;
    fake.lead_us = 1000000;
    ask(&request, "", "");
    from_time(&request, NOW_US - 5000001);
    assert_refused(&request, STATUS_INVALID_ARGUMENT);
    stream.facts.logged_us = 0;
    fake.now_us = stream.facts.oldest_us + STREAM_LEAST_RETENTION_US;
    from_time(&request, NOW_US - 60000001);
    assert_refused(&request, STATUS_INVALID_ARGUMENT);
}

static void test_tokens_are_checked(void **state)
{
    (void)state;
    struct request request;
    char token[CLIENT_TEXT];
    put_ten();
    ask(&request, "", "");
    from_time(&request, NOW_US - 10000000);
    call(&request);
    let_go();
    snprintf(token, sizeof token, "%s", client.changes[0].token);
    ask(&request, "", "");
    request.message.start_from_case =
        BT__READ_CHANGE_STREAM_REQUEST__START_FROM_CONTINUATION_TOKENS;
    request.message.continuation_tokens = &request.tokens;
    assert_refused(&request, STATUS_INVALID_ARGUMENT); /* none */
    ask(&request, "", "z");
    from_token(&request, "", "z", token);
    assert_refused(&request, STATUS_INVALID_ARGUMENT); /* its partition is not what it says */
    ask(&request, "", "z");
    from_token(&request, "", "", token);
    assert_refused(&request, STATUS_INVALID_ARGUMENT); /* nor the request's */
    ask(&request, "", "");
    from_token(&request, "", "", token);
    from_token(&request, "", "", token);
    assert_refused(&request, STATUS_INVALID_ARGUMENT); /* twice */
    token[3]++;
    ask(&request, "", "");
    from_token(&request, "", "", token);
    assert_refused(&request, STATUS_INVALID_ARGUMENT);
    token[3]--;
    stream.facts.life++;
    assert_refused(&request, STATUS_INVALID_ARGUMENT); /* an earlier life */
}

static void test_a_table_without_a_stream_and_a_profile_that_may_not(void **state)
{
    (void)state;
    struct request request;
    put_ten();
    ask(&request, "", "");
    client.profile_fails = STATUS_NOT_FOUND;
    assert_refused(&request, STATUS_NOT_FOUND);
    client.profile_fails = STATUS_OK;
    stream.facts.retention_us = 0;
    assert_refused(&request, STATUS_FAILED_PRECONDITION);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, client_setup, client_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_kind_of_mutation_is_told_in_its_order),
        TEST(test_every_change_can_be_gone_on_from),
        TEST(test_only_the_partition_is_told),
        TEST(test_watermarks_wait_for_dropped_rows),
        TEST(test_who_begins_after_a_drop_is_not_told_of_it),
        TEST(test_a_large_change_comes_whole_and_alone),
        TEST(test_a_client_that_does_not_read_is_not_sent_more),
        TEST(test_a_stream_does_not_end_within_a_change),
        TEST(test_a_piece_is_read_once_for_a_client_that_keeps_up),
        TEST(test_a_piece_that_is_gone_ends_the_call),
        TEST(test_heartbeats_come_while_nothing_does),
        TEST(test_a_change_wakes_its_readers),
        TEST(test_no_change_is_slept_through),
        TEST(test_a_pool_that_is_full_is_asked_again),
        TEST(test_a_timer_that_cannot_be_set_ends_the_call),
        TEST(test_a_call_that_is_being_woken_ends_after_that),
        TEST(test_a_call_may_end_while_it_reads_and_while_its_client_does_not),
        TEST(test_a_server_that_stops_does_not_wait_for_readers),
        TEST(test_a_reader_who_may_not_any_more_is_ended),
        TEST(test_a_reader_of_nothing_is_asked_again_whether_he_may),
        TEST(test_both_ends_are_kept_to_the_microsecond),
        TEST(test_an_end_to_come_closes_by_itself),
        TEST(test_a_range_that_is_no_partition_closes_with_those_there_are),
        TEST(test_a_merge_carries_every_reader_s_place),
        TEST(test_a_stream_that_is_switched_off_ends_its_readers),
        TEST(test_what_is_not_kept_any_more_is_refused),
        TEST(test_partitions_of_another_form_are_refused),
        TEST(test_times_are_checked),
        TEST(test_a_reader_begins_with_the_stream_by_its_own_clock),
        TEST(test_a_start_before_what_is_left_is_refused),
        TEST(test_tokens_are_checked),
        TEST(test_a_table_without_a_stream_and_a_profile_that_may_not),
    };
    return cmocka_run_group_tests(tests, client_make_large_value, client_free_large_value);
}
