/* See endpoint.h. */
#include "client/endpoint.h"

#include "os/tls.h"

#include <ctype.h>
#include <stdlib.h>

const char *endpoint_default(void)
{
    const char *emulator = getenv("BIGTABLE_EMULATOR_HOST");
    return emulator == NULL ? "127.0.0.1:8086" : emulator;
}

/* "[::1]:8086" is on the host "::1". */
static status find_host(const char *address, struct buffer *host)
{
    const char *colon = strrchr(address, ':');
    bytes name = bytes_make(address, colon == NULL ? strlen(address) : (size_t)(colon - address));
    if (name.size >= 2 && name.data[0] == '[')
        name = bytes_make(name.data + 1, name.size - 2);
    buffer_append_bytes(host, name);
    buffer_append_byte(host, '\0');
    return host->failed ? status_out_of_memory() : status_ok();
}

status endpoint_open(const struct endpoint_options *options, struct endpoint *out)
{
    *out = (struct endpoint){0};
    TRY(address_parse_all(options->address, out->addresses, ENDPOINT_ADDRESSES_MOST,
                          &out->address_count));
    TRY(find_host(options->address, &out->host));
    out->identity =
        (struct grpc_identity){.authority = options->address, .host = (const char *)out->host.data};
    const struct credential_options credential = {.token = options->token,
                                                  .token_file = options->token_file,
                                                  .account_file = options->account_file,
                                                  .host = out->identity.host,
                                                  .clock = clock_system()};
    TRY(credential_create(&credential, &out->identity.credential));
    const struct tls_client_files files = {
        .authority = options->ca, .certificate = options->certificate, .key = options->key};
    return options->tls ? tls_client_create_known(&files, &out->identity.tls) : status_ok();
}

void endpoint_close(struct endpoint *endpoint)
{
    tls_context_destroy(endpoint->identity.tls);
    credential_destroy(endpoint->identity.credential);
    buffer_free(&endpoint->host);
}

status endpoint_connect(const struct endpoint *endpoint, struct loop *loop, struct grpc_link **link)
{
    if (*link != NULL && grpc_link_is_lost(*link)) {
        grpc_link_destroy(*link);
        *link = NULL;
    }
    if (*link != NULL)
        return status_ok();
    return grpc_link_create(loop, endpoint->addresses, endpoint->address_count, &endpoint->identity,
                            link);
}

bool endpoint_failure_may_pass(status s)
{
    return s.code == STATUS_UNAVAILABLE || s.code == STATUS_CANCELLED ||
           s.code == STATUS_DEADLINE_EXCEEDED || s.code == STATUS_ABORTED ||
           s.code == STATUS_RESOURCE_EXHAUSTED || s.code == STATUS_INTERNAL;
}

int64_t endpoint_next_wait(int64_t wait_us)
{
    enum { FIRST_US = 100 * 1000, MOST_US = 5 * 1000 * 1000 };
    if (wait_us == 0)
        return FIRST_US;
    return 2 * wait_us < MOST_US ? 2 * wait_us : MOST_US;
}

void endpoint_append_routing(struct buffer *out, const char *name, const char *value)
{
    buffer_append_format(out, "%s%s=", out->size > 0 ? "&" : "", name);
    for (; *value != '\0'; value++)
        buffer_append_format(
            out, isalnum((unsigned char)*value) || strchr("-_.~", *value) != NULL ? "%c" : "%%%02X",
            (unsigned char)*value);
}
