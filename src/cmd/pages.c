/* See pages.h. */
#include "cmd/pages.h"

#include "os/pool.h"
#include "os/process.h"

#define PLAIN_TEXT "text/plain; charset=utf-8"

static void answer(struct http1_response *response, unsigned code, const char *words)
{
    response->code = code;
    response->content_type = PLAIN_TEXT;
    buffer_append_format(&response->body, "%s\n", words);
}

/* The process runs and answers. */
static void show_live(struct pages *pages, struct http1_response *response)
{
    (void)pages;
    answer(response, 200, "ok");
}

/* It is worth sending requests here. A server that stops accepts no connection to say so on. */
static void show_ready(struct pages *pages, struct http1_response *response)
{
    status s = cluster_health(pages->cluster);
    answer(response, status_is_ok(s) ? 200 : 503, status_is_ok(s) ? "ok" : status_message(s));
    status_free(s);
}

/* What is asked for rather than counted. */
static void measure(struct pages *pages)
{
    metrics_set(pages->metrics, METRIC_rpcs_running, (int64_t)grpc_server_call_count(pages->grpc));
    metrics_set(pages->metrics, METRIC_pool_tasks, (int64_t)pool_load(pages->pool));
    cluster_measure(pages->cluster);
}

static void write_process_metric(struct buffer *out, const char *name, const char *type,
                                 const char *sentence, double value)
{
    buffer_append_format(out, "# HELP process_%s %s\n# TYPE process_%s %s\nprocess_%s %.15g\n",
                         name, sentence, name, type, name, value);
}

/* Under the names that Prometheus's own libraries use. */
static void write_process(struct buffer *out)
{
    struct process_usage usage = process_usage();
    write_process_metric(out, "cpu_seconds_total", "counter", "CPU time of the process.",
                         (double)usage.cpu_us / 1e6);
    write_process_metric(out, "resident_memory_bytes", "gauge", "Resident memory.",
                         (double)usage.resident_bytes);
    write_process_metric(out, "open_fds", "gauge", "Open file descriptors.",
                         (double)usage.open_files);
}

static void show_metrics(struct pages *pages, struct http1_response *response)
{
    measure(pages);
    metrics_write(pages->metrics, &response->body);
    write_process(&response->body);
    response->code = 200;
    response->content_type = "text/plain; version=0.0.4; charset=utf-8";
}

static const struct {
    const char *path;
    void (*show)(struct pages *pages, struct http1_response *response);
} paths[] = {
    {"/livez", show_live},
    {"/readyz", show_ready},
    {"/metrics", show_metrics},
};

void pages_handle(void *context, const char *method, const char *path,
                  struct http1_response *response)
{
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (strcmp(path, paths[i].path) != 0)
            continue;
        if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
            paths[i].show(context, response);
        else
            answer(response, 405, "GET or HEAD only");
        return;
    }
    answer(response, 404, "there is no such page");
}
