/* See metrics.h.
 *
 * Invariants
 *  1. A value is the sum of its slots over all shards, in two's complement: a gauge may rise on one
 *     processor and fall on another. metrics_set uses the first shard's slot alone.
 *  2. The lists of RPCs and of labelled histograms only grow, at their heads, under `mutex`; their
 *     entries never move. So do the places of profiles, which are read without it: a place is
 * filled once.
 *  3. All that show metrics get them from metrics_visit, so that no two can differ.
 *  4. The series of a family are replaced as a whole, and read, under `families_lock`. */
#include "base/metrics.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    SHARDS = 8, /* a power of two; processors beyond share */
    CACHE_LINE = 64,
    STATUS_CODES = STATUS_UNAUTHENTICATED + 1,
    PROFILES = METRICS_PROFILE_FIRST + LIMIT_PROFILE_METRICS,
    PROFILE_PLACES = 2 * LIMIT_PROFILE_METRICS, /* a power of two */
};

typedef atomic_uint_fast64_t counter;

/* buckets[i]: values over bound i - 1 and up to bound i; the last: those over all bounds. */
struct buckets {
    counter buckets[METRIC_BOUNDS + 1];
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

/* Of one method and profile. */
struct rpc_counts {
    struct rpc_shard shards[SHARDS];
};

struct rpc_metrics {
    struct rpc_metrics *next;
    char *method;
    _Atomic(struct rpc_counts *) profiles[PROFILES]; /* NULL: none has ended */
};

struct profile {
    unsigned number;
    char id[];
};

/* A labelled histogram. */
struct metric_observed {
    struct metric_observed *next;
    enum metric_histogram_family family;
    alignas(CACHE_LINE) struct buckets shards[SHARDS];
    char label[];
};

/* Of a family, in one piece of memory with its texts. */
struct family {
    size_t count;
    struct metric_series series[];
};

struct metrics {
    uint32_t magic;
    pthread_mutex_t families_lock;
    struct family *families[METRIC_FAMILY_COUNT]; /* NULL: without series */
    pthread_mutex_t mutex;
    struct rpc_metrics *rpcs;
    struct metric_observed *observed;
    unsigned profile_count;                             /* of those that were added */
    _Atomic(struct profile *) profiles[PROFILE_PLACES]; /* by hash, then the next free one */
    struct shard shards[SHARDS];
};

#define METRICS_MAGIC 0x4d455452u

enum audience { AUDIENCE_EVERYBODY, AUDIENCE_ADMITTED };

enum unit { UNIT_COUNT, UNIT_SECONDS, UNIT_BYTES };

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
    pthread_mutex_init(&metrics->families_lock, NULL);
    return status_ok();
}

static void free_rpc(struct rpc_metrics *rpc)
{
    for (unsigned i = 0; i < PROFILES; i++)
        free(atomic_load(&rpc->profiles[i]));
    free(rpc->method);
    free(rpc);
}

