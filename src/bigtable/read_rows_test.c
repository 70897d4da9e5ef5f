/* ReadRows against a scan, a client, a loop and a pool that do what the test says. */
#include "bigtable/data_methods.h"
#include "bigtable/services.h"

#include "base/testing.h"
#include "cluster/rows.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "wire/proto.h"

#define TABLE_NAME "projects/p/instances/i/tables/t"

enum { ARENA_LIMIT = 64 << 20, MOST_STEPS = 16, MOST_KEYS = 64, KIB = 1024 };

/* --- what the scan finds --- */

struct step {
    enum row_outcome outcome;
    bool is_on_disk; /* first ROW_NOT_CACHED, if only memory may be looked at */
    const char *key;
    size_t cells; /* of value_size bytes each */
    size_t value_size;
};

struct scan {
    struct step steps[MOST_STEPS];
    size_t next;
    struct cell cells[MOST_STEPS];
    struct cell_list list;
    uint8_t *value;
    bool has_row; /* handed out, and still good */
    int pauses;
    bool is_destroyed;
};

/* --- the rest of the world --- */

struct grpc_call {
    struct arena *arena;
    const char *features;
    bool is_congested;
    size_t congests_after; /* messages; 0: never */
    bool is_cancelled;
    void *context;
    void (*on_writable)(void *context);
    void (*on_cancel)(void *context);
    /* what the client got */
    size_t messages;
    size_t largest;
    char keys[MOST_KEYS][8];
    size_t rows;
    size_t cells;
    size_t value_bytes;
    char last_scanned[8];
    Bt__RequestStats *stats;
    bool is_finished;
    enum status_code code;
    bool has_details;
};

static struct world {
    struct scan scan;
    struct grpc_call call;
    struct list loop;
    struct list pool;
    bool pool_is_full;
    int64_t now_us;
    int64_t tick_us; /* that each look at the clock takes */
    int tables_held;
    const struct key_range *ranges;
    size_t range_count;
} world;

static const struct family family = {.id = 1, .name = {(const uint8_t *)"f", 1}};
static const struct schema schema = {.families = &family, .family_count = 1};

static int64_t fake_now(struct clock *clock)
{
    (void)clock;
    return world.now_us += world.tick_us;
}

static struct clock fake_clock = {.wall_us = fake_now, .steady_us = fake_now};

void loop_post(struct loop *loop, struct task *task)
{
    (void)loop;
    list_append(&world.loop, &task->link);
}

bool pool_submit(struct pool *pool, struct task *task)
{
    (void)pool;
    if (!world.pool_is_full)
        list_append(&world.pool, &task->link);
    return !world.pool_is_full;
}

struct pool *cluster_pool(struct cluster *cluster)
{
    (void)cluster;
    return NULL;
}

struct clock *cluster_clock(struct cluster *cluster)
{
    (void)cluster;
    return &fake_clock;
}

status cluster_table(struct cluster *cluster, bytes name, struct table **out)
{
    (void)cluster;
    assert_true(bytes_equal(name, bytes_of(TABLE_NAME)));
    *out = (void *)&world;
    world.tables_held++;
    return status_ok();
}

void table_release(struct table *table)
{
    (void)table;
    world.tables_held--;
}

const char *table_name(const struct table *table)
{
    (void)table;
    return TABLE_NAME;
}

const struct schema *table_schema(const struct table *table)
{
    (void)table;
    return &schema;
}

status filter_compile(const struct Bt__RowFilter *message, struct arena *arena, struct filter **out)
{
    (void)message;
    (void)arena;
    *out = NULL;
    return status_ok();
}

void filter_destroy(struct filter *filter)
{
    assert_null(filter);
}

/* --- the scan --- */

status scan_create(const struct scan_spec *spec, struct scan **out)
{
    world.ranges = spec->ranges;
    world.range_count = spec->range_count;
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
    scan->pauses++;
}

bytes scan_last_scanned(const struct scan *scan)
{
    return bytes_of(scan->steps[scan->next - 1].key);
}

struct scan_counts scan_counts(const struct scan *scan)
{
    (void)scan;
    return (struct scan_counts){.rows_seen = 100, .cells_seen = 200};
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
        scan->cells[i] = (struct cell){.family = &family,
                                       .timestamp_us = (int64_t)(100 - i) * 1000,
                                       .value = bytes_make(scan->value, step->value_size)};
    row->cells = &scan->list;
    scan->has_row = step->outcome == ROW_FOUND;
    return status_ok();
}

