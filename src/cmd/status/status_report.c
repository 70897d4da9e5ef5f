/* See status_report.h. */
#include "cmd/status/status_report.h"

#include "cmd/replica/cluster_report.h"
#include "cmd/status/status_text.h"
#include "cmd/text_table.h"
#include "sql/functions/json_write.h"
#include "wire/json.h"

#include <stdarg.h>
#include <stdio.h>

enum { NANOS = 1000000000 };

/* --- numbers in words --- */

static struct status_text age_text(double seconds)
{
    enum { MINUTE = 60, HOUR = 3600, DAY = 24 * HOUR };
    struct status_text out;
    long s = seconds > 0 ? (long)seconds : 0;
    if (s < MINUTE)
        snprintf(out.chars, sizeof out.chars, "%ld s", s);
    else if (s < HOUR)
        snprintf(out.chars, sizeof out.chars, "%ld min %ld s", s / MINUTE, s % MINUTE);
    else if (s < DAY)
        snprintf(out.chars, sizeof out.chars, "%ld h %ld min", s / HOUR, s % HOUR / MINUTE);
    else
        snprintf(out.chars, sizeof out.chars, "%ld d %ld h", s / DAY, s % DAY / HOUR);
    return out;
}

#define COUNT(value)   status_count_text(value).chars
#define RATE(value)    status_rate_text(value).chars
#define BYTES(value)   status_bytes_text(value).chars
#define SECONDS(value) status_seconds_text(value).chars

/* --- looking things up --- */

static double time_of(const Pb__Timestamp *time)
{
    return time == NULL ? 0 : (double)time->seconds + (double)time->nanos / NANOS;
}

static double seconds_between(const struct status_looks *looks)
{
    double seconds = time_of(looks->now->time) - time_of(looks->before->time);
    return seconds > 0 ? seconds : 1;
}

static bool is_same_process(const struct status_looks *looks)
{
    return time_of(looks->now->start_time) == time_of(looks->before->start_time);
}

/* The label's value; NULL if the series has none of that name. */
static const char *label_of(const Insight__Metric *metric, const char *name)
{
    for (size_t i = 0; i < metric->n_labels; i++)
        if (strcmp(metric->labels[i]->key, name) == 0)
            return metric->labels[i]->value;
    return NULL;
}

static bool has_label(const Insight__Metric *metric, const char *name, const char *value)
{
    const char *own = label_of(metric, name);
    return own == NULL || value == NULL ? own == value : strcmp(own, value) == 0;
}

static bool is_series_of(const Insight__Metric *a, const Insight__Metric *b)
{
    if (strcmp(a->name, b->name) != 0 || a->n_labels != b->n_labels)
        return false;
    for (size_t i = 0; i < a->n_labels; i++)
        if (!has_label(b, a->labels[i]->key, a->labels[i]->value))
            return false;
    return true;
}

/* The same series in the look before; NULL: it was not there, or was of another process. Series
 * keep their order, so it is near the same place. */
static const Insight__Metric *before(const struct status_looks *looks,
                                     const Insight__Metric *metric)
{
    const Insight__Metrics *old = looks->before;
    for (size_t i = 0; i < old->n_metrics && is_same_process(looks); i++)
        if (is_series_of(old->metrics[i], metric))
            return old->metrics[i];
    return NULL;
}

static double risen(const struct status_looks *looks, const Insight__Metric *metric)
{
    const Insight__Metric *old = before(looks, metric);
    double was = old == NULL ? 0 : old->value;
    return metric->value > was ? metric->value - was : 0;
}

/* The sum of all series of that name, without "trestle_", in which the label has that value; a NULL
 * label stands for all. */
static double value(const struct status_looks *looks, const char *name, const char *label,
                    const char *wanted)
{
    double sum = 0;
    char full[STATUS_TEXT_SIZE];
    snprintf(full, sizeof full, "%s%s", strncmp(name, "process_", 8) == 0 ? "" : "trestle_", name);
    for (size_t i = 0; i < looks->now->n_metrics; i++) {
        const Insight__Metric *metric = looks->now->metrics[i];
        if (strcmp(metric->name, full) == 0 && (label == NULL || has_label(metric, label, wanted)))
            sum += metric->value;
    }
    return sum;
}

static double rate(const struct status_looks *looks, const char *name)
{
    double sum = 0;
    char full[STATUS_TEXT_SIZE];
    snprintf(full, sizeof full, "%s%s", strncmp(name, "process_", 8) == 0 ? "" : "trestle_", name);
    for (size_t i = 0; i < looks->now->n_metrics; i++)
        if (strcmp(looks->now->metrics[i]->name, full) == 0)
            sum += risen(looks, looks->now->metrics[i]);
    return sum / seconds_between(looks);
}

