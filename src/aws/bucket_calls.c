/* See bucket_calls.h. Connections stay open in handles of libcurl that wait for their next call. */
#include "aws/bucket_calls.h"

#include "aws/credentials.h"
#include "aws/endpoint.h"
#include "aws/signature.h"
#include "aws/xml.h"
#include "base/clock.h"
#include "os/digest.h"
#include "os/thread.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum {
    ATTEMPTS = 6,
    FIRST_WAIT_US = 100 * 1000,
    CREDENTIALS_MEMORY = 1 << 20,
    CONNECT_TIMEOUT_MS = 10 * 1000,
    SILENCE_S = 60,
    MOST_IDLE = 8, /* handles */
    MOST_HEADERS = 8,
    US_PER_S = 1000 * 1000,
};

struct bucket {
    struct arena *arena;
    struct aws_credentials credentials;
    const char *name;
    const char *ca; /* NULL: the system's */
    struct buffer host;
    struct buffer root; /* of URLs: scheme and host; with a NUL, as the host */
    bool is_in_path;    /* the bucket's name, not in the host's */

    pthread_mutex_t lock; /* of what follows */
    CURL *idle[MOST_IDLE];
    size_t idle_count;
};

/* --- names --- */

static void append_escaped(struct buffer *out, const char *text, const char *plain)
{
    for (const char *c = text; *c != '\0'; c++) {
        bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                        (*c >= '0' && *c <= '9') || strchr(plain, *c) != NULL;
        if (is_plain)
            buffer_append_byte(out, (uint8_t)*c);
        else
            buffer_append_format(out, "%%%02X", (unsigned)(uint8_t)*c);
    }
}

void bucket_append_escaped(struct buffer *out, const char *text)
{
    append_escaped(out, text, "-._~");
}

/* Appends the path as it is signed and sent; with a NUL. */
static void append_path(const struct bucket *bucket, const char *key, struct buffer *out)
{
    if (bucket->is_in_path)
        buffer_append_format(out, "/%s", bucket->name);
    buffer_append_byte(out, '/');
    append_escaped(out, key, "-._~/");
    buffer_append_byte(out, '\0');
}

/* --- what went wrong --- */

struct failure {
    const char *code; /* as S3 calls it */
    enum status_code status;
};

static const struct failure failures[] = {
    {"AccessDenied", STATUS_PERMISSION_DENIED},
    {"AuthorizationHeaderMalformed", STATUS_FAILED_PRECONDITION}, /* another region's */
    {"ExpiredToken", STATUS_UNAUTHENTICATED},
    {"InternalError", STATUS_UNAVAILABLE},
    {"InvalidAccessKeyId", STATUS_UNAUTHENTICATED},
    {"InvalidToken", STATUS_UNAUTHENTICATED},
    {"NoSuchBucket", STATUS_FAILED_PRECONDITION},
    {"NoSuchKey", STATUS_NOT_FOUND},
    {"NoSuchUpload", STATUS_NOT_FOUND},
    {"PermanentRedirect", STATUS_FAILED_PRECONDITION},
    {"RequestTimeTooSkewed", STATUS_UNAUTHENTICATED},
    {"RequestTimeout", STATUS_UNAVAILABLE},
    {"ServiceUnavailable", STATUS_UNAVAILABLE},
    {"SignatureDoesNotMatch", STATUS_UNAUTHENTICATED},
    {"SlowDown", STATUS_UNAVAILABLE},
};

static enum status_code code_of(bytes code, unsigned http_status)
{
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        if (bytes_equal(code, bytes_of(failures[i].code)))
            return failures[i].status;
    switch (http_status) {
    case 401:
        return STATUS_UNAUTHENTICATED;
    case 403:
        return STATUS_PERMISSION_DENIED;
    case 404: /* without a bucket's words it is a proxy that finds nothing */
        return code.size > 0 ? STATUS_NOT_FOUND : STATUS_UNAVAILABLE;
    case 429:
        return STATUS_UNAVAILABLE;
    default:
        return http_status >= 500 ? STATUS_UNAVAILABLE : STATUS_FAILED_PRECONDITION;
    }
}

static const uint8_t *find(bytes text, bytes what)
{
    return text.size == 0 ? NULL : memmem(text.data, text.size, what.data, what.size);
}

static status failure_of(const struct bucket *bucket, const struct bucket_request *request,
                         const struct bucket_answer *answer)
{
    bytes error, code = bytes_of(""), words = bytes_of("");
    if (xml_root(buffer_bytes(&answer->body), "Error", &error)) {
        xml_first(error, "Code", &code);
        xml_first(error, "Message", &words);
    }
    return status_make(code_of(code, answer->http_status),
                       "bucket %s, %s %.200s: HTTP status %u%s%.*s%s%.*s", bucket->name,
                       request->method, request->key, answer->http_status,
                       code.size > 0 ? ", " : "", (int)(code.size < 100 ? code.size : 100),
                       (const char *)code.data, words.size > 0 ? ": " : "",
                       (int)(words.size < 300 ? words.size : 300), (const char *)words.data);
}

