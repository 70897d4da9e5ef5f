/* Tests of what `trestle status` makes of two looks at metrics. */
#include "cmd/status/status_report.h"

#include "base/testing/testing.h"

#include <stdlib.h>

static Pb__Timestamp times[3] = {PB__TIMESTAMP__INIT, PB__TIMESTAMP__INIT, PB__TIMESTAMP__INIT};

struct histogram {
    Insight__Metric metric;
    Insight__Metric__Bucket buckets[3];
    Insight__Metric__Bucket *pointers[3];
    Insight__Metric__LabelsEntry label;
    Insight__Metric__LabelsEntry *labels[1];
};

/* Of ReadRows, with so many up to 1, 2 and 4 ms, and as many as are in `more` beyond. */
static void fill(struct histogram *h, const int64_t counts[3], int64_t more)
{
    static const double bounds[] = {0.001, 0.002, 0.004};
    *h = (struct histogram){.metric = INSIGHT__METRIC__INIT,
                            .label = INSIGHT__METRIC__LABELS_ENTRY__INIT};
    int64_t sum = 0;
    for (size_t i = 0; i < 3; i++) {
        h->buckets[i] = (Insight__Metric__Bucket)INSIGHT__METRIC__BUCKET__INIT;
        h->buckets[i].up_to = bounds[i];
        h->buckets[i].count = sum += counts[i];
        if (counts[i] > 0)
            h->pointers[h->metric.n_buckets++] = &h->buckets[i];
    }
    h->metric.name = "trestle_rpc_seconds";
    h->metric.type = INSIGHT__METRIC__TYPE__HISTOGRAM;
    h->metric.buckets = h->pointers;
    h->metric.count = sum + more;
    h->label.key = "method";
    h->label.value = "google.bigtable.v2.Bigtable/ReadRows";
    h->labels[0] = &h->label;
    h->metric.labels = h->labels;
    h->metric.n_labels = 1;
}

static void assert_near(double value, double expected)
{
    if (value < expected * 0.9999 || value > expected * 1.0001)
        fail_msg("%g is not %g", value, expected);
}

static void quantiles_lie_in_their_buckets(void **state)
{
    (void)state;
    struct histogram none, one, two;
    fill(&none, (const int64_t[]){0, 0, 0}, 0);
    fill(&one, (const int64_t[]){10, 0, 0}, 0);
    fill(&two, (const int64_t[]){10, 0, 10}, 0);
    assert_true(status_quantile(NULL, &none.metric, 0.5) < 0);
    assert_near(status_quantile(NULL, &one.metric, 1), 0.001);
    assert_near(status_quantile(NULL, &one.metric, 0.5), 0.00075);
    assert_near(status_quantile(NULL, &two.metric, 0.75), 0.003);
    assert_near(status_quantile(&one.metric, &two.metric, 0.5), 0.003); /* only what came since */
    assert_true(status_quantile(&two.metric, &two.metric, 0.5) < 0);
}

static void what_is_beyond_the_buckets_is_their_last_bound(void **state)
{
    (void)state;
    struct histogram h;
    fill(&h, (const int64_t[]){0, 0, 1}, 9);
    assert_near(status_quantile(NULL, &h.metric, 0.99), 0.004);
}

/* --- a whole report --- */

struct counter {
    Insight__Metric metric;
    Insight__Metric__LabelsEntry labels[2];
    Insight__Metric__LabelsEntry *pointers[2];
};

static void count(struct counter *c, const char *name, double value)
{
    *c = (struct counter){.metric = INSIGHT__METRIC__INIT};
    c->metric.name = name;
    c->metric.type = INSIGHT__METRIC__TYPE__COUNTER;
    c->metric.value = value;
    c->metric.labels = c->pointers;
}

static void put_label(struct counter *c, const char *key, const char *value)
{
    size_t at = c->metric.n_labels++;
    c->labels[at] = (Insight__Metric__LabelsEntry)INSIGHT__METRIC__LABELS_ENTRY__INIT;
    c->labels[at].key = key;
    c->labels[at].value = value;
    c->pointers[at] = &c->labels[at];
}

struct server {
    struct counter reads, failures, received;
    struct histogram seconds;
    Insight__Metric *pointers[4];
    Insight__Metrics metrics;
};

static void fill_server(struct server *s, double calls, Pb__Timestamp *now, Pb__Timestamp *start)
{
    count(&s->reads, "trestle_rpcs_total", calls);
    put_label(&s->reads, "method", "google.bigtable.v2.Bigtable/ReadRows");
    put_label(&s->reads, "code", "OK");
    count(&s->failures, "trestle_rpcs_total", 2);
    put_label(&s->failures, "method", "google.bigtable.v2.Bigtable/ReadRows");
    put_label(&s->failures, "code", "NOT_FOUND");
    count(&s->received, "trestle_received_bytes_total", calls * 1024);
    fill(&s->seconds, (const int64_t[]){(int64_t)calls, 0, 0}, 0);
    Insight__Metric *const pointers[] = {&s->reads.metric, &s->failures.metric, &s->received.metric,
                                         &s->seconds.metric};
    memcpy(s->pointers, pointers, sizeof pointers);
    s->metrics = (Insight__Metrics)INSIGHT__METRICS__INIT;
    s->metrics.version = "1.2.3";
    s->metrics.time = now;
    s->metrics.start_time = start;
    s->metrics.metrics = s->pointers;
    s->metrics.n_metrics = 4;
}

