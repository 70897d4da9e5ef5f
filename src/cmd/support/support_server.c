/* The running server's part of a support bundle: its pages, and its tables by REST. */
#include "cmd/support/support_private.h"

#include "os/file.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>

enum {
    ANSWER_MOST = 64 << 20,
    TIMEOUT_SECONDS = 30,
    TOKEN_FILE_MOST = 64 << 10,
    HTTP_OK = 200,
    SAID_MOST = 300, /* bytes of a refusal that are passed on */
};

struct answer {
    struct buffer *out;
    size_t start; /* of the buffer when the request began */
};

static size_t take(char *data, size_t size, size_t count, void *context)
{
    const struct answer *answer = context;
    if (answer->out->size - answer->start + count > ANSWER_MOST)
        return 0;
    buffer_append(answer->out, data, size * count);
    return answer->out->failed ? 0 : size * count;
}

/* "authorization: Bearer TOKEN", which curl keeps a copy of; NULL without a file. */
static status make_headers(const struct support *support, struct curl_slist **headers)
{
    *headers = NULL;
    if (support->token_file == NULL)
        return status_ok();
    struct buffer file = {0}, header = {0};
    TRY(file_read(support->token_file, TOKEN_FILE_MOST, 0, &file));
    const uint8_t *end = memchr(file.data, '\n', file.size);
    size_t size = end == NULL ? file.size : (size_t)(end - file.data);
    buffer_append_format(&header, "authorization: Bearer %.*s%c", (int)size,
                         (const char *)file.data, 0);
    if (!header.failed)
        *headers = curl_slist_append(NULL, (const char *)header.data);
    buffer_free(&header);
    buffer_free(&file);
    return *headers == NULL ? status_out_of_memory() : status_ok();
}

static void set_options(CURL *curl, const struct support *support, const char *url,
                        struct answer *answer)
{
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*"); /* it is this server that is meant */
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)TIMEOUT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    if (support->ca != NULL)
        curl_easy_setopt(curl, CURLOPT_CAINFO, support->ca);
}

/* Appends the server's answer at the URL, whatever its code. */
static status ask(const struct support *support, const char *url, struct buffer *out, long *code)
{
    struct answer answer = {out, out->size};
    struct curl_slist *headers;
    TRY(make_headers(support, &headers));
    CURL *curl = curl_easy_init();
    if (curl == NULL) {
        curl_slist_free_all(headers);
        return status_out_of_memory();
    }
    set_options(curl, support, url, &answer);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    CURLcode outcome = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, code);
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    if (outcome != CURLE_OK)
        return status_make(STATUS_UNAVAILABLE, "%s: %s", url, curl_easy_strerror(outcome));
    return status_ok();
}

/* The whole answer of the server's page, and its code. */
static status get(const struct support *support, const char *path, struct buffer *out, long *code)
{
    struct buffer url = {0};
    buffer_append_format(&url, "%s://%s/%s%c", support->tls ? "https" : "http", support->endpoint,
                         path, 0);
    status s =
        url.failed ? status_out_of_memory() : ask(support, (const char *)url.data, out, code);
    buffer_free(&url);
    return s;
}

static status refused(const char *path, long code, bytes said)
{
    int size = (int)(said.size < SAID_MOST ? said.size : SAID_MOST);
    return status_make(STATUS_UNAVAILABLE, "/%s answered %ld: %.*s", path, code, size,
                       (const char *)said.data);
}

/* A page whose code is part of what is to be known. */
static status write_page(const struct support *support, const char *path, struct buffer *out)
{
    struct buffer page = {0};
    long code = 0;
    status s = get(support, path, &page, &code);
    if (status_is_ok(s)) {
        buffer_append_format(out, "%ld\n", code);
        buffer_append_bytes(out, buffer_bytes(&page));
    }
    buffer_free(&page);
    return s;
}

status support_write_live(const struct support *support, struct buffer *out)
{
    return write_page(support, "livez", out);
}

status support_write_ready(const struct support *support, struct buffer *out)
{
    return write_page(support, "readyz", out);
}

