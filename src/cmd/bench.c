#include "cmd/bench_parts.h"
#include "cmd/command.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"
#include "wire/grpc.h"
#include "wire/proto.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    US_PER_S = 1000000,
    SETUP_ARENA_LIMIT = 1 << 20,
};

/* --- the table --- */

static status delete_table(struct bench_client *client, const char *name)
{
    BtAdmin__DeleteTableRequest request = BT_ADMIN__DELETE_TABLE_REQUEST__INIT;
    request.name = name;
    struct buffer message = {0};
    grpc_message_start(&message);
    proto_encode(&request.base, &message);
    status s = bench_call(client, BENCH_ADMIN "DeleteTable", &message);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_ok();
}

/* Keys that cut the space of all keys into equal parts. */
static status make_splits(uint64_t tablets, struct arena *arena,
                          BtAdmin__CreateTableRequest *request)
{
    request->n_initial_splits = tablets - 1;
    request->initial_splits = arena_alloc(arena, tablets * sizeof *request->initial_splits);
    if (request->initial_splits == NULL)
        return status_out_of_memory();
    for (uint64_t i = 1; i < tablets; i++) {
        BtAdmin__CreateTableRequest__Split *split;
        PROTO_NEW(arena, split, BT_ADMIN__CREATE_TABLE_REQUEST__SPLIT__INIT);
        uint8_t *key = arena_alloc(arena, BENCH_KEY_SIZE);
        if (key == NULL)
            return status_out_of_memory();
        bench_key_format(UINT64_MAX / tablets * i, key);
        split->key = proto_data(bytes_make(key, BENCH_KEY_SIZE));
        request->initial_splits[i - 1] = split;
    }
    return status_ok();
}

/* "…/instances/i" and "t" of "…/instances/i/tables/t". */
static status split_name(const char *name, struct arena *arena,
                         BtAdmin__CreateTableRequest *request)
{
    static const char separator[] = "/tables/";
    const char *found = strstr(name, separator);
    if (found == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "--table: %s is no table's full name", name);
    request->parent = arena_string(arena, bytes_make(name, (size_t)(found - name)));
    request->table_id = found + sizeof separator - 1;
    return request->parent == NULL ? status_out_of_memory() : status_ok();
}

static status encode_create_table(const struct bench_options *options, struct arena *arena,
                                  struct buffer *message)
{
    BtAdmin__CreateTableRequest request = BT_ADMIN__CREATE_TABLE_REQUEST__INIT;
    TRY(split_name(options->table, arena, &request));
    TRY(make_splits(options->tablets, arena, &request));
    BtAdmin__ColumnFamily family = BT_ADMIN__COLUMN_FAMILY__INIT;
    BtAdmin__Table__ColumnFamiliesEntry entry = BT_ADMIN__TABLE__COLUMN_FAMILIES_ENTRY__INIT;
    entry.key = BENCH_FAMILY;
    entry.value = &family;
    BtAdmin__Table__ColumnFamiliesEntry *entries[] = {&entry};
    BtAdmin__Table table = BT_ADMIN__TABLE__INIT;
    table.n_column_families = 1;
    table.column_families = entries;
    request.table = &table;
    proto_encode(&request.base, message);
    return status_ok();
}

