/* See pages.h. */
#include "cmd/pages.h"

#include "os/pool.h"
#include "os/process.h"

#define PLAIN_TEXT "text/plain; charset=utf-8"

static void answer(struct http_request *request, unsigned code, const char *words)
{
    http_answer_begin(request, code, PLAIN_TEXT);
    http_answer_add(request, bytes_of(words));
    http_answer_add(request, bytes_of("\n"));
}

/* The process runs and answers. */
static void show_live(struct pages *pages, struct http_request *request)
{
    (void)pages;
    answer(request, 200, "ok");
}

/* It is worth sending requests here. A server that stops accepts no connection to say so on. */
static void show_ready(struct pages *pages, struct http_request *request)
{
    status s = cluster_health(pages->cluster);
    answer(request, status_is_ok(s) ? 200 : 503, status_is_ok(s) ? "ok" : status_message(s));
    status_free(s);
}

/* What is asked for rather than counted. */
static void measure(struct pages *pages)
{
    metrics_set(pages->metrics, METRIC_rpcs_running, (int64_t)grpc_server_call_count(pages->grpc));
    metrics_set(pages->metrics, METRIC_pool_tasks, (int64_t)pool_load(pages->pool));
    cluster_measure(pages->cluster);
    backups_measure(pages->backups);
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

/* False if the request has been answered: whoever asks may not. */
static bool admit(struct pages *pages, struct http_request *request)
{
    enum { UNAUTHORIZED = 401, FORBIDDEN = 403 };
    bytes credential;
    if (pages->guard == NULL)
        return true;
    http_request_header(request, "authorization", &credential);
    status s = access_check(pages->guard, http_request_client(request), credential,
                            PERMISSION_instances_list, bytes_of("*"));
    if (status_is_ok(s))
        return true;
    answer(request, s.code == STATUS_UNAUTHENTICATED ? UNAUTHORIZED : FORBIDDEN, status_message(s));
    status_free(s);
    return false;
}

static void show_metrics(struct pages *pages, struct http_request *request)
{
    struct buffer page = {0};
    if (!admit(pages, request))
        return;
    measure(pages);
    metrics_write(pages->metrics, &page);
    write_process(&page);
    if (page.failed) {
        answer(request, 503, "out of memory");
    } else {
        http_answer_begin(request, 200, "text/plain; version=0.0.4; charset=utf-8");
        http_answer_add(request, buffer_bytes(&page));
    }
    buffer_free(&page);
}

static const struct {
    const char *path;
    void (*show)(struct pages *pages, struct http_request *request);
} paths[] = {
    {"/livez", show_live},
    {"/readyz", show_ready},
    {"/metrics", show_metrics},
};

static void show(struct pages *pages, struct http_request *request)
{
    const char *target = http_request_target(request), *method = http_request_method(request);
    size_t size = strcspn(target, "?");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (!bytes_equal(bytes_make(target, size), bytes_of(paths[i].path)))
            continue;
        if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
            paths[i].show(pages, request);
        else
            answer(request, 405, "GET or HEAD only");
        return;
    }
    answer(request, 404, "there is no such page");
}

void pages_handle(struct pages *pages, struct http_request *request)
{
    show(pages, request);
    http_answer_end(request);
}
