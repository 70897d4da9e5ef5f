/* See endpoint.h. */
#include "aws/endpoint.h"

#include <strings.h>

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
    return status_make(STATUS_INVALID_ARGUMENT,
                       "%s is no endpoint: http://HOST:PORT or https://HOST is expected", endpoint);
}
