/* Tests of metrics: sums over threads, and the text that Prometheus reads. */
#include "base/metrics.h"

#include "base/limits.h"
#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"

#include <pthread.h>
#include <stdio.h>

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
    metrics_write(metrics, false, &out);
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

static void histograms_by_label(void **state)
{
    enum metric_histogram_family family = METRIC_HISTOGRAM_BY_replication_latency_seconds;
    struct metric_observed *east = metrics_histogram_of(*state, family, "us-east1-b");
    struct metric_observed *west = metrics_histogram_of(*state, family, "us-west1-a");
    assert_non_null(east);
    assert_true(east != west && west != NULL);
    assert_ptr_equal(metrics_histogram_of(*state, family, "us-east1-b"), east);
    metrics_observe_in(east, 16);
    metrics_observe_in(east, 17);
    metrics_observe_in(west, 1500000);
    char *text = text_of(*state);
    assert_line(text, "# TYPE trestle_replication_latency_seconds histogram");
    assert_line(text,
                "trestle_replication_latency_seconds_bucket{peer=\"us-east1-b\",le=\"1.6e-05\"} "
                "1");
    assert_line(text, "trestle_replication_latency_seconds_count{peer=\"us-east1-b\"} 2");
    assert_line(text, "trestle_replication_latency_seconds_sum{peer=\"us-west1-a\"} 1.5");
    free(text);
}

static void a_labelled_histogram_without_memory_counts_nothing(void **state)
{
    enum metric_histogram_family family = METRIC_HISTOGRAM_BY_replication_latency_seconds;
    failmalloc_start(0);
    struct metric_observed *none = metrics_histogram_of(*state, family, "us-east1-b");
    assert_true(failmalloc_stop());
    assert_null(none);
    metrics_observe_in(none, 1);
    char *text = text_of(*state);
    assert_null(strstr(text, "trestle_replication_latency_seconds"));
    free(text);
}

static void rpcs_by_method_and_code(void **state)
{
    struct rpc_metrics *read = metrics_rpc(*state, "p.S/Read");
    assert_non_null(read);
    assert_ptr_equal(metrics_rpc(*state, "p.S/Read"), read);
    assert_ptr_not_equal(metrics_rpc(*state, "p.S/Write"), read);
    metrics_rpc_ended(read, METRICS_PROFILE_NONE, STATUS_OK, 20);
    metrics_rpc_ended(read, METRICS_PROFILE_NONE, STATUS_OK, 1000);
    metrics_rpc_ended(read, METRICS_PROFILE_NONE, STATUS_NOT_FOUND, 20);
    char *text = text_of(*state);
    assert_line(text, "trestle_rpcs_total{method=\"p.S/Read\",code=\"OK\"} 2");
    assert_line(text, "trestle_rpcs_total{method=\"p.S/Read\",code=\"NOT_FOUND\"} 1");
    assert_line(text, "trestle_rpc_seconds_bucket{method=\"p.S/Read\",le=\"3.2e-05\"} 2");
    assert_line(text, "trestle_rpc_seconds_count{method=\"p.S/Read\"} 3");
    assert_null(strstr(text, "p.S/Write"));
    free(text);
}

static void rpcs_by_profile(void **state)
{
    struct rpc_metrics *read = metrics_rpc(*state, "p.S/Read");
    assert_ok(metrics_add_profile(*state, bytes_of("batch")));
    assert_ok(metrics_add_profile(*state, bytes_of("batch")));
    assert_int_equal(metrics_profile(*state, NULL), METRICS_PROFILE_NONE);
    assert_int_equal(metrics_profile(*state, ""), METRICS_PROFILE_DEFAULT);
    assert_int_equal(metrics_profile(*state, "default"), METRICS_PROFILE_DEFAULT);
    assert_int_equal(metrics_profile(*state, "made-up"), METRICS_PROFILE_OTHER);
    assert_int_equal(metrics_profile(*state, "batch"), METRICS_PROFILE_FIRST);
    metrics_rpc_ended(read, metrics_profile(*state, "batch"), STATUS_OK, 20);
    metrics_rpc_ended(read, metrics_profile(*state, ""), STATUS_OK, 20);
    metrics_rpc_ended(read, metrics_profile(*state, "made-up"), STATUS_ABORTED, 20);
    char *text = text_of(*state);
    assert_line(text,
                "trestle_rpcs_total{method=\"p.S/Read\",app_profile=\"batch\",code=\"OK\"} 1");
    assert_line(text,
                "trestle_rpcs_total{method=\"p.S/Read\",app_profile=\"default\",code=\"OK\"} 1");
    assert_line(text,
                "trestle_rpcs_total{method=\"p.S/Read\",app_profile=\"other\",code=\"ABORTED\"} 1");
    assert_line(text, "trestle_rpc_seconds_count{method=\"p.S/Read\",app_profile=\"batch\"} 1");
    free(text);
}

