/* ReadMetricHistory and ReadTableHistory: what is remembered of the server's metrics
 * (history/history.h), line by line. */
#include "history/history.h"
#include "bigtable/names.h"
#include "introspect/methods.h"
#include "wire/timestamps.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    POINTS_BY_DEFAULT = 120,
    POINTS_MOST = 2000,
    DIGITS_MOST = 17, /* of a double */
    WORKING_MEMORY = 128 << 20,
};

#define SECOND_US  INT64_C(1000000)
#define DEFAULT_US (3600 * SECOND_US)
#define MOST_US    (10 * 365 * INT64_C(86400) * SECOND_US)
#define METHODS    "method/"

/* Points, as the answer's lines. */
struct telling {
    const Insight__ReadMetricHistoryRequest *request;
    const struct history_points *points;
    struct arena *arena;
    Insight__MetricHistory *out;
    size_t capacity; /* of lines */
};

/* --- the request --- */

static status read_since(const Insight__ReadMetricHistoryRequest *message, int64_t *us)
{
    *us = DEFAULT_US;
    if (message->since == NULL)
        return status_ok();
    if (message->since->seconds < 1 || message->since->seconds > MOST_US / SECOND_US)
        return status_make(STATUS_INVALID_ARGUMENT, "since must be from a second to ten years");
    *us = message->since->seconds * SECOND_US + message->since->nanos / 1000;
    return status_ok();
}

static status read_question(const struct admin_request *request, struct history_question *out)
{
    const Insight__ReadMetricHistoryRequest *message = (const void *)request->message;
    int64_t since_us;
    TRY(read_since(message, &since_us));
    if (message->points < 0 || message->points > POINTS_MOST)
        return status_make(STATUS_INVALID_ARGUMENT, "points must be from 0 to %d", POINTS_MOST);
    if (message->digits < 0 || message->digits > DIGITS_MOST)
        return status_make(STATUS_INVALID_ARGUMENT, "digits must be from 0 to %d", DIGITS_MOST);
    out->until_us = cluster_version_us(request->bigtable->cluster);
    out->from_us = since_us < out->until_us ? out->until_us - since_us : 0;
    out->most = message->points == 0 ? POINTS_BY_DEFAULT : (size_t)message->points;
    return status_ok();
}

/* --- lines --- */

static bool is_wanted(const struct telling *telling, const char *name)
{
    return insight_is_asked_for(telling->request->lines, telling->request->n_lines, name);
}

