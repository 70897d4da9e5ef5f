#include "base/testing/testing.h"
#include "cmd/bench/bench.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "wire/proto.h"

#include <unistd.h>

static void keys_are_as_long_as_they_say(void **state)
{
    (void)state;
    uint8_t key[BENCH_KEY_SIZE];
    bench_key_format(0, key);
    assert_memory_equal(key, "user00000000000000000000", BENCH_KEY_SIZE);
    bench_key_format(UINT64_MAX, key);
    assert_memory_equal(key, "user18446744073709551615", BENCH_KEY_SIZE);
}

static void keys_all_differ(void **state)
{
    (void)state;
    struct bench_keys keys;
    assert_ok(bench_keys_create(10000, &keys));
    for (uint64_t i = 1; i < keys.count; i++)
        assert_true(keys.sorted[i - 1] < keys.sorted[i]);
    bench_keys_free(&keys);
}

static struct bench_options options_of(const char *const *arguments)
{
    struct bench_options options;
    assert_ok(bench_options_read(arguments, &options));
    return options;
}

static void options_have_defaults(void **state)
{
    (void)state;
    const char *const none[] = {NULL};
    struct bench_options options = options_of(none);
    assert_int_equal(options.rows, 100000);
    assert_int_equal(options.duration, 10 * 1000 * 1000);
    assert_string_equal(options.workloads, bench_mix_names);
    assert_non_null(options.endpoint);
}

static void impossible_options_are_refused(void **state)
{
    (void)state;
    const char *const no_rows[] = {"--rows", "0", NULL};
    struct bench_options options;
    assert_status(bench_options_read(no_rows, &options), STATUS_INVALID_ARGUMENT);
}

static void assert_workloads(const char *names)
{
    const char *end;
    for (const char *name = names; *name != '\0'; name = *end == ',' ? end + 1 : end) {
        end = strchrnul(name, ',');
        assert_non_null(bench_mix_find(bytes_make(name, (size_t)(end - name))));
    }
}

static void every_name_is_a_workload(void **state)
{
    (void)state;
    assert_workloads(bench_mix_names);
    assert_workloads(bench_stream_names);
    assert_workloads(bench_datastore_names);
    assert_null(bench_mix_find(bytes_of("none")));
    assert_null(bench_mix_find(bytes_of("")));
}

/* --- requests --- */

struct request {
    struct arena *arena;
    struct bench_answer answer;
    struct buffer bytes;
    const ProtobufCMessage *message; /* in the arena and in the bytes */
};

static const struct bench_workload *workload_of(const char *name)
{
    return bench_mix_find(bytes_of(name))->parts[0];
}

/* Its request `number`, read back. */
static struct request request_of(const char *name, struct bench_context *context, uint64_t number,
                                 const ProtobufCMessageDescriptor *type)
{
    struct request made = {.arena = arena_create(1 << 20)};
    ProtobufCMessage *decoded;
    assert_ok(workload_of(name)->request(context, number, made.arena, &made.bytes, &made.answer));
    assert_ok(proto_decode(type, buffer_bytes(&made.bytes), made.arena, &decoded));
    made.message = decoded;
    return made;
}

static void free_request(struct request *request)
{
    buffer_free(&request->bytes);
    arena_destroy(request->arena);
}

/* Loading asks for every row once, the last request for what is left. */
static void load_covers_all_rows(void **state)
{
    (void)state;
    const char *const arguments[] = {"--rows", "25", "--batch", "10", "--cells", "3", NULL};
    struct bench_options options = options_of(arguments);
    struct bench_context context;
    assert_ok(bench_context_create(&options, &context));
    const uint64_t expected[] = {10, 10, 5};
    for (uint64_t i = 0; i < 3; i++) {
        struct request made = request_of("load", &context, i, &bt__mutate_rows_request__descriptor);
        const Bt__MutateRowsRequest *request = (const void *)made.message;
        assert_int_equal(made.answer.rows, expected[i]);
        assert_int_equal(request->n_entries, expected[i]);
        assert_int_equal(request->entries[0]->n_mutations, 3);
        free_request(&made);
    }
    bench_context_free(&context);
}

/* The place of a row among all by its key; fails if there is no such row. */
static size_t rank_of(const struct bench_keys *keys, ProtobufCBinaryData found)
{
    uint8_t key[BENCH_KEY_SIZE];
    assert_int_equal(found.len, BENCH_KEY_SIZE);
    for (size_t i = 0; i < keys->count; i++) {
        bench_key_format(keys->sorted[i], key);
        if (memcmp(key, found.data, BENCH_KEY_SIZE) == 0)
            return i;
    }
    fail();
    return 0;
}

