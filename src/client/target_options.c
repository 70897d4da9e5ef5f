/* See target_options.h. */
#include "client/target_options.h"

#include <stdlib.h>

#define GOOGLE_DATA  "bigtable.googleapis.com:443"
#define GOOGLE_ADMIN "bigtableadmin.googleapis.com:443"

static bool was_given(const struct option_table *table, const struct option_origin *origins,
                      const char *prefix, const char *member)
{
    size_t skip = strlen(prefix);
    for (size_t i = 0; i < table->count; i++)
        if (strncmp(table->rows[i].member, prefix, skip) == 0 &&
            strcmp(table->rows[i].member + skip, member) == 0)
            return origins[i].source == OPTION_FLAG;
    return false;
}

static status is_remote(const char *endpoint, bool *out)
{
    struct address address;
    TRY(address_parse(endpoint, &address));
    *out = !address_is_loopback(&address);
    return status_ok();
}

status target_options_resolve_as(const struct option_table *table,
                                 const struct option_origin *origins, const char *prefix,
                                 struct target_options *out)
{
    struct endpoint_options *server = &out->server;
    int tokens =
        (server->token != NULL) + (server->token_file != NULL) + (server->account_file != NULL);
    bool remote = false;
    bool is_emulator = server->address == NULL && getenv("BIGTABLE_EMULATOR_HOST") != NULL;
    bool says_tls = was_given(table, origins, prefix, "tls");
    if (server->address == NULL)
        server->address = endpoint_default();
    if (out->app_profile == NULL)
        out->app_profile = "";
    if (tokens > 1)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "--token, --token-file and --account exclude each other");
    if (out->admin_address == NULL && strcmp(server->address, GOOGLE_DATA) == 0)
        out->admin_address = GOOGLE_ADMIN;
    TRY(is_remote(server->address, &remote));
    if (!says_tls)
        server->tls = server->ca != NULL || (remote && !is_emulator);
    if (!server->tls && server->ca != NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "--ca needs TLS");
    if (!server->tls && remote && tokens > 0 && !says_tls)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "a token is not sent to %s without TLS: say --tls, or --tls=false",
                           server->address);
    return status_ok();
}

status target_options_resolve(const struct option_table *table, const struct option_origin *origins,
                              struct target_options *out)
{
    return target_options_resolve_as(table, origins, "", out);
}
