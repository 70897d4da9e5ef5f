/* The options that say which server a command is a client of, and which instance there: the same
 * for every command. */
#ifndef TRESTLE_CLIENT_TARGET_OPTIONS_H
#define TRESTLE_CLIENT_TARGET_OPTIONS_H

#include "base/options.h"
#include "client/endpoint.h"

struct target_options {
    struct endpoint_options server;
    const char *admin_address; /* NULL: administrative calls go to the same server */
    const char *project;
    const char *instance;
    const char *app_profile; /* "": none */
};

#define TARGET_OPTION(type_, field_, kind_, name_, place_, preset_, unit_, sentence_)              \
    {                                                                                              \
        .member = name_, .kind = OPTION_##kind_, .offset = offsetof(type_, field_.place_),         \
        .preset = preset_, .unit = unit_, .sentence = sentence_                                    \
    }

#define TARGET_ENDPOINT_ROW_AS(type, field, prefix, whose)                                         \
    TARGET_OPTION(type, field, STRING, prefix "endpoint", server.address, NULL, "ADDR:PORT",       \
                  "The " whose "server; by default BIGTABLE_EMULATOR_HOST, else 127.0.0.1:8086.")

#define TARGET_TLS_ROW_AS(type, field, prefix)                                                     \
    TARGET_OPTION(type, field, BOOLEAN, prefix "tls", server.tls, "false", "",                     \
                  "Speaks TLS. The default is true with --ca, or if the endpoint is neither "      \
                  "loopback nor that of BIGTABLE_EMULATOR_HOST.")

#define TARGET_CREDENTIAL_ROWS_AS(type, field, prefix)                                             \
    TARGET_OPTION(type, field, STRING, prefix "ca", server.ca, NULL, "FILE",                       \
                  "PEM certificates that the server's must lead to; by default the system's."),    \
        TARGET_OPTION(type, field, STRING, prefix "token_file", server.token_file, NULL, "FILE",   \
                      "Its first line is the bearer token of each call."),                         \
        TARGET_OPTION(type, field, STRING, prefix "token", server.token, NULL, "TOKEN",            \
                      "The token itself, which other users of the machine may see."),              \
        TARGET_OPTION(type, field, STRING, prefix "account", server.account_file, NULL, "FILE",    \
                      "A Google service account's key (JSON), which signs the tokens.")

/* The rows of a command that asks a server about itself, and no instance. */
#define TARGET_SERVER_ROWS(type, field)                                                            \
    TARGET_ENDPOINT_ROW_AS(type, field, "", ""), TARGET_TLS_ROW_AS(type, field, ""),               \
        TARGET_CREDENTIAL_ROWS_AS(type, field, "")

/* Rows of the table of a command whose options are a `type` with a target_options `field`. Of a
 * command that has two servers, one's names begin with a prefix, as members do ("from_"), and its
 * sentences say whose it is ("source's "). */
#define TARGET_OPTION_ROWS_AS(type, field, prefix, whose)                                          \
    TARGET_ENDPOINT_ROW_AS(type, field, prefix, whose),                                            \
        TARGET_OPTION(type, field, STRING, prefix "project", project, "p", "NAME",                 \
                      "The " whose "project."),                                                    \
        TARGET_OPTION(type, field, STRING, prefix "instance", instance, "i", "NAME",               \
                      "The " whose "instance."),                                                   \
        TARGET_OPTION(type, field, STRING, prefix "app_profile", app_profile, NULL, "NAME",        \
                      "The app profile of each " whose "request."),                                \
        TARGET_TLS_ROW_AS(type, field, prefix), TARGET_CREDENTIAL_ROWS_AS(type, field, prefix),    \
        TARGET_OPTION(type, field, STRING, prefix "admin_endpoint", admin_address, NULL,           \
                      "ADDR:PORT",                                                                 \
                      "The " whose "server of administrative calls; by default the same, of "      \
                      "bigtable.googleapis.com bigtableadmin.googleapis.com.")

#define TARGET_OPTION_ROWS(type, field) TARGET_OPTION_ROWS_AS(type, field, "", "")

/* After options_read: what follows from what was given, and what excludes each other.
 * INVALID_ARGUMENT. `origins` are the table's. */
status target_options_resolve(const struct option_table *table, const struct option_origin *origins,
                              struct target_options *out);
status target_options_resolve_as(const struct option_table *table,
                                 const struct option_origin *origins, const char *prefix,
                                 struct target_options *out);

#endif
