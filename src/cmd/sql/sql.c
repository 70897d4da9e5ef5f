/* `trestle sql`: the command. Statements come from -e, -f, a pipe or a terminal, all line by line.
 *
 * On a terminal an error is told and the next line asked for; elsewhere the first ends it. */
#include "cmd/command.h"
#include "cmd/sql/sql_shell.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { INCLUDES_MOST = 16 };

/* --- feeding --- */

static bool is_command(bytes line)
{
    size_t at = 0;
    while (at < line.size && (line.data[at] == ' ' || line.data[at] == '\t'))
        at++;
    return at < line.size && line.data[at] == '\\';
}

status shell_feed(struct shell *shell, struct sql_splitter *splitter, bytes line,
                  unsigned *line_of_error)
{
    struct sql_statement statement;
    if (sql_splitter_is_idle(splitter) && is_command(line)) {
        *line_of_error = ++splitter->line;
        return shell_command(shell, line);
    }
    sql_splitter_add(splitter, line);
    while (!shell->is_over && sql_splitter_next(splitter, &statement)) {
        *line_of_error = statement.line;
        TRY(shell_statement(shell, statement.text));
    }
    return splitter->text.failed ? status_out_of_memory() : status_ok();
}

static status feed_rest(struct shell *shell, struct sql_splitter *splitter, unsigned *line_of_error)
{
    struct sql_statement statement;
    if (shell->is_over || !sql_splitter_rest(splitter, &statement))
        return status_ok();
    *line_of_error = statement.line;
    return shell_statement(shell, statement.text);
}

/* The same failure, told with its place. */
static status at_line(status s, const char *name, unsigned line)
{
    if (status_is_ok(s))
        return s;
    status placed = status_make(s.code, "%s:%u: %s", name, line, status_message(s));
    status_free(s);
    return placed;
}

/* --- texts and files --- */

static status run_text(struct shell *shell, const char *text)
{
    struct sql_splitter splitter = {0};
    unsigned line = 0;
    status s = status_ok();
    while (status_is_ok(s) && *text != '\0' && !shell->is_over) {
        const char *end = strchrnul(text, '\n');
        s = shell_feed(shell, &splitter, bytes_make(text, (size_t)(end - text)), &line);
        text = *end == '\0' ? end : end + 1;
    }
    if (status_is_ok(s))
        s = feed_rest(shell, &splitter, &line);
    sql_splitter_free(&splitter);
    return s;
}

static bytes without_newline(const char *line, ssize_t size)
{
    bool has_newline = size > 0 && line[size - 1] == '\n';
    return bytes_make(line, (size_t)size - has_newline);
}

static status run_stream(struct shell *shell, FILE *from, const char *name)
{
    struct sql_splitter splitter = {0};
    unsigned line_of_error = 0;
    char *line = NULL;
    size_t capacity = 0;
    status s = status_ok();
    while (status_is_ok(s) && !shell->is_over) {
        ssize_t size = getline(&line, &capacity, from);
        if (size < 0)
            break;
        s = shell_feed(shell, &splitter, without_newline(line, size), &line_of_error);
    }
    if (status_is_ok(s) && ferror(from))
        s = status_from_errno(errno, "cannot read it");
    if (status_is_ok(s))
        s = feed_rest(shell, &splitter, &line_of_error);
    free(line);
    sql_splitter_free(&splitter);
    return at_line(s, name, line_of_error);
}

status shell_run_file(struct shell *shell, const char *path)
{
    if (strcmp(path, "-") == 0)
        return run_stream(shell, stdin, "stdin");
    if (shell->depth == INCLUDES_MOST)
        return status_make(STATUS_INVALID_ARGUMENT, "files are %d deep in one another",
                           INCLUDES_MOST);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return status_from_errno(errno, "%s", path);
    shell->depth++;
    status s = run_stream(shell, file, path);
    shell->depth--;
    (void)fclose(file); /* it was only read */
    return s;
}

/* --- a terminal --- */

static void tell(status s)
{
    (void)fflush(stdout);
    fprintf(stderr, "%s: %s\n", status_code_name(s.code), status_message(s));
    status_free(s);
}

