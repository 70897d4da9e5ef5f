/* ListSlowRequests: what slow_log.h keeps, the latest first. */
#include "introspect/methods.h"
#include "introspect/slow_log.h"
#include "wire/timestamps.h"

enum { PAGE_DEFAULT = 100 };

static status copy(struct arena *arena, const char *text, const char **out)
{
    *out = arena_string(arena, bytes_of(text));
    return *out == NULL ? status_out_of_memory() : status_ok();
}

static status copy_texts(struct arena *arena, const struct slow_request *from,
                         Insight__SlowRequest *to)
{
    TRY(copy(arena, from->method, &to->method));
    TRY(copy(arena, from->resource, &to->resource));
    TRY(copy(arena, from->app_profile, &to->app_profile));
    TRY(copy(arena, from->principal, &to->principal));
    TRY(copy(arena, from->trace_id, &to->trace_id));
    return copy(arena, from->plan, &to->plan);
}

static status describe(struct arena *arena, const struct slow_request *from,
                       Insight__SlowRequest **out)
{
    Insight__SlowRequest *to;
    PROTO_NEW(arena, to, INSIGHT__SLOW_REQUEST__INIT);
    TRY(timestamp_message(from->started_us, arena, &to->start_time));
    TRY(duration_message(from->duration_us, arena, &to->duration));
    TRY(duration_message(from->client_us, arena, &to->client_duration));
    to->code = (int32_t)from->code;
    to->rows = from->items;
    to->rows_seen = from->seen;
    to->request_bytes = (int64_t)from->request_bytes;
    to->answer_bytes = (int64_t)from->answer_bytes;
    TRY(copy_texts(arena, from, to));
    *out = to;
    return status_ok();
}

static status describe_all(struct arena *arena, const struct slow_request *const *from,
                           size_t count, Insight__ListSlowRequestsResponse *out)
{
    out->requests = arena_alloc(arena, count * sizeof *out->requests);
    if (out->requests == NULL)
        return status_out_of_memory();
    for (; out->n_requests < count; out->n_requests++)
        TRY(describe(arena, from[out->n_requests], &out->requests[out->n_requests]));
    return status_ok();
}

static size_t page_size(int32_t asked, size_t count)
{
    size_t most = asked == 0 ? PAGE_DEFAULT : (size_t)asked;
    return count < most ? count : most;
}

status list_slow_requests(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__ListSlowRequestsRequest *message = (const void *)request->message;
    struct slow_log *slow = insight_of(request)->slow;
    const struct slow_request *kept[SLOW_REQUESTS_MOST];
    Insight__ListSlowRequestsResponse *list;
    TRY(insight_check_server(message->parent));
    if (message->page_size < 0)
        return status_make(STATUS_INVALID_ARGUMENT, "page_size must not be negative");
    PROTO_NEW(request->arena, list, INSIGHT__LIST_SLOW_REQUESTS_RESPONSE__INIT);
    if (slow_log_threshold_us(slow) != INT64_MAX)
        TRY(duration_message(slow_log_threshold_us(slow), request->arena, &list->threshold));
    size_t count = slow_log_list(slow, kept);
    status s = describe_all(request->arena, kept, page_size(message->page_size, count), list);
    for (size_t i = 0; i < count; i++)
        slow_request_release(kept[i]);
    *response = &list->base;
    return s;
}
