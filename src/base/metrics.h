/* Counters, gauges and histograms, and their text for Prometheus. metrics.def is the table.
 *
 * Counting is a relaxed atomic add to a line of memory that, as a rule, no other processor uses.
 * Any thread may count, and may look meanwhile. A NULL `struct metrics` counts nothing: code that
 * counts need not ask whether metrics are wanted. */
#ifndef TRESTLE_BASE_METRICS_H
#define TRESTLE_BASE_METRICS_H

#include "base/status.h"

enum metric {
#define METRIC(kind, name, sentence)                          METRIC_##name,
#define METRIC_SECONDS(kind, name, sentence)                  METRIC_##name,
#define METRIC_OF(kind, name, label, value, sentence)         METRIC_##name##_##value,
#define METRIC_SECONDS_OF(kind, name, label, value, sentence) METRIC_##name##_##value,
#include "base/metrics.def"
    METRIC_COUNT
};

/* Families have as many series as metrics_replace gives. */
enum metric_family {
#define METRIC_BY(kind, audience, name, sentence, ...)         METRIC_BY_##name,
#define METRIC_SECONDS_BY(kind, audience, name, sentence, ...) METRIC_BY_##name,
#include "base/metrics.def"
    METRIC_FAMILY_COUNT
};

enum metric_histogram {
#define METRIC_HISTOGRAM(name, unit, sentence) METRIC_HISTOGRAM_##name,
#include "base/metrics.def"
    METRIC_HISTOGRAM_COUNT
};

enum metric_histogram_family {
#define METRIC_HISTOGRAM_BY(name, unit, sentence, label) METRIC_HISTOGRAM_BY_##name,
#include "base/metrics.def"
    METRIC_HISTOGRAM_FAMILY_COUNT
};

struct metrics;
struct metric_observed;
struct rpc_metrics;

status metrics_create(struct metrics **out);
void metrics_destroy(struct metrics *metrics); /* NULL is fine */

/* For counters, and for gauges that rise and fall (with a negative amount). Those of the rows
 * METRIC_SECONDS count microseconds. */
void metrics_add(struct metrics *metrics, enum metric metric, int64_t amount);

/* For gauges that are measured, by one place each; a gauge is either added to or set. */
void metrics_set(struct metrics *metrics, enum metric metric, int64_t value);

/* `value` in microseconds for SECONDS, in bytes for BYTES. */
void metrics_observe(struct metrics *metrics, enum metric_histogram histogram, uint64_t value);

/* The histogram of that value of the label; made on first use, and there for as long as the
 * metrics: so the values are few. NULL without memory, or if `metrics` is NULL. Any thread. */
struct metric_observed *metrics_histogram_of(struct metrics *metrics,
                                             enum metric_histogram_family family,
                                             const char *label);
/* As metrics_observe; NULL is fine. */
void metrics_observe_in(struct metric_observed *histogram, uint64_t value);

/* The sum over all processors. */
int64_t metrics_value(struct metrics *metrics, enum metric metric);

enum { METRIC_LABELS_MOST = 3, METRIC_BOUNDS = 24 };

/* One series of a family: the labels' values, in the order of their names in metrics.def. */
struct metric_series {
    const char *labels[METRIC_LABELS_MOST];
    int64_t value; /* of METRIC_SECONDS_BY in microseconds */
};

/* From now on the family has these series, and no others; they are copied. The caller sees to it
 * that there are not too many, and no two of them alike. RESOURCE_EXHAUSTED without memory: then
 * nothing has changed. */
status metrics_replace(struct metrics *metrics, enum metric_family family,
                       const struct metric_series *series, size_t count);

/* --- RPCs --- */

/* The app profile that a call is counted under besides its method. Clients make none: a name that
 * was not added is METRICS_PROFILE_OTHER. */
enum {
    METRICS_PROFILE_NONE,    /* the method knows no app profiles, or its request was not read */
    METRICS_PROFILE_DEFAULT, /* "default", or it names none */
    METRICS_PROFILE_OTHER,
    METRICS_PROFILE_FIRST, /* of those that were added */
};

/* An app profile by its id; those that there are already, and those after LIMIT_PROFILE_METRICS of
 * them, are left out. RESOURCE_EXHAUSTED without memory. Any thread. */
status metrics_add_profile(struct metrics *metrics, bytes id);

/* The number of the profile for metrics_rpc_ended; NULL: METRICS_PROFILE_NONE. */
unsigned metrics_profile(struct metrics *metrics, const char *id);

/* The counters of one method, "google.bigtable.v2.Bigtable/MutateRow"; made on first use. Later
 * calls with the same name give the same. They live as long as the metrics. NULL without memory,
 * or if `metrics` is NULL, which metrics_rpc_ended takes. */
struct rpc_metrics *metrics_rpc(struct metrics *metrics, const char *method);

/* Makes the method's counters of that profile at the first call; without memory that one, and those
 * after it until there is some, are not counted. */
void metrics_rpc_ended(struct rpc_metrics *rpc, unsigned profile, enum status_code code,
                       int64_t duration_us);

/* --- looking --- */

enum metric_type { METRIC_TYPE_COUNTER, METRIC_TYPE_GAUGE, METRIC_TYPE_HISTOGRAM };
const char *metric_type_name(enum metric_type type); /* "counter" */

struct metric_label {
    const char *name;
    const char *value; /* valid during the visit; all other strings live as long as the metrics */
};

/* One series as it stands. */
struct metric_sample {
    const char *name; /* in full: "trestle_tables" */
    const char *group;
    const char *sentence;
    enum metric_type type;
    bool names_things; /* tables or directories: not for everybody where there is access control */
    size_t label_count;
    struct metric_label labels[METRIC_LABELS_MOST];
    double value; /* in seconds, bytes or times; of a histogram the sum of what was observed */
    /* Of a histogram: how many were observed; what its buckets go up to, and how many were in each
     * or in one before. Those beyond the last bound are in `count` alone. */
    uint64_t count;
    double bounds[METRIC_BOUNDS];
    uint64_t buckets[METRIC_BOUNDS];
};

/* All series, those of one name next to each other. Methods that were never called are left out,
 * and so are their profiles and codes. Any thread; `visit` may be called under a lock, and should
 * only copy. */
typedef void metric_visitor(void *context, const struct metric_sample *sample);
void metrics_visit(struct metrics *metrics, metric_visitor *visit, void *context);

/* Prometheus's text format, version 0.0.4; for everybody, without series that name things. */
void metrics_write(struct metrics *metrics, bool for_everybody, struct buffer *out);

/* The page docs/reference/metrics.md. */
void metrics_write_markdown(struct buffer *out);

#endif
