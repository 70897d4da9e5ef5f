/* See metrics.h.
 *
 * Invariants
 *  1. A value is the sum of its slots over all shards, in two's complement: a gauge may rise on one
 *     processor and fall on another. metrics_set uses the first shard's slot alone.
 *  2. The list of RPCs only grows, at its head, under `mutex`; its entries never move. */
#include "base/metrics.h"

#include "base/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SHARDS = 8, /* a power of two; processors beyond share */
    CACHE_LINE = 64,
    BOUNDS = 24, /* of a histogram, each twice the one before */
    STATUS_CODES = STATUS_UNAUTHENTICATED + 1,
};

typedef atomic_uint_fast64_t counter;

/* buckets[i]: values over bound i - 1 and up to bound i; the last: those over all bounds. */
struct buckets {
    counter buckets[BOUNDS + 1];
    counter sum;
};

struct shard {
    alignas(CACHE_LINE) counter values[METRIC_COUNT];
    struct buckets histograms[METRIC_HISTOGRAM_COUNT];
};

struct rpc_shard {
    alignas(CACHE_LINE) counter ended[STATUS_CODES];
    struct buckets duration;
};

struct rpc_metrics {
    struct rpc_metrics *next;
    char *method;
    struct rpc_shard shards[SHARDS];
};

struct metrics {
    uint32_t magic;
    pthread_mutex_t mutex;
    struct rpc_metrics *rpcs;
    struct shard shards[SHARDS];
};

#define METRICS_MAGIC 0x4d455452u

enum unit { UNIT_SECONDS, UNIT_BYTES };

/* The first bound is 16 microseconds, or 16 bytes; the last is then 134 s, or 128 MB. */
enum { FIRST_BOUND_BIT = 4 };

static unsigned current_shard(void)
{
    int processor = sched_getcpu();
    return processor < 0 ? 0 : (unsigned)processor & (SHARDS - 1);
}

status metrics_create(struct metrics **out)
{
    struct metrics *metrics = aligned_alloc(CACHE_LINE, sizeof *metrics);
    *out = metrics;
    if (metrics == NULL)
        return status_out_of_memory();
    memset(metrics, 0, sizeof *metrics);
    metrics->magic = METRICS_MAGIC;
    pthread_mutex_init(&metrics->mutex, NULL);
    return status_ok();
}

void metrics_destroy(struct metrics *metrics)
{
    if (metrics == NULL)
        return;
    CHECK_MAGIC(metrics, METRICS_MAGIC);
    while (metrics->rpcs != NULL) {
        struct rpc_metrics *rpc = metrics->rpcs;
        metrics->rpcs = rpc->next;
        free(rpc->method);
        free(rpc);
    }
    pthread_mutex_destroy(&metrics->mutex);
    metrics->magic = 0;
    free(metrics);
}

static void add(counter *to, uint64_t amount)
{
    atomic_fetch_add_explicit(to, amount, memory_order_relaxed);
}

void metrics_add(struct metrics *metrics, enum metric metric, int64_t amount)
{
    if (metrics != NULL)
        add(&metrics->shards[current_shard()].values[metric], (uint64_t)amount);
}

void metrics_set(struct metrics *metrics, enum metric metric, int64_t value)
{
    if (metrics != NULL)
        atomic_store_explicit(&metrics->shards[0].values[metric], (uint64_t)value,
                              memory_order_relaxed);
}

static void observe(struct buckets *to, uint64_t value)
{
    unsigned bit = value <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(value - 1); /* value <= 2^bit */
    unsigned bucket = bit <= FIRST_BOUND_BIT ? 0 : bit - FIRST_BOUND_BIT;
    add(&to->buckets[bucket > BOUNDS ? BOUNDS : bucket], 1);
    add(&to->sum, value);
}

void metrics_observe(struct metrics *metrics, enum metric_histogram histogram, uint64_t value)
{
    if (metrics != NULL)
        observe(&metrics->shards[current_shard()].histograms[histogram], value);
}

int64_t metrics_value(struct metrics *metrics, enum metric metric)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < SHARDS; i++)
        sum += atomic_load_explicit(&metrics->shards[i].values[metric], memory_order_relaxed);
    return (int64_t)sum;
}

/* --- RPCs --- */