/* Some calls begin to answer 200 before they know that they fail. */
static bool is_fine(const struct bucket_answer *answer)
{
    bytes text = buffer_bytes(&answer->body);
    bool has_range = answer->http_status == 206 || answer->http_status == 416;
    return has_range || answer->http_status == 204 ||
           (answer->http_status == 200 &&
            (text.size == 0 || text.data[0] != '<' || find(text, bytes_of("<Error>")) == NULL));
}

/* A proxy or a gateway that answers in the bucket's place may say 200 as well. */
static status check_answer(const struct bucket *bucket, const struct bucket_request *request,
                           struct bucket_answer *answer)
{
    bytes text = buffer_bytes(&answer->body);
    bool is_put = strcmp(request->method, "PUT") == 0;
    if (is_put && answer->etag[0] == '\0')
        return status_make(STATUS_UNAVAILABLE,
                           "bucket %s, PUT %.200s: HTTP status %u without an ETag is no bucket's "
                           "answer",
                           bucket->name, request->key, answer->http_status);
    if (request->root == NULL || xml_root(text, request->root, &answer->content))
        return status_ok();
    struct buffer begin = {0};
    buffer_append_quoted(&begin, text, 60);
    status s = status_make(STATUS_UNAVAILABLE,
                           "bucket %s, %s %.200s: the answer of %zu bytes is no %s, or not all of "
                           "one: %.*s",
                           bucket->name, request->method, request->key, text.size, request->root,
                           (int)begin.size, (const char *)begin.data);
    buffer_free(&begin);
    return s;
}

/* --- one attempt --- */

struct attempt {
    struct bucket *bucket;
    const struct bucket_request *request;
    struct bucket_answer *answer;
    CURL *easy;
    struct curl_slist *headers;
    bool is_too_large;
    char error[CURL_ERROR_SIZE];
};

static size_t take_body(char *data, size_t one, size_t size, void *context)
{
    struct attempt *a = context;
    struct buffer *body = &a->answer->body;
    (void)one;
    a->is_too_large = size > a->request->answer_most - body->size;
    if (a->is_too_large)
        return 0;
    buffer_append(body, data, size);
    return body->failed ? 0 : size;
}

/* The value of the header if that is its name; in `out`, with a NUL. */
static bool take_value(bytes line, const char *name, char *out, size_t size)
{
    size_t length = strlen(name);
    if (line.size < length || strncasecmp((const char *)line.data, name, length) != 0)
        return false;
    bytes value = bytes_from(line, length);
    while (value.size > 0 && value.data[0] == ' ')
        value = bytes_from(value, 1);
    while (value.size > 0 && strchr(" \r\n", value.data[value.size - 1]) != NULL)
        value.size--;
    snprintf(out, size, "%.*s", (int)value.size, (const char *)value.data);
    return true;
}

static size_t take_header(char *data, size_t one, size_t size, void *context)
{
    struct bucket_answer *answer = ((struct attempt *)context)->answer;
    bytes line = bytes_make(data, size);
    char text[128];
    (void)one;
    take_value(line, "etag:", answer->etag, sizeof answer->etag);
    if (take_value(line, "date:", text, sizeof text)) {
        time_t seconds = curl_getdate(text, NULL);
        answer->server_us = seconds > 0 ? (int64_t)seconds * US_PER_S : 0;
    }
    if (take_value(line, "content-range:", text, sizeof text) && strchr(text, '/') != NULL)
        answer->total = strtoull(strchr(text, '/') + 1, NULL, 10);
    return size;
}

static status add_header(struct attempt *a, const struct aws_header *header)
{
    struct buffer line = {0};
    buffer_append_format(&line, "%s: %s%c", header->name, header->value, 0);
    struct curl_slist *longer =
        line.failed ? NULL : curl_slist_append(a->headers, (const char *)line.data);
    buffer_free(&line);
    if (longer == NULL)
        return status_out_of_memory();
    a->headers = longer;
    return status_ok();
}

static status add_headers(struct attempt *a, const struct aws_header *headers, size_t count)
{
    const struct aws_header none[] = {{"expect", ""}, {"content-type", ""}};
    char range[64];
    for (size_t i = 0; i < count; i++)
        if (strcmp(headers[i].name, "host") != 0)
            TRY(add_header(a, &headers[i]));
    for (size_t i = 0; i < 2; i++)
        TRY(add_header(a, &none[i]));
    if (!a->request->is_ranged)
        return status_ok();
    snprintf(range, sizeof range, "bytes=%" PRIu64 "-%" PRIu64, a->request->first,
             a->request->last);
    return add_header(a, &(struct aws_header){"range", range});
}

