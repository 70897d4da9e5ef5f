/* ReadRows against a scan, a client, a loop and a pool that do what the test says. */
#include "bigtable/data_methods.h"
#include "bigtable/data_testing.h"
#include "google/bigtable/v2/bigtable.pb-c.h"

enum { MOST_STEPS = 16, MOST_KEYS = 64, KIB = 1024, ROWS_SEEN = 100, CELLS_SEEN = 10 };

/* --- what the scan finds --- */

struct step {
    enum row_outcome outcome;
    bool is_on_disk; /* first ROW_NOT_CACHED, if only memory may be looked at */
    const char *key;
    size_t cells; /* of value_size bytes each */
    size_t value_size;
    bool is_deferred; /* the values */
    bool values_are_on_disk;
    size_t fails_at_load; /* 0: never */
};

struct scan {
    struct step steps[MOST_STEPS];
    size_t next;
    struct cell cells[MOST_STEPS];
    struct cell_list list;
    uint8_t *value;
    bool has_row; /* handed out, and still good */
    size_t loads; /* of values that were deferred */
    size_t misses;
    bool is_value_held;
    int pauses;
    bool is_destroyed;
};

/* --- what the client gets --- */

static struct world {
    struct scan scan;
    size_t range_count;
    bool is_restricted;
    char keys[MOST_KEYS][8];
    size_t rows;
    size_t cells;
    size_t value_bytes;
    char last_scanned[8];
    const Bt__RequestStats *stats; /* of the last message */
    int cut_rows;                  /* messages that end within a row */
} world;

static const struct family family = {.id = 1, .name = {(const uint8_t *)"f", 1}};
static const struct schema schema = {.families = &family, .family_count = 1};

static void take_chunk(const Bt__ReadRowsResponse__CellChunk *chunk)
{
    if (chunk->row_key.len > 0) {
        assert_true(world.rows < MOST_KEYS);
        memcpy(world.keys[world.rows], chunk->row_key.data, chunk->row_key.len);
    }
    world.value_bytes += chunk->value.len;
    if (chunk->value_size == 0)
        world.cells++;
    if (chunk->commit_row)
        world.rows++;
}

static void receive(struct grpc_call *call, bytes wire)
{
    ProtobufCMessage *message;
    assert_ok(proto_decode(&bt__read_rows_response__descriptor, wire, call->arena, &message));
    const Bt__ReadRowsResponse *response = (const void *)message;
    for (size_t i = 0; i < response->n_chunks; i++)
        take_chunk(response->chunks[i]);
    if (response->n_chunks > 0)
        world.cut_rows += !response->chunks[response->n_chunks - 1]->commit_row;
    if (response->last_scanned_row_key.len > 0) {
        assert_int_equal(response->n_chunks, 0);
        memcpy(world.last_scanned, response->last_scanned_row_key.data,
               response->last_scanned_row_key.len);
    }
    world.stats = response->request_stats;
}

status filter_compile(const struct Bt__RowFilter *message, struct arena *arena, struct filter **out)
{
    (void)message;
    (void)arena;
    *out = NULL;
    return status_ok();
}

bool filter_names_only(const struct filter *filter, bool (*has)(void *context, bytes family),
                       void *context)
{
    (void)has;
    (void)context;
    assert_null(filter);
    return true;
}

void filter_destroy(struct filter *filter)
{
    assert_null(filter);
}

/* --- the scan --- */

status scan_create(const struct scan_spec *spec, struct scan **out)
{
    world.range_count = spec->range_count;
    world.is_restricted = spec->columns != NULL;
    *out = &world.scan;
    return status_ok();
}

void scan_destroy(struct scan *scan)
{
    assert_false(scan->is_destroyed);
    scan->is_destroyed = true;
}

void scan_pause(struct scan *scan)
{
    scan->has_row = false;
    scan->is_value_held = false;
    scan->pauses++;
}

bytes scan_last_scanned(const struct scan *scan)
{
    return bytes_of(scan->steps[scan->next - 1].key);
}

struct scan_counts scan_counts(const struct scan *scan)
{
    (void)scan;
    return (struct scan_counts){.rows_seen = ROWS_SEEN, .cells_seen = CELLS_SEEN};
}

