/* The options of `trestle sql`: a table for those that come once, and a pass before it for those
 * that may come again (-e, -f, --param), which are taken out of the arguments. */
#include "cmd/sql/sql_shell.h"

#include <stdlib.h>

#define ROW(kind_, member_, preset_, unit_, sentence_)                                             \
    {                                                                                              \
        .member = #member_, .kind = OPTION_##kind_,                                                \
        .offset = offsetof(struct shell_options, member_), .preset = preset_, .unit = unit_,       \
        .sentence = sentence_                                                                      \
    }

static const struct option rows[] = {
    TARGET_OPTION_ROWS(struct shell_options, target),
    ROW(ENUM, format, "table", "table|csv|json", "How results are printed."),
    ROW(BOOLEAN, no_header, "false", "", "Tables and CSV without names of columns and counts."),
    ROW(BOOLEAN, explain, "false", "", "Prints how queries would be run, instead of results."),
    ROW(BOOLEAN, analyze, "false", "", "Runs queries, and prints how they were run."),
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle sql"};

/* --- those that may come again --- */

/* The value of one of them at `*at`, which moves behind it; NULL if it is another, or has none. */
static const char *value_of(const char *const **at, const char *brief, const char *name)
{
    const char *argument = **at;
    size_t size = strlen(name);
    bool is_joined = strncmp(argument, name, size) == 0 && argument[size] == '=';
    if (is_joined) {
        ++*at;
        return argument + size + 1;
    }
    bool is_it = strcmp(argument, name) == 0 || strcmp(argument, brief) == 0;
    if (!is_it || (*at)[1] == NULL)
        return NULL;
    *at += 2;
    return (*at)[-1];
}

/* Takes the argument at `*at`, or puts it into the rest. */
static status take_argument(struct shell_options *out, const char *const **at, const char **rest,
                            size_t *rest_count)
{
    const char *text = value_of(at, "-e", "--execute");
    const char *file = text == NULL ? value_of(at, "-f", "--file") : NULL;
    const char *parameter =
        text == NULL && file == NULL ? value_of(at, "--param", "--param") : NULL;
    if (parameter != NULL)
        return shell_parameters_set_from(&out->parameters, parameter);
    if (text == NULL && file == NULL) {
        rest[(*rest_count)++] = *(*at)++;
        return status_ok();
    }
    out->inputs[out->input_count++] =
        (struct shell_input){.is_file = file != NULL, .text = file != NULL ? file : text};
    return status_ok();
}

static size_t argument_count(const char *const *arguments)
{
    size_t count = 0;
    while (arguments[count] != NULL)
        count++;
    return count;
}

static status read_rest(const char *const *rest, struct shell_options *out)
{
    struct option_origin origins[ROW_COUNT] = {0};
    struct option_values values = {.object = out, .origins = origins};
    const char *const no_environment[] = {NULL};
    TRY(options_read(&table, rest, no_environment, &values));
    if (out->explain && out->analyze)
        return status_make(STATUS_INVALID_ARGUMENT, "--explain and --analyze exclude each other");
    return target_options_resolve(&table, origins, &out->target);
}

status shell_options_read(const char *const *arguments, struct shell_options *out)
{
    *out = (struct shell_options){0};
    size_t count = argument_count(arguments), rest_count = 0;
    const char **rest = calloc(count + 1, sizeof *rest);
    out->inputs = calloc(count + 1, sizeof *out->inputs);
    status s = rest == NULL || out->inputs == NULL ? status_out_of_memory() : status_ok();
    while (status_is_ok(s) && *arguments != NULL)
        s = take_argument(out, &arguments, rest, &rest_count);
    if (status_is_ok(s))
        s = read_rest(rest, out);
    free(rest);
    return s;
}

void shell_options_free(struct shell_options *options)
{
    free(options->inputs);
    shell_parameters_free(&options->parameters);
}

void shell_options_write_help(struct buffer *out)
{
    options_write_help(&table, out);
    buffer_append_format(
        out,
        "\n"
        "  -e, --execute TEXT   Runs the statements or the command, and ends. May come again.\n"
        "  -f, --file FILE      Runs those of a file; - is the standard input. May come again.\n"
        "  --param NAME=TYPE:VALUE\n"
        "                       Sets @NAME; without :VALUE it is NULL. May come again.\n"
        "\n"
        "Without -e and -f, statements come from the standard input: each ends with a\n"
        "semicolon. On a terminal, \\? tells the commands.\n");
}
