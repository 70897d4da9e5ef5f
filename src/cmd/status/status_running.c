/* See status_running.h. */
#include "cmd/status/status_running.h"

#include "cmd/text_table.h"
#include "wire/json.h"

#include <inttypes.h>
#include <stdio.h>

#define SERVER "servers/self"

enum { MEMORY_LIMIT = 64 << 20, PAGE = 1000, CELL = 32, NANOS = 1000000000 };

/* --- the list --- */

static double seconds_of(const Pb__Duration *duration)
{
    return duration == NULL ? 0 : (double)duration->seconds + (double)duration->nanos / NANOS;
}

static void add_number(struct text_table *table, int64_t number)
{
    char text[CELL];
    snprintf(text, sizeof text, "%" PRId64, number);
    text_table_add(table, bytes_of(text));
}

static void add_age(struct text_table *table, const Pb__Duration *age)
{
    char text[CELL];
    snprintf(text, sizeof text, "%.3f s", seconds_of(age));
    text_table_add(table, bytes_of(text));
}

/* "ReadRows" of "google.bigtable.v2.Bigtable/ReadRows". */
static bytes short_method(const char *method)
{
    const char *slash = strrchr(method, '/');
    return bytes_of(slash == NULL ? method : slash + 1);
}

static void add_request(struct text_table *table, const Insight__RunningRequest *request)
{
    char state[CELL];
    snprintf(state, sizeof state, "%s%s", request->state,
             request->is_cancelled ? ", cancelled" : "");
    text_table_add(table, bytes_of(request->id));
    add_age(table, request->age);
    text_table_add(table, bytes_of(state));
    text_table_add(table, short_method(request->method));
    add_number(table, request->rows);
    add_number(table, request->answer_bytes);
    text_table_add(table, bytes_of(request->principal[0] == '\0' ? "-" : request->principal));
    text_table_add(table, bytes_of(request->address));
    text_table_add(table, bytes_of(request->resource));
}

void running_write_text(const Insight__ListRunningRequestsResponse *list, struct buffer *out)
{
    struct text_column columns[] = {
        {.name = "id"},
        {.name = "age", .to_the_right = true},
        {.name = "state"},
        {.name = "method"},
        {.name = "rows", .to_the_right = true},
        {.name = "bytes", .to_the_right = true},
        {.name = "principal"},
        {.name = "address"},
        {.name = "resource"},
    };
    struct text_table table;
    text_table_begin(&table, columns, sizeof columns / sizeof *columns, true, out);
    for (size_t i = 0; i < list->n_requests; i++)
        add_request(&table, list->requests[i]);
    text_table_end(&table);
    buffer_append_format(out, "%" PRId64 " running", list->total);
    if (list->total > (int64_t)list->n_requests)
        buffer_append_format(out, ", the %zu oldest shown", list->n_requests);
    if (list->silent_loops > 0)
        buffer_append_format(out, "; %d of %d event loops do not answer", list->silent_loops,
                             list->loops);
    buffer_append_byte(out, '\n');
}

static void write_list(const ProtobufCMessage *list, bool as_json, struct buffer *out)
{
    const struct json_style style = {.compact = true};
    if (!as_json) {
        running_write_text((const void *)list, out);
        return;
    }
    json_encode(list, &style, out);
    buffer_append_byte(out, '\n');
}

