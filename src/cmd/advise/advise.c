/* See advise.h: looking, and the report. */
#include "cmd/advise/advise.h"

#include "advisor/practices.h"
#include "advisor/report.h"
#include "advisor/sarif.h"
#include "base/clock.h"
#include "cmd/advise/advise_options.h"
#include "cmd/advise/advise_schema.h"
#include "cmd/advise/advise_server.h"
#include "cmd/advise/advise_source.h"
#include "cmd/advise/advise_subjects.h"
#include "cmd/command.h"
#include "cmd/plural.h"
#include "design/show.h"

#include <stdio.h>
#include <stdlib.h>

enum { MEMORY_LIMIT = 1 << 30 };

enum { EXIT_TOO_LITTLE = 3 };

/* The run so far: its output, and what was found. */
struct advising {
    const struct advise_options *options;
    struct buffer out; /* of text and JSON */
    struct sarif sarif;
    bool has_found;  /* something so severe as is asked for */
    bool saw_little; /* of something */
};

/* --- looking --- */

static uint64_t seed_of(const struct advise_options *options)
{
    return options->seed != 0 ? options->seed : (uint64_t)clock_wall_us(clock_system()) | 1;
}

static status look_as_client(struct client_session *session, const struct advise_options *options,
                             struct arena *arena, struct advise_report *out)
{
    struct client_source client;
    struct gather_options wanted = {.table_id = options->table,
                                    .now_us = clock_wall_us(clock_system()),
                                    .places = options->places,
                                    .rows = options->rows,
                                    .bytes = options->max_bytes,
                                    .time_limit_us = INT64_MAX,
                                    .seed = seed_of(options),
                                    .shows_values = options->show_values};
    TRY(client_source_init(&client, session, options->table, arena, &wanted.source));
    TRY(gather(&wanted, &out->seen, &out->sample));
    if (!out->sample.has_heat)
        out->sample.note = "The server does not tell hot tablets; heat was not looked at.";
    return advice_find(&out->seen, arena, &out->advice);
}

static status ask_for_table(struct client_session *session, const struct advise_options *options,
                            struct arena *arena, struct advise_report *out)
{
    const struct advise_question question = {.name = client_session_instance(session),
                                             .table = options->table,
                                             .places = options->places,
                                             .rows = options->rows,
                                             .bytes = options->max_bytes,
                                             .seed = options->seed,
                                             .shows_values = options->show_values,
                                             .since_us = options->since_us};
    return advise_ask(session, &question, arena, out);
}

/* A server that is no Trestle has no such method, and one that is may not look for everybody: the
 * same caller may read the table. */
static bool may_look_oneself(const struct advise_options *options, const status *s)
{
    return options->by == BY_EITHER && options->since == NULL &&
           (s->code == STATUS_UNIMPLEMENTED || s->code == STATUS_PERMISSION_DENIED);
}

static status look_at_table(struct client_session *session, const struct advise_options *options,
                            struct arena *arena, struct advise_report *out)
{
    if (options->by == BY_CLIENT)
        return look_as_client(session, options, arena, out);
    status s = ask_for_table(session, options, arena, out);
    if (!may_look_oneself(options, &s))
        return s;
    status_free(s);
    return look_as_client(session, options, arena, out);
}

static status look_at_database(struct client_session *session, const struct advise_options *options,
                               struct arena *arena, struct advise_report *out)
{
    struct buffer name = {0};
    buffer_append_format(&name, "projects/%s/databases/%s", options->target.project,
                         options->database);
    const struct advise_question question = {
        .name = name.failed ? NULL : arena_string(arena, buffer_bytes(&name)),
        .shows_values = options->show_values,
        .since_us = options->since_us};
    buffer_free(&name);
    if (question.name == NULL)
        return status_out_of_memory();
    TRY(advise_ask(session, &question, arena, out));
    out->sample.is_database = true;
    return status_ok();
}

static bool is_severe(const struct advise_options *options, const struct advice *advice)
{
    for (size_t i = 0; i < advice->count; i++)
        if (advice->findings[i].mute == NULL &&
            (int)advice->findings[i].rule->severity >= options->fail_on)
            return true;
    return false;
}