/* Profiles are bounded, whatever clients name, and however many are made. */
static void profiles_are_bounded(void **state)
{
    char id[32];
    for (int i = 0; i < 3 * LIMIT_PROFILE_METRICS; i++) {
        snprintf(id, sizeof id, "profile-%d", i);
        assert_ok(metrics_add_profile(*state, bytes_of(id)));
        unsigned expected =
            i < LIMIT_PROFILE_METRICS ? METRICS_PROFILE_FIRST + (unsigned)i : METRICS_PROFILE_OTHER;
        assert_int_equal(metrics_profile(*state, id), expected);
    }
    assert_int_equal(metrics_profile(*state, "profile-0"), METRICS_PROFILE_FIRST);
}

static void times_are_shown_in_seconds(void **state)
{
    metrics_set(*state, METRIC_process_cpu_seconds_total, 1500000);
    metrics_set(*state, METRIC_pool_wait_seconds_total_queries, 20);
    char *text = text_of(*state);
    assert_line(text, "process_cpu_seconds_total 1.5");
    assert_line(text, "trestle_pool_wait_seconds_total{pool=\"queries\"} 2e-05");
    free(text);
}

/* Samples of one name come together, or Prometheus refuses the page. */
struct order {
    const char *last;
    struct buffer seen;
};

static void look_at_order(void *context, const struct metric_sample *sample)
{
    struct order *order = context;
    bytes name = bytes_of(sample->name);
    assert_true(strlen(sample->sentence) > 0);
    assert_non_null(sample->group);
    if (order->last != NULL && strcmp(order->last, sample->name) == 0)
        return;
    order->last = sample->name;
    assert_null(memmem(order->seen.data, order->seen.size, name.data, name.size + 1));
    buffer_append(&order->seen, name.data, name.size + 1); /* with its NUL */
}

static void series_of_a_name_are_together(void **state)
{
    struct order order = {0};
    buffer_append_byte(&order.seen, '\0');
    metrics_rpc_ended(metrics_rpc(*state, "p.S/Read"), METRICS_PROFILE_NONE, STATUS_OK, 1);
    metrics_rpc_ended(metrics_rpc(*state, "p.S/Read"), METRICS_PROFILE_DEFAULT, STATUS_OK, 1);
    metrics_visit(*state, look_at_order, &order);
    assert_false(order.seen.failed);
    buffer_free(&order.seen);
}

static void series_are_what_was_said_last(void **state)
{
    const struct metric_series first[] = {{{"t", NULL, NULL}, 1}, {{"u", NULL, NULL}, 2}};
    const struct metric_series then[] = {{{"u", NULL, NULL}, 3}};
    char *text = text_of(*state);
    assert_null(strstr(text, "trestle_table_bytes"));
    free(text);
    assert_ok(metrics_replace(*state, METRIC_BY_table_bytes, first, 2));
    text = text_of(*state);
    assert_line(text, "# TYPE trestle_table_bytes gauge");
    assert_line(text, "trestle_table_bytes{table=\"t\"} 1");
    assert_line(text, "trestle_table_bytes{table=\"u\"} 2");
    free(text);
    assert_ok(metrics_replace(*state, METRIC_BY_table_bytes, then, 1));
    text = text_of(*state);
    assert_null(strstr(text, "table=\"t\""));
    assert_line(text, "trestle_table_bytes{table=\"u\"} 3");
    free(text);
    assert_ok(metrics_replace(*state, METRIC_BY_table_bytes, NULL, 0));
    text = text_of(*state);
    assert_null(strstr(text, "trestle_table_bytes"));
    free(text);
}

