/* See request_origin.h. */
#include "console/request_origin.h"

#include "wire/http_origin.h"

static bool is_from_here(const struct http_request *request)
{
    bytes site, origin, host;
    if (http_request_header(request, "sec-fetch-site", &site))
        return bytes_equal(site, bytes_of("same-origin"));
    if (!http_request_header(request, "origin", &origin) ||
        !http_request_header(request, "host", &host))
        return false;
    return http_origin_is_of(origin, host);
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