/* The full name of what the options name; NULL without memory. */
static const char *subject_name(const struct advise_options *options, struct arena *arena)
{
    struct buffer name = {0};
    buffer_append_format(&name, "projects/%s/", options->target.project);
    if (options->database != NULL)
        buffer_append_format(&name, "databases/%s", options->database);
    else
        buffer_append_format(&name, "instances/%s/tables/%s", options->target.instance,
                             options->table);
    const char *kept = name.failed ? NULL : arena_string(arena, buffer_bytes(&name));
    buffer_free(&name);
    return kept;
}

static void write_report(struct advising *advising, struct advise_report *report)
{
    const struct advise_options *options = advising->options;
    struct buffer *out = &advising->out;
    if (options->format == ADVISE_SARIF) {
        sarif_add(&advising->sarif, report->sample.name, &report->seen, &report->sample,
                  &report->advice);
    } else if (options->format == ADVISE_JSON) {
        buffer_append_bytes(out, bytes_of(out->size > 1 ? "," : ""));
        advice_write_json(&report->seen, &report->sample, &report->advice, out);
    } else {
        buffer_append_bytes(out, bytes_of(out->size > 0 ? "\n" : ""));
        if (options->whole_server)
            report->seen.table_id = report->sample.name;
        advice_write_text(&report->seen, &report->sample, &report->advice, out);
    }
}

/* At what `one` names. */
static status look(struct advising *advising, struct client_session *session,
                   const struct advise_options *one, struct arena *arena)
{
    struct advise_report report = {.advice = {.count = 0}};
    TRY(one->database != NULL ? look_at_database(session, one, arena, &report)
                              : look_at_table(session, one, arena, &report));
    report.sample.name = subject_name(one, arena);
    if (report.sample.name == NULL)
        return status_out_of_memory();
    write_report(advising, &report);
    advising->has_found |= is_severe(one, &report.advice);
    advising->saw_little |= !advice_is_enough(&report.seen, &report.sample);
    return advising->out.failed ? status_out_of_memory() : status_ok();
}

