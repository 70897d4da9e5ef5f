/* See command.h. */
#include "cmd/command.h"

#include <stdlib.h>

int command_usage_error(const char *command, const char *words)
{
    fprintf(stderr, "trestle %s: %s\n", command, words);
    return EXIT_USAGE;
}

static int tell(const char *command, status s, int exit_status)
{
    fprintf(stderr, "trestle %s: %s\n", command, status_message(s));
    status_free(s);
    return exit_status;
}

int command_fail(const char *command, status s)
{
    return tell(command, s, EXIT_FAILURE);
}

int command_refuse(const char *command, status s)
{
    return tell(command, s, s.code == STATUS_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_FAILURE);
}

int command_end(const char *command, status s, bool is_perfect)
{
    if (!status_is_ok(s))
        return command_fail(command, s);
    return is_perfect ? EXIT_SUCCESS : EXIT_FAILURE;
}

status command_need_words(const char *const *arguments, size_t count, const char *words)
{
    for (size_t i = 0; i < count; i++)
        if (arguments[i] == NULL || strncmp(arguments[i], "--", 2) == 0)
            return status_make(STATUS_INVALID_ARGUMENT, "%s", words);
    return status_ok();
}

bool command_asks_for(const char *const *arguments, const char *flag)
{
    for (; *arguments != NULL; arguments++)
        if (strcmp(*arguments, flag) == 0)
            return true;
    return false;
}

static int print_all(struct buffer *out)
{
    bool fine =
        !out->failed && fwrite(out->data, 1, out->size, stdout) == out->size && fflush(stdout) == 0;
    buffer_free(out);
    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}

int command_print(void (*write)(struct buffer *out))
{
    struct buffer out = {0};
    write(&out);
    return print_all(&out);
}

void command_print_key(FILE *to, bytes key)
{
    for (size_t i = 0; i < key.size; i++) {
        uint8_t c = key.data[i];
        if (c > ' ' && c < 0x7f && c != '\\')
            fputc(c, to);
        else
            fprintf(to, "\\x%02x", c);
    }
}

/* --- commands of several kinds --- */

static int print_kinds(const struct command_kinds *kinds)
{
    struct buffer out = {0};
    buffer_append_format(&out, "usage: trestle %s KIND %s\n\n", kinds->command, kinds->arguments);
    for (size_t i = 0; i < kinds->count; i++)
        buffer_append_format(&out, "  %-8s  %s\n", kinds->all[i].name, kinds->all[i].sentence);
    buffer_append_format(&out, "\ntrestle %s KIND --help lists its options.\n", kinds->command);
    return print_all(&out);
}

static int ask_for_kind(const struct command_kinds *kinds)
{
    fprintf(stderr, "trestle %s: %s trestle %s --help lists the kinds\n", kinds->command,
            kinds->question, kinds->command);
    return EXIT_USAGE;
}

/* Names the kinds that there are. */
static int refuse_kind(const struct command_kinds *kinds, const char *name)
{
    fprintf(stderr, "trestle %s: there is no kind \"%.64s\":", kinds->command, name);
    for (size_t i = 0; i < kinds->count; i++)
        fprintf(stderr, "%s %s", i == 0 ? "" : ",", kinds->all[i].name);
    fputc('\n', stderr);
    return EXIT_USAGE;
}

int command_run_kind(const struct command_kinds *kinds, const char *const *arguments)
{
    const char *name = arguments[0];
    if (name == NULL)
        return ask_for_kind(kinds);
    if (strcmp(name, "--help") == 0)
        return print_kinds(kinds);
    for (size_t i = 0; i < kinds->count; i++)
        if (strcmp(name, kinds->all[i].name) == 0)
            return kinds->all[i].run(arguments + 1);
    return refuse_kind(kinds, name);
}