#define NOW(name) value(looks, name, NULL, NULL)

/* --- quantiles --- */

/* How many were at most `bound`: buckets with nothing in them are not there. */
static double count_up_to(const Insight__Metric *metric, double bound)
{
    double count = 0;
    for (size_t i = 0; metric != NULL && i < metric->n_buckets; i++)
        if (metric->buckets[i]->up_to <= bound)
            count = (double)metric->buckets[i]->count;
    return count;
}

/* Each bound is twice the one before, and what is in a bucket is taken to be spread evenly. */
double status_quantile(const Insight__Metric *old, const Insight__Metric *now, double share)
{
    double all = (double)now->count - (old == NULL ? 0 : (double)old->count);
    double wanted = share * all, last = 0, bound = 0;
    if (all <= 0)
        return -1;
    for (size_t i = 0; i < now->n_buckets; i++) {
        bound = now->buckets[i]->up_to;
        double count = (double)now->buckets[i]->count - count_up_to(old, bound);
        if (count >= wanted && count > last)
            return bound / 2 * (1 + (wanted - last) / (count - last));
        last = count;
    }
    return bound; /* or more: it lies beyond the last bucket */
}

static const Insight__Metric *find(const struct status_looks *looks, const char *name)
{
    for (size_t i = 0; i < looks->now->n_metrics; i++)
        if (strcmp(looks->now->metrics[i]->name, name) == 0)
            return looks->now->metrics[i];
    return NULL;
}

/* --- methods --- */

/* The calls of one method by one profile. */
struct method {
    const char *name;
    const char *profile; /* NULL: none */
    double calls;
    double errors;
    double call_rate;
    double error_rate;
    double p50; /* between the looks; negative: there were none */
    double p99;
    double p99_ever;
};

static void count_calls(const struct status_looks *looks, struct method *method)
{
    for (size_t i = 0; i < looks->now->n_metrics; i++) {
        const Insight__Metric *metric = looks->now->metrics[i];
        if (strcmp(metric->name, "trestle_rpcs_total") != 0 ||
            !has_label(metric, "method", method->name) ||
            !has_label(metric, "app_profile", method->profile))
            continue;
        double more = risen(looks, metric) / seconds_between(looks);
        bool is_error = !has_label(metric, "code", "OK");
        method->calls += metric->value;
        method->call_rate += more;
        method->errors += is_error ? metric->value : 0;
        method->error_rate += is_error ? more : 0;
    }
}

/* False: the metric is not that of a method's durations. */
static bool method_of(const struct status_looks *looks, const Insight__Metric *metric,
                      struct method *out)
{
    *out = (struct method){.name = label_of(metric, "method"),
                           .profile = label_of(metric, "app_profile")};
    if (strcmp(metric->name, "trestle_rpc_seconds") != 0 || out->name == NULL)
        return false;
    const Insight__Metric *old = before(looks, metric);
    out->p50 = status_quantile(old, metric, 0.5);
    out->p99 = status_quantile(old, metric, 0.99);
    out->p99_ever = status_quantile(NULL, metric, 0.99);
    count_calls(looks, out);
    return true;
}

/* "google.bigtable.v2.Bigtable/ReadRows" is "Bigtable/ReadRows". */
static const char *short_name(const char *method)
{
    const char *slash = strchr(method, '/'), *start = slash;
    while (start != NULL && start > method && start[-1] != '.')
        start--;
    return start == NULL ? method : start;
}

static void add_cell(struct text_table *table, const char *text)
{
    text_table_add(table, bytes_of(text));
}

static void write_methods(const struct status_looks *looks, struct buffer *out)
{
    struct text_column columns[] = {
        {.name = "method"},
        {.name = "app profile"},
        {.name = "calls/s", .to_the_right = true},
        {.name = "errors/s", .to_the_right = true},
        {.name = "p50", .to_the_right = true},
        {.name = "p99", .to_the_right = true},
        {.name = "calls", .to_the_right = true},
        {.name = "errors", .to_the_right = true},
        {.name = "p99 of all", .to_the_right = true},
    };
    struct text_table table;
    struct method method;
    text_table_begin(&table, columns, sizeof columns / sizeof *columns, true, out);
    for (size_t i = 0; i < looks->now->n_metrics; i++) {
        if (!method_of(looks, looks->now->metrics[i], &method))
            continue;
        add_cell(&table, short_name(method.name));
        add_cell(&table, method.profile == NULL ? "" : method.profile);
        add_cell(&table, RATE(method.call_rate));
        add_cell(&table, RATE(method.error_rate));
        add_cell(&table, SECONDS(method.p50));
        add_cell(&table, SECONDS(method.p99));
        add_cell(&table, COUNT(method.calls));
        add_cell(&table, COUNT(method.errors));
        add_cell(&table, SECONDS(method.p99_ever));
    }
    text_table_end(&table);
}