status support_write_metrics(const struct support *support, struct buffer *out)
{
    struct buffer page = {0};
    long code = 0;
    status s = get(support, "metrics", &page, &code);
    if (status_is_ok(s) && code != HTTP_OK)
        s = refused("metrics", code, buffer_bytes(&page));
    if (status_is_ok(s))
        buffer_append_bytes(out, buffer_bytes(&page));
    buffer_free(&page);
    return s;
}

/* --- tables --- */

/* JSON at the path, the caller's to json_decref. */
static status get_json(const struct support *support, const char *path, json_t **out)
{
    struct buffer page = {0};
    long code = 0;
    *out = NULL;
    status s = get(support, path, &page, &code);
    if (status_is_ok(s) && code != HTTP_OK)
        s = refused(path, code, buffer_bytes(&page));
    if (status_is_ok(s)) {
        *out = json_loadb((const char *)page.data, page.size, 0, NULL);
        if (*out == NULL)
            s = status_make(STATUS_UNAVAILABLE, "/%s is no JSON", path);
    }
    buffer_free(&page);
    return s;
}

/* A text that is a member of it. */
static status write_member(const struct support *support, const char *path, const char *member,
                           struct buffer *out)
{
    json_t *answer;
    TRY(get_json(support, path, &answer));
    const char *text = json_string_value(json_object_get(answer, member));
    buffer_append_bytes(out, bytes_of(text == NULL ? "" : text));
    json_decref(answer);
    return status_ok();
}

status support_write_stacks(const struct support *support, struct buffer *out)
{
    return write_member(support, "v1/servers/self/stacks", "text", out);
}

status support_write_profile(const struct support *support, struct buffer *out)
{
    return write_member(support, "v1/servers/self/cpuProfile?duration=1s&frequency=500", "folded",
                        out);
}

/* JSON at "v2/NAME" and what is behind it; what fails is said in its place. */
static json_t *look_up(const struct support *support, const char *name, const char *behind,
                       struct buffer *out)
{
    struct buffer path = {0};
    json_t *found = NULL;
    buffer_append_format(&path, "v2/%s%s%c", name, behind, 0);
    status s =
        path.failed ? status_out_of_memory() : get_json(support, (const char *)path.data, &found);
    if (!status_is_ok(s))
        buffer_append_format(out, "%s\n", status_message(s));
    status_free(s);
    buffer_free(&path);
    return found;
}

/* Each sample of row keys ends a piece of the table; the keys themselves are left out. */
static void write_tablets(const struct support *support, const char *table, struct buffer *out)
{
    json_t *samples = look_up(support, table, ":sampleRowKeys", out), *sample;
    size_t i;
    buffer_append_format(out, "table %s\n", table);
    json_array_foreach(samples, i, sample)
    {
        const char *offset = json_string_value(json_object_get(sample, "offsetBytes"));
        buffer_append_format(out, "  tablet %zu ends at about %s bytes\n", i + 1,
                             offset == NULL ? "0" : offset);
    }
    json_decref(samples);
}

static void write_tables(const struct support *support, const char *instance, struct buffer *out)
{
    json_t *list = look_up(support, instance, "/tables?view=NAME_ONLY", out), *table;
    size_t i;
    buffer_append_format(out, "instance %s\n", instance);
    json_array_foreach(json_object_get(list, "tables"), i, table)
    {
        const char *name = json_string_value(json_object_get(table, "name"));
        if (name != NULL)
            write_tablets(support, name, out);
    }
    if (json_object_get(list, "nextPageToken") != NULL)
        buffer_append_format(out, "and more tables\n");
    json_decref(list);
}

status support_write_served_tables(const struct support *support, struct buffer *out)
{
    json_t *list, *instance;
    size_t i;
    TRY(get_json(support, "v2/projects/-/instances", &list));
    json_array_foreach(json_object_get(list, "instances"), i, instance)
    {
        const char *name = json_string_value(json_object_get(instance, "name"));
        if (name != NULL)
            write_tables(support, name, out);
    }
    json_decref(list);
    return status_ok();
}
