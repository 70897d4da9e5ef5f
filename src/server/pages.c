/* See pages.h. */
#include "server/pages.h"

#include "base/condition.h"

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

/* The server is worth sending requests to, be it with a warning. A server that stops accepts no
 * connection to say so on. */
static void show_ready(struct pages *pages, struct http_request *request)
{
    struct condition_view view;
    struct buffer text = {0};
    condition_look(cluster_condition(pages->cluster), &view);
    buffer_append_format(&text, "%s", health_level_name(view.level));
    for (size_t i = 0; i < view.count; i++) {
        const struct condition_reason *reason = &view.reasons[i];
        buffer_append_format(&text, "\n%s: %s", reason->name,
                             pages->hides_names ? reason->sentence : reason->text);
    }
    buffer_append_byte(&text, '\0');
    answer(request, view.level == HEALTH_NO_WRITES ? 503 : 200,
           text.failed ? health_level_name(view.level) : (const char *)text.data);
    buffer_free(&text);
}

/* False if the request has been answered: its client may not see pages. */
static bool admit(struct pages *pages, struct http_request *request)
{
    enum { UNAUTHORIZED = 401, FORBIDDEN = 403 };
    bytes credential;
    if (pages->guard == NULL)
        return true;
    http_request_header(request, "authorization", &credential);
    status s = access_check(pages->guard, "metrics", http_request_client(request), credential,
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
    measure(pages->measured);
    metrics_write(pages->measured->metrics, pages->hides_names && pages->guard == NULL, &page);
    if (page.failed) {
        answer(request, 503, "out of memory");
    } else {
        http_answer_begin(request, 200, "text/plain; version=0.0.4; charset=utf-8");
        http_answer_add(request, buffer_bytes(&page));
    }
    buffer_free(&page);
}

/* Who types the server's address into a browser means the console. For now: what a browser keeps
 * for good could not be another page later. */
static void lead_to_console(struct pages *pages, struct http_request *request)
{
    enum { FOUND = 302 };
    (void)pages;
    http_answer_header(request, "location", "/console/");
    answer(request, FOUND, "the console is at /console/");
}

static const struct {
    const char *path;
    void (*show)(struct pages *pages, struct http_request *request);
} paths[] = {
    {"/", lead_to_console},
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
