/* See advise.h: options, and the report. */
#include "cmd/advise.h"

#include "advice/report.h"
#include "base/clock.h"
#include "cmd/advise_source.h"
#include "cmd/command.h"

#include <stdio.h>
#include <stdlib.h>

enum { MEMORY_LIMIT = 1 << 30 };

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_MARKDOWN };

struct advise_options {
    struct target_options target;
    const char *table;
    int format;  /* enum format */
    int fail_on; /* enum advice_severity */
    uint64_t places;
    uint64_t rows;
    uint64_t bytes;
    uint64_t seed;
    bool rules;
};

/* --- options --- */

#define ROW(kind_, member_, preset_, least_, most_, unit_, sentence_)                              \
    {                                                                                              \
        .member = #member_, .kind = OPTION_##kind_,                                                \
        .offset = offsetof(struct advise_options, member_), .preset = preset_, .least = least_,    \
        .most = most_, .unit = unit_, .sentence = sentence_                                        \
    }

static const struct option rows[] = {
    TARGET_OPTION_ROWS(struct advise_options, target),
    ROW(ENUM, format, "text", 0, 0, "text|json|markdown",
        "How the answer looks; markdown is for --rules."),
    ROW(ENUM, fail_on, "info", 0, 0, "info|warning|critical",
        "The least severity of a finding that makes the exit status 1."),
    ROW(INTEGER, places, "100", 1, 10000, "N", "Places of the table at which rows are read."),
    ROW(INTEGER, rows, "10", 1, 1000, "N", "Rows that are read at each place."),
    ROW(SIZE, bytes, "8MB", 1 << 10, (int64_t)1 << 40, "SIZE",
        "No more places are read after so many bytes."),
    ROW(INTEGER, seed, "0", 0, INT64_MAX, "N", "Chooses the places; 0: others each time."),
    ROW(BOOLEAN, rules, "false", 0, 0, "", "Prints all rules instead; needs no table."),
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle advise TABLE"};

static void write_help(struct buffer *out)
{
    options_write_help(&table, out);
}

static status read_options(const char *const *arguments, struct advise_options *out)
{
    struct option_origin origins[ROW_COUNT] = {0};
    struct option_values values = {.object = out, .origins = origins};
    const char *const no_environment[] = {NULL};
    bool has_table = arguments[0] != NULL && strncmp(arguments[0], "--", 2) != 0;
    *out = (struct advise_options){0};
    TRY(options_read(&table, arguments + has_table, no_environment, &values));
    out->table = has_table ? arguments[0] : NULL;
    if (!has_table && !out->rules)
        return status_make(STATUS_INVALID_ARGUMENT, "the table comes first");
    if (has_table && out->rules)
        return status_make(STATUS_INVALID_ARGUMENT, "--rules takes no table");
    if (out->format == FORMAT_MARKDOWN && !out->rules)
        return status_make(STATUS_INVALID_ARGUMENT, "--format markdown is for --rules");
    return target_options_settle(&table, origins, &out->target);
}

/* --- looking --- */

static uint64_t seed_of(const struct advise_options *options)
{
    return options->seed != 0 ? options->seed : (uint64_t)clock_wall_us(clock_system()) | 1;
}

static status gather_by(struct client_session *session, const struct advise_options *options,
                        struct arena *arena, struct advice_observations *seen,
                        struct advice_sample *sample)
{
    struct client_source client;
    struct gather_options wanted = {.table_id = options->table,
                                    .now_us = clock_wall_us(clock_system()),
                                    .places = options->places,
                                    .rows = options->rows,
                                    .bytes = options->bytes,
                                    .time_limit_us = INT64_MAX,
                                    .seed = seed_of(options)};
    TRY(client_source_init(&client, session, options->table, arena, &wanted.source));
    return gather(&wanted, seen, sample);
}

static status look(const struct advise_options *options, struct arena *arena, struct buffer *out,
                   struct advice *advice)
{
    const struct client_session_options server = {.target = options->target};
    struct client_session *session;
    struct advice_observations seen;
    struct advice_sample sample;
    TRY(client_session_create(&server, &session));
    status s = gather_by(session, options, arena, &seen, &sample);
    client_session_destroy(session);
    TRY(s);
    TRY(advice_find(&seen, arena, advice));
    if (!sample.has_heat)
        sample.note = "The server does not tell hot tablets; heat was not looked at.";
    if (options->format == FORMAT_JSON)
        advice_write_json(&seen, &sample, advice, out);
    else
        advice_write_text(&seen, &sample, advice, out);
    return out->failed ? status_out_of_memory() : status_ok();
}

static bool is_severe(const struct advise_options *options, const struct advice *advice)
{
    for (size_t i = 0; i < advice->count; i++)
        if ((int)advice->findings[i].rule->severity >= options->fail_on)
            return true;
    return false;
}

static int print_rules(const struct advise_options *options)
{
    static void (*const writers[])(struct buffer * out) = {
        [FORMAT_TEXT] = advice_write_rules_text,
        [FORMAT_JSON] = advice_write_rules_json,
        [FORMAT_MARKDOWN] = advice_write_rules_markdown,
    };
    return command_print(writers[options->format]);
}

static int fail(status s, int exit_status)
{
    fprintf(stderr, "trestle advise: %s\n", status_message(s));
    status_free(s);
    return exit_status;
}

static status print(const struct buffer *out)
{
    bool is_written = fwrite(out->data, 1, out->size, stdout) == out->size && fflush(stdout) == 0;
    return is_written ? status_ok() : status_make(STATUS_UNAVAILABLE, "cannot write the report");
}

int advise_command(const char *const *arguments)
{
    struct advise_options options;
    struct advice advice = {.count = 0};
    struct buffer out = {0};
    if (command_asks_for(arguments, "--help"))
        return command_print(write_help);
    status s = read_options(arguments, &options);
    if (!status_is_ok(s))
        return fail(s, s.code == STATUS_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_FAILURE);
    if (options.rules)
        return print_rules(&options);
    struct arena *arena = arena_create(MEMORY_LIMIT);
    s = arena == NULL ? status_out_of_memory() : look(&options, arena, &out, &advice);
    if (status_is_ok(s))
        s = print(&out);
    buffer_free(&out);
    arena_destroy(arena);
    if (!status_is_ok(s))
        return fail(s, EXIT_FAILURE);
    return is_severe(&options, &advice) ? EXIT_FAILURE : EXIT_SUCCESS;
}
