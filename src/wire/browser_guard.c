/* See browser_guard.h. */
#include "wire/browser_guard.h"

#include "wire/http_origin.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <strings.h>

enum { SHOWN_MOST = 100 };

static bool equal_words(bytes a, bytes b)
{
    return a.size == b.size &&
           (a.size == 0 || strncasecmp((const char *)a.data, (const char *)b.data, a.size) == 0);
}

static bool is_word(bytes text, const char *word)
{
    return equal_words(text, bytes_of(word));
}

/* --- hosts --- */

/* "host:port" without the port, and without the dot that may end a name. An IPv6 address keeps its
 * brackets. */
static bytes name_of(bytes host)
{
    const uint8_t *bracket = host.size == 0 ? NULL : memrchr(host.data, ']', host.size);
    size_t from = bracket == NULL ? 0 : (size_t)(bracket - host.data);
    for (size_t i = from; i < host.size; i++)
        if (host.data[i] == ':')
            host.size = i;
    if (host.size > 1 && host.data[host.size - 1] == '.')
        host.size--;
    return host;
}

static bool is_address(bytes name)
{
    char text[INET6_ADDRSTRLEN + 2];
    struct in6_addr address;
    if (name.size == 0 || name.size >= sizeof text)
        return false;
    bool is_bracketed = name.size > 2 && name.data[0] == '[' && name.data[name.size - 1] == ']';
    if (is_bracketed)
        name = bytes_make(name.data + 1, name.size - 2);
    memcpy(text, name.data, name.size);
    text[name.size] = '\0';
    return inet_pton(is_bracketed ? AF_INET6 : AF_INET, text, &address) == 1;
}

/* Names that cannot be had in public. */
static bool is_private(bytes name)
{
    static const char end[] = ".localhost";
    size_t size = strlen(end);
    if (name.size == 0)
        return false;
    return memchr(name.data, '.', name.size) == NULL ||
           (name.size > size && is_word(bytes_make(name.data + name.size - size, size), end));
}

/* The next name of a list; false at its end. */
static bool next_host(const char **list, bytes *name)
{
    if (*list == NULL)
        return false;
    size_t size = strcspn(*list, ",");
    *name = bytes_make(*list, size);
    *list = (*list)[size] == '\0' ? NULL : *list + size + 1;
    while (name->size > 0 && name->data[0] == ' ')
        *name = bytes_from(*name, 1);
    while (name->size > 0 && name->data[name->size - 1] == ' ')
        name->size--;
    return true;
}

static bool is_allowed(const char *list, bytes host)
{
    bytes name;
    while (next_host(&list, &name))
        if (equal_words(name, host))
            return true;
    return false;
}

static bool is_host(bytes name)
{
    bool is_right = name.size > 0;
    for (size_t i = 0; i < name.size; i++)
        is_right &= isalnum(name.data[i]) || name.data[i] == '-' || name.data[i] == '.';
    return is_right;
}

status browser_guard_check_hosts(const char *allowed_hosts)
{
    bytes name;
    while (next_host(&allowed_hosts, &name))
        if (!is_host(name))
            return status_make(
                STATUS_INVALID_ARGUMENT, "\"%.*s\" is no name of a host, such as db.example.com",
                name.size > SHOWN_MOST ? SHOWN_MOST : (int)name.size, (const char *)name.data);
    return status_ok();
}

static status check_host(const struct browser_guard *guard, bytes host)
{
    bytes name = name_of(host);
    if (guard->any_host || is_address(name) || is_private(name) ||
        is_allowed(guard->allowed_hosts, name))
        return status_ok();
    return status_make(STATUS_PERMISSION_DENIED,
                       "A browser asks for \"%.*s\", which is not known to be a name of this "
                       "server. If it is one, start the server with it in --allowed-hosts.",
                       name.size > SHOWN_MOST ? SHOWN_MOST : (int)name.size,
                       name.size == 0 ? "" : (const char *)name.data);
}

/* --- sites --- */

static bool is_from_here(const struct browser_marks *marks)
{
    if (marks->site.size > 0)
        return is_word(marks->site, "same-origin") || is_word(marks->site, "none");
    if (marks->origin.size == 0)
        return true; /* a browser adds it to what changes anything, and to what a script reads */
    return http_origin_is_of(marks->origin, marks->host);
}

status browser_guard_admit(const struct browser_guard *guard, const struct browser_marks *marks)
{
    if (!marks->is_browser)
        return status_ok();
    TRY(check_host(guard, marks->host));
    bool is_link = marks->only_looks && is_word(marks->mode, "navigate");
    if (is_link || is_from_here(marks))
        return status_ok();
    return status_make(STATUS_PERMISSION_DENIED,
                       "A page from elsewhere may not ask this server for anything.");
}

/* --- requests --- */

static void keep_first(bytes *place, bytes value)
{
    if (place->size == 0)
        *place = value;
}

static bool starts_like(bytes text, const char *start)
{
    size_t size = strlen(start);
    return text.size >= size && is_word(bytes_make(text.data, size), start);
}

static void look_at(void *context, bytes name, bytes value)
{
    struct browser_marks *marks = context;
    if (is_word(name, "host"))
        keep_first(&marks->host, value);
    else if (is_word(name, "origin"))
        keep_first(&marks->origin, value);
    else if (is_word(name, "sec-fetch-site"))
        keep_first(&marks->site, value);
    else if (is_word(name, "sec-fetch-mode"))
        keep_first(&marks->mode, value);
    marks->is_browser |= is_word(name, "origin") || is_word(name, "referer") ||
                         is_word(name, "accept-language") || starts_like(name, "sec-fetch-") ||
                         (is_word(name, "user-agent") && starts_like(value, "Mozilla/"));
}

struct browser_marks browser_marks_of(const struct http_request *request)
{
    const char *method = http_request_method(request);
    struct browser_marks marks = {.only_looks =
                                      strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0};
    http_request_headers(request, &marks, look_at);
    return marks;
}
