/* See otlp.h. One handle of libcurl's, which keeps the connection for the next batch. */
#include "server/otlp.h"

#include "base/url.h"
#include "server/otlp_headers.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <strings.h>

enum { HTTP_OK = 200, HTTP_NEXT = 300, TOO_MANY = 429, BAD_GATEWAY = 502, GATEWAY_TIMEOUT = 504 };

struct otlp {
    CURL *curl;
    const char *headers; /* the setting */
    struct buffer url;   /* and a NUL */
    struct buffer shown; /* the same for people: without a password; and a NUL */
};

/* Where the path begins in a URL of http or https; NULL for another. */
static const char *path_of(const char *url)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t size = strlen(schemes[i]);
        if (strncasecmp(url, schemes[i], size) == 0 && url[size] != '\0' && url[size] != '/')
            return url + strcspn(url + size, "/") + size;
    }
    return NULL;
}

static status refuse(const char *endpoint)
{
    struct buffer shown = {0};
    buffer_append_url(&shown, endpoint);
    buffer_append_byte(&shown, 0);
    status s = shown.failed
                   ? status_out_of_memory()
                   : status_make(STATUS_INVALID_ARGUMENT,
                                 "%s is no http://HOST:PORT or https://HOST", (char *)shown.data);
    buffer_free(&shown);
    return s;
}

static status make_url(const char *endpoint, struct buffer *out)
{
    const char *path = path_of(endpoint);
    if (path == NULL)
        return refuse(endpoint);
    bool has_path = path[0] == '/' && path[1] != '\0';
    buffer_append(out, endpoint, has_path ? strlen(endpoint) : (size_t)(path - endpoint));
    if (!has_path)
        buffer_append_bytes(out, bytes_of("/v1/traces"));
    buffer_append_byte(out, 0);
    return out->failed ? status_out_of_memory() : status_ok();
}

static status make_urls(const char *endpoint, struct otlp *otlp)
{
    TRY(make_url(endpoint, &otlp->url));
    buffer_append_url(&otlp->shown, (const char *)otlp->url.data);
    buffer_append_byte(&otlp->shown, 0);
    return otlp->shown.failed ? status_out_of_memory() : status_ok();
}

/* Leaves out what the collector answers. */
static size_t leave_out(char *data, size_t size, size_t count, void *context)
{
    (void)data;
    (void)context;
    return size * count;
}

static status open_curl(struct otlp *otlp)
{
    otlp->curl = curl_easy_init();
    if (otlp->curl == NULL)
        return status_out_of_memory();
    curl_easy_setopt(otlp->curl, CURLOPT_URL, (const char *)otlp->url.data);
    curl_easy_setopt(otlp->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(otlp->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(otlp->curl, CURLOPT_WRITEFUNCTION, leave_out);
    return status_ok();
}

status otlp_create(const char *endpoint, const char *headers, struct otlp **out)
{
    *out = NULL;
    struct otlp *otlp = calloc(1, sizeof *otlp);
    if (otlp == NULL)
        return status_out_of_memory();
    otlp->headers = headers;
    status s = make_urls(endpoint, otlp);
    if (status_is_ok(s))
        s = open_curl(otlp);
    if (!status_is_ok(s)) {
        otlp_destroy(otlp);
        return s;
    }
    *out = otlp;
    return status_ok();
}

void otlp_destroy(struct otlp *otlp)
{
    if (otlp == NULL)
        return;
    curl_easy_cleanup(otlp->curl);
    buffer_free(&otlp->url);
    buffer_free(&otlp->shown);
    free(otlp);
}

static status judge(const struct otlp *otlp, long code)
{
    if (code >= HTTP_OK && code < HTTP_NEXT)
        return status_ok();
    bool is_worth_asking = code == TOO_MANY || (code >= BAD_GATEWAY && code <= GATEWAY_TIMEOUT);
    return status_make(is_worth_asking ? STATUS_UNAVAILABLE : STATUS_FAILED_PRECONDITION,
                       "%s answered %ld", (const char *)otlp->shown.data, code);
}

static status post(struct otlp *otlp, bytes batch, const struct curl_slist *headers,
                   int64_t timeout_us)
{
    long code = 0;
    curl_easy_setopt(otlp->curl, CURLOPT_POST, 1L);
    curl_easy_setopt(otlp->curl, CURLOPT_POSTFIELDS, (const char *)batch.data);
    curl_easy_setopt(otlp->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)batch.size);
    curl_easy_setopt(otlp->curl, CURLOPT_TIMEOUT_MS, (long)(timeout_us / 1000 + 1));
    curl_easy_setopt(otlp->curl, CURLOPT_HTTPHEADER, headers);
    CURLcode outcome = curl_easy_perform(otlp->curl);
    if (outcome != CURLE_OK)
        return status_make(STATUS_UNAVAILABLE, "%s: %s", (const char *)otlp->shown.data,
                           curl_easy_strerror(outcome));
    curl_easy_getinfo(otlp->curl, CURLINFO_RESPONSE_CODE, &code);
    return judge(otlp, code);
}

status otlp_send(void *context, bytes batch, int64_t timeout_us)
{
    struct otlp *otlp = context;
    struct curl_slist *headers = curl_slist_append(NULL, "content-type: application/x-protobuf");
    status s =
        headers == NULL ? status_out_of_memory() : otlp_headers_append(otlp->headers, &headers);
    if (status_is_ok(s))
        s = post(otlp, batch, headers, timeout_us);
    curl_slist_free_all(headers);
    return s;
}
