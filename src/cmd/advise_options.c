/* See advise_options.h. */
#include "cmd/advise_options.h"

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
    ROW(INTEGER, seed, "0", 0, INT64_MAX, "N", "Chooses the places; 0: others each time."),
    ROW(BOOLEAN, show_values, "false", 0, 0, "",
        "Shows personal data in keys and names, for which <e-mail> and the like stand otherwise."),
    ROW(BOOLEAN, rules, "false", 0, 0, "", "Prints all rules instead; needs no table."),
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle advise [TABLE]"};

void advise_options_help(struct buffer *out)
{
    options_write_help(&table, out);
}

/* A table, a database, all, or the rules. */
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
    TRY(check_format(out));
    return target_options_settle(&table, origins, &out->target);
}
