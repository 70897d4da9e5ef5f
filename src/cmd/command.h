/* Functions that the sub-commands share: help and failures, the same everywhere. */
#ifndef TRESTLE_CMD_COMMAND_H
#define TRESTLE_CMD_COMMAND_H

#include "base/status.h"

#include <stdio.h>

enum { EXIT_USAGE = 2 };

/* Prints one line on stderr, "trestle serve: <words>"; returns EXIT_USAGE. */
int command_usage_error(const char *command, const char *words);

/* The same line of a failure, which it takes; returns the exit status: of a command that failed, or
 * of options, EXIT_USAGE if they make no sense. */
int command_fail(const char *command, status s);
int command_refuse(const char *command, status s);

/* The exit status of a command: that of its failure, which is told as above; of none, whether it
 * found nothing to complain of. */
int command_end(const char *command, status s, bool is_perfect);

/* The first `count` arguments are no options; INVALID_ARGUMENT in these words if they are, or there
 * are fewer. */
status command_need_words(const char *const *arguments, size_t count, const char *words);

/* Whether the flag is among the arguments, which end with NULL. */
bool command_asks_for(const char *const *arguments, const char *flag);

/* Prints what `write` writes; returns an exit status. */
int command_print(void (*write)(struct buffer *out));

/* A row key, with bytes outside printable ASCII as \xNN. */
void command_print_key(FILE *to, bytes key);

/* A command that is several: "trestle import csv". */
struct command_kind {
    const char *name;
    int (*run)(const char *const *arguments); /* those behind the name */
    const char *sentence;                     /* what it is, for the help */
};

struct command_kinds {
    const char *command;   /* "import" */
    const char *arguments; /* of all kinds, "SOURCE [OPTION…]" */
    const char *question;  /* asked if no kind is named, "what from?" */
    const struct command_kind *all;
    size_t count;
};

/* Runs the kind that the first argument names. Returns its exit status. */
int command_run_kind(const struct command_kinds *kinds, const char *const *arguments);

#endif