/* --- text --- */

__attribute__((format(printf, 3, 4))) static void line(struct buffer *out, const char *title,
                                                       const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    buffer_append_format(out, "%-13s %s\n", title, text);
}

static void write_reasons(const struct status_looks *looks, struct buffer *out)
{
    const Insight__Metrics *now = looks->now;
    const Insight__Health *health = now->health;
    if (health == NULL && now->trouble[0] != '\0') /* a former release says no more */
        buffer_append_format(out, "TAKES NO WRITES: %s\n", now->trouble);
    for (size_t i = 0; health != NULL && i < health->n_reasons; i++) {
        const Insight__Health__Reason *reason = health->reasons[i];
        bool is_worst = reason->level == INSIGHT__HEALTH__LEVEL__NO_WRITES;
        buffer_append_format(out, "%s: %s (%s, for %s)\n",
                             is_worst ? "TAKES NO WRITES" : "DEGRADED", reason->text, reason->name,
                             age_text(time_of(now->time) - time_of(reason->since)).chars);
    }
}

/* In red: a degraded server needs an operator, too. */
static void write_health(const struct status_looks *looks, struct buffer *out)
{
    struct buffer reasons = {0};
    write_reasons(looks, &reasons);
    bool is_red = looks->has_colors && reasons.size > 0;
    buffer_append_bytes(out, bytes_of(is_red ? "\033[1;31m" : ""));
    buffer_append_bytes(out, buffer_bytes(&reasons));
    buffer_append_bytes(out, bytes_of(is_red ? "\033[0m" : ""));
    out->failed |= reasons.failed;
    buffer_free(&reasons);
}

static void write_head(const struct status_looks *looks, struct buffer *out)
{
    const Insight__Metrics *now = looks->now;
    buffer_append_format(out, "trestle %s at %s, up %s\n", now->version, looks->address,
                         age_text(time_of(now->time) - time_of(now->start_time)).chars);
    if (now->server[0] != '\0') /* a former release does not say */
        buffer_append_format(out, "server %s\n", now->server);
    write_health(looks, out);
    if (strcmp(now->log_level, now->configured_log_level) != 0)
        buffer_append_format(out, "the log's level was set to %s (--log-level %s)\n",
                             now->log_level, now->configured_log_level);
    buffer_append_format(out, "rates are those of the last %.1f s\n\n", seconds_between(looks));
}

static void write_outside(const struct status_looks *looks, struct buffer *out)
{
    line(out, "connections", "%s open, %s accepted/s, %s refused", COUNT(NOW("connections")),
         RATE(rate(looks, "connections_accepted_total")), COUNT(NOW("connections_refused_total")));
    line(out, "traffic", "%s/s in, %s/s out", BYTES(rate(looks, "received_bytes_total")),
         BYTES(rate(looks, "sent_bytes_total")));
    line(out, "requests", "%s running, %s/s, %s rows read/s", COUNT(NOW("rpcs_running")),
         RATE(rate(looks, "rpcs_total")), RATE(rate(looks, "rows_read_total")));
    line(out, "process", "%.2f processors, %s of memory, %s files open",
         rate(looks, "process_cpu_seconds_total"), BYTES(NOW("process_resident_memory_bytes")),
         COUNT(NOW("process_open_fds")));
}

static void write_pool(const struct status_looks *looks, const char *pool, struct buffer *out)
{
    char title[STATUS_TEXT_SIZE];
    double running = value(looks, "pool_running", "pool", pool);
    double waited = value(looks, "pool_wait_seconds_total", "pool", pool);
    double tasks = value(looks, "pool_tasks_total", "pool", pool);
    snprintf(title, sizeof title, "  %s", pool);
    line(out, title, "%s waiting, %s running, %s done, %s waited on average",
         COUNT(value(looks, "pool_queued", "pool", pool)), COUNT(running), COUNT(tasks - running),
         SECONDS(tasks > 0 ? waited / tasks : -1));
}

