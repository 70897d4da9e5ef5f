/* The web console: pages in the program (assets.h) that ask the REST interface.
 *
 *     GET  /console/           the page, and what it is made of
 *     GET  /console/session    the caller: {"authentication", "principal", "session"},
 *                              with fault injection "faults", and if there are others that it
 *                              copies changes with "clusters"
 *     GET  /console/health     the server's condition: {"level", "reasons": [{"name",
 *                              "level", "text", "since"}]}; the text is without names and
 *                              figures for a caller that has not logged in
 *     POST /console/login      the body is a bearer token: begins a session, told by a cookie
 *     POST /console/logout     ends it
 *     any  /console/api/…      what stands behind is a REST request, made with the session's token
 *
 * The cookie is for /console alone, so that REST itself knows no cookies, and no page from
 * elsewhere can make use of them there. Below /console/ only the page and its files are for
 * everybody; other requests must come from the console's own pages (request_origin.h). Whether the
 * caller may do a thing is asked of access control by the call that REST makes, as of any other
 * call.
 *
 * One thread, the one of the requests. */
#ifndef TRESTLE_CONSOLE_CONSOLE_H
#define TRESTLE_CONSOLE_CONSOLE_H

#include "access/access.h"
#include "wire/rest.h"

struct condition_view;
struct console;

/* All of it outlives the console. */
struct console_options {
    struct rest *rest;
    struct access *access; /* NULL: access control is off, there are no logins */
    struct clock *clock;
    bool injects_faults; /* the server does, on purpose: pages say so */
    void (*look)(void *context,
                 struct condition_view *out); /* what is the matter with the server */
    bool (*has_peers)(void *context);         /* other clusters: pages lead to them */
    void *look_context;                       /* of both */
    bool is_secure; /* clients come by TLS: cookies are for nothing else */
};

status console_create(const struct console_options *options, struct console **out);
void console_destroy(struct console *console); /* NULL is fine */

/* Whether it is the console that serves the target. */
bool console_is_for(const char *target);

void console_handle(struct console *console, struct http_request *request);

#endif