static status create_table(struct bench_client *client, const struct bench_options *options)
{
    struct arena *arena = arena_create(SETUP_ARENA_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    struct buffer message = {0};
    grpc_message_start(&message);
    status s = encode_create_table(options, arena, &message);
    if (status_is_ok(s))
        s = bench_call(client, BENCH_ADMIN "CreateTable", &message);
    buffer_free(&message);
    arena_destroy(arena);
    return s;
}

static status make_table(struct bench_client *client, const struct bench_options *options)
{
    TRY(delete_table(client, options->table));
    return create_table(client, options);
}

/* --- what is printed --- */

static double per_second(uint64_t count, int64_t us)
{
    return us > 0 ? (double)count * US_PER_S / (double)us : 0;
}

static void print_head(void)
{
    printf("%-8s %10s %8s %8s %12s %9s %9s %9s %9s %12s\n", "workload", "requests", "errors",
           "seconds", "requests/s", "p50 us", "p99 us", "p99.9 us", "max us", "req/CPU s");
}

static void print_line(const char *name, const struct bench_result *result)
{
    const struct histogram *latencies = &result->latencies;
    printf("%-8s %10llu %8llu %8.2f %12.0f %9llu %9llu %9llu %9llu", name,
           (unsigned long long)result->requests, (unsigned long long)result->errors,
           (double)result->duration_us / US_PER_S,
           per_second(result->requests, result->duration_us),
           (unsigned long long)histogram_percentile(latencies, 50),
           (unsigned long long)histogram_percentile(latencies, 99),
           (unsigned long long)histogram_percentile(latencies, 99.9),
           (unsigned long long)histogram_percentile(latencies, 100));
    if (result->server_cpu_us >= 0)
        printf(" %12.0f\n", per_second(result->requests, result->server_cpu_us));
    else
        printf(" %12s\n", "-");
}

static void print_json(const char *name, const struct bench_result *result)
{
    const struct histogram *latencies = &result->latencies;
    printf("{\"workload\": \"%s\", \"requests\": %llu, \"rows\": %llu, \"errors\": %llu, "
           "\"seconds\": %.6f, \"server_cpu_seconds\": %.6f, \"p50_us\": %llu, \"p90_us\": %llu, "
           "\"p99_us\": %llu, \"p999_us\": %llu, \"max_us\": %llu}\n",
           name, (unsigned long long)result->requests, (unsigned long long)result->rows,
           (unsigned long long)result->errors, (double)result->duration_us / US_PER_S,
           (double)result->server_cpu_us / US_PER_S,
           (unsigned long long)histogram_percentile(latencies, 50),
           (unsigned long long)histogram_percentile(latencies, 90),
           (unsigned long long)histogram_percentile(latencies, 99),
           (unsigned long long)histogram_percentile(latencies, 99.9),
           (unsigned long long)histogram_percentile(latencies, 100));
}

static void print_result(const struct bench_options *options, const char *name,
                         const struct bench_result *result)
{
    if (options->json)
        print_json(name, result);
    else
        print_line(name, result);
    fflush(stdout);
    if (!status_is_ok(result->first_error))
        fprintf(stderr, "trestle bench: %s: first error: %s\n", name,
                status_message(result->first_error));
}

/* --- the command --- */

static status run_one(struct bench_client *client, struct bench_context *context, bytes name)
{
    const struct bench_mix *mix = bench_mix_find(name);
    if (mix == NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "--workloads: %.*s is none of %s",
                           (int)name.size, (const char *)name.data, bench_mix_names);
    if (mix->is_load)
        TRY(make_table(client, context->options));
    if (mix->prepare != NULL)
        TRY(mix->prepare(client, context));
    struct bench_result result = {0};
    TRY(bench_run(client, context, mix, &result));
    print_result(context->options, mix->name, &result);
    bool failed = result.errors > 0;
    status_free(result.first_error);
    return failed ? status_make(STATUS_UNKNOWN, "%s: requests failed", mix->name) : status_ok();
}

static status run_all(struct bench_client *client, struct bench_context *context)
{
    const char *names = context->options->workloads;
    if (!context->options->json)
        print_head();
    for (const char *end; *names != '\0'; names = *end == ',' ? end + 1 : end) {
        end = strchrnul(names, ',');
        TRY(run_one(client, context, bytes_make(names, (size_t)(end - names))));
    }
    return status_ok();
}

static status bench(const char *const *arguments)
{
    struct bench_options options;
    TRY(bench_options_read(arguments, &options));
    struct bench_context context;
    struct bench_client *client = NULL;
    status s = bench_context_create(&options, &context);
    if (status_is_ok(s))
        s = bench_client_create(&options, &client);
    if (status_is_ok(s))
        s = run_all(client, &context);
    bench_client_destroy(client);
    bench_context_free(&context);
    return s;
}

int bench_command(const char *const *arguments)
{
    if (command_asks_for(arguments, "--help"))
        return command_print(bench_options_write_help);
    status s = bench(arguments);
    if (status_is_ok(s))
        return EXIT_SUCCESS;
    int code = command_usage_error("bench", status_message(s));
    if (s.code != STATUS_INVALID_ARGUMENT)
        code = EXIT_FAILURE;
    status_free(s);
    return code;
}