static status digest_hex(bytes body, char out[2 * DIGEST_MOST_BYTES + 1])
{
    uint8_t digest[DIGEST_MOST_BYTES];
    size_t size;
    TRY(digest_compute(DIGEST_SHA256, body, digest, &size));
    for (size_t i = 0; i < size; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
    return status_ok();
}

static status sign(struct attempt *a, const char *path)
{
    const struct aws_credentials *credentials = &a->bucket->credentials;
    const struct bucket_request *request = a->request;
    char time[AWS_TIME_SIZE], digest[2 * DIGEST_MOST_BYTES + 1];
    struct buffer authorization = {0};
    aws_time_format(clock_wall_us(clock_system()), time);
    TRY(digest_hex(request->body, digest));
    /* Sorted by name; the last is not signed. */
    struct aws_header headers[MOST_HEADERS] = {{"host", (const char *)a->bucket->host.data},
                                               {"x-amz-content-sha256", digest},
                                               {"x-amz-date", time}};
    size_t count = 3;
    if (credentials->session_token != NULL)
        headers[count++] = (struct aws_header){"x-amz-security-token", credentials->session_token};
    const struct aws_signer signer = {.access_key = credentials->access_key,
                                      .secret_key = credentials->secret_key,
                                      .region = credentials->region,
                                      .service = "s3"};
    const struct aws_request what = {.method = request->method,
                                     .path = path,
                                     .query = request->query,
                                     .headers = headers,
                                     .header_count = count,
                                     .body = request->body};
    status s = aws_sign(&signer, &what, time, &authorization);
    buffer_append_byte(&authorization, '\0');
    if (status_is_ok(s) && authorization.failed)
        s = status_out_of_memory();
    if (status_is_ok(s)) {
        headers[count++] = (struct aws_header){"authorization", (const char *)authorization.data};
        s = add_headers(a, headers, count);
    }
    buffer_free(&authorization);
    return s;
}

static void set_options(struct attempt *a, const char *url)
{
    CURL *easy = a->easy;
    bool has_body = a->request->method[0] == 'P'; /* PUT, POST */
    curl_easy_reset(easy);                        /* connections stay */
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_S);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, a->headers);
    if (has_body) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)a->request->body.size);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS,
                         a->request->body.size > 0 ? (const char *)a->request->body.data : "");
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, a->request->method);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, a);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, a);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, a->error);
    if (a->bucket->ca != NULL)
        curl_easy_setopt(easy, CURLOPT_CAINFO, a->bucket->ca);
}

static status outcome_of(struct attempt *a, CURLcode code)
{
    const char *words = a->error[0] != '\0' ? a->error : curl_easy_strerror(code);
    long http_status = 0;
    if (a->is_too_large)
        return status_make(STATUS_RESOURCE_EXHAUSTED, "the answer has more than %zu bytes",
                           a->request->answer_most);
    if (a->answer->body.failed || code == CURLE_OUT_OF_MEMORY)
        return status_out_of_memory();
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
        code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT)
        return status_make(STATUS_FAILED_PRECONDITION, "bucket %s: %s", a->bucket->name, words);
    if (code != CURLE_OK)
        return status_make(STATUS_UNAVAILABLE, "bucket %s: %s", a->bucket->name, words);
    curl_easy_getinfo(a->easy, CURLINFO_RESPONSE_CODE, &http_status);
    a->answer->http_status = (unsigned)http_status;
    return is_fine(a->answer) ? check_answer(a->bucket, a->request, a->answer)
                              : failure_of(a->bucket, a->request, a->answer);
}

static status perform(struct attempt *a)
{
    const char *query = a->request->query;
    struct buffer path = {0}, url = {0};
    append_path(a->bucket, a->request->key, &path);
    status s = path.failed ? status_out_of_memory() : sign(a, (const char *)path.data);
    if (status_is_ok(s)) {
        buffer_append_format(&url, "%s%s%s%s%c", (const char *)a->bucket->root.data,
                             (const char *)path.data, query != NULL ? "?" : "",
                             query != NULL ? query : "", 0);
        s = url.failed ? status_out_of_memory() : status_ok();
    }
    if (status_is_ok(s)) {
        set_options(a, (const char *)url.data);
        s = outcome_of(a, curl_easy_perform(a->easy));
    }
    curl_slist_free_all(a->headers);
    buffer_free(&path);
    buffer_free(&url);
    return s;
}