static void series_of_times_have_fractions(void **state)
{
    const struct metric_series views[] = {{{"v"}, 1250000}, {{"w"}, 0}};
    assert_ok(metrics_replace(*state, METRIC_BY_view_lag_seconds, views, 2));
    char *text = text_of(*state);
    assert_line(text, "trestle_view_lag_seconds{view=\"v\"} 1.25");
    assert_line(text, "trestle_view_lag_seconds{view=\"w\"} 0");
    free(text);
}

/* A path may have anything in it, and the page is still one. */
static void labels_are_escaped(void **state)
{
    const struct metric_series paths[] = {{{"a\"b\\c\nd", NULL, NULL}, 1},
                                          {{"caf\xc3\xa9", NULL, NULL}, 2},
                                          {{"caf\xe9", NULL, NULL}, 3}};
    assert_ok(metrics_replace(*state, METRIC_BY_place_free_bytes, paths, 3));
    char *text = text_of(*state);
    assert_line(text, "trestle_place_free_bytes{place=\"a\\\"b\\\\c\\nd\"} 1");
    assert_line(text, "trestle_place_free_bytes{place=\"caf\xc3\xa9\"} 2");
    assert_line(text, "trestle_place_free_bytes{place=\"caf?\"} 3");
    free(text);
}

static void not_everybody_sees_names(void **state)
{
    struct buffer out = {0};
    const struct metric_series table = {{"t"}, 1}, listener = {{"127.0.0.1:8086"}, 1};
    assert_ok(metrics_replace(*state, METRIC_BY_table_bytes, &table, 1));
    assert_ok(
        metrics_replace(*state, METRIC_BY_certificate_expiry_timestamp_seconds, &listener, 1));
    metrics_write(*state, true, &out);
    buffer_append_byte(&out, '\0');
    assert_null(strstr((const char *)out.data, "trestle_table_bytes"));
    assert_line((const char *)out.data,
                "trestle_certificate_expiry_timestamp_seconds{listener=\"127.0.0.1:8086\"} 1");
    buffer_free(&out);
}

static void without_memory_series_stay(void **state)
{
    const struct metric_series first = {{"0.1", "4a5eba5", "7.8.3"}, 1};
    const struct metric_series then = {{"0.2", "4a5eba5", "7.8.3"}, 1};
    assert_ok(metrics_replace(*state, METRIC_BY_build_info, &first, 1));
    failmalloc_start(0);
    status s = metrics_replace(*state, METRIC_BY_build_info, &then, 1);
    assert_true(failmalloc_stop());
    assert_status(s, STATUS_RESOURCE_EXHAUSTED);
    char *text = text_of(*state);
    assert_line(text,
                "trestle_build_info{version=\"0.1\",revision=\"4a5eba5\",rocksdb=\"7.8.3\"} 1");
    free(text);
}

static void nobody_looks(void **state)
{
    (void)state;
    metrics_add(NULL, METRIC_connections, 1);
    metrics_set(NULL, METRIC_tables, 1);
    metrics_observe(NULL, METRIC_HISTOGRAM_commit_seconds, 1);
    assert_ok(metrics_replace(NULL, METRIC_BY_table_bytes, NULL, 0));
    assert_null(metrics_rpc(NULL, "p.S/Read"));
    metrics_rpc_ended(NULL, METRICS_PROFILE_NONE, STATUS_OK, 1);
}

static void count_in_need(void *context)
{
    (void)context;
    struct metrics *metrics;
    struct buffer out = {0};
    status s = metrics_create(&metrics);
    assert_int_equal(status_is_ok(s), metrics != NULL);
    status_free(s);
    metrics_rpc_ended(metrics_rpc(metrics, "p.S/Read"), METRICS_PROFILE_NONE, STATUS_OK, 1);
    status_free(metrics_add_profile(metrics, bytes_of("batch")));
    if (metrics != NULL)
        metrics_write(metrics, false, &out);
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
        cmocka_unit_test_setup_teardown(histograms_by_label, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_labelled_histogram_without_memory_counts_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(rpcs_by_method_and_code, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rpcs_by_profile, set_up, tear_down),
        cmocka_unit_test_setup_teardown(profiles_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(times_are_shown_in_seconds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(series_of_a_name_are_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(series_are_what_was_said_last, set_up, tear_down),
        cmocka_unit_test_setup_teardown(series_of_times_have_fractions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(labels_are_escaped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(not_everybody_sees_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_memory_series_stay, set_up, tear_down),
        cmocka_unit_test(nobody_looks),
        cmocka_unit_test(memory_runs_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
