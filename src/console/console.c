/* See console.h. */
#include "console/console.h"

#include "base/condition.h"
#include "base/limits.h"
#include "console/assets.h"
#include "console/request_origin.h"
#include "console/sessions.h"
#include "wire/json.h"

#include <stdio.h>
#include <stdlib.h>

#define ROOT       "/console"
#define API        "/console/api"
#define COOKIE     "trestle-session"
#define PLAIN_TEXT "text/plain; charset=utf-8"

enum {
    NO_CONTENT = 204,
    MOVED = 308,
    UNAUTHORIZED = 401,
    FORBIDDEN = 403,
    NOT_FOUND = 404,
    WRONG_METHOD = 405,
    UNAVAILABLE = 503,
    COOKIE_LINE_SIZE = TOKEN_TEXT_SIZE + 128,
};

struct console {
    struct console_options options;
    struct sessions *sessions;
};

/* --- answers --- */

/* The policy of our pages: they may talk to this server, and do nothing else. No script or style
 * stands in the page itself, and no other page may show it in a frame. What a page has asked for is
 * no page: of it no other site gets anything, and nobody takes it for one. */
static void add_policy(struct http_request *request, bool is_asked_for)
{
    static const char *const headers[][2] = {
        {"x-content-type-options", "nosniff"},
        {"cross-origin-resource-policy", "same-origin"},
        {"content-security-policy", "default-src 'self'; base-uri 'none'; form-action 'none'; "
                                    "frame-ancestors 'none'; object-src 'none'"},
        {"x-frame-options", "DENY"},
        {"referrer-policy", "same-origin"},
        {"cross-origin-opener-policy", "same-origin"},
    };
    enum { OF_ANSWERS = 2 };
    size_t count = is_asked_for ? OF_ANSWERS : sizeof headers / sizeof *headers;
    for (size_t i = 0; i < count; i++)
        http_answer_header(request, headers[i][0], headers[i][1]);
}

static void answer(struct http_request *request, unsigned code, const char *words)
{
    http_answer_begin(request, code, PLAIN_TEXT);
    http_answer_add(request, bytes_of(words));
    http_answer_add(request, bytes_of("\n"));
    http_answer_end(request);
}

static void answer_status(struct http_request *request, status s)
{
    answer(request, s.code == STATUS_UNAUTHENTICATED ? UNAUTHORIZED : UNAVAILABLE,
           status_message(s));
    status_free(s);
}

static void answer_json(struct http_request *request, const struct buffer *text)
{
    if (text->failed) {
        answer_status(request, status_out_of_memory());
        return;
    }
    http_answer_begin(request, 200, "application/json; charset=utf-8");
    http_answer_add(request, buffer_bytes(text));
    http_answer_end(request);
}

/* --- the cookie --- */

struct cookie_search {
    bytes value;
    bool is_found;
};

/* One of "a=1; b=2". */
static void look_at_cookie(struct cookie_search *search, bytes pair)
{
    static const char name[] = COOKIE "=";
    while (pair.size > 0 && pair.data[0] == ' ')
        pair = bytes_from(pair, 1);
    if (search->is_found || !bytes_start_with(pair, bytes_of(name)))
        return;
    search->value = bytes_from(pair, strlen(name));
    search->is_found = true;
}

/* HTTP/2 may send each in a header of its own. */
static void look_at_header(void *context, bytes name, bytes value)
{
    if (name.size != strlen("cookie") ||
        strncasecmp((const char *)name.data, "cookie", name.size) != 0)
        return;
    while (value.size > 0) {
        const uint8_t *end = memchr(value.data, ';', value.size);
        size_t size = end == NULL ? value.size : (size_t)(end - value.data);
        look_at_cookie(context, bytes_make(value.data, size));
        value = bytes_from(value, end == NULL ? size : size + 1);
    }
}

/* Empty: there is none. */
static bytes cookie_of(const struct http_request *request)
{
    struct cookie_search search = {0};
    http_request_headers(request, &search, look_at_header);
    return search.value;
}

/* An empty value takes it from the browser. */
static void set_cookie(const struct console *console, struct http_request *request,
                       const char *value)
{
    char line[COOKIE_LINE_SIZE];
    snprintf(line, sizeof line, COOKIE "=%s; Path=" ROOT "; HttpOnly; SameSite=Strict%s%s", value,
             console->options.is_secure ? "; Secure" : "", *value == '\0' ? "; Max-Age=0" : "");
    http_answer_header(request, "set-cookie", line);
}

