#include "cmd/bench/bench.h"
#include "cmd/command.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    US_PER_S = 1000000,
};

/* --- what is printed --- */

static double per_second(uint64_t count, int64_t us)
{
    return us > 0 ? (double)count * US_PER_S / (double)us : 0;
}

static void print_head(void)
{
    printf("%-9s %10s %8s %8s %12s %9s %9s %9s %9s %12s\n", "workload", "requests", "errors",
           "seconds", "requests/s", "p50 us", "p99 us", "p99.9 us", "max us", "req/CPU s");
}

static void print_line(const char *name, const struct bench_result *result)
{
    const struct histogram *latencies = &result->latencies;
    printf("%-9s %10llu %8llu %8.2f %12.0f %9llu %9llu %9llu %9llu", name,
           (unsigned long long)result->requests, (unsigned long long)result->errors,
           (double)result->duration_us / US_PER_S,
           per_second(result->requests, result->duration_us),
           (unsigned long long)histogram_percentile(latencies, 50),
           (unsigned long long)histogram_percentile(latencies, 99),
           (unsigned long long)histogram_percentile(latencies, 99.9),
           (unsigned long long)histogram_percentile(latencies, 100));
    if (result->server.cpu_us >= 0)
        printf(" %12.0f\n", per_second(result->requests, result->server.cpu_us));
    else
        printf(" %12s\n", "-");
}

/* A number that is not known is -1. */
static void print_json(const char *name, const struct bench_result *result)
{
    const struct histogram *latencies = &result->latencies;
    const struct bench_usage *server = &result->server;
    printf("{\"workload\": \"%s\", \"requests\": %llu, \"rows\": %llu, \"errors\": %llu, "
           "\"seconds\": %.6f, \"server_cpu_seconds\": %.6f, \"server_written_bytes\": %lld, "
           "\"server_resident_bytes\": %lld, \"server_peak_bytes\": %lld, \"p50_us\": %llu, "
           "\"p90_us\": %llu, \"p99_us\": %llu, \"p999_us\": %llu, \"max_us\": %llu}\n",
           name, (unsigned long long)result->requests, (unsigned long long)result->rows,
           (unsigned long long)result->errors, (double)result->duration_us / US_PER_S,
           server->cpu_us < 0 ? -1.0 : (double)server->cpu_us / US_PER_S,
           (long long)server->written_bytes, (long long)server->resident_bytes,
           (long long)server->peak_bytes, (unsigned long long)histogram_percentile(latencies, 50),
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
        return status_make(STATUS_INVALID_ARGUMENT, "--workloads: %.*s is none of %s,%s,%s",
                           (int)name.size, (const char *)name.data, bench_mix_names,
                           bench_stream_names, bench_datastore_names);
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
