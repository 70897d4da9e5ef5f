/* The program: finds the sub-command. */
#include "cmd/advise/advise.h"
#include "cmd/backup/archive.h"
#include "cmd/backup/backup.h"
#include "cmd/bench/bench.h"
#include "cmd/command.h"
#include "cmd/repair/doctor.h"
#include "cmd/repair/repair.h"
#include "cmd/replica/cluster.h"
#include "cmd/serve.h"
#include "cmd/sql/sql_shell.h"
#include "cmd/status/status.h"
#include "cmd/support/support_bundle.h"
#include "cmd/tail/tail.h"
#include "cmd/token.h"
#include "cmd/transfer/copy.h"
#include "cmd/transfer/export.h"
#include "cmd/transfer/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

struct command {
    const char *name;
    int (*run)(const char *const *arguments); /* those after the name; returns the exit status */
    const char *sentence;
    /* What it writes is a server's data, or has row keys: its owner's alone, whatever the umask.
     * Files that the user asks for, such as exports, are made as the umask says. */
    bool is_private;
};

static void write_version_help(struct buffer *out)
{
    buffer_append_format(out, "usage: trestle version\n");
}

static int version_command(const char *const *arguments)
{
    if (command_asks_for(arguments, "--help"))
        return command_print(write_version_help);
    if (*arguments != NULL)
        return command_usage_error("version", "takes no arguments");
    puts("trestle " TRESTLE_VERSION);
    return EXIT_SUCCESS;
}

static int help_command(const char *const *arguments);

static const struct command commands[] = {
    {"serve", serve_command, "serve a data directory to Bigtable clients", true},
    {"doctor", doctor_command, "examine the data directory of a stopped server", true},
    {"repair", repair_command, "repair the data directory of a stopped server", true},
    {"backup", backup_command, "make, verify and restore backups of a whole server", true},
    {"archive", archive_command, "look into an archive, and take a copy on to a later moment",
     true},
    {"import", import_command, "bring in rows of files, and what another database has exported",
     false},
    {"export", export_command, "write a table into files that others read", false},
    {"copy", copy_command, "copy a table from one Bigtable endpoint to another", false},
    {"tail", tail_command, "print what happens to the rows of a table, as it happens", false},
    {"advise", advise_command, "say what is wrong with a table's keys and columns", false},
    {"sql", sql_command, "query any Bigtable endpoint with GoogleSQL", false},
    {"status", status_command, "say what a server does", false},
    {"cluster", cluster_command, "list the clusters that copy each other's changes, or join them",
     false},
    {"support-bundle", support_bundle_command, "gather what somebody who helps needs to know",
     false},
    {"bench", bench_command, "put load on a server and measure it", false},
    {"token", token_command, "make a bearer token", false},
    {"permissions", permissions_command, "print what each RPC needs", false},
    {"version", version_command, "print the version", false},
    {"help", help_command, "print this", false},
};

static void print_help(FILE *to)
{
    fputs("usage: trestle COMMAND [ARGUMENT...]\n\n", to);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(to, "  %-14s %s\n", commands[i].name, commands[i].sentence);
    fputs("\n`trestle COMMAND --help` says more.\n", to);
}

static int help_command(const char *const *arguments)
{
    (void)arguments;
    print_help(stdout);
    return EXIT_SUCCESS;
}

static const struct command *find_command(const char *name)
{
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

int main(int count, char **arguments)
{
    if (count < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const struct command *command = find_command(arguments[1]);
    if (command == NULL) {
        fprintf(stderr, "trestle: there is no command \"%s\"; see trestle help\n", arguments[1]);
        return EXIT_USAGE;
    }
    if (command->is_private)
        umask(S_IRWXG | S_IRWXO);
    return command->run((const char *const *)arguments + 2);
}
