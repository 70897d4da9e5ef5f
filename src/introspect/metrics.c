/* GetMetrics: every series of /metrics, out of the same metrics_visit. */
#include "base/metrics.h"
#include "base/condition.h"
#include "base/settings.h"
#include "cluster/checkpoint.h"
#include "introspect/methods.h"
#include "wire/timestamps.h"

enum {
    FIRST_CAPACITY = 256,
    MEMORY = 16 << 20, /* some 2 MB are needed when all methods are called with all profiles */
};

/* What has been gathered, in the arena; the first failure ends it. */
struct gathering {
    struct arena *arena;
    const Insight__GetMetricsRequest *request;
    Insight__Metric **items;
    size_t count;
    size_t capacity;
    status result;
};

static status make_room(struct gathering *g)
{
    if (g->count < g->capacity)
        return status_ok();
    size_t capacity = g->capacity == 0 ? FIRST_CAPACITY : 2 * g->capacity;
    Insight__Metric **items = arena_alloc(g->arena, capacity * sizeof(Insight__Metric *));
    if (items == NULL)
        return status_out_of_memory();
    if (g->count > 0)
        memcpy(items, g->items, g->count * sizeof(Insight__Metric *));
    g->items = items;
    g->capacity = capacity;
    return status_ok();
}

static status add_labels(const struct metric_sample *sample, struct arena *arena,
                         Insight__Metric *metric)
{
    metric->labels = arena_alloc(arena, METRIC_LABELS_MOST * sizeof *metric->labels);
    if (metric->labels == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < sample->label_count; i++) {
        Insight__Metric__LabelsEntry *label;
        PROTO_NEW(arena, label, INSIGHT__METRIC__LABELS_ENTRY__INIT);
        label->key = sample->labels[i].name;
        label->value = arena_string(arena, bytes_of(sample->labels[i].value));
        if (label->value == NULL)
            return status_out_of_memory();
        metric->labels[metric->n_labels++] = label;
    }
    return status_ok();
}

/* Adds the buckets with something in them: most methods take about as long each time. */
static status add_buckets(const struct metric_sample *sample, struct arena *arena,
                          Insight__Metric *metric)
{
    metric->buckets = arena_alloc(arena, METRIC_BOUNDS * sizeof *metric->buckets);
    if (metric->buckets == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < METRIC_BOUNDS; i++) {
        Insight__Metric__Bucket *bucket;
        if (sample->buckets[i] == (i == 0 ? 0 : sample->buckets[i - 1]))
            continue;
        PROTO_NEW(arena, bucket, INSIGHT__METRIC__BUCKET__INIT);
        bucket->up_to = sample->bounds[i];
        bucket->count = (int64_t)sample->buckets[i];
        metric->buckets[metric->n_buckets++] = bucket;
    }
    return status_ok();
}

static status add(struct gathering *g, const struct metric_sample *sample)
{
    static const Insight__Metric__Type types[] = {
        [METRIC_TYPE_COUNTER] = INSIGHT__METRIC__TYPE__COUNTER,
        [METRIC_TYPE_GAUGE] = INSIGHT__METRIC__TYPE__GAUGE,
        [METRIC_TYPE_HISTOGRAM] = INSIGHT__METRIC__TYPE__HISTOGRAM,
    };
    Insight__Metric *metric;
    TRY(make_room(g));
    PROTO_NEW(g->arena, metric, INSIGHT__METRIC__INIT);
    metric->name = sample->name;
    metric->type = types[sample->type];
    metric->help = sample->sentence;
    metric->group = sample->group;
    metric->value = sample->value;
    metric->count = (int64_t)sample->count;
    TRY(add_labels(sample, g->arena, metric));
    if (sample->type == METRIC_TYPE_HISTOGRAM)
        TRY(add_buckets(sample, g->arena, metric));
    g->items[g->count++] = metric;
    return status_ok();
}

static void gather(void *context, const struct metric_sample *sample)
{
    struct gathering *g = context;
    if (status_is_ok(g->result) &&
        insight_is_asked_for(g->request->names, g->request->n_names, sample->name))
        g->result = add(g, sample);
}

static const Insight__Health__Level levels[] = {
    [HEALTH_OK] = INSIGHT__HEALTH__LEVEL__OK,
    [HEALTH_DEGRADED] = INSIGHT__HEALTH__LEVEL__DEGRADED,
    [HEALTH_NO_WRITES] = INSIGHT__HEALTH__LEVEL__NO_WRITES,
};

static status tell_reason(const struct condition_reason *reason, struct arena *arena,
                          Insight__Health__Reason **out)
{
    PROTO_NEW(arena, *out, INSIGHT__HEALTH__REASON__INIT);
    (*out)->name = reason->name;
    (*out)->level = levels[reason->level];
    (*out)->text = arena_string(arena, bytes_of(reason->text));
    if ((*out)->text == NULL)
        return status_out_of_memory();
    return timestamp_message(reason->since_us, arena, &(*out)->since);
}

static status tell_health(struct cluster *cluster, struct arena *arena, Insight__Metrics *out)
{
    struct condition_view view;
    Insight__Health *health;
    condition_look(cluster_condition(cluster), &view);
    PROTO_NEW(arena, health, INSIGHT__HEALTH__INIT);
    health->level = levels[view.level];
    health->reasons = arena_alloc(arena, REASON_COUNT * sizeof *health->reasons);
    if (health->reasons == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < view.count; i++)
        TRY(tell_reason(&view.reasons[i], arena, &health->reasons[health->n_reasons++]));
    if (view.level == HEALTH_NO_WRITES)
        out->trouble = health->reasons[0]->text;
    out->health = health;
    return status_ok();
}

static status tell_server(struct cluster *cluster, struct arena *arena, Insight__Metrics *out)
{
    char *identity = arena_alloc(arena, STORE_IDENTITY_SIZE);
    if (identity == NULL)
        return status_out_of_memory();
    out->server = identity;
    return cluster_identity(cluster, identity);
}

status get_metrics(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__GetMetricsRequest *message = (const void *)request->message;
    const struct insight *insight = insight_of(request);
    struct cluster *cluster = request->bigtable->cluster;
    struct gathering g = {.arena = request->arena, .request = message, .result = status_ok()};
    Insight__Metrics *out;
    TRY(insight_check_server(message->name));
    arena_set_limit(g.arena, MEMORY);
    PROTO_NEW(g.arena, out, INSIGHT__METRICS__INIT);
    insight->measure(insight->measured);
    metrics_visit(insight->metrics, gather, &g);
    TRY(g.result);
    out->metrics = g.items;
    out->n_metrics = g.count;
    out->version = TRESTLE_VERSION;
    TRY(tell_health(cluster, g.arena, out));
    TRY(tell_server(cluster, g.arena, out));
    out->log_level = log_level_name(log_level_now(insight->log));
    out->configured_log_level = log_level_name((enum log_level)insight->settings->log_level);
    TRY(timestamp_message(clock_wall_us(cluster_clock(cluster)), g.arena, &out->time));
    TRY(timestamp_message(metrics_value(insight->metrics, METRIC_process_start_time_seconds),
                          g.arena, &out->start_time));
    *response = &out->base;
    return status_ok();
}