status status_write_running(struct client_session *session, bool as_json, struct buffer *out)
{
    Insight__ListRunningRequestsRequest request = INSIGHT__LIST_RUNNING_REQUESTS_REQUEST__INIT;
    const ProtobufCMessage *answer;
    struct arena *arena = arena_create(MEMORY_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    request.parent = SERVER;
    request.page_size = PAGE;
    status s = client_session_call(
        session, "/trestle.insight.v1.Insight/ListRunningRequests", NULL, &request.base,
        &insight__list_running_requests_response__descriptor, arena, &answer);
    if (status_is_ok(s))
        write_list(answer, as_json, out);
    arena_destroy(arena);
    return s;
}

/* --- what it is to do --- */

static void write_cancelled(const ProtobufCMessage *answer, struct buffer *out)
{
    const Insight__RunningRequest *request = (const void *)answer;
    bytes method = short_method(request->method);
    buffer_append_format(out, "cancelled %s: %.*s of %s by %s from %s, after %.3f s\n", request->id,
                         (int)method.size, (const char *)method.data, request->resource,
                         request->principal[0] == '\0' ? "-" : request->principal, request->address,
                         seconds_of(request->age));
}

status status_cancel(struct client_session *session, const char *id, struct buffer *out)
{
    Insight__CancelRequestRequest request = INSIGHT__CANCEL_REQUEST_REQUEST__INIT;
    const ProtobufCMessage *answer;
    struct arena *arena = arena_create(MEMORY_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    request.name = SERVER;
    request.id = id;
    status s =
        client_session_call(session, "/trestle.insight.v1.Insight/CancelRequest", NULL,
                            &request.base, &insight__running_request__descriptor, arena, &answer);
    if (status_is_ok(s))
        write_cancelled(answer, out);
    arena_destroy(arena);
    return s;
}

static void write_level(const ProtobufCMessage *answer, struct buffer *out)
{
    const Insight__LogLevel *level = (const void *)answer;
    buffer_append_format(out,
                         "the log's level is %s, it was %s; the next start makes it %s again\n",
                         level->level, level->previous_level, level->configured_level);
}

status status_set_log_level(struct client_session *session, const char *level, struct buffer *out)
{
    Insight__SetLogLevelRequest request = INSIGHT__SET_LOG_LEVEL_REQUEST__INIT;
    const ProtobufCMessage *answer;
    struct arena *arena = arena_create(MEMORY_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    request.name = SERVER;
    request.level = level;
    status s = client_session_call(session, "/trestle.insight.v1.Insight/SetLogLevel", NULL,
                                   &request.base, &insight__log_level__descriptor, arena, &answer);
    if (status_is_ok(s))
        write_level(answer, out);
    arena_destroy(arena);
    return s;
}

/* --- where its threads are --- */

status status_write_stacks(struct client_session *session, struct buffer *out)
{
    Insight__GetStacksRequest request = INSIGHT__GET_STACKS_REQUEST__INIT;
    const ProtobufCMessage *answer;
    struct arena *arena = arena_create(MEMORY_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    request.name = SERVER;
    status s = client_session_call(session, "/trestle.insight.v1.Insight/GetStacks", NULL,
                                   &request.base, &insight__stacks__descriptor, arena, &answer);
    if (status_is_ok(s))
        buffer_append_bytes(out, bytes_of(((const Insight__Stacks *)(const void *)answer)->text));
    arena_destroy(arena);
    return s;
}

status status_write_profile(struct client_session *session, int64_t duration_us, struct buffer *out)
{
    enum { SECOND_US = 1000000, US_NANOS = 1000 };
    Insight__GetCpuProfileRequest request = INSIGHT__GET_CPU_PROFILE_REQUEST__INIT;
    Pb__Duration duration = PB__DURATION__INIT;
    const ProtobufCMessage *answer;
    struct arena *arena = arena_create(MEMORY_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    duration.seconds = duration_us / SECOND_US;
    duration.nanos = (int32_t)(duration_us % SECOND_US * US_NANOS);
    request.name = SERVER;
    request.duration = &duration;
    status s =
        client_session_call(session, "/trestle.insight.v1.Insight/GetCpuProfile", NULL,
                            &request.base, &insight__cpu_profile__descriptor, arena, &answer);
    if (status_is_ok(s))
        buffer_append_bytes(out,
                            bytes_of(((const Insight__CpuProfile *)(const void *)answer)->folded));
    arena_destroy(arena);
    return s;
}
