/* Counters, gauges and histograms, and their text for Prometheus. metrics.def is the table.
 *
 * Counting is a relaxed atomic add to a line of memory that, as a rule, no other processor uses.
 * Any thread may count, and may write the text meanwhile. A NULL `struct metrics` counts nothing:
 * code that counts need not ask whether somebody looks. */
#ifndef TRESTLE_BASE_METRICS_H
#define TRESTLE_BASE_METRICS_H

#include "base/status.h"

enum metric {
#define METRIC(kind, name, sentence) METRIC_##name,
#define METRIC_HISTOGRAM(name, unit, sentence)
#include "base/metrics.def"
#undef METRIC
#undef METRIC_HISTOGRAM
    METRIC_COUNT
};

enum metric_histogram {
#define METRIC(kind, name, sentence)
#define METRIC_HISTOGRAM(name, unit, sentence) METRIC_HISTOGRAM_##name,
#include "base/metrics.def"
#undef METRIC
#undef METRIC_HISTOGRAM
    METRIC_HISTOGRAM_COUNT
};

struct metrics;
struct rpc_metrics;

status metrics_create(struct metrics **out);
void metrics_destroy(struct metrics *metrics); /* NULL is fine */

/* For counters, and for gauges that rise and fall (with a negative amount). */
void metrics_add(struct metrics *metrics, enum metric metric, int64_t amount);

/* For gauges that are measured, by one place each; a gauge is either added to or set. */
void metrics_set(struct metrics *metrics, enum metric metric, int64_t value);

/* `value` in microseconds for SECONDS, in bytes for BYTES. */
void metrics_observe(struct metrics *metrics, enum metric_histogram histogram, uint64_t value);

/* The sum over all processors. */
int64_t metrics_value(struct metrics *metrics, enum metric metric);

/* The counters of one method, "google.bigtable.v2.Bigtable/MutateRow"; made on first use. Later
 * calls with the same name give the same. They live as long as the metrics. NULL without memory,
 * or if `metrics` is NULL, which metrics_rpc_ended takes. */
struct rpc_metrics *metrics_rpc(struct metrics *metrics, const char *method);
void metrics_rpc_ended(struct rpc_metrics *rpc, enum status_code code, int64_t duration_us);

/* Prometheus's text format, version 0.0.4. Methods that were never called are left out. */
void metrics_write(struct metrics *metrics, struct buffer *out);

/* The page docs/reference/metrics.md. */
void metrics_write_markdown(struct buffer *out);

#endif
