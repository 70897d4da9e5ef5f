/* Whether a request was made by a page of the console, or by another page that the same browser
 * shows, which could not see the cookie but would have it sent: forgery.
 *
 * The console's pages send the header `x-trestle-console`, which a page from elsewhere cannot add
 * without asking this server first (CORS), which says no. A request that changes anything must also
 * come from here: by the browser's word in `sec-fetch-site`, or, from browsers that do not say so
 * (they do with TLS and on loopback), because the host in `origin` is the one that was asked. */
#ifndef TRESTLE_CONSOLE_REQUEST_ORIGIN_H
#define TRESTLE_CONSOLE_REQUEST_ORIGIN_H

#include "wire/http.h"

#define CONSOLE_HEADER "x-trestle-console"

bool request_is_of_console(const struct http_request *request);

#endif