static void write_threads(const struct status_looks *looks, struct buffer *out)
{
    line(out, "threads", "%s slow turns of event loops, the longest %s",
         COUNT(NOW("loop_slow_turns_total")), SECONDS(NOW("loop_longest_turn_seconds")));
    write_pool(looks, "requests", out);
    write_pool(looks, "queries", out);
    write_pool(looks, "datastore", out);
    write_pool(looks, "rows", out);
}

static void write_jobs(const struct status_looks *looks, const char *title, const char *job,
                       struct buffer *out)
{
    line(out, title, "%s waiting, %s running, %s pieces begun, which took %s",
         COUNT(value(looks, "maintenance_jobs_queued", "job", job)),
         COUNT(value(looks, "maintenance_jobs_running", "job", job)),
         COUNT(value(looks, "maintenance_pieces_total", "job", job)),
         SECONDS(value(looks, "maintenance_seconds_total", "job", job)));
}

static void write_maintenance(const struct status_looks *looks, struct buffer *out)
{
    line(out, "maintenance", "%s passes of garbage collection, %s idle compactions",
         COUNT(NOW("gc_passes_total")), COUNT(NOW("tables_settled_total")));
    write_jobs(looks, "  tables", "dropped_tables", out);
    write_jobs(looks, "  garbage", "garbage_collection", out);
    write_jobs(looks, "  idle", "idle_compaction", out);
    write_jobs(looks, "  rows", "dropped_rows", out);
}

static void write_commits(const struct status_looks *looks, struct buffer *out)
{
    const Insight__Metric *seconds = find(looks, "trestle_commit_seconds");
    const Insight__Metric *old = seconds == NULL ? NULL : before(looks, seconds);
    line(out, "commits", "%s/s with %s mutations/s, %s/s; queue %s %% full, %s refused",
         RATE(rate(looks, "commits_total")), RATE(rate(looks, "commit_mutations_total")),
         BYTES(rate(looks, "commit_bytes_total")), COUNT(NOW("commit_queue_percent")),
         COUNT(NOW("commit_refused_total")));
    line(out, "", "p50 %s, p99 %s",
         SECONDS(seconds == NULL ? -1 : status_quantile(old, seconds, 0.5)),
         SECONDS(seconds == NULL ? -1 : status_quantile(old, seconds, 0.99)));
}

static void write_levels(const struct status_looks *looks, struct buffer *out)
{
    struct buffer text = {0};
    for (char level[] = "0"; level[0] < '7'; level[0]++) {
        double files = value(looks, "store_level_files", "level", level);
        if (files > 0)
            buffer_append_format(&text, "%sL%s %s", text.size > 0 ? ", " : "", level, COUNT(files));
    }
    buffer_append_byte(&text, '\0');
    if (!text.failed)
        line(out, "table files", "%s", text.size > 1 ? (const char *)text.data : "none");
    buffer_free(&text);
}

static void write_cache(const struct status_looks *looks, struct buffer *out)
{
    double hits = NOW("store_cache_hits_total"), misses = NOW("store_cache_misses_total");
    double hit_rate = rate(looks, "store_cache_hits_total");
    double miss_rate = rate(looks, "store_cache_misses_total");
    char now[STATUS_TEXT_SIZE] = "none asked for", ever[STATUS_TEXT_SIZE] = "-";
    if (hit_rate + miss_rate > 0)
        snprintf(now, sizeof now, "%.1f %% of %s/s", 100 * hit_rate / (hit_rate + miss_rate),
                 RATE(hit_rate + miss_rate));
    if (hits + misses > 0)
        snprintf(ever, sizeof ever, "%.1f %%", 100 * hits / (hits + misses));
    line(out, "cache", "hits %s, %s of all; %s of %s", now, ever, BYTES(NOW("store_cache_bytes")),
         BYTES(NOW("store_cache_capacity_bytes")));
}