/* --- the call --- */

struct arena *grpc_call_arena(struct grpc_call *call)
{
    return call->arena;
}

struct loop *grpc_call_loop(struct grpc_call *call)
{
    (void)call;
    return NULL;
}

bool grpc_call_header(struct grpc_call *call, const char *name, bytes *value)
{
    assert_string_equal(name, "bigtable-features");
    if (call->features != NULL)
        *value = bytes_of(call->features);
    return call->features != NULL;
}

bool grpc_call_is_cancelled(const struct grpc_call *call)
{
    return call->is_cancelled;
}

bool grpc_call_is_congested(struct grpc_call *call)
{
    return call->is_congested;
}

void grpc_call_add_header(struct grpc_call *call, const char *name, bytes value)
{
    assert_int_equal(call->messages, 0);
    assert_non_null(name);
    assert_true(value.size > 0);
}

void grpc_call_set_callbacks(struct grpc_call *call, void *context,
                             void (*on_writable)(void *context), void (*on_cancel)(void *context))
{
    call->context = context;
    call->on_writable = on_writable;
    call->on_cancel = on_cancel;
}

void grpc_message_start(struct buffer *message)
{
    static const uint8_t prefix[GRPC_PREFIX_SIZE];
    buffer_clear(message);
    buffer_append(message, prefix, sizeof prefix);
}

static void take_chunk(struct grpc_call *call, const Bt__ReadRowsResponse__CellChunk *chunk)
{
    if (chunk->row_key.len > 0) {
        assert_true(call->rows < MOST_KEYS);
        memcpy(call->keys[call->rows], chunk->row_key.data, chunk->row_key.len);
    }
    call->value_bytes += chunk->value.len;
    if (chunk->value_size == 0)
        call->cells++;
    if (chunk->commit_row)
        call->rows++;
}

void grpc_call_send(struct grpc_call *call, struct buffer *message)
{
    assert_false(call->is_finished || message->failed);
    ProtobufCMessage *decoded;
    bytes wire = bytes_from(buffer_bytes(message), GRPC_PREFIX_SIZE);
    bytes copy = arena_copy(call->arena, wire);
    assert_ok(proto_decode(&bt__read_rows_response__descriptor, copy, call->arena, &decoded));
    const Bt__ReadRowsResponse *response = (const void *)decoded;
    call->messages++;
    call->largest = wire.size > call->largest ? wire.size : call->largest;
    for (size_t i = 0; i < response->n_chunks; i++)
        take_chunk(call, response->chunks[i]);
    if (response->last_scanned_row_key.len > 0) {
        assert_int_equal(response->n_chunks, 0);
        memcpy(call->last_scanned, response->last_scanned_row_key.data,
               response->last_scanned_row_key.len);
    }
    call->stats = response->request_stats;
    call->is_congested = call->congests_after > 0 && call->messages >= call->congests_after;
    buffer_free(message);
}

void grpc_call_finish(struct grpc_call *call, status s)
{
    assert_false(call->is_finished);
    call->is_finished = true;
    call->code = s.code;
    call->has_details = status_details(s).size > 0;
    status_free(s);
}

/* --- driving it --- */

static int setup(void **state)
{
    world = (struct world){.tick_us = 1};
    world.call.arena = arena_create(ARENA_LIMIT);
    world.scan.value = calloc(1, 4 * KIB * KIB);
    *state = &world;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(world.tables_held, 0);
    arena_destroy(world.call.arena);
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
    static struct bigtable bigtable;
    struct buffer wire = {0};
    request->table_name = TABLE_NAME;
    proto_encode(&request->base, &wire);
    bytes copy = arena_copy(world.call.arena, buffer_bytes(&wire));
    buffer_free(&wire);
    read_rows(&bigtable, &world.call, copy);
}

static bool run_one(struct list *tasks)
{
    struct link *link = list_take(tasks);
    if (link == NULL)
        return false;
    struct task *task = LIST_ENTRY(link, struct task, link);
    task->run(task);
    return true;
}

/* Until nobody has anything to do. */
static void run(void)
{
    for (int turns = 0; run_one(&world.loop) || run_one(&world.pool); turns++)
        assert_true(turns < 1000);
}

static void read_all(void)
{
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    begin(&request);
    run();
}

static void assert_finished(enum status_code code)
{
    assert_true(world.call.is_finished);
    assert_int_equal(world.call.code, code);
    assert_true(world.scan.is_destroyed);
    assert_true(list_is_empty(&world.loop) && list_is_empty(&world.pool));
}

