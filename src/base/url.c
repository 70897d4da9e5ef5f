/* See url.h. */
#include "base/url.h"

#include <string.h>

/* "https://"; 0: there is none. */
static size_t scheme_size(const char *url)
{
    static const char end[] = "://";
    size_t size = strcspn(url, ":/?#@");
    return strncmp(url + size, end, strlen(end)) == 0 ? size + strlen(end) : 0;
}

/* A password may hold what ends it in a URL that is right: "/", "?", "#". */
void buffer_append_url(struct buffer *out, const char *url)
{
    size_t scheme = scheme_size(url);
    const char *user = strrchr(url, '@');
    const char *host = user == NULL ? url + scheme : user + 1;
    buffer_append(out, url, scheme);
    buffer_append(out, host, strcspn(host, "?#"));
}
