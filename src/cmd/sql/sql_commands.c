/* \d and its like: lines that begin with a backslash. */
#include "cmd/sql/sql_shell.h"

#include <stdlib.h>

/* A command gets what follows its name, without blanks at both ends. */
struct command {
    const char *name;
    const char *usage;
    const char *sentence;
    status (*run)(struct shell *shell, bytes argument);
};

/* --- their arguments --- */

static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bytes trimmed(bytes text)
{
    while (text.size > 0 && is_blank(text.data[0]))
        text = bytes_from(text, 1);
    while (text.size > 0 && is_blank(text.data[text.size - 1]))
        text.size--;
    return text;
}

/* The first word, which is taken from the text. */
static bytes take_word(bytes *text)
{
    size_t size = 0;
    *text = trimmed(*text);
    while (size < text->size && !is_blank(text->data[size]))
        size++;
    bytes word = bytes_make(text->data, size);
    *text = trimmed(bytes_from(*text, size));
    return word;
}

static bytes without_semicolon(bytes text)
{
    if (text.size > 0 && text.data[text.size - 1] == ';')
        text.size--;
    return trimmed(text);
}

/* --- they --- */

static status with_string(struct shell *shell, bytes argument,
                          status (*run)(struct shell *shell, const char *argument))
{
    char *text = bytes_to_string(argument);
    if (text == NULL)
        return status_out_of_memory();
    status s = run(shell, text);
    free(text);
    return s;
}

static status describe(struct shell *shell, bytes argument)
{
    argument = without_semicolon(argument);
    if (argument.size == 0)
        return shell_list(shell);
    bool is_quoted =
        argument.size > 2 && argument.data[0] == '`' && argument.data[argument.size - 1] == '`';
    if (is_quoted)
        argument = bytes_make(argument.data + 1, argument.size - 2);
    return with_string(shell, argument, shell_describe);
}

static status say(struct shell *shell, const char *what, bool is_on)
{
    buffer_append_format(&shell->out, "%s is %s.\n", what, is_on ? "on" : "off");
    return shell_flush(shell);
}

static status expand(struct shell *shell, bytes argument)
{
    (void)argument;
    shell->style.expanded = !shell->style.expanded;
    return say(shell, "Expanded display", shell->style.expanded);
}

static status time_queries(struct shell *shell, bytes argument)
{
    (void)argument;
    shell->has_timing = !shell->has_timing;
    return say(shell, "Timing", shell->has_timing);
}

static status set_format(struct shell *shell, bytes argument)
{
    static const char *const names[] = {
        [FORMAT_TABLE] = "table", [FORMAT_CSV] = "csv", [FORMAT_JSON] = "json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bytes_equal(argument, bytes_of(names[i]))) {
            shell->style.format = (enum shell_format)i;
            return status_ok();
        }
    return status_make(STATUS_INVALID_ARGUMENT, "the format is table, csv or json");
}

static status explain(struct shell *shell, bytes argument)
{
    argument = without_semicolon(argument);
    if (argument.size == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "\\explain needs a query, on the same line");
    return shell_query(shell, argument, EXPLAIN_PLAN);
}

static status list_parameters(struct shell *shell)
{
    for (const struct shell_parameter *at = shell->parameters.first; at != NULL; at = at->next)
        buffer_append_format(&shell->out, "@%s\n", at->name);
    return shell_flush(shell);
}

static status set(struct shell *shell, bytes argument)
{
    bytes name = take_word(&argument);
    if (name.size == 0)
        return list_parameters(shell);
    bytes type = take_word(&argument);
    bytes value = argument.size == 0 ? bytes_make(NULL, 0) : argument;
    return shell_parameters_set(&shell->parameters, name, type, value);
}

static status unset(struct shell *shell, bytes argument)
{
    if (!shell_parameters_unset(&shell->parameters, argument))
        return status_make(STATUS_NOT_FOUND, "there is no parameter \"%.*s\"", (int)argument.size,
                           (const char *)argument.data);
    return status_ok();
}

static status include(struct shell *shell, bytes argument)
{
    if (argument.size == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "\\i needs a file");
    return with_string(shell, argument, shell_run_file);
}

static status quit(struct shell *shell, bytes argument)
{
    (void)argument;
    shell->is_over = true;
    return status_ok();
}

static status help(struct shell *shell, bytes argument);

static const struct command commands[] = {
    {"d", "\\d [NAME]", "the tables and views; the columns of one", describe},
    {"x", "\\x", "tables with a line for each column, or not", expand},
    {"format", "\\format table|csv|json", "how results are printed", set_format},
    {"timing", "\\timing", "says how long queries take, or not", time_queries},
    {"explain", "\\explain QUERY", "how the server would run it", explain},
    {"set", "\\set [NAME TYPE [VALUE]]", "sets the parameter @NAME; without VALUE it is NULL", set},
    {"unset", "\\unset NAME", "forgets it", unset},
    {"i", "\\i FILE", "runs the statements of a file", include},
    {"?", "\\?", "this", help},
    {"q", "\\q", "leaves; so does Ctrl-D", quit},
};

static status help(struct shell *shell, bytes argument)
{
    (void)argument;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        buffer_append_format(&shell->out, "  %-25s %s\n", commands[i].usage, commands[i].sentence);
    buffer_append_format(&shell->out,
                         "Anything else is GoogleSQL, up to a semicolon. Ctrl-C stops a query.\n");
    return shell_flush(shell);
}

status shell_command(struct shell *shell, bytes line)
{
    line = trimmed(line);
    bytes rest = bytes_from(line, 1); /* the backslash */
    bytes name = take_word(&rest);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (bytes_equal(name, bytes_of(commands[i].name)))
            return commands[i].run(shell, rest);
    return status_make(STATUS_INVALID_ARGUMENT, "there is no command \\%.*s; see \\?",
                       (int)name.size, (const char *)name.data);
}