static void write_compactions(const struct status_looks *looks, struct buffer *out)
{
    line(out, "flushes", "%s running, %s done", COUNT(NOW("store_flushes_running")),
         COUNT(NOW("store_flushes_total")));
    line(out, "compactions", "%s running, %s done, %s/s read, %s/s written, %s to do",
         COUNT(NOW("store_compactions_running")), COUNT(NOW("store_compactions_total")),
         BYTES(rate(looks, "store_compaction_read_bytes_total")),
         BYTES(rate(looks, "store_compaction_written_bytes_total")),
         BYTES(NOW("store_compaction_pending_bytes")));
    line(out, "stalls", "%s, %s in all; %s slowdowns, %s stops",
         NOW("store_stalled") > 0 ? "WRITES ARE HELD BACK" : "none now",
         SECONDS(NOW("store_stall_milliseconds_total") / 1000),
         COUNT(value(looks, "store_stalls_total", "kind", "slowdown")),
         COUNT(value(looks, "store_stalls_total", "kind", "stop")));
    line(out, "  found", "%s for write buffers, %s for files at level 0, %s for compactions to do",
         COUNT(value(looks, "store_stall_causes_total", "cause", "write_buffers")),
         COUNT(value(looks, "store_stall_causes_total", "cause", "level0_files")),
         COUNT(value(looks, "store_stall_causes_total", "cause", "pending_compaction")));
}

static void write_store(const struct status_looks *looks, struct buffer *out)
{
    line(out, "store", "%s in tables, %s in write buffers, %s of log, %s free on the disk",
         BYTES(NOW("store_table_bytes")), BYTES(NOW("store_write_buffer_bytes")),
         BYTES(NOW("store_log_bytes")), BYTES(NOW("disk_free_bytes")));
    write_levels(looks, out);
    write_cache(looks, out);
    write_compactions(looks, out);
}

static void write_change_streams(const struct status_looks *looks, struct buffer *out)
{
    double quota = NOW("change_log_quota_bytes");
    line(out, "streams", "%s read, the slowest %s behind; %s of changes kept%s%s, %s back",
         COUNT(NOW("change_streams")), SECONDS(NOW("change_stream_lag_seconds")),
         BYTES(NOW("change_log_bytes")), quota > 0 ? " of " : "", quota > 0 ? BYTES(quota) : "",
         SECONDS(NOW("change_log_reach_seconds")));
}

static void write_views(const struct status_looks *looks, struct buffer *out)
{
    line(out, "views",
         "%s, %s not ready, the slowest %s behind; %s rows left out, upkeep %.1f %% "
         "of a processor",
         COUNT(NOW("views")), COUNT(NOW("views_not_ready")), SECONDS(NOW("views_lag_seconds")),
         COUNT(NOW("view_excluded_rows")), 100 * rate(looks, "views_cpu_seconds_total"));
}

static void write_tables(const struct status_looks *looks, struct buffer *out)
{
    line(out, "tables", "%s with %s tablets; %s split, %s merged, %s hot in the last day",
         COUNT(NOW("tables")), COUNT(NOW("tablets")), COUNT(NOW("tablet_splits_total")),
         COUNT(NOW("tablet_merges_total")), COUNT(NOW("hot_tablets")));
    write_change_streams(looks, out);
    write_views(looks, out);
    line(out, "transactions", "%s of Datastore running, %s/s begun, %s conflicts, %s lock waits",
         COUNT(NOW("datastore_transactions")),
         RATE(rate(looks, "datastore_transactions_begun_total")),
         COUNT(NOW("datastore_conflicts_total")), COUNT(NOW("datastore_lock_waits_total")));
    line(out, "backups", "%s ready, %s; %s failed", COUNT(NOW("backups")),
         BYTES(NOW("backup_bytes")), COUNT(NOW("backup_failures_total")));
}

static bool has_peers(const struct status_looks *looks)
{
    return looks->peers != NULL && looks->peers->list != NULL;
}

static void write_peers(const struct status_looks *looks, struct buffer *out)
{
    if (!has_peers(looks))
        return;
    line(out, "peers", "%s, %s silent; the most that is missing here is %s old",
         COUNT((double)looks->peers->list->n_peers), COUNT(NOW("peers_silent")),
         SECONDS(NOW("replication_max_delay_seconds")));
    buffer_append_byte(out, '\n');
    cluster_write_peers(looks->peers, out);
}

void status_write_text(const struct status_looks *looks, struct buffer *out)
{
    write_head(looks, out);
    write_outside(looks, out);
    write_threads(looks, out);
    write_commits(looks, out);
    write_store(looks, out);
    write_tables(looks, out);
    write_maintenance(looks, out);
    write_peers(looks, out);
    buffer_append_byte(out, '\n');
    write_methods(looks, out);
}

/* --- JSON --- */

static void member(struct buffer *out, const char *name, const char *text)
{
    json_append_string(out, bytes_of(name));
    buffer_append_byte(out, ':');
    json_append_string(out, bytes_of(text));
    buffer_append_byte(out, ',');
}

