/* What the sub-commands share: help and usage errors, the same everywhere. */
#ifndef TRESTLE_CMD_COMMAND_H
#define TRESTLE_CMD_COMMAND_H

#include "base/bytes.h"

enum { EXIT_USAGE = 2 };

/* One line on stderr, "trestle serve: <words>"; returns EXIT_USAGE. */
int command_usage_error(const char *command, const char *words);

/* Whether the flag is among the arguments, which end with NULL. */
bool command_asks_for(const char *const *arguments, const char *flag);

/* Prints what `write` writes; returns an exit status. */
int command_print(void (*write)(struct buffer *out));

#endif