static struct rpc_metrics *find_rpc(struct metrics *metrics, const char *method)
{
    struct rpc_metrics *rpc = metrics->rpcs;
    while (rpc != NULL && strcmp(rpc->method, method) != 0)
        rpc = rpc->next;
    return rpc;
}

static struct rpc_metrics *new_rpc(const char *method)
{
    struct rpc_metrics *rpc = aligned_alloc(CACHE_LINE, sizeof *rpc);
    if (rpc == NULL)
        return NULL;
    memset(rpc, 0, sizeof *rpc);
    rpc->method = strdup(method);
    if (rpc->method == NULL) {
        free(rpc);
        return NULL;
    }
    return rpc;
}

struct rpc_metrics *metrics_rpc(struct metrics *metrics, const char *method)
{
    if (metrics == NULL)
        return NULL;
    CHECK_MAGIC(metrics, METRICS_MAGIC);
    pthread_mutex_lock(&metrics->mutex);
    struct rpc_metrics *rpc = find_rpc(metrics, method);
    if (rpc == NULL && (rpc = new_rpc(method)) != NULL) {
        rpc->next = metrics->rpcs;
        metrics->rpcs = rpc;
    }
    pthread_mutex_unlock(&metrics->mutex);
    return rpc;
}

void metrics_rpc_ended(struct rpc_metrics *rpc, enum status_code code, int64_t duration_us)
{
    if (rpc == NULL)
        return;
    struct rpc_shard *shard = &rpc->shards[current_shard()];
    add(&shard->ended[(unsigned)code < STATUS_CODES ? code : STATUS_UNKNOWN], 1);
    observe(&shard->duration, duration_us < 0 ? 0 : (uint64_t)duration_us);
}

/* --- text --- */

static void write_heading(struct buffer *out, const char *name, const char *type,
                          const char *sentence)
{
    buffer_append_format(out, "# HELP trestle_%s %s\n# TYPE trestle_%s %s\n", name, sentence, name,
                         type);
}

/* Sums of one histogram over all shards. */
struct bucket_sums {
    uint64_t buckets[BOUNDS + 1];
    uint64_t sum;
};

static void sum_up(struct bucket_sums *into, struct buckets *from)
{
    for (unsigned i = 0; i <= BOUNDS; i++)
        into->buckets[i] += atomic_load_explicit(&from->buckets[i], memory_order_relaxed);
    into->sum += atomic_load_explicit(&from->sum, memory_order_relaxed);
}

static double in_unit(uint64_t value, enum unit unit)
{
    return unit == UNIT_SECONDS ? (double)value / 1e6 : (double)value;
}

/* `label` is empty, or `method="…"`. */
static void write_buckets(struct buffer *out, const char *name, const char *label, enum unit unit,
                          const struct bucket_sums *sums)
{
    const char *comma = *label == '\0' ? "" : ",";
    uint64_t count = 0;
    for (unsigned i = 0; i < BOUNDS; i++) {
        count += sums->buckets[i];
        buffer_append_format(out, "trestle_%s_bucket{%s%sle=\"%.9g\"} %llu\n", name, label, comma,
                             in_unit(1ull << (FIRST_BOUND_BIT + i), unit),
                             (unsigned long long)count);
    }
    count += sums->buckets[BOUNDS];
    buffer_append_format(out, "trestle_%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, label, comma,
                         (unsigned long long)count);
    const char *open = *label == '\0' ? "" : "{", *close = *label == '\0' ? "" : "}";
    buffer_append_format(out, "trestle_%s_sum%s%s%s %.9g\n", name, open, label, close,
                         in_unit(sums->sum, unit));
    buffer_append_format(out, "trestle_%s_count%s%s%s %llu\n", name, open, label, close,
                         (unsigned long long)count);
}

static void write_value(struct metrics *metrics, enum metric metric, const char *name,
                        const char *type, const char *sentence, struct buffer *out)
{
    write_heading(out, name, type, sentence);
    buffer_append_format(out, "trestle_%s %lld\n", name, (long long)metrics_value(metrics, metric));
}

static void write_histogram(struct metrics *metrics, enum metric_histogram histogram,
                            const char *name, enum unit unit, const char *sentence,
                            struct buffer *out)
{
    struct bucket_sums sums = {0};
    for (unsigned i = 0; i < SHARDS; i++)
        sum_up(&sums, &metrics->shards[i].histograms[histogram]);
    write_heading(out, name, "histogram", sentence);
    write_buckets(out, name, "", unit, &sums);
}