/* --- calls --- */

static CURL *take_handle(struct bucket *bucket)
{
    CURL *easy = NULL;
    pthread_mutex_lock(&bucket->lock);
    if (bucket->idle_count > 0)
        easy = bucket->idle[--bucket->idle_count];
    pthread_mutex_unlock(&bucket->lock);
    return easy != NULL ? easy : curl_easy_init();
}

static void give_handle_back(struct bucket *bucket, CURL *easy)
{
    pthread_mutex_lock(&bucket->lock);
    bool has_room = bucket->idle_count < MOST_IDLE;
    if (has_room)
        bucket->idle[bucket->idle_count++] = easy;
    pthread_mutex_unlock(&bucket->lock);
    if (!has_room)
        curl_easy_cleanup(easy);
}

static status try_once(struct bucket *bucket, const struct bucket_request *request,
                       struct bucket_answer *out)
{
    struct attempt a = {.bucket = bucket, .request = request, .answer = out};
    bucket_answer_clear(out);
    a.easy = take_handle(bucket);
    if (a.easy == NULL)
        return status_out_of_memory();
    status s = perform(&a);
    give_handle_back(bucket, a.easy);
    return s;
}

static bool never(void *context)
{
    (void)context;
    return false;
}

status bucket_call(struct bucket *bucket, const struct bucket_request *request,
                   struct bucket_answer *out)
{
    int64_t wait_us = FIRST_WAIT_US;
    for (unsigned attempt = 1;; attempt++) {
        status s = try_once(bucket, request, out);
        if (s.code != STATUS_UNAVAILABLE || attempt == ATTEMPTS)
            return s;
        status_free(s);
        thread_wait_for(never, NULL, wait_us);
        wait_us *= 2;
    }
}

void bucket_answer_clear(struct bucket_answer *answer)
{
    buffer_free(&answer->body);
    *answer = (struct bucket_answer){0};
}

/* --- life --- */

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value == NULL || value[0] == '\0' ? NULL : value;
}

static status name_hosts(struct bucket *bucket)
{
    const char *endpoint = variable("AWS_ENDPOINT_URL_S3");
    const char *region = bucket->credentials.region;
    const char *end = strncmp(region, "cn-", 3) == 0 ? ".amazonaws.com.cn" : ".amazonaws.com";
    const char *scheme = "https://";
    if (endpoint == NULL)
        endpoint = variable("AWS_ENDPOINT_URL");
    /* A certificate is for one name below the service's: none with a dot. */
    bucket->is_in_path = endpoint != NULL || strchr(bucket->name, '.') != NULL;
    if (endpoint != NULL)
        TRY(aws_endpoint_parse(endpoint, &scheme, &bucket->host));
    else
        buffer_append_format(&bucket->host, "%s%ss3.%s%s%c", bucket->is_in_path ? "" : bucket->name,
                             bucket->is_in_path ? "" : ".", region, end, 0);
    if (bucket->host.failed)
        return status_out_of_memory();
    buffer_append_format(&bucket->root, "%s%s%c", scheme, (const char *)bucket->host.data, 0);
    return bucket->root.failed ? status_out_of_memory() : status_ok();
}

static status prepare(struct bucket *bucket, const char *name)
{
    const char *ca = variable("AWS_CA_BUNDLE");
    bucket->arena = arena_create(CREDENTIALS_MEMORY);
    if (bucket->arena == NULL)
        return status_out_of_memory();
    bucket->name = arena_string(bucket->arena, bytes_of(name));
    bucket->ca = ca == NULL ? NULL : arena_string(bucket->arena, bytes_of(ca));
    if (bucket->name == NULL || (ca != NULL && bucket->ca == NULL))
        return status_out_of_memory();
    TRY(aws_credentials_find(NULL, bucket->arena, &bucket->credentials));
    return name_hosts(bucket);
}

status bucket_open(const char *name, struct bucket **out)
{
    *out = NULL;
    struct bucket *bucket = calloc(1, sizeof *bucket);
    if (bucket == NULL)
        return status_out_of_memory();
    pthread_mutex_init(&bucket->lock, NULL);
    status s = prepare(bucket, name);
    if (status_is_ok(s))
        *out = bucket;
    else
        bucket_close(bucket);
    return s;
}

void bucket_close(struct bucket *bucket)
{
    if (bucket == NULL)
        return;
    while (bucket->idle_count > 0)
        curl_easy_cleanup(bucket->idle[--bucket->idle_count]);
    pthread_mutex_destroy(&bucket->lock);
    buffer_free(&bucket->host);
    buffer_free(&bucket->root);
    arena_destroy(bucket->arena);
    free(bucket);
}