/* Rows are covered equally also where a batch goes over their end. */
static void overwrite_covers_all_rows_equally_often(void **state)
{
    (void)state;
    enum { ROWS = 25, BATCH = 10, OVERWRITES = 3, REQUESTS = 8 };
    const char *const arguments[] = {"--rows", "25", "--batch", "10", "--overwrites", "3", NULL};
    struct bench_options options = options_of(arguments);
    struct bench_context context;
    int written[ROWS] = {0};
    assert_ok(bench_context_create(&options, &context));
    assert_int_equal(bench_mix_find(bytes_of("overwrite"))->rows(&options), ROWS * OVERWRITES);
    for (uint64_t i = 0; i < REQUESTS; i++) {
        struct request made =
            request_of("overwrite", &context, i, &bt__mutate_rows_request__descriptor);
        const Bt__MutateRowsRequest *request = (const void *)made.message;
        assert_int_equal(made.answer.rows, i < REQUESTS - 1 ? BATCH : ROWS * OVERWRITES % BATCH);
        for (size_t j = 0; j < request->n_entries; j++)
            written[rank_of(&context.keys, request->entries[j]->row_key)]++;
        free_request(&made);
    }
    for (size_t row = 0; row < ROWS; row++)
        assert_int_equal(written[row], OVERWRITES);
    bench_context_free(&context);
}

/* A range holds as many rows as are asked for, whether an end or a limit says so. */
static void ranges_hold_the_rows_they_say(void **state)
{
    (void)state;
    enum { ROWS = 25, SCAN_ROWS = 7, REQUESTS = 100 };
    const char *const arguments[] = {"--rows", "25", "--scan-rows", "7", NULL};
    const char *const names[] = {"scan", "reverse", "limit"};
    struct bench_options options = options_of(arguments);
    struct bench_context context;
    assert_ok(bench_context_create(&options, &context));
    for (uint64_t i = 0; i < REQUESTS; i++) {
        const char *name = names[i % 3];
        struct request made = request_of(name, &context, i, &bt__read_rows_request__descriptor);
        const Bt__ReadRowsRequest *request = (const void *)made.message;
        const Bt__RowRange *range = request->rows->row_ranges[0];
        bool is_limit = strcmp(name, "limit") == 0;
        size_t first = rank_of(&context.keys, range->start_key_closed);
        assert_int_equal(made.answer.rows, SCAN_ROWS);
        assert_int_equal(request->reversed, strcmp(name, "reverse") == 0);
        assert_int_equal(request->rows_limit, is_limit ? SCAN_ROWS : 0);
        assert_true(first + SCAN_ROWS <= ROWS);
        if (!is_limit)
            assert_int_equal(rank_of(&context.keys, range->end_key_closed), first + SCAN_ROWS - 1);
        free_request(&made);
    }
    bench_context_free(&context);
}

/* --- processes --- */

static void a_process_is_looked_at(void **state)
{
    (void)state;
    struct bench_usage before = bench_usage_of((uint64_t)getpid());
    assert_true(before.cpu_us >= 0);
    while (bench_usage_of((uint64_t)getpid()).cpu_us == before.cpu_us)
        ; /* looking takes time, too */
    assert_true(before.written_bytes >= 0);
    assert_true(before.resident_bytes > 0);
    assert_true(before.peak_bytes >= before.resident_bytes);
}

static void an_unknown_process_is_not_made_up(void **state)
{
    (void)state;
    const uint64_t nobody[] = {0, 1 << 22}; /* the system numbers processes below that */
    for (size_t i = 0; i < 2; i++) {
        struct bench_usage usage = bench_usage_of(nobody[i]);
        assert_int_equal(usage.cpu_us, -1);
        assert_int_equal(usage.written_bytes, -1);
        assert_int_equal(usage.resident_bytes, -1);
        assert_int_equal(usage.peak_bytes, -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_as_long_as_they_say),
        cmocka_unit_test(keys_all_differ),
        cmocka_unit_test(options_have_defaults),
        cmocka_unit_test(impossible_options_are_refused),
        cmocka_unit_test(every_name_is_a_workload),
        cmocka_unit_test(load_covers_all_rows),
        cmocka_unit_test(overwrite_covers_all_rows_equally_often),
        cmocka_unit_test(ranges_hold_the_rows_they_say),
        cmocka_unit_test(a_process_is_looked_at),
        cmocka_unit_test(an_unknown_process_is_not_made_up),
    };
    return cmocka_run_group_tests_name("cmd_bench", tests, NULL, NULL);
}
