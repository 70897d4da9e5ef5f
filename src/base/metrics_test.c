/* Tests of metrics: sums over threads, and the text that Prometheus reads. */
#include "base/metrics.h"

#include "base/failmalloc.h"
#include "base/testing.h"

#include <pthread.h>

static int set_up(void **state)
{
    struct metrics *metrics;
    assert_ok(metrics_create(&metrics));
    *state = metrics;
    return 0;
}

static int tear_down(void **state)
{
    metrics_destroy(*state);
    return 0;
}

/* The text as a string, to be freed. */
static char *text_of(struct metrics *metrics)
{
    struct buffer out = {0};
    metrics_write(metrics, &out);
    buffer_append_byte(&out, '\0');
    assert_false(out.failed);
    return (char *)out.data;
}

static void assert_line(const char *text, const char *line)
{
    const char *at = strstr(text, line);
    if (at == NULL || at[strlen(line)] != '\n')
        fail_msg("no line \"%s\" in\n%s", line, text);
}

enum { ADDS = 50000, THREADS = 3 };

static void *add_many(void *argument)
{
    struct metrics *metrics = argument;
    for (int i = 0; i < ADDS; i++) {
        metrics_add(metrics, METRIC_rows_read_total, 2);
        metrics_add(metrics, METRIC_connections, i % 2 == 0 ? 1 : -1);
        metrics_observe(metrics, METRIC_HISTOGRAM_commit_seconds, 100);
    }
    return NULL;
}

static void threads_add_up(void **state)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, *state), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(metrics_value(*state, METRIC_rows_read_total), 2 * ADDS * THREADS);
    assert_int_equal(metrics_value(*state, METRIC_connections), 0);
    char *text = text_of(*state);
    assert_line(text, "trestle_commit_seconds_count 150000");
    assert_line(text, "trestle_commit_seconds_sum 15");
    free(text);
}

static void a_gauge_is_set(void **state)
{
    metrics_set(*state, METRIC_disk_free_bytes, 1000);
    metrics_set(*state, METRIC_disk_free_bytes, 700);
    char *text = text_of(*state);
    assert_line(text, "# TYPE trestle_disk_free_bytes gauge");
    assert_line(text, "trestle_disk_free_bytes 700");
    free(text);
}

static void buckets_hold_what_they_say(void **state)
{
    metrics_observe(*state, METRIC_HISTOGRAM_commit_seconds, 0);
    metrics_observe(*state, METRIC_HISTOGRAM_commit_seconds, 16);
    metrics_observe(*state, METRIC_HISTOGRAM_commit_seconds, 17);
    metrics_observe(*state, METRIC_HISTOGRAM_commit_seconds, 32);
    metrics_observe(*state, METRIC_HISTOGRAM_commit_seconds, UINT64_MAX / 2);
    char *text = text_of(*state);
    assert_line(text, "trestle_commit_seconds_bucket{le=\"1.6e-05\"} 2");
    assert_line(text, "trestle_commit_seconds_bucket{le=\"3.2e-05\"} 4");
    assert_line(text, "trestle_commit_seconds_bucket{le=\"134.217728\"} 4");
    assert_line(text, "trestle_commit_seconds_bucket{le=\"+Inf\"} 5");
    free(text);
}

static void rpcs_by_method_and_code(void **state)
{
    struct rpc_metrics *read = metrics_rpc(*state, "p.S/Read");
    assert_non_null(read);
    assert_ptr_equal(metrics_rpc(*state, "p.S/Read"), read);
    assert_ptr_not_equal(metrics_rpc(*state, "p.S/Write"), read);
    metrics_rpc_ended(read, STATUS_OK, 20);
    metrics_rpc_ended(read, STATUS_OK, 1000);
    metrics_rpc_ended(read, STATUS_NOT_FOUND, 20);
    char *text = text_of(*state);
    assert_line(text, "trestle_rpcs_total{method=\"p.S/Read\",code=\"OK\"} 2");
    assert_line(text, "trestle_rpcs_total{method=\"p.S/Read\",code=\"NOT_FOUND\"} 1");
    assert_line(text, "trestle_rpc_seconds_bucket{method=\"p.S/Read\",le=\"3.2e-05\"} 2");
    assert_line(text, "trestle_rpc_seconds_count{method=\"p.S/Read\"} 3");
    assert_null(strstr(text, "p.S/Write"));
    free(text);
}

static void nobody_looks(void **state)
{
    (void)state;
    metrics_add(NULL, METRIC_connections, 1);
    metrics_set(NULL, METRIC_tables, 1);
    metrics_observe(NULL, METRIC_HISTOGRAM_commit_seconds, 1);
    assert_null(metrics_rpc(NULL, "p.S/Read"));
    metrics_rpc_ended(NULL, STATUS_OK, 1);
}

static void count_in_need(void *context)
{
    (void)context;
    struct metrics *metrics;
    struct buffer out = {0};
    status s = metrics_create(&metrics);
    assert_int_equal(status_is_ok(s), metrics != NULL);
    status_free(s);
    metrics_rpc_ended(metrics_rpc(metrics, "p.S/Read"), STATUS_OK, 1);
    if (metrics != NULL)
        metrics_write(metrics, &out);
    buffer_free(&out);
    metrics_destroy(metrics);
}

static void memory_runs_out_anywhere(void **state)
{
    (void)state;
    failmalloc_each(count_in_need, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(threads_add_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_gauge_is_set, set_up, tear_down),
        cmocka_unit_test_setup_teardown(buckets_hold_what_they_say, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rpcs_by_method_and_code, set_up, tear_down),
        cmocka_unit_test(nobody_looks),
        cmocka_unit_test(memory_runs_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
