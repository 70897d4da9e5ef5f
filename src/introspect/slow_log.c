/* See slow_log.h.
 *
 * A request's plan may name persons, in the keys that it asks for: the list has the plan whole, for
 * callers that may read it, and the line of the log without personal data (advisor/personal.h).
 *
 * Invariants
 *  1. `latest` is a ring of the last LATEST requests. What leaves it goes to `slowest`, if there is
 *     room, or a request of more than SLOWEST_SECONDS ago or faster than it: so none is in both.
 *  2. The lists are the lock's; a request never changes once it is in one. */
#include "introspect/slow_log.h"

#include "advisor/personal.h"
#include "base/limits.h"
#include "introspect/slow_plan.h"
#include "introspect/trace_context.h"

#include <pthread.h>
#include <stdlib.h>

enum { LATEST = 256, SLOWEST = SLOW_REQUESTS_MOST - LATEST, SLOWEST_SECONDS = 3600 };

struct slow_log {
    struct slow_log_options options;
    pthread_mutex_t lock;
    struct slow_request *latest[LATEST];
    size_t next; /* place in `latest` */
    struct slow_request *slowest[SLOWEST];
    int64_t second;   /* of the steady clock */
    size_t described; /* in it */
    int64_t untold;   /* slow ones since the last line that were not described */
};

status slow_log_create(const struct slow_log_options *options, struct slow_log **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return status_out_of_memory();
    (*out)->options = *options;
    pthread_mutex_init(&(*out)->lock, NULL);
    return status_ok();
}

void slow_request_release(const struct slow_request *request)
{
    union {
        const struct slow_request *shared;
        struct slow_request *own;
    } pointer = {.shared = request};
    if (request == NULL || atomic_fetch_sub(&pointer.own->references, 1) > 1)
        return;
    buffer_free(&pointer.own->text);
    free(pointer.own);
}

void slow_log_destroy(struct slow_log *slow)
{
    if (slow == NULL)
        return;
    for (size_t i = 0; i < LATEST; i++)
        slow_request_release(slow->latest[i]);
    for (size_t i = 0; i < SLOWEST; i++)
        slow_request_release(slow->slowest[i]);
    pthread_mutex_destroy(&slow->lock);
    free(slow);
}

int64_t slow_log_threshold_us(const struct slow_log *slow)
{
    return slow->options.threshold_us;
}

static bool is_method(const struct grpc_call_record *record, const char *service,
                      const char *method)
{
    return strcmp(record->service->name, service) == 0 && strcmp(record->method->name, method) == 0;
}

static bool waits_by_design(const struct grpc_call_record *record)
{
    return record->method == NULL || record->method->kind == GRPC_BIDI ||
           is_method(record, "grpc.health.v1.Health", "Watch") ||
           is_method(record, "google.longrunning.Operations", "WaitOperation") ||
           is_method(record, "trestle.insight.v1.Insight", "GetCpuProfile") ||
           is_method(record, "trestle.insight.v1.Insight", "GetStacks");
}

bool slow_log_concerns(const struct slow_log *slow, const struct grpc_call_record *record)
{
    return grpc_call_record_served_us(record) >= slow->options.threshold_us &&
           !waits_by_design(record);
}

/* --- making one --- */

/* Strings go one behind the other into `text`, which moves as it grows: hence places at first. */
struct texts {
    size_t resource;
    size_t app_profile;
    size_t principal;
    size_t trace_id;
    size_t plan;
};

static size_t add_text(struct buffer *text, bytes b)
{
    size_t at = text->size;
    buffer_append_bytes(text, b);
    buffer_append_byte(text, 0);
    return at;
}

static size_t add_trace(struct buffer *text, const struct grpc_call_record *record)
{
    char id[TRACE_ID_TEXT_SIZE] = "";
    struct trace_context context;
    bytes header;
    if (grpc_call_header(record->call, "traceparent", &header) &&
        trace_context_parse(header, &context))
        trace_context_id_text(&context, id);
    return add_text(text, bytes_of(id));
}

