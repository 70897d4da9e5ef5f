/* See advise.h: options, and the report. */
#include "cmd/advise.h"

#include "advice/report.h"
#include "base/clock.h"
#include "cmd/advise_server.h"
#include "cmd/advise_source.h"
#include "cmd/command.h"

#include <stdio.h>
#include <stdlib.h>

#define LIST_TABLES "/google.bigtable.admin.v2.BigtableTableAdmin/ListTables"

enum { MEMORY_LIMIT = 1 << 30 };

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_MARKDOWN };

/* Who looks. */
enum looker { BY_EITHER, BY_SERVER, BY_CLIENT };

struct advise_options {
    struct target_options target;
    const char *table;
    const char *database; /* NULL: a table is looked at */
    bool all;             /* tables of the instance */
    int by;               /* enum looker */
    int format;           /* enum format */
    int fail_on;          /* enum advice_severity */
    uint64_t places;
    uint64_t rows;
    uint64_t bytes;
    uint64_t seed;
    bool show_values;
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
    ROW(STRING, database, NULL, 0, 0, "NAME",
        "A database of Datastore instead of a table: (default), or its name."),
    ROW(BOOLEAN, all, "false", 0, 0, "", "All tables of the instance instead of one."),
    ROW(ENUM, by, "auto", 0, 0, "auto|server|client",
        "Who reads the sample: the server itself, which only a Trestle can, or this command."),
    ROW(ENUM, format, "text", 0, 0, "text|json|markdown",
        "How the answer looks; markdown is for --rules."),
    ROW(ENUM, fail_on, "info", 0, 0, "info|warning|critical",
        "The least severity of a finding that makes the exit status 1."),
    ROW(INTEGER, places, "100", 1, 10000, "N", "Places of the table at which rows are read."),
    ROW(INTEGER, rows, "10", 1, 1000, "N", "Rows that are read at each place."),
    ROW(SIZE, bytes, "8MB", 1 << 10, (int64_t)1 << 40, "SIZE",
        "No more places are read after so many bytes."),
    ROW(INTEGER, seed, "0", 0, INT64_MAX, "N", "Chooses the places; 0: others each time."),
    ROW(BOOLEAN, show_values, "false", 0, 0, "",
        "Shows personal data in keys and names, for which <e-mail> and the like stand otherwise."),
    ROW(BOOLEAN, rules, "false", 0, 0, "", "Prints all rules instead; needs no table."),
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle advise [TABLE]"};

static void write_help(struct buffer *out)
{
    options_write_help(&table, out);
}

/* A table, a database, or the rules. */
static status check_subject(const struct advise_options *options)
{
    bool has_database = options->database != NULL;
    int subjects = (options->table != NULL) + has_database + options->all;
    if (options->rules && subjects > 0)
        return status_make(STATUS_INVALID_ARGUMENT, "--rules takes neither a table nor a database");
    if (subjects > 1)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "it is either a table, or --all tables, or a --database");
    if (subjects == 0 && !options->rules)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "the table comes first; or --all tables, or a --database");
    if (has_database && options->by == BY_CLIENT)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "only the server itself can look at a database");
    return status_ok();
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
    TRY(check_subject(out));
    if (out->format == FORMAT_MARKDOWN && !out->rules)
        return status_make(STATUS_INVALID_ARGUMENT, "--format markdown is for --rules");
    return target_options_settle(&table, origins, &out->target);
}

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
                                    .bytes = options->bytes,
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
                                             .bytes = options->bytes,
                                             .seed = options->seed,
                                             .shows_values = options->show_values};
    return advise_ask(session, &question, arena, out);
}

/* A server that is no Trestle has no such method, and one that is may not look for everybody: the
 * same caller may read the table. */
static bool may_look_oneself(const struct advise_options *options, const status *s)
{
    return options->by == BY_EITHER &&
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
        .shows_values = options->show_values};
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
        if ((int)advice->findings[i].rule->severity >= options->fail_on)
            return true;
    return false;
}

/* The report, as text or JSON, in `out`. `*has_found`: something so severe as is asked for. */
static status look(struct client_session *session, const struct advise_options *options,
                   struct arena *arena, struct buffer *out, bool *has_found)
{
    struct advise_report report = {.advice = {.count = 0}};
    TRY(options->database != NULL ? look_at_database(session, options, arena, &report)
                                  : look_at_table(session, options, arena, &report));
    if (options->format == FORMAT_JSON)
        advice_write_json(&report.seen, &report.sample, &report.advice, out);
    else
        advice_write_text(&report.seen, &report.sample, &report.advice, out);
    *has_found |= is_severe(options, &report.advice); /* its rules may be the arena's */
    return out->failed ? status_out_of_memory() : status_ok();
}

