/* Keeps pages of other sites, which a user's browser shows, from using this server through it:
 * REST, the console and the other pages. gRPC cannot be spoken by a page, and is not looked at.
 *
 * A request is a browser's if it has one of the headers that browsers add and scripts cannot leave
 * out: Origin, Referer, Sec-Fetch-…, Accept-Language, a User-Agent that begins with Mozilla/.
 * Others (curl, Google's clients, gcloud) pass. Of a browser's is asked
 *
 *     which host    DNS rebinding gives a name of an attacker's this server's address, so that the
 *                   attacker's page is of the same origin. Names that cannot be had in public do
 *                   not serve for that: addresses, names without a dot (localhost, a container's)
 *                   and *.localhost. Others must be known (--allowed-hosts). With access control
 *                   this is not asked: such a page knows no token.
 *     from where    A page from elsewhere may link here, and nothing else: no form, no script.
 *                   Sec-Fetch-Site says, or Origin where the browser does not send that. Asked with
 *                   access control, too: a browser shows a client's certificate to any page that
 *                   asks. */
#ifndef TRESTLE_WIRE_BROWSER_GUARD_H
#define TRESTLE_WIRE_BROWSER_GUARD_H

#include "base/status.h"
#include "wire/http.h"

struct browser_guard {
    const char *allowed_hosts; /* names with commas between; NULL: none */
    bool any_host;             /* the host is not asked for */
};

/* INVALID_ARGUMENT if the list has something that is no name of a host. */
status browser_guard_check_hosts(const char *allowed_hosts);

/* The header fields by which a request says where it is from. Empty where it does not. */
struct browser_marks {
    bytes host;
    bytes origin;
    bytes site; /* sec-fetch-site */
    bytes mode; /* sec-fetch-mode */
    bool is_browser;
    bool only_looks; /* GET or HEAD */
};

struct browser_marks browser_marks_of(const struct http_request *request);

/* PERMISSION_DENIED, in words for the person at the browser. */
status browser_guard_admit(const struct browser_guard *guard, const struct browser_marks *marks);

#endif
