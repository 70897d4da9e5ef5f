/* See target_options.h. */
#include "cmd/target_options.h"

#include <stdlib.h>

static bool was_given(const struct option_table *table, const struct option_origin *origins,
                      const char *member)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->rows[i].member, member) == 0)
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

status target_options_settle(const struct option_table *table, const struct option_origin *origins,
                             struct target_options *out)
{
    struct endpoint_options *server = &out->server;
    bool remote = false, has_token = server->token != NULL || server->token_file != NULL;
    bool is_emulator = server->address == NULL && getenv("BIGTABLE_EMULATOR_HOST") != NULL;
    bool says_tls = was_given(table, origins, "tls");
    if (server->address == NULL)
        server->address = endpoint_default();
    if (out->app_profile == NULL)
        out->app_profile = "";
    if (server->token != NULL && server->token_file != NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "--token and --token-file exclude each other");
    TRY(is_remote(server->address, &remote));
    if (!says_tls)
        server->tls = server->ca != NULL || (remote && !is_emulator);
    if (!server->tls && server->ca != NULL)
        return status_make(STATUS_INVALID_ARGUMENT, "--ca needs TLS");
    if (!server->tls && remote && has_token && !says_tls)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "a token is not sent to %s without TLS: say --tls, or --tls=false",
                           server->address);
    return status_ok();
}