status scan_next(struct scan *scan, enum store_reach reach, struct scan_row *row,
                 enum row_outcome *outcome)
{
    struct step *step = &scan->steps[scan->next];
    if (step->is_on_disk && reach == STORE_CACHED_ONLY) {
        *outcome = ROW_NOT_CACHED;
        return status_ok();
    }
    *outcome = step->outcome;
    if (step->outcome != ROW_END)
        scan->next++;
    row->key = bytes_of(step->key == NULL ? "" : step->key);
    scan->list = (struct cell_list){.items = scan->cells, .count = step->cells};
    for (size_t i = 0; i < step->cells; i++)
        scan->cells[i] = (struct cell){
            .family = &family,
            .timestamp_us = (int64_t)(100 - i) * 1000,
            .value = bytes_make(step->is_deferred ? NULL : scan->value, step->value_size)};
    row->cells = &scan->list;
    row->has_deferred = step->is_deferred;
    scan->has_row = step->outcome == ROW_FOUND;
    return status_ok();
}

status scan_load_value(struct scan *scan, const struct cell *cell, enum store_reach reach,
                       bytes *value, enum row_outcome *outcome)
{
    const struct step *step = &scan->steps[scan->next - 1];
    assert_true(scan->has_row);
    assert_true(cell_is_deferred(cell));
    bool is_missed = step->values_are_on_disk && reach == STORE_CACHED_ONLY;
    *outcome = is_missed ? ROW_NOT_CACHED : ROW_FOUND;
    if (scan->loads == step->fails_at_load && step->fails_at_load > 0)
        return status_make(STATUS_ABORTED, "the cell was collected");
    scan->loads += !is_missed;
    scan->misses += is_missed;
    scan->is_value_held = !is_missed;
    *value = bytes_make(scan->value, cell->value.size);
    return status_ok();
}

void scan_release_value(struct scan *scan)
{
    scan->is_value_held = false;
}

/* --- driving it --- */

static int setup(void **state)
{
    fake_reset(&schema);
    fake.call.receive = receive;
    world = (struct world){.range_count = 0};
    world.scan.value = calloc(1, 4 * KIB * KIB);
    *state = &world;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fake_free();
    free(world.scan.value);
    return 0;
}

static void set_steps(const struct step *steps, size_t count)
{
    assert_true(count < MOST_STEPS);
    memcpy(world.scan.steps, steps, count * sizeof *steps);
    world.scan.steps[count] = (struct step){.outcome = ROW_END};
}
#define STEPS(...)                                                                                 \
    set_steps((const struct step[]){__VA_ARGS__},                                                  \
              sizeof((const struct step[]){__VA_ARGS__}) / sizeof(struct step))

static struct step found(const char *key)
{
    return (struct step){.outcome = ROW_FOUND, .key = key, .cells = 1, .value_size = 10};
}

static void begin(Bt__ReadRowsRequest *request)
{
    request->table_name = TABLE_NAME;
    fake_call(read_rows, &request->base);
}

static void read_all(void)
{
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    begin(&request);
    fake_run();
}

static void assert_finished(enum status_code code)
{
    assert_true(fake.call.is_finished);
    assert_int_equal(fake.call.code, code);
    assert_true(world.scan.is_destroyed);
}

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

static struct step large_deferred(const char *key)
{
    return (struct step){.outcome = ROW_FOUND,
                         .key = key,
                         .cells = 10,
                         .value_size = 1000 * KIB,
                         .is_deferred = true};
}

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

/* What a filter leaves of a large row may be small. */
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

/* But for a value of which it has a part: it would be read anew for each piece. */
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

static void progress_is_told_only_to_who_understands_it(void **state)
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

static void materialized_views_are_refused(void **state)
{
    (void)state;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    request.materialized_view_name = "projects/p/instances/i/materializedViews/v";
    fake_call(read_rows, &request.base);
    assert_int_equal(fake.call.code, STATUS_UNIMPLEMENTED);
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

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_share_a_message),
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
        TEST(progress_is_told_only_to_who_understands_it),
        TEST(progress_is_told_in_a_message_of_its_own),
        TEST(progress_that_is_none_is_not_told),
        TEST(a_row_too_large_fails_after_those_before_it),
        TEST(reverse_scans_need_the_feature),
        TEST(features_come_padded_or_not),
        TEST(features_that_are_garbage_flag_nothing),
        TEST(a_negative_limit_is_refused),
        TEST(materialized_views_are_refused),
        TEST(a_table_and_a_view_are_refused),
        TEST(no_table_and_no_view_are_refused),
        TEST(a_view_that_is_not_there_is_refused),
        TEST(a_view_is_made_once_and_given_back),
    };
    return cmocka_run_group_tests_name("read_rows", tests, NULL, NULL);
}