/* --- what it serves --- */

/* The credential by which the request is made: the session's, unless it has one of its own. */
static bytes credential_of(struct console *console, const struct http_request *request)
{
    bytes credential, own;
    bytes cookie = cookie_of(request);
    if (cookie.size == 0 || http_request_header(request, "authorization", &own) ||
        !sessions_find(console->sessions, cookie, &credential))
        return bytes_make(NULL, 0);
    return credential;
}

static void show_session(struct console *console, struct http_request *request)
{
    struct buffer principal = {0}, text = {0};
    bytes credential = credential_of(console, request);
    if (console->options.access != NULL) /* a token that is not good any more has no principal */
        status_ignore(access_identify(console->options.access, http_request_client(request),
                                      credential, &principal));
    buffer_append_format(&text, "{\"authentication\":%s,\"session\":%s,\"principal\":",
                         console->options.access == NULL ? "false" : "true",
                         credential.size > 0 ? "true" : "false");
    json_encode_string(buffer_bytes(&principal), &text);
    bool is_known = console->options.access == NULL || principal.size > 0;
    bool has_peers = is_known && console->options.has_peers(console->options.look_context);
    buffer_append_format(&text, "%s%s}\n",
                         console->options.injects_faults ? ",\"faults\":true" : "",
                         has_peers ? ",\"clusters\":true" : "");
    text.failed |= principal.failed;
    answer_json(request, &text);
    buffer_free(&principal);
    buffer_free(&text);
}

static void append_reason(struct buffer *text, const struct condition_reason *reason,
                          bool is_told_all)
{
    char since[CLOCK_DATE_SIZE];
    buffer_append_format(
        text, "{\"name\":\"%s\",\"level\":\"%s\",\"since\":\"%s\",\"text\":", reason->name,
        health_level_name(reason->level), clock_date(reason->since_us, since));
    json_encode_string(bytes_of(is_told_all ? reason->text : reason->sentence), text);
    buffer_append_byte(text, '}');
}

/* Whether the caller is one that may log in. This does not count as a use of its session, which
 * would not end while a page is open. */
static bool is_somebody(struct console *console, const struct http_request *request)
{
    bytes credential;
    struct buffer principal = {0};
    if (console->options.access == NULL)
        return true;
    (void)sessions_look(console->sessions, cookie_of(request), &credential);
    status s = access_identify(console->options.access, http_request_client(request), credential,
                               &principal);
    bool is_known = status_is_ok(s) && principal.size > 0;
    status_free(s);
    buffer_free(&principal);
    return is_known;
}

/* The health that each page shows; without names and figures for a caller that has not logged in.
 */
static void show_health(struct console *console, struct http_request *request)
{
    struct condition_view view;
    struct buffer text = {0};
    bool is_told_all = is_somebody(console, request);
    console->options.look(console->options.look_context, &view);
    buffer_append_format(&text, "{\"level\":\"%s\",\"reasons\":[", health_level_name(view.level));
    for (size_t i = 0; i < view.count; i++) {
        if (i > 0)
            buffer_append_byte(&text, ',');
        append_reason(&text, &view.reasons[i], is_told_all);
    }
    buffer_append_bytes(&text, bytes_of("]}\n"));
    answer_json(request, &text);
    buffer_free(&text);
}

static bool is_printable(bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] <= ' ' || text.data[i] >= 0x7f)
            return false;
    return true;
}

/* Begins a session if the token, which is the body, has a principal. */
static status log_in(struct console *console, struct http_request *request)
{
    bytes token = http_request_body(request);
    struct buffer credential = {0}, principal = {0};
    char cookie[TOKEN_TEXT_SIZE];
    if (console->options.access == NULL)
        return status_make(STATUS_UNAUTHENTICATED, "access control is off: nobody logs in here");
    if (http_request_is_too_large(request) || token.size == 0 ||
        token.size > LIMIT_CONSOLE_TOKEN_BYTES || !is_printable(token))
        return status_make(STATUS_UNAUTHENTICATED, "it is no token");
    buffer_append_bytes(&credential, bytes_of("Bearer "));
    buffer_append_bytes(&credential, token);
    status s = credential.failed
                   ? status_out_of_memory()
                   : access_identify(console->options.access, http_request_client(request),
                                     buffer_bytes(&credential), &principal);
    access_note_refusal(console->options.access, "console", http_request_client(request), s);
    if (status_is_ok(s))
        s = sessions_begin(console->sessions, buffer_bytes(&credential), cookie);
    if (status_is_ok(s)) {
        sessions_end(console->sessions, cookie_of(request));
        set_cookie(console, request, cookie);
    }
    buffer_free(&principal);
    buffer_free(&credential);
    return s;
}