static status add_line(struct telling *telling, const char *name, const char *help,
                       Insight__MetricHistory__Line **out)
{
    Insight__MetricHistory *history = telling->out;
    size_t count = telling->points->count;
    PROTO_NEW(telling->arena, *out, INSIGHT__METRIC_HISTORY__LINE__INIT);
    (*out)->name = name;
    (*out)->help = help;
    (*out)->values = arena_alloc(telling->arena, (count + 1) * sizeof *(*out)->values);
    if ((*out)->values == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        (*out)->values[i] = NAN;
    (*out)->n_values = count;
    history->lines[history->n_lines++] = *out;
    return status_ok();
}

/* As many digits as were asked for. */
static double shortened(const struct telling *telling, double value)
{
    char text[DIGITS_MOST + sizeof "-.e+308"];
    if (telling->request->digits == 0)
        return value;
    snprintf(text, sizeof text, "%.*e", telling->request->digits - 1, value);
    return strtod(text, NULL);
}

/* A line that no point has is left out. */
static status tell_line(struct telling *telling, enum history_line which)
{
    const struct history_line_row *row = history_line_row(which);
    Insight__MetricHistory__Line *line = NULL;
    for (size_t i = 0; i < telling->points->count; i++) {
        double value = telling->points->items[i].values[which];
        if (isnan(value))
            continue;
        if (line == NULL)
            TRY(add_line(telling, row->name, row->sentence, &line));
        line->values[i] = shortened(telling, value);
    }
    return status_ok();
}

static status line_of_method(struct telling *telling, const char *method,
                             Insight__MetricHistory__Line **out)
{
    struct buffer name = {0};
    buffer_append_format(&name, METHODS "%s", method);
    const char *text = name.failed ? NULL : arena_string(telling->arena, buffer_bytes(&name));
    buffer_free(&name);
    if (text == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < telling->out->n_lines; i++)
        if (strcmp(telling->out->lines[i]->name, text) == 0) {
            *out = telling->out->lines[i];
            return status_ok();
        }
    *out = NULL;
    return telling->out->n_lines < telling->capacity ? add_line(telling, text, "", out)
                                                     : status_ok();
}

/* Where a method is not among the busiest it has no value. */
static status tell_methods(struct telling *telling, size_t at)
{
    const struct history_point *point = &telling->points->items[at];
    for (size_t i = 0; i < point->method_count; i++) {
        Insight__MetricHistory__Line *line;
        TRY(line_of_method(telling, point->methods[i].name, &line));
        if (line != NULL)
            line->values[at] = shortened(telling, point->methods[i].rate);
    }
    return status_ok();
}

static status tell_lines(struct telling *telling)
{
    enum { METHODS_MOST = 128 };
    telling->capacity = HISTORY_LINES + METHODS_MOST;
    telling->out->lines =
        arena_alloc(telling->arena, telling->capacity * sizeof *telling->out->lines);
    if (telling->out->lines == NULL)
        return status_out_of_memory();
    for (enum history_line line = 0; line < HISTORY_LINES; line++)
        if (is_wanted(telling, history_line_row(line)->name))
            TRY(tell_line(telling, line));
    for (size_t i = 0; i < telling->points->count && is_wanted(telling, "method"); i++)
        TRY(tell_methods(telling, i));
    return status_ok();
}

static status tell_times(struct telling *telling)
{
    Insight__MetricHistory *out = telling->out;
    size_t count = telling->points->count;
    out->times = arena_alloc(telling->arena, (count + 1) * sizeof *out->times);
    out->seconds = arena_alloc(telling->arena, (count + 1) * sizeof *out->seconds);
    if (out->times == NULL || out->seconds == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++) {
        const struct history_point *point = &telling->points->items[i];
        TRY(timestamp_message(point->from_us, telling->arena, &out->times[out->n_times++]));
        out->seconds[out->n_seconds++] = point->seconds;
    }
    return status_ok();
}

/* --- the answer --- */

static status tell_state(const struct admin_request *request, const struct history_answer *answer,
                         int64_t now_us, Insight__MetricHistory *out)
{
    struct history *history = insight_of(request)->history;
    char trouble[HISTORY_TROUBLE_SIZE];
    if (answer->is_known)
        history_trouble(history, trouble);
    else
        history_table_trouble(history, trouble);
    out->trouble = arena_string(request->arena, bytes_of(trouble));
    if (out->trouble == NULL)
        return status_out_of_memory();
    TRY(duration_message(answer->step_us, request->arena, &out->step));
    TRY(duration_message(history_retention_us(history), request->arena, &out->retention));
    return timestamp_message(now_us, request->arena, &out->end_time);
}

/* A deleted table's points may still be read. */
static status check_is_there(const struct admin_request *request, const char *name)
{
    struct table *table;
    TRY(cluster_table(request->bigtable->cluster, bytes_of(name), &table));
    table_release(table);
    return status_ok();
}

static status tell(const struct admin_request *request, const struct history_question *question,
                   struct arena *working, const ProtobufCMessage **response)
{
    struct history_answer answer;
    struct telling telling = {.request = (const void *)request->message,
                              .points = &answer.points,
                              .arena = request->arena};
    PROTO_NEW(request->arena, telling.out, INSIGHT__METRIC_HISTORY__INIT);
    TRY(history_read(request->bigtable->cluster, question, working, &answer));
    if (question->table != NULL && !answer.is_known)
        TRY(check_is_there(request, question->table));
    TRY(tell_times(&telling));
    TRY(tell_lines(&telling));
    TRY(tell_state(request, &answer, question->until_us, telling.out));
    *response = &telling.out->base;
    return status_ok();
}

static status answer(const struct admin_request *request, const char *table,
                     const ProtobufCMessage **response)
{
    struct history_question question = {.table = table};
    TRY(read_question(request, &question));
    arena_set_limit(request->arena, WORKING_MEMORY);
    struct arena *working = arena_create(WORKING_MEMORY);
    if (working == NULL)
        return status_out_of_memory();
    status s = tell(request, &question, working, response);
    arena_destroy(working);
    return s;
}

status read_metric_history(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__ReadMetricHistoryRequest *message = (const void *)request->message;
    TRY(insight_check_server(message->name));
    return answer(request, NULL, response);
}

status read_table_history(const struct admin_request *request, const ProtobufCMessage **response)
{
    const Insight__ReadMetricHistoryRequest *message = (const void *)request->message;
    TRY(name_check_table(message->name));
    return answer(request, message->name, response);
}