static void write_rpc_codes(struct rpc_metrics *rpc, struct buffer *out)
{
    for (unsigned code = 0; code < STATUS_CODES; code++) {
        uint64_t ended = 0;
        for (unsigned i = 0; i < SHARDS; i++)
            ended += atomic_load_explicit(&rpc->shards[i].ended[code], memory_order_relaxed);
        if (ended > 0)
            buffer_append_format(out, "trestle_rpcs_total{method=\"%s\",code=\"%s\"} %llu\n",
                                 rpc->method, status_code_name((enum status_code)code),
                                 (unsigned long long)ended);
    }
}

static void write_rpc_duration(struct rpc_metrics *rpc, struct buffer *out)
{
    struct bucket_sums sums = {0};
    uint64_t count = 0;
    for (unsigned i = 0; i < SHARDS; i++)
        sum_up(&sums, &rpc->shards[i].duration);
    for (unsigned i = 0; i <= BOUNDS; i++)
        count += sums.buckets[i];
    if (count == 0)
        return;
    struct buffer label = {0};
    buffer_append_format(&label, "method=\"%s\"", rpc->method);
    buffer_append_byte(&label, '\0');
    if (label.failed)
        out->failed = true;
    else
        write_buckets(out, "rpc_seconds", (const char *)label.data, UNIT_SECONDS, &sums);
    buffer_free(&label);
}

void metrics_write(struct metrics *metrics, struct buffer *out)
{
    CHECK_MAGIC(metrics, METRICS_MAGIC);
#define TYPE_COUNTER "counter"
#define TYPE_GAUGE   "gauge"
#define METRIC(kind, name, sentence)                                                               \
    write_value(metrics, METRIC_##name, #name, TYPE_##kind, sentence, out);
#define METRIC_HISTOGRAM(name, unit, sentence)                                                     \
    write_histogram(metrics, METRIC_HISTOGRAM_##name, #name, UNIT_##unit, sentence, out);
#include "base/metrics.def"
#undef METRIC
#undef METRIC_HISTOGRAM
    pthread_mutex_lock(&metrics->mutex);
    struct rpc_metrics *first =
        metrics->rpcs; /* a list that is read without the lock: invariant 2 */
    pthread_mutex_unlock(&metrics->mutex);
    write_heading(out, "rpcs_total", "counter", "RPCs that have ended, by method and status.");
    for (struct rpc_metrics *rpc = first; rpc != NULL; rpc = rpc->next)
        write_rpc_codes(rpc, out);
    write_heading(out, "rpc_seconds", "histogram", "Time from an RPC's request to its status.");
    for (struct rpc_metrics *rpc = first; rpc != NULL; rpc = rpc->next)
        write_rpc_duration(rpc, out);
}

/* --- the page --- */

void metrics_write_markdown(struct buffer *out)
{
    buffer_append_format(
        out,
        "# Metrics\n\n"
        "Written by `./dev docs` from `src/base/metrics.def`: change it there.\n\n"
        "The server shows them on its page `/metrics`, in Prometheus's text format, with\n"
        "`trestle_` before each name but those that begin with `process_`. Counters begin at 0 "
        "when it\nstarts. Histograms have the series `_bucket`, `_sum` and `_count`.\n\n"
        "| metric | type | what it is |\n|---|---|---|\n");
#define METRIC(kind, name, sentence)                                                               \
    buffer_append_format(out, "| `%s` | %s | %s |\n", #name, TYPE_##kind, sentence);
#define METRIC_HISTOGRAM(name, unit, sentence)                                                     \
    buffer_append_format(out, "| `%s` | histogram | %s |\n", #name, sentence);
#include "base/metrics.def"
#undef METRIC
#undef METRIC_HISTOGRAM
    buffer_append_format(
        out, "| `rpcs_total{method,code}` | counter | RPCs that have ended, by method and "
             "status. |\n"
             "| `rpc_seconds{method}` | histogram | How long they took. |\n"
             "| `process_cpu_seconds_total` | counter | CPU time of the process. |\n"
             "| `process_resident_memory_bytes` | gauge | Resident memory. |\n"
             "| `process_open_fds` | gauge | Open file descriptors. |\n\n"
             "A method has its full name, `google.bigtable.v2.Bigtable/ReadRows`, and is not there "
             "until\n"
             "it was called.\n");
}