/* --- tests --- */

static void rows_share_a_message(void **state)
{
    (void)state;
    STEPS(found("a"), found("b"), found("c"));
    read_all();
    assert_finished(STATUS_OK);
    assert_int_equal(world.call.rows, 3);
    assert_string_equal(world.call.keys[2], "c");
    assert_int_equal(world.call.messages, 1);
    assert_int_equal(world.range_count, 1);
}

static void nothing_found_is_no_message(void **state)
{
    (void)state;
    STEPS({.outcome = ROW_ABSENT, .key = "x"});
    read_all();
    assert_finished(STATUS_OK);
    assert_int_equal(world.call.messages, 0);
}

static void the_disk_is_read_on_the_pool(void **state)
{
    (void)state;
    struct step on_disk = found("b");
    on_disk.is_on_disk = true;
    STEPS(found("a"), on_disk, found("c"));
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    begin(&request);
    assert_int_equal(world.call.rows, 1); /* what was there is not held back */
    assert_true(list_is_empty(&world.loop));
    assert_false(list_is_empty(&world.pool));
    run();
    assert_finished(STATUS_OK);
    assert_int_equal(world.call.rows, 3);
}

static void a_full_pool_ends_the_call(void **state)
{
    (void)state;
    struct step on_disk = found("a");
    on_disk.is_on_disk = true;
    STEPS(on_disk);
    world.pool_is_full = true;
    read_all();
    assert_finished(STATUS_RESOURCE_EXHAUSTED);
}

static void a_slice_ends_when_its_time_is_over(void **state)
{
    (void)state;
    STEPS(found("a"), found("b"), found("c"));
    world.tick_us = 10 * 1000 * 1000;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    begin(&request);
    assert_int_equal(world.call.rows, 1);
    assert_false(list_is_empty(&world.loop));
    run();
    assert_finished(STATUS_OK);
    assert_int_equal(world.call.rows, 3);
    assert_int_equal(world.call.messages, 3);
}

static void a_slow_client_pauses_the_scan(void **state)
{
    (void)state;
    struct step large = found("a");
    large.value_size = 100 * KIB;
    struct step second = large;
    second.key = "b";
    STEPS(large, second);
    world.call.congests_after = 1;
    read_all();
    assert_false(world.call.is_finished);
    assert_int_equal(world.call.messages, 1);
    assert_int_equal(world.scan.pauses, 1);
    run();
    assert_int_equal(world.call.messages, 1);

    world.call.congests_after = 0;
    world.call.is_congested = false;
    world.call.on_writable(world.call.context);
    run();
    assert_finished(STATUS_OK);
    assert_int_equal(world.call.rows, 2);
}

/* The cells are still needed, so the scan may not let go of them. */
static void a_slow_client_within_a_row_keeps_the_row(void **state)
{
    (void)state;
    struct step large = found("a");
    large.cells = 10;
    large.value_size = 3 * KIB * KIB;
    STEPS(large);
    world.call.congests_after = 1;
    read_all();
    assert_false(world.call.is_finished);
    assert_int_equal(world.scan.pauses, 0);
    assert_true(world.scan.has_row);
    for (int i = 0; !world.call.is_finished; i++) {
        assert_true(i < 100);
        world.call.is_congested = false;
        world.call.on_writable(world.call.context);
        run();
    }
    assert_finished(STATUS_OK);
    assert_int_equal(world.call.cells, 10);
    assert_int_equal(world.call.value_bytes, 10 * large.value_size);
    assert_true(world.call.largest < 2 * KIB * KIB);
}

static void cancelling_ends_a_call_that_waits(void **state)
{
    (void)state;
    struct step large = found("a");
    large.value_size = 100 * KIB;
    STEPS(large, found("b"));
    world.call.congests_after = 1;
    read_all();
    assert_false(world.call.is_finished);
    world.call.is_cancelled = true;
    world.call.on_cancel(world.call.context);
    run();
    assert_finished(STATUS_CANCELLED);
}

static void cancelling_ends_a_call_at_its_next_row(void **state)
{
    (void)state;
    STEPS(found("a"), found("b"));
    world.tick_us = 10 * 1000 * 1000;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    begin(&request);
    world.call.is_cancelled = true;
    world.call.on_cancel(world.call.context);
    run();
    assert_finished(STATUS_CANCELLED);
    assert_int_equal(world.call.rows, 1);
}

