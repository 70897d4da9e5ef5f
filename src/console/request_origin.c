/* See request_origin.h. */
#include "console/request_origin.h"

#include <strings.h>

/* "https://host:port" without what stands before the host; empty if it is nothing of the kind, such
 * as the word null. */
static bytes host_of(bytes origin)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (bytes_start_with(origin, bytes_of(schemes[i])))
            return bytes_from(origin, strlen(schemes[i]));
    return bytes_make(NULL, 0);
}

static bool is_from_here(const struct http_request *request)
{
    bytes site, origin, host;
    if (http_request_header(request, "sec-fetch-site", &site))
        return bytes_equal(site, bytes_of("same-origin"));
    if (!http_request_header(request, "origin", &origin) ||
        !http_request_header(request, "host", &host))
        return false;
    bytes from = host_of(origin);
    return from.size > 0 && from.size == host.size &&
           strncasecmp((const char *)from.data, (const char *)host.data, host.size) == 0;
}

bool request_is_of_console(const struct http_request *request)
{
    const char *method = http_request_method(request);
    bytes given;
    if (!http_request_header(request, CONSOLE_HEADER, &given))
        return false;
    bool only_looks = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    return only_looks || is_from_here(request);
}