static void answer_login(struct console *console, struct http_request *request)
{
    status s = log_in(console, request);
    if (!status_is_ok(s)) {
        answer_status(request, s);
        return;
    }
    http_answer_begin(request, NO_CONTENT, NULL);
    http_answer_end(request);
}

static void answer_logout(struct console *console, struct http_request *request)
{
    sessions_end(console->sessions, cookie_of(request));
    set_cookie(console, request, "");
    http_answer_begin(request, NO_CONTENT, NULL);
    http_answer_end(request);
}

static void hand_on(struct console *console, struct http_request *request)
{
    const char *target = http_request_target(request) + strlen(API);
    http_request_stand_for(request, target, credential_of(console, request));
    http_answer_pack(request);
    rest_handle(console->options.rest, request);
}

static void show_asset(struct http_request *request, bytes path)
{
    const char *method = http_request_method(request);
    const struct asset *asset = asset_find(path);
    if (asset == NULL)
        answer(request, NOT_FOUND, "there is no such page");
    else if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        answer(request, WRONG_METHOD, "GET or HEAD only");
    else
        asset_answer(asset, request);
}

/* --- where to --- */

/* Paths for the console's own pages alone. */
static const struct {
    const char *path;
    const char *method;
    void (*show)(struct console *console, struct http_request *request);
} paths[] = {
    {"session", "GET", show_session},
    {"health", "GET", show_health},
    {"login", "POST", answer_login},
    {"logout", "POST", answer_logout},
};

static void show(struct console *console, struct http_request *request, bytes path)
{
    const char *target = http_request_target(request);
    if (strncmp(target, API, strlen(API)) == 0 && rest_is_for(target + strlen(API))) {
        hand_on(console, request);
        return;
    }
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (!bytes_equal(path, bytes_of(paths[i].path)))
            continue;
        if (strcmp(http_request_method(request), paths[i].method) == 0)
            paths[i].show(console, request);
        else
            answer(request, WRONG_METHOD, "not by this method");
        return;
    }
    answer(request, NOT_FOUND, "there is no such page");
}

static bool is_own(bytes path)
{
    return bytes_start_with(path, bytes_of("api/")) || bytes_equal(path, bytes_of("session")) ||
           bytes_equal(path, bytes_of("login")) || bytes_equal(path, bytes_of("logout")) ||
           bytes_equal(path, bytes_of("health"));
}

void console_handle(struct console *console, struct http_request *request)
{
    const char *target = http_request_target(request);
    bytes path = bytes_make(target, strcspn(target, "?"));
    add_policy(request, strncmp(target, API "/", strlen(API "/")) == 0);
    if (path.size == strlen(ROOT)) {
        http_answer_header(request, "location", ROOT "/");
        answer(request, MOVED, "the console is at " ROOT "/");
        return;
    }
    path = bytes_from(path, strlen(ROOT "/"));
    if (!is_own(path))
        show_asset(request, path);
    else if (request_is_of_console(request))
        show(console, request, path);
    else
        answer(request, FORBIDDEN, "only the console's own pages may ask this");
}

bool console_is_for(const char *target)
{
    size_t size = strlen(ROOT);
    return strncmp(target, ROOT, size) == 0 &&
           (target[size] == '/' || target[size] == '?' || target[size] == '\0');
}

/* --- life --- */

status console_create(const struct console_options *options, struct console **out)
{
    *out = NULL;
    struct console *console = calloc(1, sizeof *console);
    if (console == NULL)
        return status_out_of_memory();
    console->options = *options;
    status s = sessions_create(options->clock, &console->sessions);
    if (!status_is_ok(s)) {
        console_destroy(console);
        return s;
    }
    *out = console;
    return s;
}

void console_destroy(struct console *console)
{
    if (console == NULL)
        return;
    sessions_destroy(console->sessions);
    free(console);
}
