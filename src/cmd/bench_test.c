#include "base/testing.h"
#include "cmd/bench.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "wire/proto.h"

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

static void every_name_is_a_workload(void **state)
{
    (void)state;
    const char *end;
    for (const char *name = bench_mix_names; *name != '\0'; name = *end == ',' ? end + 1 : end) {
        end = strchrnul(name, ',');
        assert_non_null(bench_mix_find(bytes_make(name, (size_t)(end - name))));
    }
    assert_null(bench_mix_find(bytes_of("none")));
    assert_null(bench_mix_find(bytes_of("")));
}

/* Loading asks for every row once, the last request for what is left. */
static void load_covers_all_rows(void **state)
{
    (void)state;
    const char *const arguments[] = {"--rows", "25", "--batch", "10", "--cells", "3", NULL};
    struct bench_options options = options_of(arguments);
    struct bench_context context;
    assert_ok(bench_context_create(&options, &context));
    const struct bench_workload *load = bench_mix_find(bytes_of("load"))->parts[0];
    const uint64_t expected[] = {10, 10, 5};
    for (uint64_t i = 0; i < 3; i++) {
        struct arena *arena = arena_create(1 << 20);
        struct buffer message = {0};
        struct bench_answer answer = {0};
        assert_ok(load->request(&context, i, arena, &message, &answer));
        assert_int_equal(answer.rows, expected[i]);
        ProtobufCMessage *decoded;
        assert_ok(proto_decode(&bt__mutate_rows_request__descriptor, buffer_bytes(&message), arena,
                               &decoded));
        const Bt__MutateRowsRequest *request = (const Bt__MutateRowsRequest *)(void *)decoded;
        assert_int_equal(request->n_entries, expected[i]);
        assert_int_equal(request->entries[0]->n_mutations, 3);
        buffer_free(&message);
        arena_destroy(arena);
    }
    bench_context_free(&context);
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
    };
    return cmocka_run_group_tests_name("cmd_bench", tests, NULL, NULL);
}
