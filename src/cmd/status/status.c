/* See status.h: options, the looks, and how long. */
#include "cmd/status/status.h"

#include "client/client_session.h"
#include "cmd/command.h"
#include "cmd/status/status_history.h"
#include "cmd/status/status_report.h"
#include "cmd/status/status_running.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MEMORY_LIMIT = 64 << 20, MS = 1000, MINUTE_MS = 60 * 1000, DAYS_MOST = 3650 };

enum format { FORMAT_TEXT, FORMAT_JSON };

struct status_options {
    struct target_options target;
    int format; /* enum format */
    int64_t interval;
    bool watch;
    uint64_t count;
    bool running;
    const char *cancel; /* NULL: none */
    const char *log_level;
    bool stacks;
    int64_t profile; /* microseconds; 0: none */
    int64_t since;   /* the same */
};

/* --- options --- */

#define ROW(kind_, member_, preset_, least_, most_, unit_, sentence_)                              \
    {                                                                                              \
        .member = #member_, .kind = OPTION_##kind_,                                                \
        .offset = offsetof(struct status_options, member_), .preset = preset_, .least = least_,    \
        .most = most_, .unit = unit_, .sentence = sentence_                                        \
    }

static const struct option rows[] = {
    TARGET_SERVER_ROWS(struct status_options, target),
    ROW(BOOLEAN, watch, "false", 0, 0, "", "Goes on until it is interrupted."),
    ROW(DURATION, interval, "1s", 100 * MS, (int64_t)60 * MINUTE_MS * MS, "TIME",
        "Time between two looks: rates are those of that time."),
    ROW(INTEGER, count, "0", 0, INT64_MAX, "N", "With --watch, ends after so many; 0: does not."),
    ROW(BOOLEAN, running, "false", 0, 0, "",
        "Lists the requests that run instead, the longest first."),
    ROW(STRING, cancel, NULL, 0, 0, "ID", "Ends the request that --running shows with that id."),
    ROW(STRING, log_level, NULL, 0, 0, "LEVEL",
        "Has the server's log tell that much until it starts anew: debug, info, warn or error."),
    ROW(BOOLEAN, stacks, "false", 0, 0, "", "Shows where each thread of the server is instead."),
    ROW(DURATION, profile, "0", 0, (int64_t)MINUTE_MS *MS, "TIME",
        "Shows instead where its threads spend their CPU time within so long: stacks, folded."),
    ROW(DURATION, since, "0", 0, (int64_t)DAYS_MOST * 24 * 60 * MINUTE_MS * MS, "TIME",
        "Shows instead what the server remembers of the last hours or days, also from before its "
        "start, as in 1h."),
    ROW(ENUM, format, "text", 0, 0, "text|json",
        "How the answer looks; with --watch, JSON is one line each time."),
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle status"};

static void write_help(struct buffer *out)
{
    options_write_help(&table, out);
}

static status read_options(const char *const *arguments, struct status_options *out)
{
    struct option_origin origins[ROW_COUNT] = {0};
    struct option_values values = {.object = out, .origins = origins};
    const char *const no_environment[] = {NULL};
    *out = (struct status_options){.target = {.project = "p", .instance = "i"}};
    TRY(options_read(&table, arguments, no_environment, &values));
    if (out->count > 0 && !out->watch)
        return status_make(STATUS_INVALID_ARGUMENT, "--count is for --watch");
    int done_once = (out->cancel != NULL) + (out->log_level != NULL) + out->stacks +
                    (out->profile > 0) + (out->since > 0);
    if (done_once + out->running > 1)
        return status_make(
            STATUS_INVALID_ARGUMENT,
            "--running, --cancel, --log-level, --stacks, --profile and --since are one at a time");
    if (out->watch && done_once > 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "--cancel, --log-level, --stacks, --profile and --since do it once");
    return target_options_resolve(&table, origins, &out->target);
}

/* --- looking --- */

/* One answer of the server, and the memory that it is in. */
struct look {
    struct arena *arena; /* NULL: none */
    const Insight__Metrics *metrics;
    const Replica__ListPeersResponse *peers; /* NULL: none, or none that the caller may see */
};

static void forget(struct look *look)
{
    arena_destroy(look->arena);
    *look = (struct look){.arena = NULL};
}

static bool has_peers(const Insight__Metrics *metrics)
{
    for (size_t i = 0; i < metrics->n_metrics; i++)
        if (strcmp(metrics->metrics[i]->name, "trestle_peers") == 0)
            return metrics->metrics[i]->value > 0;
    return false;
}

/* Who may see the metrics alone sees these. */
static status ask_peers(struct client_session *session, struct look *look)
{
    Replica__ListPeersRequest request = REPLICA__LIST_PEERS_REQUEST__INIT;
    const ProtobufCMessage *answer;
    request.name = "servers/self";
    status s = client_session_call(session, "/trestle.replica.v1.Replication/ListPeers", NULL,
                                   &request.base, &replica__list_peers_response__descriptor,
                                   look->arena, &answer);
    if (status_is_ok(s))
        look->peers = (const void *)answer;
    if (s.code != STATUS_PERMISSION_DENIED)
        return s;
    status_free(s);
    return status_ok();
}

static status take_look(struct client_session *session, struct look *look)
{
    Insight__GetMetricsRequest request = INSIGHT__GET_METRICS_REQUEST__INIT;
    const ProtobufCMessage *answer;
    request.name = "servers/self";
    look->arena = arena_create(MEMORY_LIMIT);
    if (look->arena == NULL)
        return status_out_of_memory();
    TRY(client_session_call(session, "/trestle.insight.v1.Insight/GetMetrics", NULL, &request.base,
                            &insight__metrics__descriptor, look->arena, &answer));
    look->metrics = (const void *)answer;
    return has_peers(look->metrics) ? ask_peers(session, look) : status_ok();
}

static status print(const struct buffer *out)
{
    bool is_written =
        !out->failed && fwrite(out->data, 1, out->size, stdout) == out->size && fflush(stdout) == 0;
    return is_written ? status_ok() : status_make(STATUS_UNAVAILABLE, "cannot write the answer");
}

/* https://no-color.org has the variable. */
static bool shows_colors(void)
{
    const char *no_color = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && (no_color == NULL || no_color[0] == '\0');
}

/* A terminal that is watched is cleared each time. */
static status report(const struct status_options *options, struct client_session *session,
                     const struct look *before, const struct look *now)
{
    struct buffer out = {0};
    const struct status_looks looks = {.address = client_session_address(session),
                                       .before = before->metrics,
                                       .now = now->metrics,
                                       .peers = now->peers,
                                       .has_colors = shows_colors()};
    if (options->format == FORMAT_JSON) {
        status_write_json(&looks, &out);
    } else {
        if (options->watch && isatty(STDOUT_FILENO))
            buffer_append_bytes(&out, bytes_of("\033[H\033[2J"));
        status_write_text(&looks, &out);
        if (options->watch)
            buffer_append_byte(&out, '\n');
    }
    status s = print(&out);
    buffer_free(&out);
    return s;
}

/* Looks again after the interval, and tells; the new look takes the place of the one before. */
static status look_again(const struct status_options *options, struct client_session *session,
                         struct look *before, bool *is_in_trouble)
{
    struct look now = {.arena = NULL};
    TRY(client_session_wait(session, options->interval));
    status s = take_look(session, &now);
    if (status_is_ok(s))
        s = report(options, session, before, &now);
    if (!status_is_ok(s)) {
        forget(&now);
        return s;
    }
    *is_in_trouble = now.metrics->trouble[0] != '\0';
    forget(before);
    *before = now;
    return status_ok();
}

/* One list of what runs, or one thing done. */
static status answer_once(const struct status_options *options, struct client_session *session)
{
    struct buffer out = {0};
    status s;
    if (options->watch && options->format == FORMAT_TEXT && isatty(STDOUT_FILENO))
        buffer_append_bytes(&out, bytes_of("\033[H\033[2J"));
    if (options->cancel != NULL)
        s = status_cancel(session, options->cancel, &out);
    else if (options->log_level != NULL)
        s = status_set_log_level(session, options->log_level, &out);
    else if (options->stacks)
        s = status_write_stacks(session, &out);
    else if (options->profile > 0)
        s = status_write_profile(session, options->profile, &out);
    else if (options->since > 0)
        s = status_write_history(session, options->since, options->format == FORMAT_JSON, &out);
    else
        s = status_write_running(session, options->format == FORMAT_JSON, &out);
    if (status_is_ok(s))
        s = print(&out);
    buffer_free(&out);
    return s;
}

static status answer(const struct status_options *options)
{
    const struct client_session_options server = {.target = options->target,
                                                  .is_interruptible = true};
    struct client_session *session;
    uint64_t wanted = options->watch ? options->count : 1, done = 1;
    TRY(client_session_create(&server, &session));
    status s = answer_once(options, session);
    while (status_is_ok(s) && (wanted == 0 || done < wanted)) {
        s = client_session_wait(session, options->interval);
        if (status_is_ok(s))
            s = answer_once(options, session);
        done++;
    }
    client_session_destroy(session);
    return s;
}

static bool is_about_health(const struct status_options *options)
{
    return !options->running && options->cancel == NULL && options->log_level == NULL &&
           !options->stacks && options->profile == 0 && options->since == 0;
}

static status look(const struct status_options *options, bool *is_in_trouble)
{
    const struct client_session_options server = {.target = options->target,
                                                  .is_interruptible = true};
    struct client_session *session;
    struct look last = {.arena = NULL};
    uint64_t wanted = options->watch ? options->count : 1, done = 0;
    TRY(client_session_create(&server, &session));
    status s = take_look(session, &last);
    while (status_is_ok(s) && (wanted == 0 || done < wanted)) {
        s = look_again(options, session, &last, is_in_trouble);
        done++;
    }
    forget(&last);
    client_session_destroy(session);
    return s;
}

int status_command(const char *const *arguments)
{
    struct status_options options;
    bool is_in_trouble = false;
    if (command_asks_for(arguments, "--help"))
        return command_print(write_help);
    status s = read_options(arguments, &options);
    if (!status_is_ok(s))
        return command_refuse("status", s);
    s = is_about_health(&options) ? look(&options, &is_in_trouble) : answer(&options);
    if (s.code == STATUS_CANCELLED && options.watch) { /* that is how it ends */
        status_free(s);
        s = status_ok();
    }
    return s.code == STATUS_INVALID_ARGUMENT ? command_refuse("status", s)
                                             : command_end("status", s, !is_in_trouble);
}
