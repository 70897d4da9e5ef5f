/* What all connections of a server share: see grpc_server.h. */
#include "wire/grpc_private.h"

#include "base/check.h"

#include <stdlib.h>

enum { FEWEST_SLOTS = 16 };

void grpc_server_options_init(struct grpc_server_options *options)
{
    enum { MAX_MESSAGE = 256 * LIMIT_MB, MAX_STREAMS = 1000 };
    *options = (struct grpc_server_options){
        .max_message_size = MAX_MESSAGE,
        .max_buffered_requests = LIMIT_BUFFERED_REQUEST_BYTES,
        .max_concurrent_streams = MAX_STREAMS,
        .stall_timeout_us = (int64_t)LIMIT_STALL_SECONDS * 1000000,
        .slow_us = INT64_MAX,
    };
}

static struct grpc_route *find_slot(const struct grpc_server *server, bytes path)
{
    size_t slot = bytes_hash(path) & server->slot_mask;
    while (server->routes[slot].method != NULL &&
           !bytes_equal(buffer_bytes(&server->routes[slot].path), path))
        slot = (slot + 1) & server->slot_mask;
    return &server->routes[slot];
}

const struct grpc_route *grpc_server_route(const struct grpc_server *server, bytes path)
{
    const struct grpc_route *route = find_slot(server, path);
    return route->method == NULL ? NULL : route;
}

static status add_route(struct grpc_server *server, const struct grpc_service *service,
                        const struct grpc_method *method, size_t index)
{
    struct buffer path = {0};
    buffer_append_byte(&path, '/');
    buffer_append_bytes(&path, bytes_of(service->name));
    buffer_append_byte(&path, '/');
    buffer_append_bytes(&path, bytes_of(method->name));
    if (path.failed) {
        buffer_free(&path);
        return status_out_of_memory();
    }
    struct grpc_route *slot = find_slot(server, buffer_bytes(&path));
    if (slot->method != NULL) {
        buffer_free(&path);
        return status_make(STATUS_INVALID_ARGUMENT, "two methods are called %s/%s", service->name,
                           method->name);
    }
    *slot = (struct grpc_route){.path = path, .service = service, .method = method, .index = index};
    return status_ok();
}

static status make_routes(struct grpc_server *server, const struct grpc_service *const *services,
                          size_t service_count)
{
    for (size_t i = 0; i < service_count; i++)
        server->method_count += services[i]->method_count;
    size_t slots = FEWEST_SLOTS;
    while (slots < 2 * server->method_count)
        slots *= 2;
    server->slot_mask = slots - 1;
    server->routes = calloc(slots, sizeof *server->routes);
    if (server->routes == NULL)
        return status_out_of_memory();
    size_t index = 0;
    for (size_t i = 0; i < service_count; i++)
        for (size_t j = 0; j < services[i]->method_count; j++)
            TRY(add_route(server, services[i], &services[i]->methods[j], index++));
    return status_ok();
}

static status make_h2_options(struct grpc_server *server)
{
    if (nghttp2_session_callbacks_new(&server->callbacks) != 0 ||
        nghttp2_option_new(&server->h2_options) != 0)
        return status_out_of_memory();
    grpc_connection_set_callbacks(server->callbacks);
    nghttp2_option *options = server->h2_options;
    nghttp2_option_set_no_auto_window_update(options, 1);
    nghttp2_option_set_no_closed_streams(options, 1);
    nghttp2_option_set_max_outbound_ack(options, LIMIT_QUEUED_ACKS);
    nghttp2_option_set_max_continuations(options, LIMIT_CONTINUATION_FRAMES);
    /* By itself nghttp2 ends a connection after 1,000 resets (33 more a second), which a client
     * that stops its scans early reaches in no time. Resets are counted by what they cost instead:
     * see grpc_connection_count_nuisance and LIMIT_CALLS_A_STREAM. */
    nghttp2_option_set_stream_reset_rate_limit(options, UINT32_MAX, UINT32_MAX);
    return status_ok();
}

status grpc_server_create(const struct grpc_server_options *options,
                          const struct grpc_service *const *services, size_t service_count,
                          struct grpc_server **out)
{
    *out = NULL;
    struct grpc_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return status_out_of_memory();
    server->magic = GRPC_SERVER_MAGIC;
    server->options = *options;
    server->room = options->room;
    status s = make_routes(server, services, service_count);
    if (status_is_ok(s))
        s = make_h2_options(server);
    if (!status_is_ok(s)) {
        grpc_server_destroy(server);
        return s;
    }
    *out = server;
    return s;
}

static void free_routes(struct grpc_server *server)
{
    for (size_t i = 0; server->routes != NULL && i <= server->slot_mask; i++)
        buffer_free(&server->routes[i].path);
    free(server->routes);
}

void grpc_server_destroy(struct grpc_server *server)
{
    if (server == NULL)
        return;
    CHECK_MAGIC(server, GRPC_SERVER_MAGIC);
    CHECK(grpc_server_call_count(server) == 0);
    free_routes(server);
    nghttp2_session_callbacks_del(server->callbacks);
    nghttp2_option_del(server->h2_options);
    server->magic = 0;
    free(server);
}

size_t grpc_server_method_count(const struct grpc_server *server)
{
    return server->method_count;
}

size_t grpc_server_call_count(const struct grpc_server *server)
{
    return atomic_load(&server->call_count);
}