void metrics_destroy(struct metrics *metrics)
{
    if (metrics == NULL)
        return;
    CHECK_MAGIC(metrics, METRICS_MAGIC);
    while (metrics->rpcs != NULL) {
        struct rpc_metrics *rpc = metrics->rpcs;
        metrics->rpcs = rpc->next;
        free_rpc(rpc);
    }
    while (metrics->observed != NULL) {
        struct metric_observed *observed = metrics->observed;
        metrics->observed = observed->next;
        free(observed);
    }
    for (unsigned i = 0; i < PROFILE_PLACES; i++)
        free(atomic_load(&metrics->profiles[i]));
    for (unsigned i = 0; i < METRIC_FAMILY_COUNT; i++)
        free(metrics->families[i]);
    pthread_mutex_destroy(&metrics->families_lock);
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
    add(&to->buckets[bucket > METRIC_BOUNDS ? METRIC_BOUNDS : bucket], 1);
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

/* --- families --- */

static size_t label_size(const char *label)
{
    return label == NULL ? 0 : strlen(label) + 1;
}

static size_t texts_size(const struct metric_series *series, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        for (unsigned j = 0; j < METRIC_LABELS_MOST; j++)
            size += label_size(series[i].labels[j]);
    return size;
}

/* Both texts and messages are UTF-8; a path may be anything. */
static void copy_text(char *to, const char *text, size_t size)
{
    bool is_sound = utf8_is_valid(bytes_of(text));
    for (size_t i = 0; i < size; i++)
        to[i] = is_sound || (unsigned char)text[i] < 0x80 ? text[i] : '?';
}

/* The series' texts are put at `text`; returns where the next one's go. */
static char *copy_series(struct metric_series *to, const struct metric_series *series, char *text)
{
    *to = *series;
    for (unsigned j = 0; j < METRIC_LABELS_MOST; j++) {
        size_t size = label_size(series->labels[j]);
        if (size == 0)
            continue;
        copy_text(text, series->labels[j], size);
        to->labels[j] = text;
        text += size;
    }
    return text;
}

static status copy_family(const struct metric_series *series, size_t count, struct family **out)
{
    size_t head = sizeof **out + count * sizeof *series;
    struct family *family = *out = malloc(head + texts_size(series, count));
    if (family == NULL)
        return status_out_of_memory();
    char *text = (char *)family + head;
    family->count = count;
    for (size_t i = 0; i < count; i++)
        text = copy_series(&family->series[i], &series[i], text);
    return status_ok();
}

status metrics_replace(struct metrics *metrics, enum metric_family family,
                       const struct metric_series *series, size_t count)
{
    struct family *fresh, *former;
    if (metrics == NULL)
        return status_ok();
    TRY(copy_family(series, count, &fresh));
    pthread_mutex_lock(&metrics->families_lock);
    former = metrics->families[family];
    metrics->families[family] = fresh;
    pthread_mutex_unlock(&metrics->families_lock);
    free(former);
    return status_ok();
}

/* --- labelled histograms --- */

static struct metric_observed *find_observed(struct metrics *metrics,
                                             enum metric_histogram_family family, const char *label)
{
    struct metric_observed *observed = metrics->observed;
    while (observed != NULL && (observed->family != family || strcmp(observed->label, label) != 0))
        observed = observed->next;
    return observed;
}

/* NULL without memory. Aligned memory is taken in whole lines. */
static struct metric_observed *new_observed(enum metric_histogram_family family, const char *label)
{
    size_t size = sizeof(struct metric_observed) + label_size(label);
    size_t whole = (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    struct metric_observed *observed = aligned_alloc(CACHE_LINE, whole);
    if (observed == NULL)
        return NULL;
    memset(observed, 0, whole);
    observed->family = family;
    copy_text(observed->label, label, label_size(label));
    return observed;
}

struct metric_observed *metrics_histogram_of(struct metrics *metrics,
                                             enum metric_histogram_family family, const char *label)
{
    if (metrics == NULL)
        return NULL;
    pthread_mutex_lock(&metrics->mutex);
    struct metric_observed *observed = find_observed(metrics, family, label);
    if (observed == NULL && (observed = new_observed(family, label)) != NULL) {
        observed->next = metrics->observed;
        metrics->observed = observed;
    }
    pthread_mutex_unlock(&metrics->mutex);
    return observed;
}

void metrics_observe_in(struct metric_observed *histogram, uint64_t value)
{
    if (histogram != NULL)
        observe(&histogram->shards[current_shard()], value);
}

/* --- profiles --- */

/* The profile's place, or the free one where it would be. There are more places than profiles. */
static _Atomic(struct profile *) *profile_place(struct metrics *metrics, bytes id)
{
    uint64_t at = bytes_hash(id);
    for (;; at++) {
        _Atomic(struct profile *) *place = &metrics->profiles[at & (PROFILE_PLACES - 1)];
        struct profile *profile = atomic_load_explicit(place, memory_order_acquire);
        if (profile == NULL || bytes_equal(bytes_of(profile->id), id))
            return place;
    }
}

static bool is_default(const char *id)
{
    return id[0] == '\0' || strcmp(id, "default") == 0;
}

unsigned metrics_profile(struct metrics *metrics, const char *id)
{
    if (id == NULL)
        return METRICS_PROFILE_NONE;
    if (is_default(id))
        return METRICS_PROFILE_DEFAULT;
    if (metrics == NULL)
        return METRICS_PROFILE_OTHER;
    const struct profile *profile = atomic_load(profile_place(metrics, bytes_of(id)));
    return profile == NULL ? METRICS_PROFILE_OTHER : profile->number;
}

static status new_profile(bytes id, unsigned number, struct profile **out)
{
    struct profile *profile = *out = calloc(1, sizeof *profile + id.size + 1);
    if (profile == NULL)
        return status_out_of_memory();
    profile->number = number;
    memcpy(profile->id, id.data, id.size);
    return status_ok();
}

static status add_profile(struct metrics *metrics, bytes id)
{
    _Atomic(struct profile *) *place = profile_place(metrics, id);
    struct profile *profile;
    if (atomic_load(place) != NULL || metrics->profile_count == LIMIT_PROFILE_METRICS)
        return status_ok();
    TRY(new_profile(id, METRICS_PROFILE_FIRST + metrics->profile_count, &profile));
    metrics->profile_count++;
    atomic_store_explicit(place, profile, memory_order_release);
    return status_ok();
}

status metrics_add_profile(struct metrics *metrics, bytes id)
{
    if (metrics == NULL || id.size == 0 || bytes_equal(id, bytes_of("default")))
        return status_ok();
    pthread_mutex_lock(&metrics->mutex);
    status s = add_profile(metrics, id);
    pthread_mutex_unlock(&metrics->mutex);
    return s;
}

/* The names by their numbers. */
static void name_profiles(struct metrics *metrics, const char *names[PROFILES])
{
    names[METRICS_PROFILE_NONE] = NULL;
    names[METRICS_PROFILE_DEFAULT] = "default";
    names[METRICS_PROFILE_OTHER] = "other";
    for (unsigned i = 0; i < PROFILE_PLACES; i++) {
        const struct profile *profile =
            atomic_load_explicit(&metrics->profiles[i], memory_order_acquire);
        if (profile != NULL)
            names[profile->number] = profile->id;
    }
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
    struct rpc_metrics *rpc = calloc(1, sizeof *rpc);
    if (rpc == NULL)
        return NULL;
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

/* Made by the first thread that needs it. NULL without memory. */
static struct rpc_counts *make_counts(_Atomic(struct rpc_counts *) *place)
{
    struct rpc_counts *counts = aligned_alloc(CACHE_LINE, sizeof *counts), *others = NULL;
    if (counts == NULL)
        return NULL;
    memset(counts, 0, sizeof *counts);
    if (atomic_compare_exchange_strong(place, &others, counts))
        return counts;
    free(counts);
    return others;
}

void metrics_rpc_ended(struct rpc_metrics *rpc, unsigned profile, enum status_code code,
                       int64_t duration_us)
{
    if (rpc == NULL)
        return;
    _Atomic(struct rpc_counts *) *place = &rpc->profiles[profile];
    struct rpc_counts *counts = atomic_load_explicit(place, memory_order_acquire);
    if (counts == NULL && (counts = make_counts(place)) == NULL)
        return;
    struct rpc_shard *shard = &counts->shards[current_shard()];
    add(&shard->ended[(unsigned)code < STATUS_CODES ? code : STATUS_UNKNOWN], 1);
    observe(&shard->duration, duration_us < 0 ? 0 : (uint64_t)duration_us);
}

/* --- looking --- */

struct row {
    const char *group; /* of the rows after it; else NULL */
    const char *name;
    const char *sentence;
    struct metric_label label;              /* NULL: none */
    const char *labels[METRIC_LABELS_MOST]; /* of a family, their names; else NULL */
    enum metric_type type;
    enum unit unit;
    bool names_things;
    unsigned index; /* an enum metric, metric_histogram or metric_family */
};

#define ROW(kind_, name_, unit_, index_, sentence_, ...)                                           \
    {.name = "trestle_" #name_,                                                                    \
     .type = METRIC_TYPE_##kind_,                                                                  \
     .unit = UNIT_##unit_,                                                                         \
     .index = index_,                                                                              \
     .sentence = sentence_,                                                                        \
     __VA_ARGS__},

static const struct row rows[] = {
#define METRIC_GROUP(title)                  {.group = title},
#define METRIC(kind, name, sentence)         ROW(kind, name, COUNT, METRIC_##name, sentence)
#define METRIC_SECONDS(kind, name, sentence) ROW(kind, name, SECONDS, METRIC_##name, sentence)
#define METRIC_OF(kind, name, label_, value, sentence)                                             \
    ROW(kind, name, COUNT, METRIC_##name##_##value, sentence, .label = {#label_, #value})
#define METRIC_SECONDS_OF(kind, name, label_, value, sentence)                                     \
    ROW(kind, name, SECONDS, METRIC_##name##_##value, sentence, .label = {#label_, #value})
#define ROW_BY(kind, audience, name, unit, sentence, ...)                                          \
    ROW(kind, name, unit, METRIC_BY_##name, sentence, .labels = {__VA_ARGS__},                     \
        .names_things = AUDIENCE_##audience == AUDIENCE_ADMITTED)
#define METRIC_BY(kind, who, name, ...)         ROW_BY(kind, who, name, COUNT, __VA_ARGS__)
#define METRIC_SECONDS_BY(kind, who, name, ...) ROW_BY(kind, who, name, SECONDS, __VA_ARGS__)
#define METRIC_HISTOGRAM(name, unit, sentence)                                                     \
    ROW(HISTOGRAM, name, unit, METRIC_HISTOGRAM_##name, sentence)
#define METRIC_HISTOGRAM_BY(name, unit, sentence, label_)                                          \
    ROW(HISTOGRAM, name, unit, METRIC_HISTOGRAM_BY_##name, sentence, .labels = {label_})
#include "base/metrics.def"
};

enum { ROWS = sizeof rows / sizeof *rows };

static const char RPCS_GROUP[] = "RPCs";
static const char RPCS_TOTAL[] = "RPCs that have ended, by method, app profile and status.";
static const char RPC_SECONDS[] = "Time from an RPC's request to its status.";

/* Metrics of the process have the names that Prometheus's own libraries use. */
static const char *full_name(const struct row *row)
{
    const char *name = row->name + sizeof "trestle_" - 1;
    return strncmp(name, "process_", sizeof "process_" - 1) == 0 ? name : row->name;
}

struct look {
    struct metrics *metrics;
    metric_visitor *visit;
    void *context;
    const char *profiles[PROFILES];
};

static double in_unit(int64_t value, enum unit unit)
{
    return unit == UNIT_SECONDS ? (double)value / 1e6 : (double)value;
}

/* The sample's count and buckets have what is in each bucket alone as yet. */
static void add_buckets(struct metric_sample *sample, struct buckets *from, uint64_t *sum)
{
    for (unsigned i = 0; i < METRIC_BOUNDS; i++)
        sample->buckets[i] += atomic_load_explicit(&from->buckets[i], memory_order_relaxed);
    sample->count += atomic_load_explicit(&from->buckets[METRIC_BOUNDS], memory_order_relaxed);
    *sum += atomic_load_explicit(&from->sum, memory_order_relaxed);
}

static void finish_buckets(struct metric_sample *sample, uint64_t sum, enum unit unit)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < METRIC_BOUNDS; i++) {
        sample->bounds[i] = in_unit(INT64_C(1) << (FIRST_BOUND_BIT + i), unit);
        sample->buckets[i] = count += sample->buckets[i];
    }
    sample->count += count;
    sample->value = in_unit((int64_t)sum, unit);
}

static void fill_histogram(struct metrics *metrics, const struct row *row,
                           struct metric_sample *sample)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < SHARDS; i++)
        add_buckets(sample, &metrics->shards[i].histograms[row->index], &sum);
    finish_buckets(sample, sum, row->unit);
}

static double row_value(struct metrics *metrics, const struct row *row)
{
    return in_unit(metrics_value(metrics, (enum metric)row->index), row->unit);
}

static void add_label(struct metric_sample *sample, const char *name, const char *value)
{
    sample->labels[sample->label_count++] = (struct metric_label){name, value};
}

static void visit_series(const struct look *look, const struct row *row, const char *group,
                         const struct metric_series *series)
{
    struct metric_sample sample = {.name = row->name,
                                   .group = group,
                                   .sentence = row->sentence,
                                   .type = row->type,
                                   .names_things = row->names_things,
                                   .value = in_unit(series->value, row->unit)};
    for (unsigned i = 0; i < METRIC_LABELS_MOST && row->labels[i] != NULL; i++)
        add_label(&sample, row->labels[i], series->labels[i]);
    look->visit(look->context, &sample);
}

static void visit_family(const struct look *look, const struct row *row, const char *group)
{
    pthread_mutex_lock(&look->metrics->families_lock);
    const struct family *family = look->metrics->families[row->index];
    for (size_t i = 0; family != NULL && i < family->count; i++)
        visit_series(look, row, group, &family->series[i]);
    pthread_mutex_unlock(&look->metrics->families_lock);
}

static void visit_observed(const struct look *look, const struct row *row, const char *group,
                           struct metric_observed *observed)
{
    struct metric_sample sample = {.name = row->name,
                                   .group = group,
                                   .sentence = row->sentence,
                                   .type = METRIC_TYPE_HISTOGRAM};
    uint64_t sum = 0;
    add_label(&sample, row->labels[0], observed->label);
    for (unsigned i = 0; i < SHARDS; i++)
        add_buckets(&sample, &observed->shards[i], &sum);
    finish_buckets(&sample, sum, row->unit);
    look->visit(look->context, &sample);
}

static void visit_histograms(const struct look *look, const struct row *row, const char *group)
{
    pthread_mutex_lock(&look->metrics->mutex);
    struct metric_observed *observed = look->metrics->observed; /* without it: invariant 2 */
    pthread_mutex_unlock(&look->metrics->mutex);
    for (; observed != NULL; observed = observed->next)
        if ((unsigned)observed->family == row->index)
            visit_observed(look, row, group, observed);
}

static void visit_row(const struct look *look, const struct row *row, const char *group)
{
    struct metric_sample sample = {.name = full_name(row),
                                   .group = group,
                                   .sentence = row->sentence,
                                   .type = row->type,
                                   .label_count = row->label.name != NULL,
                                   .labels = {row->label}};
    if (row->type == METRIC_TYPE_HISTOGRAM)
        fill_histogram(look->metrics, row, &sample);
    else
        sample.value = row_value(look->metrics, row);
    look->visit(look->context, &sample);
}

static struct metric_sample rpc_sample(const struct look *look, const struct rpc_metrics *rpc,
                                       unsigned profile)
{
    struct metric_sample sample = {.group = RPCS_GROUP};
    add_label(&sample, "method", rpc->method);
    if (look->profiles[profile] != NULL)
        add_label(&sample, "app_profile", look->profiles[profile]);
    return sample;
}

static void visit_codes(const struct look *look, struct rpc_metrics *rpc, unsigned profile,
                        struct rpc_counts *counts)
{
    for (unsigned code = 0; code < STATUS_CODES; code++) {
        struct metric_sample sample = rpc_sample(look, rpc, profile);
        sample.name = "trestle_rpcs_total";
        sample.sentence = RPCS_TOTAL;
        add_label(&sample, "code", status_code_name((enum status_code)code));
        for (unsigned i = 0; i < SHARDS; i++)
            sample.value +=
                (double)atomic_load_explicit(&counts->shards[i].ended[code], memory_order_relaxed);
        if (sample.value > 0)
            look->visit(look->context, &sample);
    }
}

static void visit_duration(const struct look *look, struct rpc_metrics *rpc, unsigned profile,
                           struct rpc_counts *counts)
{
    struct metric_sample sample = rpc_sample(look, rpc, profile);
    uint64_t sum = 0;
    sample.name = "trestle_rpc_seconds";
    sample.sentence = RPC_SECONDS;
    sample.type = METRIC_TYPE_HISTOGRAM;
    for (unsigned i = 0; i < SHARDS; i++)
        add_buckets(&sample, &counts->shards[i].duration, &sum);
    finish_buckets(&sample, sum, UNIT_SECONDS);
    if (sample.count > 0)
        look->visit(look->context, &sample);
}

typedef void rpc_visitor(const struct look *, struct rpc_metrics *, unsigned, struct rpc_counts *);

static void visit_rpcs(const struct look *look, struct rpc_metrics *first, rpc_visitor *visit)
{
    for (struct rpc_metrics *rpc = first; rpc != NULL; rpc = rpc->next)
        for (unsigned profile = 0; profile < PROFILES; profile++) {
            struct rpc_counts *counts =
                atomic_load_explicit(&rpc->profiles[profile], memory_order_acquire);
            /* A profile that was added a moment ago has no name here yet. */
            if (counts != NULL && (profile == 0 || look->profiles[profile] != NULL))
                visit(look, rpc, profile, counts);
        }
}

void metrics_visit(struct metrics *metrics, metric_visitor *visit, void *context)
{
    CHECK_MAGIC(metrics, METRICS_MAGIC);
    struct look look = {.metrics = metrics, .visit = visit, .context = context};
    const char *group = NULL;
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].group != NULL)
            group = rows[i].group;
        else if (rows[i].labels[0] != NULL && rows[i].type == METRIC_TYPE_HISTOGRAM)
            visit_histograms(&look, &rows[i], group);
        else if (rows[i].labels[0] != NULL)
            visit_family(&look, &rows[i], group);
        else
            visit_row(&look, &rows[i], group);
    }
    pthread_mutex_lock(&metrics->mutex);
    struct rpc_metrics *first = metrics->rpcs; /* read without the lock: invariant 2 */
    pthread_mutex_unlock(&metrics->mutex);
    name_profiles(metrics, look.profiles);
    visit_rpcs(&look, first, visit_codes);
    visit_rpcs(&look, first, visit_duration);
}

/* --- the page --- */

static void write_group(struct buffer *out, const char *title)
{
    buffer_append_format(out, "\n## %s\n\n| metric | type | what it is |\n|---|---|---|\n", title);
}

static void write_label_names(struct buffer *out, const struct row *row)
{
    if (row->label.name != NULL)
        buffer_append_format(out, "{%s}", row->label.name);
    if (row->labels[0] == NULL)
        return;
    buffer_append_format(out, "{%s", row->labels[0]);
    for (unsigned i = 1; i < METRIC_LABELS_MOST && row->labels[i] != NULL; i++)
        buffer_append_format(out, ",%s", row->labels[i]);
    buffer_append_byte(out, '}');
}

/* Writes one line for all series of a name. */
static void write_line(struct buffer *out, const struct row *row)
{
    if (row->label.name != NULL && strcmp(row[-1].name == NULL ? "" : row[-1].name, row->name) == 0)
        return;
    buffer_append_format(out, "| `%s", full_name(row));
    write_label_names(out, row);
    buffer_append_format(out, "` | %s | %s |\n", metric_type_name(row->type), row->sentence);
}

void metrics_write_markdown(struct buffer *out)
{
    buffer_append_format(
        out,
        "# Metrics\n\n"
        "Written by `./dev docs` from `src/base/metrics.def`: change it there.\n\n"
        "The server shows them on its page `/metrics`, in Prometheus's text format; by\n"
        "`GetMetrics` of [its own service](console.md), for programs; in the\n"
        "[console](console.md), and by [`trestle status`](status.md), for people. Counters begin\n"
        "at 0 when it starts. Histograms have the series `_bucket`, `_sum` and `_count`.\n");
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].group != NULL)
            write_group(out, rows[i].group);
        else
            write_line(out, &rows[i]);
    }
    write_group(out, RPCS_GROUP);
    buffer_append_format(
        out,
        "| `trestle_rpcs_total{method,app_profile,code}` | counter | %s |\n"
        "| `trestle_rpc_seconds{method,app_profile}` | histogram | %s |\n\n"
        "A method has its full name, `google.bigtable.v2.Bigtable/ReadRows`, and is not there "
        "until\nit was called. `app_profile` is the profile's id, of whichever instance: "
        "`default` also if\nthe request names none, `other` if there is none of that id, or there "
        "were %d others before it.\nIt is missing where methods know no app profiles, and where a "
        "call ended before its request\nwas read.\n",
        RPCS_TOTAL, RPC_SECONDS, LIMIT_PROFILE_METRICS);
}