/* --- all tables --- */

static status list_tables(struct client_session *session, struct arena *arena,
                          const BtAdmin__ListTablesResponse **out)
{
    BtAdmin__ListTablesRequest request = BT_ADMIN__LIST_TABLES_REQUEST__INIT;
    const ProtobufCMessage *message;
    request.parent = client_session_instance(session);
    request.view = BT_ADMIN__TABLE__VIEW__NAME_ONLY;
    TRY(client_session_call(session, LIST_TABLES, NULL, &request.base,
                            &bt_admin__list_tables_response__descriptor, arena, &message));
    *out = (const void *)message;
    return status_ok();
}

/* One that was deleted meanwhile has no report. */
static status look_at_one(struct client_session *session, const struct advise_options *options,
                          struct buffer *out, bool *has_found)
{
    size_t before = out->size;
    struct arena *arena = arena_create(MEMORY_LIMIT);
    if (arena == NULL)
        return status_out_of_memory();
    if (out->size > 1)
        buffer_append_byte(out, options->format == FORMAT_JSON ? ',' : '\n');
    status s = look(session, options, arena, out, has_found);
    arena_destroy(arena);
    if (s.code != STATUS_NOT_FOUND)
        return s;
    status_free(s);
    out->size = before;
    return status_ok();
}

/* JSON is a list of what there is for one. */
static status look_at_all(struct client_session *session, const struct advise_options *options,
                          struct arena *arena, struct buffer *out, bool *has_found)
{
    const BtAdmin__ListTablesResponse *tables;
    struct advise_options one = *options;
    TRY(list_tables(session, arena, &tables));
    if (options->format == FORMAT_JSON)
        buffer_append_byte(out, '[');
    for (size_t i = 0; i < tables->n_tables; i++) {
        one.table = strrchr(tables->tables[i]->name, '/');
        one.table = one.table == NULL ? tables->tables[i]->name : one.table + 1;
        TRY(look_at_one(session, &one, out, has_found));
    }
    if (options->format == FORMAT_JSON)
        buffer_append_format(out, "]\n");
    else if (tables->n_tables == 0)
        buffer_append_format(out, "There are no tables.\n");
    return out->failed ? status_out_of_memory() : status_ok();
}

static status look_at_subject(const struct advise_options *options, struct buffer *out,
                              bool *has_found)
{
    const struct client_session_options server = {.target = options->target};
    struct client_session *session = NULL;
    struct arena *arena = arena_create(MEMORY_LIMIT);
    status s = arena == NULL ? status_out_of_memory() : client_session_create(&server, &session);
    if (status_is_ok(s))
        s = options->all ? look_at_all(session, options, arena, out, has_found)
                         : look(session, options, arena, out, has_found);
    client_session_destroy(session);
    arena_destroy(arena);
    return s;
}

/* --- the command --- */

static int print_rules(const struct advise_options *options)
{
    static void (*const writers[])(struct buffer * out) = {
        [FORMAT_TEXT] = advice_write_rules_text,
        [FORMAT_JSON] = advice_write_rules_json,
        [FORMAT_MARKDOWN] = advice_write_rules_markdown,
    };
    return command_print(writers[options->format]);
}

static status print(const struct buffer *out)
{
    bool is_written = fwrite(out->data, 1, out->size, stdout) == out->size && fflush(stdout) == 0;
    return is_written ? status_ok() : status_make(STATUS_UNAVAILABLE, "cannot write the report");
}

int advise_command(const char *const *arguments)
{
    struct advise_options options;
    struct buffer out = {0};
    bool has_found = false;
    if (command_asks_for(arguments, "--help"))
        return command_print(write_help);
    status s = read_options(arguments, &options);
    if (!status_is_ok(s))
        return command_refuse("advise", s);
    if (options.rules)
        return print_rules(&options);
    s = look_at_subject(&options, &out, &has_found);
    if (status_is_ok(s))
        s = print(&out);
    buffer_free(&out);
    return command_end("advise", s, !has_found);
}
