/* ListRunningRequests and CancelRequest: see running.h. */
#include "base/utf8.h"
#include "introspect/methods.h"
#include "wire/timestamps.h"

#include <stdio.h>

enum { PAGE_DEFAULT = 100 };

static status describe_times(const struct insight *insight, const struct running_request *from,
                             struct arena *arena, Insight__RunningRequest *to)
{
    struct clock *clock = insight->running.clock;
    int64_t now_us = clock_steady_us(clock);
    int64_t age_us = now_us > from->begun_us ? now_us - from->begun_us : 0;
    TRY(timestamp_message(clock_wall_us(clock) - age_us, arena, &to->start_time));
    TRY(duration_message(age_us, arena, &to->age));
    if (from->deadline_us == INT64_MAX)
        return status_ok();
    int64_t left_us = from->deadline_us > now_us ? from->deadline_us - now_us : 0;
    return duration_message(left_us, arena, &to->time_left);
}

static status method_text(struct arena *arena, const struct running_request *from, const char **out)
{
    size_t size = strlen(from->service) + strlen(from->method) + 2;
    char *text = arena_alloc(arena, size);
    if (text == NULL)
        return status_out_of_memory();
    snprintf(text, size, "%s/%s", from->service, from->method);
    *out = text;
    return status_ok();
}

/* Names come as they were sent: what is no text is question marks. */
static status readable(struct arena *arena, const char *text, const char **out)
{
    char *shown = arena_string(arena, bytes_of(text));
    if (shown == NULL)
        return status_out_of_memory();
    if (!utf8_is_valid(bytes_of(text)))
        for (char *c = shown; *c != '\0'; c++)
            *c = (unsigned char)*c < 0x80 ? *c : '?';
    *out = shown;
    return status_ok();
}

static status describe(const struct insight *insight, const struct running_request *from,
                       struct arena *arena, Insight__RunningRequest **out)
{
    Insight__RunningRequest *to;
    PROTO_NEW(arena, to, INSIGHT__RUNNING_REQUEST__INIT);
    TRY(readable(arena, from->id, &to->id));
    TRY(describe_times(insight, from, arena, to));
    TRY(method_text(arena, from, &to->method));
    TRY(readable(arena, from->resource, &to->resource));
    TRY(readable(arena, from->profile, &to->app_profile));
    TRY(readable(arena, from->principal, &to->principal));
    TRY(readable(arena, from->address, &to->address));
    to->state = from->step == CALL_WORKS ? "run" : call_step_name(from->step);
    to->is_cancelled = from->is_cancelled;
    to->rows = from->items;
    to->rows_seen = from->seen;
    to->request_bytes = (int64_t)from->request_bytes;
    to->answer_bytes = (int64_t)from->answer_bytes;
    *out = to;
    return status_ok();
}

status list_running_requests(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__ListRunningRequestsRequest *message = (const void *)request->message;
    const struct insight *insight = insight_of(request);
    struct arena *arena = request->arena;
    Insight__ListRunningRequestsResponse *answer;
    struct running_list list;
    TRY(insight_check_server(message->parent));
    if (message->page_size < 0)
        return status_make(STATUS_INVALID_ARGUMENT, "page_size must not be negative");
    size_t most = message->page_size == 0 ? PAGE_DEFAULT : (size_t)message->page_size;
    TRY(running_requests_list(&insight->running, most, arena, &list));
    PROTO_NEW(arena, answer, INSIGHT__LIST_RUNNING_REQUESTS_RESPONSE__INIT);
    answer->total = (int64_t)list.total;
    answer->loops = (int32_t)list.loops;
    answer->silent_loops = (int32_t)list.silent_loops;
    answer->requests = arena_alloc(arena, (list.count + 1) * sizeof *answer->requests);
    if (answer->requests == NULL)
        return status_out_of_memory();
    for (; answer->n_requests < list.count; answer->n_requests++)
        TRY(describe(insight, &list.requests[answer->n_requests], arena,
                     &answer->requests[answer->n_requests]));
    *response = &answer->base;
    return status_ok();
}

/* --- ending one --- */

/* Writes the words for the request's client. */
static void write_words(const struct access_caller *caller, struct buffer *words)
{
    buffer_append_bytes(words, bytes_of("The request was cancelled by an administrator"));
    if (caller == NULL || caller->principal.size == 0)
        return;
    buffer_append_bytes(words, bytes_of(" ("));
    buffer_append_bytes(words, caller->principal);
    buffer_append_bytes(words, bytes_of(")"));
}

/* Notes for the audit log whose request it was. Without memory the id alone is told. */
static void note_cancelled(const struct admin_request *request,
                           const Insight__RunningRequest *cancelled)
{
    struct access_caller *caller = request->caller;
    struct audit_changes *changes =
        caller == NULL ? NULL : arena_zalloc(request->arena, sizeof *changes);
    if (changes == NULL)
        return;
    AUDIT_CHANGE(changes, LOG_STR("action", "CANCEL"), LOG_STR("method", cancelled->method),
                 LOG_STR("principal", cancelled->principal),
                 LOG_STR("resource", cancelled->resource), LOG_STR("peer", cancelled->address));
    caller->changes = changes;
}

status cancel_request(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__CancelRequestRequest *message = (const void *)request->message;
    const struct insight *insight = insight_of(request);
    struct running_request cancelled;
    Insight__RunningRequest *answer;
    struct buffer words = {0};
    TRY(insight_check_server(message->name));
    write_words(request->caller, &words);
    status s = words.failed
                   ? status_out_of_memory()
                   : running_request_cancel(&insight->running, message->id, buffer_bytes(&words),
                                            request->arena, &cancelled);
    buffer_free(&words);
    TRY(s);
    TRY(describe(insight, &cancelled, request->arena, &answer));
    note_cancelled(request, answer);
    *response = &answer->base;
    return status_ok();
}
