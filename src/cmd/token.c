/* See token.h. */
#include "cmd/token.h"

#include "access/access.h"
#include "access/tokens.h"
#include "base/clock.h"
#include "base/options.h"
#include "cmd/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY_US (86400ll * 1000000)

struct token_options {
    const char *principal;
    const char *file;
    int64_t expires;
};

static const struct option rows[] = {
    {.member = "principal",
     .kind = OPTION_STRING,
     .offset = offsetof(struct token_options, principal),
     .unit = "PRINCIPAL",
     .sentence = "Whose it is: user:alice@example.com, or serviceAccount:app@example.com."},
    {.member = "file",
     .kind = OPTION_STRING,
     .offset = offsetof(struct token_options, file),
     .unit = "FILE",
     .sentence = "Where to add its line; made if it is missing. Without one, the line is printed "
                 "behind the token."},
    {.member = "expires",
     .kind = OPTION_DURATION,
     .offset = offsetof(struct token_options, expires),
     .preset = "0",
     .most = 36500 * DAY_US,
     .unit = "",
     .sentence = "How long it is good; 0 means for ever."},
};

enum { ROW_COUNT = sizeof rows / sizeof *rows };

static const struct option_table table = {
    .rows = rows, .count = ROW_COUNT, .command = "trestle token"};

static status append(const char *path, const struct buffer *line)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return status_from_errno(errno, "cannot open %s", path);
    ssize_t written = write(fd, line->data, line->size);
    if (close(fd) == 0 && written == (ssize_t)line->size)
        return status_ok();
    return status_from_errno(errno, "cannot write %s", path);
}

static status make(const struct token_options *options)
{
    char token[TOKEN_TEXT_SIZE];
    struct buffer line = {0};
    int64_t expires_us = INT64_MAX;
    if (options->expires > 0)
        expires_us = clock_wall_us(clock_system()) + options->expires;
    TRY(token_make(token));
    token_write_line(token, options->principal, expires_us, &line);
    status s = line.failed ? status_out_of_memory() : status_ok();
    if (status_is_ok(s) && options->file != NULL)
        s = append(options->file, &line);
    if (status_is_ok(s)) {
        printf("%s\n", token);
        if (options->file == NULL)
            printf("%.*s", (int)line.size, (const char *)line.data);
    }
    buffer_free(&line);
    return s;
}

static void write_help(struct buffer *out)
{
    options_write_help(&table, out);
}

int token_command(const char *const *arguments)
{
    struct token_options options = {0};
    struct option_origin origins[ROW_COUNT] = {0};
    struct option_values values = {.object = &options, .origins = origins};
    const char *const no_environment[] = {NULL};
    if (command_asks_for(arguments, "--help"))
        return command_print(write_help);
    status s = options_read(&table, arguments, no_environment, &values);
    if (!status_is_ok(s))
        return command_refuse("token", s);
    if (options.principal == NULL || !principal_is_valid(bytes_of(options.principal)))
        return command_usage_error("token", "--principal should be user:… or serviceAccount:…");
    s = make(&options);
    return status_is_ok(s) ? EXIT_SUCCESS : command_refuse("token", s);
}

static void write_permissions_help(struct buffer *out)
{
    buffer_append_format(out, "usage: trestle permissions\n\n"
                              "Prints a page (Markdown) of the permission that each RPC needs.\n");
}

int permissions_command(const char *const *arguments)
{
    if (command_asks_for(arguments, "--help"))
        return command_print(write_permissions_help);
    if (*arguments != NULL)
        return command_usage_error("permissions", "takes no arguments");
    return command_print(access_write_markdown);
}