static size_t add_principal(struct buffer *text, const struct grpc_call_record *record,
                            struct access *access)
{
    size_t at = text->size;
    if (access != NULL)
        access_append_principal(access, record->call, record->peer, text);
    buffer_append_byte(text, 0);
    return at;
}

static void add_texts(struct slow_request *request, const struct grpc_call_record *record,
                      struct access *access, const struct slow_plan *plan)
{
    struct buffer *text = &request->text;
    struct texts at;
    buffer_append_format(text, "%s/%s%c", record->service->name, record->method->name, 0);
    at.resource = text->size;
    buffer_append_readable(text, plan->resource, LIMIT_SLOW_NAME_BYTES);
    buffer_append_byte(text, 0);
    at.app_profile = add_text(text, bytes_of(plan->app_profile));
    at.principal = add_principal(text, record, access);
    at.trace_id = add_trace(text, record);
    at.plan = add_text(text, buffer_bytes(&plan->words));
    if (text->failed)
        return;
    const char *start = (const char *)text->data;
    request->method = start;
    request->resource = start + at.resource;
    request->app_profile = start + at.app_profile;
    request->principal = start + at.principal;
    request->trace_id = start + at.trace_id;
    request->plan = start + at.plan;
}

/* NULL without memory. */
static struct slow_request *make_request(const struct slow_log *slow,
                                         const struct grpc_call_record *record,
                                         struct access *access)
{
    struct arena *arena = arena_create(LIMIT_SLOW_ARENA_BYTES);
    struct slow_request *request = calloc(1, sizeof *request);
    struct slow_plan plan = {.resource = {NULL, 0}};
    if (arena == NULL || request == NULL) {
        arena_destroy(arena);
        free(request);
        return NULL;
    }
    slow_plan_make(record, arena, &plan);
    atomic_init(&request->references, 1);
    request->started_us = clock_wall_us(slow->options.clock) - record->duration_us;
    request->duration_us = record->duration_us;
    request->client_us = record->client_us;
    request->code = record->code;
    request->items = record->items;
    request->seen = record->seen;
    request->request_bytes = record->request_bytes;
    request->answer_bytes = record->response_bytes;
    add_texts(request, record, access, &plan);
    buffer_free(&plan.words);
    arena_destroy(arena);
    if (!request->text.failed)
        return request;
    slow_request_release(request);
    return NULL;
}

/* --- the line --- */

/* The plan on one line, as much as a log line has room for: a byte that must be escaped takes six.
 */
static bytes one_line(bytes plan, struct buffer *out)
{
    enum { ROOM = 2400, PLAIN = 1, ESCAPED = 6 };
    size_t room = ROOM;
    for (size_t at = 0; at < plan.size; at++) {
        uint8_t c = plan.data[at];
        bool is_plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';
        size_t cost = is_plain ? PLAIN : ESCAPED;
        if (cost > room) {
            buffer_append(out, "...", 3);
            break;
        }
        room -= cost;
        if (c != '\n')
            buffer_append_byte(out, c);
        else if (at + 1 < plan.size)
            buffer_append(out, "; ", 2);
    }
    return buffer_bytes(out);
}

static void write_line(const struct slow_log *slow, const struct slow_request *request,
                       int64_t untold)
{
    struct buffer plan = {0}, shown = {0};
    personal_hide_certain(bytes_of(request->plan), &shown);
    log_warn(slow->options.log, "slow request", LOG_STR("method", request->method),
             LOG_STR("resource", request->resource), LOG_STR("app_profile", request->app_profile),
             LOG_STR("principal", request->principal), LOG_STR("trace", request->trace_id),
             LOG_INT("duration_us", request->duration_us), LOG_INT("client_us", request->client_us),
             LOG_STR("status", status_code_name(request->code)), LOG_INT("rows", request->items),
             LOG_INT("rows_seen", request->seen), LOG_INT("request_bytes", request->request_bytes),
             LOG_INT("answer_bytes", request->answer_bytes), LOG_INT("untold", untold),
             LOG_BYTES("plan", one_line(buffer_bytes(&shown), &plan)));
    buffer_free(&shown);
    buffer_free(&plan);
}

/* --- keeping --- */

static int64_t served_us(const struct slow_request *request)
{
    return request->duration_us - request->client_us;
}