static char *written(void (*write)(const struct status_looks *, struct buffer *),
                     const struct status_looks *looks)
{
    struct buffer out = {0};
    write(looks, &out);
    buffer_append_byte(&out, '\0');
    assert_false(out.failed);
    return (char *)out.data;
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no \"%s\" in\n%s", part, text);
}

static int set_times(void **state)
{
    (void)state;
    times[0].seconds = 1000; /* the start */
    times[1].seconds = 5000;
    times[2].seconds = 5002;
    return 0;
}

static void rates_are_by_the_second(void **state)
{
    (void)state;
    struct server before, now;
    fill_server(&before, 100, &times[1], &times[0]);
    fill_server(&now, 3100, &times[2], &times[0]);
    const struct status_looks looks = {
        .address = "127.0.0.1:1", .before = &before.metrics, .now = &now.metrics};
    char *text = written(status_write_text, &looks);
    assert_has(text, "trestle 1.2.3 at 127.0.0.1:1, up 1 h 6 min\n");
    assert_has(text, "the last 2.0 s\n");
    assert_has(text, "traffic       1.5 MiB/s in, 0 B/s out\n");
    assert_has(text, " Bigtable/ReadRows |             |   1,500 |        0 | 750 us | 995 us | "
                     "3,102 |      2 |     995 us\n");
    free(text);
    text = written(status_write_json, &looks);
    assert_has(text, "\"callsPerSecond\":1500,\"errorsPerSecond\":0,\"p50Seconds\":0.00075,");
    assert_has(text, "\"labels\":{\"method\":\"google.bigtable.v2.Bigtable/ReadRows\","
                     "\"code\":\"NOT_FOUND\"},\"value\":2,\"perSecond\":0}");
    free(text);
}

static void a_restarted_server_counts_from_0(void **state)
{
    (void)state;
    struct server before, now;
    fill_server(&before, 1000, &times[1], &times[0]);
    fill_server(&now, 10, &times[2], &times[1]);
    const struct status_looks looks = {
        .address = "h:1", .before = &before.metrics, .now = &now.metrics};
    char *text = written(status_write_json, &looks);
    assert_has(text, "\"calls\":12,\"errors\":2,\"callsPerSecond\":6,");
    free(text);
}

static void trouble_is_told(void **state)
{
    (void)state;
    struct server now;
    fill_server(&now, 1, &times[2], &times[0]);
    now.metrics.trouble = "no space left on the \"disk\"";
    struct status_looks looks = {.address = "h:1", .before = &now.metrics, .now = &now.metrics};
    char *text = written(status_write_text, &looks);
    assert_has(text, "TAKES NO WRITES: no space left on the \"disk\"\n");
    assert_null(strchr(text, '\033'));
    free(text);
    looks.has_colors = true;
    text = written(status_write_text, &looks);
    assert_has(text, "\n\033[1;31mTAKES NO WRITES: no space left on the \"disk\"\n\033[0m");
    free(text);
    now.metrics.trouble = "";
    text = written(status_write_text, &looks);
    assert_null(strchr(text, '\033'));
    free(text);
    now.metrics.trouble = "no space left on the \"disk\"";
    text = written(status_write_json, &looks);
    assert_has(text, "\"trouble\":\"no space left on the \\\"disk\\\"\"");
    free(text);
}

static void reasons_are_told(void **state)
{
    (void)state;
    struct server now;
    Insight__Health health = INSIGHT__HEALTH__INIT;
    Insight__Health__Reason reasons[2] = {INSIGHT__HEALTH__REASON__INIT,
                                          INSIGHT__HEALTH__REASON__INIT};
    Insight__Health__Reason *pointers[] = {&reasons[0], &reasons[1]};
    fill_server(&now, 1, &times[2], &times[0]);
    reasons[0].name = "disk_reserve";
    reasons[0].level = health.level = INSIGHT__HEALTH__LEVEL__NO_WRITES;
    reasons[0].text = now.metrics.trouble = "1 MB is free";
    reasons[0].since = reasons[1].since = &times[0];
    reasons[1].name = "certificate";
    reasons[1].level = INSIGHT__HEALTH__LEVEL__DEGRADED;
    reasons[1].text = "it ends";
    health.n_reasons = 2;
    health.reasons = pointers;
    now.metrics.health = &health;
    const struct status_looks looks = {
        .address = "h:1", .before = &now.metrics, .now = &now.metrics};
    char *text = written(status_write_text, &looks);
    assert_has(text, "\nTAKES NO WRITES: 1 MB is free (disk_reserve, for ");
    assert_has(text, "\nDEGRADED: it ends (certificate, for ");
    assert_null(strstr(text, "TAKES NO WRITES: 1 MB is free\n")); /* said once */
    free(text);
    text = written(status_write_json, &looks);
    assert_has(text, "\"health\":{\"level\":\"no_writes\",\"reasons\":[{\"name\":\"disk_reserve\","
                     "\"level\":\"no_writes\",\"text\":\"1 MB is free\",\"seconds\":");
    assert_has(text, "\"text\":\"it ends\",\"seconds\":");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_lie_in_their_buckets),
        cmocka_unit_test(what_is_beyond_the_buckets_is_their_last_bound),
        cmocka_unit_test(rates_are_by_the_second),
        cmocka_unit_test(a_restarted_server_counts_from_0),
        cmocka_unit_test(trouble_is_told),
        cmocka_unit_test(reasons_are_told),
    };
    return cmocka_run_group_tests(tests, set_times, NULL);
}
