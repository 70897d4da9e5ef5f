/* `trestle import`: which of the sources. See import.h. */
#include "cmd/import.h"

#include "cmd/command.h"

#include <stdio.h>
#include <stdlib.h>

static int fail(status s, int exit_status)
{
    fprintf(stderr, "trestle import: %s\n", status_message(s));
    status_free(s);
    return exit_status;
}

static int dynamodb_command(const char *const *arguments)
{
    struct import_options options;
    bool is_perfect = false;
    if (command_asks_for(arguments, "--help"))
        return command_print(import_options_write_help);
    status s = import_options_read(arguments, &options);
    if (!status_is_ok(s))
        return fail(s, s.code == STATUS_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_FAILURE);
    s = import_dynamodb(&options, &is_perfect);
    if (!status_is_ok(s))
        return fail(s, EXIT_FAILURE);
    return is_perfect ? EXIT_SUCCESS : EXIT_FAILURE;
}

int import_command(const char *const *arguments)
{
    if (arguments[0] != NULL && strcmp(arguments[0], "dynamodb") == 0)
        return dynamodb_command(arguments + 1);
    if (command_asks_for(arguments, "--help"))
        return command_print(import_options_write_help);
    return command_usage_error("import", "what from? trestle import dynamodb SOURCE …");
}
