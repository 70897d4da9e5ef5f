/* What the two ways of HTTP share: a request begins with this. */
#ifndef TRESTLE_WIRE_HTTP_PRIVATE_H
#define TRESTLE_WIRE_HTTP_PRIVATE_H

#include "wire/http.h"
#include "wire/http_packer.h"

/* What differs: each as the function of http.h. */
struct http_way {
    void (*headers)(const struct http_request *request, void *context,
                    void (*each)(void *context, bytes name, bytes value));
    void (*header)(struct http_request *request, const char *name, const char *value);
    void (*add)(struct http_request *request, bytes more);
    void (*end)(struct http_request *request);
    bool (*is_congested)(struct http_request *request);
};

struct http_request {
    const struct http_way *way;
    const char *method;
    const char *target;
    bytes body;
    bool is_too_large;
    const struct http_client *client;
    bytes credential; /* see http_request_stand_for */

    unsigned code; /* of the answer */
    const char *content_type;
    const char *caching;        /* NULL: HTTP_NOT_KEPT */
    struct http_packer *packer; /* NULL: the answer goes as it is */
    void *context;
    void (*on_writable)(void *context);
    void (*on_gone)(void *context);
};

/* Of a request whose client has gone, or that is freed: what its answer still has. */
void http_request_release(struct http_request *request);

/* What a client that gets 401 is told to show. */
#define HTTP_CHALLENGE "Bearer realm=\"Trestle\""

/* Cache-Control of what may not be kept. */
#define HTTP_NOT_KEPT "no-store"

#endif
