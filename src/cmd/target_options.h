/* The options that say which server a command is a client of, and which instance there: the same
 * for every command. */
#ifndef TRESTLE_CMD_TARGET_OPTIONS_H
#define TRESTLE_CMD_TARGET_OPTIONS_H

#include "base/options.h"
#include "cmd/endpoint.h"

struct target_options {
    struct endpoint_options server;
    const char *project;
    const char *instance;
    const char *app_profile; /* "": none */
};

#define TARGET_OPTION(type_, field_, kind_, name_, place_, preset_, unit_, sentence_)              \
    {                                                                                              \
        .member = name_, .kind = OPTION_##kind_, .offset = offsetof(type_, field_.place_),         \
        .preset = preset_, .unit = unit_, .sentence = sentence_                                    \
    }

/* Rows of the table of a command whose options are a `type` with a target_options `field`. */
#define TARGET_OPTION_ROWS(type, field)                                                            \
    TARGET_OPTION(type, field, STRING, "endpoint", server.address, NULL, "ADDR:PORT",              \
                  "The server; by default BIGTABLE_EMULATOR_HOST, else 127.0.0.1:8086."),          \
        TARGET_OPTION(type, field, STRING, "project", project, "p", "NAME", "The project."),       \
        TARGET_OPTION(type, field, STRING, "instance", instance, "i", "NAME", "The instance."),    \
        TARGET_OPTION(type, field, STRING, "app_profile", app_profile, NULL, "NAME",               \
                      "The app profile of each request."),                                         \
        TARGET_OPTION(type, field, BOOLEAN, "tls", server.tls, "false", "",                        \
                      "Speaks TLS. The default is true with --ca, or if the endpoint is neither "  \
                      "loopback nor that of BIGTABLE_EMULATOR_HOST."),                             \
        TARGET_OPTION(                                                                             \
            type, field, STRING, "ca", server.ca, NULL, "FILE",                                    \
            "PEM certificates that the server's must lead to; by default the system's."),          \
        TARGET_OPTION(type, field, STRING, "token_file", server.token_file, NULL, "FILE",          \
                      "Its first line is the bearer token of each call."),                         \
        TARGET_OPTION(type, field, STRING, "token", server.token, NULL, "TOKEN",                   \
                      "The token itself, which other users of the machine may see.")

/* After options_read: what follows from what was given, and what excludes each other.
 * INVALID_ARGUMENT. `origins` are the table's. */
status target_options_settle(const struct option_table *table, const struct option_origin *origins,
                             struct target_options *out);

#endif
