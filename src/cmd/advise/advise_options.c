/* See advise_options.h. */
#include "cmd/advise/advise_options.h"

#include "base/clock.h"
#include "wire/json.h"

#include <string.h>

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
    ROW(STRING, schema, NULL, 0, 0, "FILE",
        "Tables that are not there yet, as a file in YAML describes them; no server is asked."),
    ROW(BOOLEAN, all, "false", 0, 0, "",
        "All tables of the instance that is named instead of one; where none is named, all tables "
        "of all instances and all databases that the server has."),
    ROW(ENUM, by, "auto", 0, 0, "auto|server|client",
        "Who reads the sample: the server itself, which only a Trestle can, or this command."),
    ROW(ENUM, format, "text", 0, 0, "text|json|sarif|markdown",
        "How the answer looks; markdown is for --rules."),
    ROW(ENUM, fail_on, "info", 0, 0, "info|warning|critical",
        "The least severity of a finding that makes the exit status 1."),
    ROW(INTEGER, places, "100", 1, 10000, "N", "Places of the table at which rows are read."),
    ROW(INTEGER, rows, "10", 1, 1000, "N", "Rows that are read at each place."),
    ROW(SIZE, max_bytes, "8MB", 1 << 10, (int64_t)1 << 40, "SIZE",
        "No more places of a table are read after so many bytes."),
    ROW(INTEGER, seed, "0", 0, INT64_MAX, "N",
        "Chooses the places; 0: others each time, or of --schema 1."),
    ROW(BOOLEAN, show_values, "false", 0, 0, "",
        "Shows personal data in keys and names, for which <e-mail> and the like stand otherwise."),
    ROW(STRING, since, NULL, 0, 0, "TIME",
        "Tells only what requests since then show: so long ago (10m), or 2025-10-09T08:53:20Z."),
    ROW(STRING, mute, NULL, 0, 0, "RULE",
        "Looks at nothing: from now on the server names this rule's findings about the table, or "
        "the database, as muted, with --reason."),
    ROW(STRING, reason, NULL, 0, 0, "TEXT", "Why they need no work; of 1,024 bytes at most."),
    ROW(STRING, unmute, NULL, 0, 0, "RULE", "Ends that."),
    ROW(BOOLEAN, rules, "false", 0, 0, "", "Prints all rules instead; needs no table."),
    ROW(BOOLEAN, practices, "false", 0, 0, "",
        "Prints the practices of the source pages, how each is seen, and by which rule, instead."),
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle advise [TABLE]"};

void advise_options_help(struct buffer *out)
{
    options_write_help(&table, out);
}

/* A table, a database, a description, all, or the rules. */
static status check_subject(const struct advise_options *options)
{
    bool has_database = options->database != NULL;
    bool has_schema = options->schema != NULL;
    int subjects = (options->table != NULL) + has_database + has_schema + options->all;
    bool is_list = options->rules || options->practices;
    if (is_list && subjects > 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "--rules takes neither a table nor a database nor a --schema");
    if (subjects > 1)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "it is either a table, or --all tables, or a --database, or a --schema");
    if (subjects == 0 && !is_list)
        return status_make(
            STATUS_INVALID_ARGUMENT,
            "the table comes first; or --all tables, or a --database, or a --schema");
    if (has_schema && options->by != BY_EITHER)
        return status_make(STATUS_INVALID_ARGUMENT, "--by is for tables that are there");
    if (has_database && options->by == BY_CLIENT)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "only the server itself can look at a database");
    return status_ok();
}

/* Muting needs one table, or a database, of a server that keeps it. */
static status check_muting(const struct advise_options *options)
{
    bool is_muting = options->mute != NULL || options->unmute != NULL;
    if (options->mute != NULL && options->unmute != NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "it is either --mute or --unmute");
    if ((options->mute == NULL) != (options->reason == NULL))
        return status_make(STATUS_INVALID_ARGUMENT, "--mute and --reason go together");
    if (is_muting && (options->all || options->rules))
        return status_make(STATUS_INVALID_ARGUMENT,
                           "a rule is muted for one table, or for a --database");
    return status_ok();
}

static status read_since(struct advise_options *options)
{
    int64_t passed_us, seconds, now_us = clock_wall_us(clock_system());
    int32_t nanos;
    const char *text = options->since;
    if (text == NULL)
        return status_ok();
    if (options_parse_duration(text, &passed_us) && passed_us > 0)
        options->since_us = now_us - passed_us;
    else if (json_parse_timestamp(bytes_of(text), &seconds, &nanos))
        options->since_us = seconds * 1000000 + nanos / 1000;
    if (options->since_us <= 0 || options->since_us > now_us)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "--since is a time that has passed, like 10m or 2025-10-09T08:53:20Z, "
                           "and is %s",
                           text);
    if (options->by == BY_CLIENT)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "only the server itself knows what was asked for --since");
    return status_ok();
}

static status check_format(const struct advise_options *options)
{
    if (options->format == ADVISE_MARKDOWN && !options->rules)
        return status_make(STATUS_INVALID_ARGUMENT, "--format markdown is for --rules");
    if (options->format == ADVISE_SARIF && options->rules)
        return status_make(STATUS_INVALID_ARGUMENT, "--format sarif is for findings");
    return status_ok();
}

static bool was_given(const struct option_origin *origins, const char *member)
{
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(rows[i].member, member) == 0)
            return origins[i].given != 0;
    return false;
}

status advise_options_read(const char *const *arguments, struct advise_options *out)
{
    struct option_origin origins[ROW_COUNT] = {0};
    struct option_values values = {.object = out, .origins = origins};
    const char *const no_environment[] = {NULL};
    bool has_table = arguments[0] != NULL && strncmp(arguments[0], "--", 2) != 0;
    *out = (struct advise_options){0};
    TRY(options_read(&table, arguments + has_table, no_environment, &values));
    out->table = has_table ? arguments[0] : NULL;
    out->whole_server = out->all && !was_given(origins, "instance");
    TRY(check_subject(out));
    TRY(check_muting(out));
    TRY(read_since(out));
    TRY(check_format(out));
    return target_options_resolve(&table, origins, &out->target);
}
