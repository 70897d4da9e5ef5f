/* See status_history.h. */
#include "cmd/status/status_history.h"

#include "base/clock.h"
#include "cmd/status/status_text.h"
#include "cmd/text_table.h"
#include "wire/json.h"

#include <math.h>

enum { MEMORY_LIMIT = 64 << 20, LINES = 20, SECOND_US = 1000000, US_NANOS = 1000 };

/* --- lines --- */

/* NAN where there is none. */
static double value_at(const Insight__MetricHistory *history, const char *name, size_t at)
{
    for (size_t i = 0; i < history->n_lines; i++)
        if (strcmp(history->lines[i]->name, name) == 0 && at < history->lines[i]->n_values)
            return history->lines[i]->values[at];
    return NAN;
}

/* What there is a column for. */
struct column {
    const char *title;
    const char *line;
    struct status_text (*text)(double value);
};

static const struct column columns_shown[] = {
    {"requests/s", "requests", status_rate_text},
    {"errors/s", "errors", status_rate_text},
    {"median", "p50_seconds", status_seconds_text},
    {"p99", "p99_seconds", status_seconds_text},
    {"received/s", "received_bytes", status_bytes_text},
    {"sent/s", "sent_bytes", status_bytes_text},
    {"tables", "table_bytes", status_bytes_text},
    {"free", "disk_free_bytes", status_bytes_text},
};

enum { COLUMNS = sizeof columns_shown / sizeof *columns_shown };

static void add_processors(struct text_table *table, double value)
{
    struct buffer text = {0};
    if (isnan(value))
        buffer_append_byte(&text, '-');
    else
        buffer_append_format(&text, "%.2f", value);
    text_table_add(table, buffer_bytes(&text));
    buffer_free(&text);
}

static void add_point(struct text_table *table, const Insight__MetricHistory *history, size_t at)
{
    char date[CLOCK_DATE_SIZE];
    text_table_add(table, bytes_of(clock_date(history->times[at]->seconds * SECOND_US, date)));
    for (size_t i = 0; i < COLUMNS; i++) {
        double value = value_at(history, columns_shown[i].line, at);
        struct status_text text = {"-"};
        if (!isnan(value))
            text = columns_shown[i].text(value);
        text_table_add(table, bytes_of(text.chars));
    }
    add_processors(table, value_at(history, "processors", at));
}

static void write_table(const Insight__MetricHistory *history, struct buffer *out)
{
    struct text_column columns[COLUMNS + 2] = {{.name = "from"}};
    struct text_table table;
    for (size_t i = 0; i < COLUMNS; i++)
        columns[i + 1] = (struct text_column){.name = columns_shown[i].title, .to_the_right = true};
    columns[COLUMNS + 1] = (struct text_column){.name = "processors", .to_the_right = true};
    text_table_begin(&table, columns, COLUMNS + 2, true, out);
    for (size_t i = 0; i < history->n_times; i++)
        add_point(&table, history, i);
    text_table_end(&table);
}

void history_write_text(const Insight__MetricHistory *history, struct buffer *out)
{
    if (history->trouble[0] != '\0')
        buffer_append_format(out, "nothing is remembered at present: %s\n", history->trouble);
    if (history->retention == NULL || history->retention->seconds == 0)
        buffer_append_format(out, "the server remembers no metrics (--metrics-retention 0)\n");
    else if (history->n_times == 0)
        buffer_append_format(out, "nothing is remembered of that time\n");
    else
        write_table(history, out);
}

/* --- asking --- */

static void write(const ProtobufCMessage *answer, bool as_json, struct buffer *out)
{
    const struct json_style style = {.compact = true};
    if (!as_json) {
        history_write_text((const void *)answer, out);
        return;
    }
    json_encode(answer, &style, out);
    buffer_append_byte(out, '\n');
}

status status_write_history(struct client_session *session, int64_t since_us, bool as_json,
                            struct buffer *out)
{
    Insight__ReadMetricHistoryRequest request = INSIGHT__READ_METRIC_HISTORY_REQUEST__INIT;
    Pb__Duration since = PB__DURATION__INIT;
    const ProtobufCMessage *answer;
    struct arena *arena = arena_create(MEMORY_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    since.seconds = since_us / SECOND_US;
    since.nanos = (int32_t)(since_us % SECOND_US * US_NANOS);
    request.name = "servers/self";
    request.since = &since;
    request.points = as_json ? 0 : LINES;
    status s =
        client_session_call(session, "/trestle.insight.v1.Insight/ReadMetricHistory", NULL,
                            &request.base, &insight__metric_history__descriptor, arena, &answer);
    if (status_is_ok(s))
        write(answer, as_json, out);
    arena_destroy(arena);
    return s;
}
