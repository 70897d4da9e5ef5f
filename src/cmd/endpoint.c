/* See endpoint.h. */
#include "cmd/endpoint.h"

#include "os/file.h"
#include "os/tls.h"

#include <ctype.h>
#include <stdlib.h>

enum { TOKEN_MOST = 64 << 10 }; /* bytes */

const char *endpoint_default(void)
{
    const char *emulator = getenv("BIGTABLE_EMULATOR_HOST");
    return emulator == NULL ? "127.0.0.1:8086" : emulator;
}

static status make_credential(bytes token, struct buffer *credential)
{
    buffer_append_bytes(credential, bytes_of("Bearer "));
    buffer_append_bytes(credential, token);
    return credential->failed ? status_out_of_memory() : status_ok();
}

static status read_token(const char *file, struct buffer *credential)
{
    struct buffer text = {0};
    TRY(file_read(file, TOKEN_MOST, 0, &text));
    const uint8_t *end = text.size == 0 ? NULL : memchr(text.data, '\n', text.size);
    size_t size = end == NULL ? text.size : (size_t)(end - text.data);
    status s = make_credential(bytes_make(text.data, size), credential);
    buffer_free(&text);
    return s;
}

static status find_credential(const struct endpoint_options *options, struct buffer *credential)
{
    if (options->token != NULL)
        return make_credential(bytes_of(options->token), credential);
    return options->token_file == NULL ? status_ok() : read_token(options->token_file, credential);
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
    TRY(find_credential(options, &out->credential));
    out->identity = (struct grpc_identity){
        .authority = options->address,
        .host = (const char *)out->host.data,
        .credential = buffer_bytes(&out->credential),
    };
    return options->tls ? tls_client_create(options->ca, &out->identity.tls) : status_ok();
}

void endpoint_close(struct endpoint *endpoint)
{
    tls_context_destroy(endpoint->identity.tls);
    buffer_free(&endpoint->credential);
    buffer_free(&endpoint->host);
}

void endpoint_append_routing(struct buffer *out, const char *name, const char *value)
{
    buffer_append_format(out, "%s%s=", out->size > 0 ? "&" : "", name);
    for (; *value != '\0'; value++)
        buffer_append_format(
            out, isalnum((unsigned char)*value) || strchr("-_.~", *value) != NULL ? "%c" : "%%%02X",
            (unsigned char)*value);
}
