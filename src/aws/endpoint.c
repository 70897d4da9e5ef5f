/* See endpoint.h. */
#include "aws/endpoint.h"

#include "base/url.h"

#include <strings.h>

static status refuse(const char *endpoint)
{
    struct buffer shown = {0};
    buffer_append_url(&shown, endpoint);
    buffer_append_byte(&shown, 0);
    status s = shown.failed ? status_out_of_memory()
                            : status_make(STATUS_INVALID_ARGUMENT,
                                          "%s is no endpoint: http://HOST:PORT or https://HOST is "
                                          "expected, without a user",
                                          (char *)shown.data);
    buffer_free(&shown);
    return s;
}

status aws_endpoint_parse(const char *endpoint, const char **scheme, struct buffer *host)
{
    static const char *const schemes[] = {"http://", "https://"};
    static const char *const ports[] = {":80", ":443"};
    for (size_t i = 0; i < 2; i++) {
        size_t size = strlen(schemes[i]);
        if (strncasecmp(endpoint, schemes[i], size) != 0)
            continue;
        bytes name = bytes_of(endpoint + size);
        bytes port = bytes_of(ports[i]);
        if (name.size > 0 && name.data[name.size - 1] == '/')
            name.size--;
        if (name.size > port.size && bytes_equal(bytes_from(name, name.size - port.size), port))
            name.size -= port.size;
        if (name.size == 0 || strcspn((const char *)name.data, "/?#@ ") < name.size)
            break;
        *scheme = schemes[i];
        buffer_append_bytes(host, name);
        buffer_append_byte(host, '\0');
        return host->failed ? status_out_of_memory() : status_ok();
    }
    return refuse(endpoint);
}
