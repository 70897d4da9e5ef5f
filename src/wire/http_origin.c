/* See http_origin.h. */
#include "wire/http_origin.h"

#include <strings.h>

/* "https://host:port" without what stands before the host; empty if it is nothing of the kind. */
static bytes host_of(bytes origin)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (bytes_start_with(origin, bytes_of(schemes[i])))
            return bytes_from(origin, strlen(schemes[i]));
    return bytes_make(NULL, 0);
}

bool http_origin_is_of(bytes origin, bytes host)
{
    bytes from = host_of(origin);
    return from.size > 0 && from.size == host.size &&
           strncasecmp((const char *)from.data, (const char *)host.data, host.size) == 0;
}