static bool is_old(const struct slow_request *request, int64_t now_us)
{
    return now_us - request->started_us > SLOWEST_SECONDS * INT64_C(1000000);
}

/* Where in `slowest` the request belongs: a place that is free, or that of one that is too old, or
 * of the fastest, if that was faster. NULL: it does not. */
static struct slow_request **find_place(struct slow_log *slow, const struct slow_request *request,
                                        int64_t now_us)
{
    struct slow_request **fastest = &slow->slowest[0];
    for (size_t i = 0; i < SLOWEST; i++) {
        struct slow_request **other = &slow->slowest[i];
        if (*other == NULL || is_old(*other, now_us))
            return other;
        if (served_us(*other) < served_us(*fastest))
            fastest = other;
    }
    return served_us(*fastest) < served_us(request) ? fastest : NULL;
}

static void keep_if_slowest(struct slow_log *slow, struct slow_request *request, int64_t now_us)
{
    struct slow_request **place = find_place(slow, request, now_us);
    slow_request_release(place == NULL ? request : *place);
    if (place != NULL)
        *place = request;
}

static void keep(struct slow_log *slow, struct slow_request *request)
{
    int64_t now_us = clock_wall_us(slow->options.clock);
    pthread_mutex_lock(&slow->lock);
    struct slow_request **place = &slow->latest[slow->next++ % LATEST];
    struct slow_request *former = *place;
    *place = request;
    if (former != NULL)
        keep_if_slowest(slow, former, now_us);
    pthread_mutex_unlock(&slow->lock);
}

/* Whether there is room for another description in this second. `*untold` is then how many had
 * none since the last. */
static bool may_describe(struct slow_log *slow, int64_t *untold)
{
    int64_t second = clock_steady_us(slow->options.clock) / 1000000;
    pthread_mutex_lock(&slow->lock);
    if (second != slow->second) {
        slow->second = second;
        slow->described = 0;
    }
    bool may = slow->described < LIMIT_SLOW_REQUESTS_A_SECOND;
    *untold = slow->untold;
    slow->described += may;
    slow->untold = may ? 0 : slow->untold + 1;
    pthread_mutex_unlock(&slow->lock);
    return may;
}

void slow_log_add(struct slow_log *slow, const struct grpc_call_record *record,
                  struct access *access)
{
    int64_t untold;
    metrics_add(slow->options.metrics, METRIC_slow_requests_total, 1);
    if (!may_describe(slow, &untold))
        return;
    struct slow_request *request = make_request(slow, record, access);
    if (request == NULL)
        return;
    write_line(slow, request, untold);
    keep(slow, request);
}

/* --- listing --- */

static int later_first(const void *a, const void *b)
{
    const struct slow_request *first = *(const struct slow_request *const *)a;
    const struct slow_request *second = *(const struct slow_request *const *)b;
    if (first->started_us == second->started_us)
        return 0;
    return first->started_us > second->started_us ? -1 : 1;
}

static size_t take_references(struct slow_request *const *from, size_t count,
                              const struct slow_request **out)
{
    size_t taken = 0;
    for (size_t i = 0; i < count; i++) {
        if (from[i] == NULL)
            continue;
        atomic_fetch_add(&from[i]->references, 1);
        out[taken++] = from[i];
    }
    return taken;
}

size_t slow_log_list(struct slow_log *slow, const struct slow_request *out[SLOW_REQUESTS_MOST])
{
    pthread_mutex_lock(&slow->lock);
    size_t count = take_references(slow->latest, LATEST, out);
    count += take_references(slow->slowest, SLOWEST, out + count);
    pthread_mutex_unlock(&slow->lock);
    qsort(out, count, sizeof(const struct slow_request *), later_first);
    return count;
}

static size_t count_of(struct slow_request *const *from, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += from[i] != NULL;
    return found;
}

size_t slow_log_count(struct slow_log *slow)
{
    pthread_mutex_lock(&slow->lock);
    size_t count = count_of(slow->latest, LATEST) + count_of(slow->slowest, SLOWEST);
    pthread_mutex_unlock(&slow->lock);
    return count;
}
