/* See measure.h. */
#include "server/measure.h"

#include "os/process.h"

static void measure_loops(const struct measured *measured)
{
    uint64_t turns = 0;
    int64_t longest_us = 0;
    for (size_t i = 0; i < measured->loop_count; i++) {
        const struct loop_slowness slowness = loop_slowness(measured->loops[i]);
        turns += slowness.turns;
        if (slowness.longest_us > longest_us)
            longest_us = slowness.longest_us;
    }
    metrics_set(measured->metrics, METRIC_loop_slow_turns_total, (int64_t)turns);
    metrics_set(measured->metrics, METRIC_loop_longest_turn_seconds, longest_us);
}

static void measure_process(const struct measured *measured)
{
    struct metrics *metrics = measured->metrics;
    const struct process_usage usage = process_usage();
    metrics_set(metrics, METRIC_process_cpu_seconds_total, usage.cpu_us);
    metrics_set(metrics, METRIC_process_resident_memory_bytes, (int64_t)usage.resident_bytes);
    metrics_set(metrics, METRIC_process_open_fds, (int64_t)usage.open_files);
    metrics_set(metrics, METRIC_process_start_time_seconds, measured->started_us);
}

static void measure_slow(const struct measured *measured)
{
    int64_t threshold_us = slow_log_threshold_us(measured->slow);
    metrics_set(measured->metrics, METRIC_slow_requests_kept,
                (int64_t)slow_log_count(measured->slow));
    metrics_set(measured->metrics, METRIC_slow_request_threshold_seconds,
                threshold_us == INT64_MAX ? 0 : threshold_us);
}

static void measure_operations(const struct measured *measured)
{
    size_t running = operations_running(measured->control);
    running += whole_runner_is_busy(measured->whole_backups);
    metrics_set(measured->metrics, METRIC_operations_running, (int64_t)running);
}

void measure(void *context)
{
    const struct measured *measured = context;
    struct metrics *metrics = measured->metrics;
    metrics_set(metrics, METRIC_rpcs_running, (int64_t)grpc_server_call_count(measured->grpc));
    metrics_set(metrics, METRIC_pool_tasks, (int64_t)pool_load(measured->pool));
    pool_measure(measured->pool, metrics, POOL_GAUGES(requests));
    pool_measure(measured->queries, metrics, POOL_GAUGES(queries));
    pool_measure(measured->datastore, metrics, POOL_GAUGES(datastore));
    measure_loops(measured);
    measure_slow(measured);
    measure_operations(measured);
    cluster_measure(measured->cluster);
    stream_readers_measure(measured->stream_readers, metrics);
    views_measure(measured->views);
    (void)cluster_condition(measured->cluster); /* sets those of health */
    backups_measure(measured->backups);
    place_watch_look(measured->places);
    peers_measure(measured->peers);
    peer_watch_measure(measured->peer_watch);
    measure_process(measured);
}