/* The conversation with a user. A statement goes into the history when it is over, as a whole. */
static void converse(struct shell *shell, struct shell_reader *reader)
{
    struct sql_splitter splitter = {0};
    struct buffer typed = {0};
    unsigned unused;
    bytes line;
    while (!shell->is_over) {
        enum shell_line kind = shell_reader_next(reader, !sql_splitter_is_idle(&splitter), &line);
        if (kind == LINE_END) {
            puts("");
            break;
        }
        if (kind == LINE_ABANDONED) {
            sql_splitter_drop(&splitter);
            buffer_clear(&typed);
            continue;
        }
        if (typed.size > 0)
            buffer_append_byte(&typed, '\n');
        buffer_append_bytes(&typed, line);
        status s = shell_feed(shell, &splitter, line, &unused);
        if (!status_is_ok(s))
            tell(s);
        if (!sql_splitter_is_idle(&splitter))
            continue;
        if (typed.size > 0)
            shell_reader_remember(reader, buffer_bytes(&typed));
        buffer_clear(&typed);
    }
    buffer_free(&typed);
    sql_splitter_free(&splitter);
}

/* NULL without a home. To be freed. */
static char *history_path(void)
{
    const char *path = getenv("TRESTLE_SQL_HISTORY"), *home = getenv("HOME");
    struct buffer text = {0};
    if (path == NULL && home == NULL)
        return NULL;
    if (path != NULL)
        buffer_append_format(&text, "%s", path);
    else
        buffer_append_format(&text, "%s/.trestle_sql_history", home);
    char *copy = text.failed ? NULL : bytes_to_string(buffer_bytes(&text));
    buffer_free(&text);
    return copy;
}

static status run_terminal(struct shell *shell)
{
    struct shell_reader *reader;
    char *history = history_path();
    status s = shell_reader_create(history, &reader);
    if (status_is_ok(s)) {
        printf("%s, %s. \\? for help.\n", client_session_instance(shell->session),
               client_session_address(shell->session));
        converse(shell, reader);
    }
    shell_reader_destroy(reader);
    free(history);
    return s;
}

/* --- the command --- */

static status run_input(struct shell *shell, const struct shell_input *input)
{
    return input->is_file ? shell_run_file(shell, input->text) : run_text(shell, input->text);
}

static status run_inputs(struct shell *shell, const struct shell_options *options, bool is_terminal)
{
    if (is_terminal)
        return run_terminal(shell);
    if (options->input_count == 0)
        return run_stream(shell, stdin, "stdin");
    for (size_t i = 0; i < options->input_count && !shell->is_over; i++)
        TRY(run_input(shell, &options->inputs[i]));
    return status_ok();
}

static status run(struct shell_options *options, bool *has_no_reader)
{
    bool is_terminal = options->input_count == 0 && isatty(STDIN_FILENO);
    const struct client_session_options server = {
        .target = options->target,
        .is_interruptible = is_terminal,
    };
    struct shell shell = {
        .parameters = options->parameters,
        .style = {.format = (enum shell_format)options->format, .no_header = options->no_header},
        .explain = options->explain   ? EXPLAIN_PLAN
                   : options->analyze ? EXPLAIN_ANALYZE
                                      : EXPLAIN_NONE,
        .to = stdout,
    };
    options->parameters = (struct shell_parameters){0}; /* they are the shell's now */
    status s = client_session_create(&server, &shell.session);
    if (status_is_ok(s))
        s = run_inputs(&shell, options, is_terminal);
    *has_no_reader = shell.has_no_reader;
    client_session_destroy(shell.session);
    shell_parameters_free(&shell.parameters);
    buffer_free(&shell.out);
    return s;
}

static int run_command(struct shell_options *options)
{
    bool has_no_reader = false;
    status s = run(options, &has_no_reader);
    if (status_is_ok(s))
        return EXIT_SUCCESS;
    if (!has_no_reader)
        fprintf(stderr, "trestle sql: %s: %s\n", status_code_name(s.code), status_message(s));
    status_free(s);
    return EXIT_FAILURE;
}

int sql_command(const char *const *arguments)
{
    struct shell_options options;
    int code;
    if (command_asks_for(arguments, "--help"))
        return command_print(shell_options_write_help);
    signal(SIGPIPE, SIG_IGN); /* a write says so, to a socket or to the output */
    status s = shell_options_read(arguments, &options);
    if (status_is_ok(s))
        code = run_command(&options);
    else
        code = command_usage_error("sql", status_message(s));
    shell_options_free(&options);
    status_free(s);
    return code;
}
