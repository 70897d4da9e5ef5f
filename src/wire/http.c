/* See http.h. */
#include "wire/http_private.h"

#include <strings.h>

const char *http_request_method(const struct http_request *request)
{
    return request->method;
}

const char *http_request_target(const struct http_request *request)
{
    return request->target;
}

bytes http_request_body(const struct http_request *request)
{
    return request->body;
}

bool http_request_is_too_large(const struct http_request *request)
{
    return request->is_too_large;
}

const struct http_client *http_request_client(const struct http_request *request)
{
    return request->client;
}

void http_request_headers(const struct http_request *request, void *context,
                          void (*each)(void *context, bytes name, bytes value))
{
    request->way->headers(request, context, each);
    if (request->credential.size > 0)
        each(context, bytes_of("authorization"), request->credential);
}

struct header_search {
    bytes name;
    bytes value;
    bool is_found;
};

static void look_at_header(void *context, bytes name, bytes value)
{
    struct header_search *search = context;
    if (search->is_found || name.size != search->name.size ||
        strncasecmp((const char *)name.data, (const char *)search->name.data, name.size) != 0)
        return;
    search->value = value;
    search->is_found = true;
}

bool http_request_header(const struct http_request *request, const char *name, bytes *value)
{
    struct header_search search = {.name = bytes_of(name)};
    http_request_headers(request, &search, look_at_header);
    *value = search.value;
    return search.is_found;
}

bool http_request_takes_gzip(const struct http_request *request)
{
    bytes accepted;
    return http_request_header(request, "accept-encoding", &accepted) &&
           memmem(accepted.data, accepted.size, "gzip", strlen("gzip")) != NULL;
}

void http_request_stand_for(struct http_request *request, const char *target, bytes credential)
{
    request->target = target;
    request->credential = credential;
}

void http_answer_header(struct http_request *request, const char *name, const char *value)
{
    request->way->header(request, name, value);
}

void http_answer_caching(struct http_request *request, const char *control)
{
    request->caching = control;
}

void http_answer_pack(struct http_request *request)
{
    http_answer_header(request, "vary", "accept-encoding");
    if (request->packer != NULL || !http_request_takes_gzip(request))
        return;
    request->packer = http_packer_create();
    if (request->packer != NULL)
        http_answer_header(request, "content-encoding", "gzip");
}

void http_answer_begin(struct http_request *request, unsigned code, const char *content_type)
{
    request->code = code;
    request->content_type = content_type;
}

/* What there is no memory for is left out: the client sees that the answer ends early. */
static void add_packed(struct http_request *request, bytes more, bool is_last)
{
    struct buffer packed = {0};
    http_packer_add(request->packer, more, is_last, &packed);
    if (!packed.failed)
        request->way->add(request, buffer_bytes(&packed));
    buffer_free(&packed);
}

void http_answer_add(struct http_request *request, bytes more)
{
    if (request->packer == NULL)
        request->way->add(request, more);
    else
        add_packed(request, more, false);
}

void http_answer_end(struct http_request *request)
{
    if (request->packer != NULL)
        add_packed(request, bytes_make(NULL, 0), true);
    http_request_release(request);
    request->way->end(request);
}

void http_request_release(struct http_request *request)
{
    http_packer_destroy(request->packer);
    request->packer = NULL;
}

bool http_answer_is_congested(struct http_request *request)
{
    return request->way->is_congested(request);
}

void http_request_set_callbacks(struct http_request *request, void *context,
                                void (*on_writable)(void *context), void (*on_gone)(void *context))
{
    request->context = context;
    request->on_writable = on_writable;
    request->on_gone = on_gone;
}