static void a_limit_stops_the_scan(void **state)
{
    (void)state;
    STEPS(found("a"), found("b"), found("c"));
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    request.rows_limit = 2;
    begin(&request);
    run();
    assert_finished(STATUS_OK);
    assert_int_equal(world.call.rows, 2);
    assert_int_equal(world.scan.next, 2);
}

static void statistics_come_last(void **state)
{
    (void)state;
    STEPS(found("a"), found("b"));
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    request.request_stats_view = BT__READ_ROWS_REQUEST__REQUEST_STATS_VIEW__REQUEST_STATS_FULL;
    begin(&request);
    run();
    assert_finished(STATUS_OK);
    assert_non_null(world.call.stats);
    const Bt__FullReadStatsView *full = world.call.stats->full_read_stats_view;
    assert_int_equal(full->read_iteration_stats->rows_returned_count, 2);
    assert_int_equal(full->read_iteration_stats->cells_returned_count, 2);
    assert_int_equal(full->read_iteration_stats->rows_seen_count, 100);
    assert_int_equal(full->read_iteration_stats->cells_seen_count, 200);
}

static void statistics_come_even_if_no_row_does(void **state)
{
    (void)state;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    request.request_stats_view = BT__READ_ROWS_REQUEST__REQUEST_STATS_VIEW__REQUEST_STATS_FULL;
    STEPS({.outcome = ROW_END});
    begin(&request);
    run();
    assert_finished(STATUS_OK);
    assert_int_equal(world.call.messages, 1);
    assert_non_null(world.call.stats);
}

static void progress_is_told_only_to_who_understands_it(void **state)
{
    (void)state;
    STEPS(found("a"), {.outcome = ROW_ABSENT, .key = "m"}, found("z"));
    read_all();
    assert_string_equal(world.call.last_scanned, "");
    assert_int_equal(world.call.rows, 2);
}

static void progress_is_told_in_a_message_of_its_own(void **state)
{
    (void)state;
    STEPS(found("a"), {.outcome = ROW_ABSENT, .key = "m"}, found("z"));
    world.call.features = "IAE="; /* last_scanned_row_responses */
    read_all();
    assert_finished(STATUS_OK);
    assert_string_equal(world.call.last_scanned, "m");
    assert_int_equal(world.call.rows, 2);
    assert_int_equal(world.call.messages, 3);
}

static void a_row_too_large_fails_after_those_before_it(void **state)
{
    (void)state;
    STEPS(found("a"), {.outcome = ROW_TOO_LARGE, .key = "huge"}, found("z"));
    read_all();
    assert_finished(STATUS_FAILED_PRECONDITION);
    assert_int_equal(world.call.rows, 1);
    assert_true(world.call.has_details);
}

static void refuse(Bt__ReadRowsRequest *request, enum status_code code)
{
    begin(request);
    assert_true(world.call.is_finished);
    assert_int_equal(world.call.code, code);
    assert_int_equal(world.call.messages, 0);
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
        world.scan.is_destroyed = world.call.is_finished = false;
        world.call.messages = 0;
        world.call.features = both[i];
        request.reversed = true;
        begin(&request);
        run();
        assert_finished(STATUS_OK);
    }
}

static void features_that_are_garbage_flag_nothing(void **state)
{
    (void)state;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    world.call.features = "!!!";
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

static void views_are_refused(void **state)
{
    (void)state;
    Bt__ReadRowsRequest request = BT__READ_ROWS_REQUEST__INIT;
    request.authorized_view_name = TABLE_NAME "/authorizedViews/v";
    refuse(&request, STATUS_UNIMPLEMENTED);
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
        TEST(a_slow_client_within_a_row_keeps_the_row),
        TEST(cancelling_ends_a_call_that_waits),
        TEST(cancelling_ends_a_call_at_its_next_row),
        TEST(a_limit_stops_the_scan),
        TEST(statistics_come_last),
        TEST(statistics_come_even_if_no_row_does),
        TEST(progress_is_told_only_to_who_understands_it),
        TEST(progress_is_told_in_a_message_of_its_own),
        TEST(a_row_too_large_fails_after_those_before_it),
        TEST(reverse_scans_need_the_feature),
        TEST(features_come_padded_or_not),
        TEST(features_that_are_garbage_flag_nothing),
        TEST(a_negative_limit_is_refused),
        TEST(views_are_refused),
    };
    return cmocka_run_group_tests_name("read_rows", tests, NULL, NULL);
}
