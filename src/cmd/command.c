/* See command.h. */
#include "cmd/command.h"

#include <stdio.h>
#include <stdlib.h>

int command_usage_error(const char *command, const char *words)
{
    fprintf(stderr, "trestle %s: %s\n", command, words);
    return EXIT_USAGE;
}

bool command_asks_for(const char *const *arguments, const char *flag)
{
    for (; *arguments != NULL; arguments++)
        if (strcmp(*arguments, flag) == 0)
            return true;
    return false;
}

int command_print(void (*write)(struct buffer *out))
{
    struct buffer out = {0};
    write(&out);
    bool fine =
        !out.failed && fwrite(out.data, 1, out.size, stdout) == out.size && fflush(stdout) == 0;
    buffer_free(&out);
    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}