/* Durations that there are none of are null. */
static void number_member(struct buffer *out, const char *name, double number)
{
    if (number < 0)
        buffer_append_format(out, "\"%s\":null,", name);
    else
        buffer_append_format(out, "\"%s\":%.15g,", name, number);
}

/* In place of the comma behind the last member. */
static void close_with(struct buffer *out, char bracket)
{
    if (out->size > 0 && out->data[out->size - 1] == ',')
        out->size--;
    buffer_append_byte(out, (uint8_t)bracket);
    buffer_append_byte(out, ',');
}

static void write_method_json(const struct method *method, struct buffer *out)
{
    buffer_append_byte(out, '{');
    member(out, "method", method->name);
    member(out, "appProfile", method->profile == NULL ? "" : method->profile);
    number_member(out, "calls", method->calls);
    number_member(out, "errors", method->errors);
    number_member(out, "callsPerSecond", method->call_rate);
    number_member(out, "errorsPerSecond", method->error_rate);
    number_member(out, "p50Seconds", method->p50);
    number_member(out, "p99Seconds", method->p99);
    close_with(out, '}');
}

static void write_metric_json(const struct status_looks *looks, const Insight__Metric *metric,
                              struct buffer *out)
{
    bool is_counter = metric->type == INSIGHT__METRIC__TYPE__COUNTER;
    buffer_append_byte(out, '{');
    member(out, "name", metric->name);
    buffer_append_bytes(out, bytes_of("\"labels\":{"));
    for (size_t i = 0; i < metric->n_labels; i++)
        member(out, metric->labels[i]->key, metric->labels[i]->value);
    close_with(out, '}');
    buffer_append_format(out, "\"value\":%.15g,", metric->value);
    if (is_counter)
        number_member(out, "perSecond", risen(looks, metric) / seconds_between(looks));
    close_with(out, '}');
}

static const char *level_text(Insight__Health__Level level)
{
    if (level == INSIGHT__HEALTH__LEVEL__NO_WRITES)
        return "no_writes";
    return level == INSIGHT__HEALTH__LEVEL__DEGRADED ? "degraded" : "ok";
}

static void write_health_json(const struct status_looks *looks, struct buffer *out)
{
    const Insight__Health *health = looks->now->health;
    if (health == NULL)
        return;
    buffer_append_bytes(out, bytes_of("\"health\":{"));
    member(out, "level", level_text(health->level));
    buffer_append_bytes(out, bytes_of("\"reasons\":["));
    for (size_t i = 0; i < health->n_reasons; i++) {
        const Insight__Health__Reason *reason = health->reasons[i];
        buffer_append_byte(out, '{');
        member(out, "name", reason->name);
        member(out, "level", level_text(reason->level));
        member(out, "text", reason->text);
        number_member(out, "seconds", time_of(looks->now->time) - time_of(reason->since));
        close_with(out, '}');
    }
    close_with(out, ']');
    close_with(out, '}');
}

/* As `trestle cluster list` has it. */
static void write_peers_json(const struct status_looks *looks, struct buffer *out)
{
    const struct json_style style = {.compact = true};
    if (!has_peers(looks))
        return;
    buffer_append_bytes(out, bytes_of("\"peers\":"));
    json_encode(&looks->peers->base, &style, out);
    buffer_append_byte(out, ',');
}

void status_write_json(const struct status_looks *looks, struct buffer *out)
{
    const Insight__Metrics *now = looks->now;
    struct method method;
    buffer_append_byte(out, '{');
    member(out, "version", now->version);
    member(out, "endpoint", looks->address);
    member(out, "trouble", now->trouble);
    member(out, "logLevel", now->log_level);
    write_health_json(looks, out);
    write_peers_json(looks, out);
    number_member(out, "upSeconds", time_of(now->time) - time_of(now->start_time));
    number_member(out, "intervalSeconds", seconds_between(looks));
    buffer_append_bytes(out, bytes_of("\"methods\":["));
    for (size_t i = 0; i < now->n_metrics; i++)
        if (method_of(looks, now->metrics[i], &method))
            write_method_json(&method, out);
    close_with(out, ']');
    buffer_append_bytes(out, bytes_of("\"metrics\":["));
    for (size_t i = 0; i < now->n_metrics; i++)
        if (now->metrics[i]->type != INSIGHT__METRIC__TYPE__HISTOGRAM)
            write_metric_json(looks, now->metrics[i], out);
    close_with(out, ']');
    close_with(out, '}');
    out->size -= out->size > 0;
    buffer_append_byte(out, '\n');
}