/* A subject that was deleted meanwhile has no report. */
static status look_at_one(struct advising *advising, struct client_session *session,
                          const struct advise_options *one)
{
    struct arena *arena = arena_create(MEMORY_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    status s = look(advising, session, one, arena);
    arena_destroy(arena);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    return status_ok();
}

/* --- all --- */

/* A session of the subject's own, since calls name the instance that a session is of. */
static status look_at_subject(struct advising *advising, const struct advise_subject *subject)
{
    struct advise_options one = *advising->options;
    struct client_session *session = NULL;
    one.target.project = subject->project;
    one.table = subject->table;
    one.database = subject->database;
    if (subject->instance != NULL)
        one.target.instance = subject->instance;
    const struct client_session_options server = {.target = one.target};
    TRY(client_session_create(&server, &session));
    status s = look_at_one(advising, session, &one);
    client_session_destroy(session);
    return s;
}

/* A client can look at tables only. */
static bool is_looked_at(const struct advise_options *options, const struct advise_subject *subject)
{
    return subject->database == NULL || options->by != BY_CLIENT;
}

/* How many are looked at. */
struct extent {
    size_t tables;
    size_t databases;
};

static struct extent extent_of(const struct advise_options *options,
                               const struct advise_subjects *subjects)
{
    struct extent extent = {.tables = 0};
    for (size_t i = 0; i < advise_subjects_count(subjects); i++) {
        const struct advise_subject *subject = advise_subjects_at(subjects, i);
        extent.tables += subject->database == NULL;
        extent.databases += subject->database != NULL && is_looked_at(options, subject);
    }
    return extent;
}

/* In words for whoever waits, and pays for what is read. `extent`: of --all; NULL: it is one. */
static void say_what_is_read(const struct advise_options *options, struct client_session *session,
                             const struct extent *extent)
{
    const double mib = 1 << 20;
    uint64_t rows = options->places * options->rows;
    fprintf(stderr, "trestle advise: reads ");
    if (options->database != NULL)
        fprintf(stderr, "some thousand entities of %s, and the first rows of each index",
                options->database);
    else if (extent != NULL)
        fprintf(stderr, "%llu row%s at most of each of %zu table%s", (unsigned long long)rows,
                plural(rows), extent->tables, plural(extent->tables));
    else
        fprintf(stderr, "%llu row%s at most of %s", (unsigned long long)rows, plural(rows),
                options->table);
    if (options->database == NULL)
        fprintf(stderr, ", and no more after %.1f MiB,", (double)options->max_bytes / mib);
    if (extent != NULL && extent->databases > 0)
        fprintf(stderr, " and some thousand entities of each of %zu database%s,", extent->databases,
                plural(extent->databases));
    fprintf(stderr, " at %s\n", client_session_address(session));
}

/* Of nothing nothing is known: perhaps it is not what was meant. */
static status note_that_there_is_nothing(struct advising *advising, struct client_session *session,
                                         struct arena *arena)
{
    if (!advising->options->whole_server)
        TRY(advise_check_instance(session, arena));
    advising->saw_little = true;
    if (advising->options->format == ADVISE_TEXT)
        buffer_append_bytes(&advising->out, bytes_of("There are no tables.\n"));
    return status_ok();
}

static status look_at_listed(struct advising *advising, struct client_session *session,
                             const struct advise_subjects *subjects, struct arena *arena)
{
    const struct advise_options *options = advising->options;
    const struct extent extent = extent_of(options, subjects);
    if (extent.tables + extent.databases == 0)
        TRY(note_that_there_is_nothing(advising, session, arena));
    say_what_is_read(options, session, &extent);
    for (size_t i = 0; i < advise_subjects_count(subjects); i++) {
        const struct advise_subject *subject = advise_subjects_at(subjects, i);
        if (is_looked_at(options, subject))
            TRY(look_at_subject(advising, subject));
    }
    return status_ok();
}

static status look_at_all(struct advising *advising, struct client_session *session,
                          struct arena *arena)
{
    struct advise_subjects subjects = {.arena = arena};
    status s = advising->options->whole_server ? advise_list_server(session, &subjects)
                                               : advise_list_instance(session, &subjects);
    if (status_is_ok(s))
        s = look_at_listed(advising, session, &subjects, arena);
    advise_subjects_free(&subjects);
    return s;
}

/* Sets a mute of one table, or a database. */
static status set_mute(struct advising *advising, struct client_session *session,
                       struct arena *arena)
{
    const struct advise_options *options = advising->options;
    const char *rule = options->mute != NULL ? options->mute : options->unmute;
    const char *name = subject_name(options, arena);
    if (name == NULL)
        return status_out_of_memory();
    TRY(advise_set_mute(session, name, rule, options->reason, arena));
    buffer_append_format(&advising->out, "%s is %s for %s\n", rule,
                         options->mute != NULL ? "muted" : "not muted any more", name);
    return advising->out.failed ? status_out_of_memory() : status_ok();
}

/* JSON of all is a list of what there is for one. */
static status look_at_what_is_named(struct advising *advising, struct client_session *session,
                                    struct arena *arena)
{
    const struct advise_options *options = advising->options;
    bool is_list = options->all && options->format == ADVISE_JSON;
    if (is_list)
        buffer_append_byte(&advising->out, '[');
    if (options->all) {
        TRY(look_at_all(advising, session, arena));
    } else {
        say_what_is_read(options, session, NULL);
        TRY(look(advising, session, options, arena));
    }
    if (is_list)
        buffer_append_bytes(&advising->out, bytes_of("]\n"));
    if (options->format == ADVISE_SARIF)
        sarif_write(&advising->sarif, TRESTLE_VERSION, &advising->out);
    return advising->out.failed ? status_out_of_memory() : status_ok();
}

/* --- tables that are not there yet --- */

static void write_described(struct advising *advising, const struct advise_described *described)
{
    const struct advise_report *report = &described->report;
    struct buffer *out = &advising->out;
    switch (advising->options->format) {
    case ADVISE_SARIF:
        sarif_add(&advising->sarif, report->sample.name, &report->seen, &report->sample,
                  &report->advice);
        break;
    case ADVISE_JSON:
        buffer_append_bytes(out, bytes_of(out->size > 1 ? ",{\n  " : "{\n  "));
        advice_write_json_members(&report->seen, &report->sample, &report->advice, out);
        if (described->kind != NULL)
            show_kind_json(described->kind, out);
        else
            show_json(described->table, &described->load, out);
        buffer_append_bytes(out, bytes_of("\n}\n"));
        break;
    default:
        buffer_append_bytes(out, bytes_of(out->size > 0 ? "\n" : ""));
        advice_write_text(&report->seen, &report->sample, &report->advice, out);
        if (described->kind != NULL)
            show_kind_text(described->kind, out);
        else
            show_text(described->table, &described->load, out);
    }
}

static status take_described(void *context, struct advise_described *described)
{
    struct advising *advising = context;
    const struct advise_report *report = &described->report;
    write_described(advising, described);
    advising->has_found |= is_severe(advising->options, &report->advice);
    advising->saw_little |= !advice_is_enough(&report->seen, &report->sample);
    return advising->out.failed ? status_out_of_memory() : status_ok();
}

static status look_at_schema(struct advising *advising)
{
    const struct advise_options *options = advising->options;
    if (options->format == ADVISE_JSON)
        buffer_append_byte(&advising->out, '[');
    TRY(advise_look_at_schema(options, take_described, advising));
    if (options->format == ADVISE_JSON)
        buffer_append_bytes(&advising->out, bytes_of("]\n"));
    if (options->format == ADVISE_SARIF)
        sarif_write(&advising->sarif, TRESTLE_VERSION, &advising->out);
    return advising->out.failed ? status_out_of_memory() : status_ok();
}

static status look_around(struct advising *advising)
{
    const struct client_session_options server = {.target = advising->options->target};
    struct client_session *session = NULL;
    struct arena *arena = arena_create(MEMORY_LIMIT);
    status s = arena == NULL ? status_out_of_memory() : client_session_create(&server, &session);
    bool is_muting = advising->options->mute != NULL || advising->options->unmute != NULL;
    if (status_is_ok(s))
        s = is_muting ? set_mute(advising, session, arena)
                      : look_at_what_is_named(advising, session, arena);
    client_session_destroy(session);
    arena_destroy(arena);
    return s;
}

/* --- the command --- */

static int print_rules(const struct advise_options *options)
{
    static void (*const writers[])(struct buffer * out) = {
        [ADVISE_TEXT] = advice_write_rules_text,
        [ADVISE_JSON] = advice_write_rules_json,
        [ADVISE_MARKDOWN] = advice_write_rules_markdown,
    };
    return command_print(writers[options->format]);
}

static status print(const struct buffer *out)
{
    bool is_written = fwrite(out->data, 1, out->size, stdout) == out->size && fflush(stdout) == 0;
    return is_written ? status_ok() : status_make(STATUS_UNAVAILABLE, "cannot write the report");
}

/* Something that was found counts for more than what was not seen. */
static int end_of(const struct advising *advising, status s)
{
    if (status_is_ok(s) && !advising->has_found && advising->saw_little)
        return EXIT_TOO_LITTLE;
    return command_end("advise", s, !advising->has_found);
}

int advise_command(const char *const *arguments)
{
    struct advise_options options;
    struct advising advising = {.options = &options};
    if (command_asks_for(arguments, "--help"))
        return command_print(advise_options_help);
    status s = advise_options_read(arguments, &options);
    if (!status_is_ok(s))
        return command_refuse("advise", s);
    if (options.rules)
        return print_rules(&options);
    if (options.practices)
        return command_print(advice_write_practices_markdown);
    s = options.schema != NULL ? look_at_schema(&advising) : look_around(&advising);
    if (status_is_ok(s))
        s = print(&advising.out);
    buffer_free(&advising.out);
    sarif_free(&advising.sarif);
    bool makes_no_sense = options.schema != NULL && s.code == STATUS_INVALID_ARGUMENT;
    return makes_no_sense ? command_refuse("advise", s) : end_of(&advising, s);
}
