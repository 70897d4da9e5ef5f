/* See server.h: how it serves. What comes to a connection (server/connection.c) goes
 *
 *     gRPC      admit ─► inject ─► take ─► the method's handler ─► call_ended
 *     the rest  serve_http ─► REST (as a gRPC call), the console, or a page
 *
 * on the thread of the connection's loop; HTTP/1.1 on its server's own. */
#include "server/server_private.h"

#include "base/sizing.h"
#include "proto/descriptors.h"
#include "wire/http2.h"

#include <stdio.h>
#include <stdlib.h>

/* --- what is told and asked of calls --- */

static status admit(void *context, void *peer, struct grpc_call *call, size_t method_index,
                    bytes request)
{
    struct server *server = context;
    return access_admit(server->access, peer, call, method_index, request);
}

/* With access control off. */
static status admit_anybody(void *context, void *peer, struct grpc_call *call, size_t method_index,
                            bytes request)
{
    struct server *server = context;
    return access_admit_anybody(server->audit, &server->rules, peer, call, method_index, request);
}

status server_read_fault_rules(struct server *server)
{
    const char *rules = server->settings->inject;
    return rules == NULL ? status_ok() : fault_rules_parse(bytes_of(rules), &server->fault_rules);
}

/* The log says why calls fail on purpose. */
static void warn_of_faults(const struct server *server)
{
    struct buffer rules = {0};
    faults_write(server->faults, &rules);
    log_warn(server->log, "faults are injected: calls are delayed or fail on purpose",
             LOG_BYTES("inject", buffer_bytes(&rules)));
    buffer_free(&rules);
}

status server_create_faults(struct server *server)
{
    if (server->settings->inject == NULL)
        return status_ok();
    TRY(faults_create(&server->fault_rules, server->services, SERVICES, server->metrics,
                      &server->faults));
    warn_of_faults(server);
    return status_ok();
}

static struct grpc_fault inject(void *context, size_t method_index, bytes request)
{
    struct server *server = context;
    return faults_draw(server->faults, method_index, request);
}

static bool take(void *context, struct grpc_call *call, const struct grpc_service *service,
                 const struct grpc_method *method, bytes request)
{
    struct server *server = context;
    return router_take(server->peer_router, call, service, method, request);
}

static void call_ended(void *context, const struct grpc_call_record *record)
{
    struct server *server = context;
    metrics_rpc_ended(server->rpcs[record->method_index],
                      metrics_profile(server->metrics, record->profile), record->code,
                      record->duration_us);
    if (record->note != NULL)
        audit_call(server->audit, record->note, record);
    bool is_slow = slow_log_concerns(server->slow, record);
    if (is_slow)
        slow_log_add(server->slow, record, server->access);
    if (server->tracer != NULL)
        tracer_add(server->tracer, record, is_slow);
}

/* One entry a method, and one for paths that name none. */
status server_create_rpc_metrics(struct server *server)
{
    size_t count = 0, next = 0;
    for (size_t i = 0; i < SERVICES; i++)
        count += server->services[i]->method_count;
    server->rpcs = calloc(count + 1, sizeof(struct rpc_metrics *));
    if (server->rpcs == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < SERVICES; i++) {
        const struct grpc_service *service = server->services[i];
        for (size_t j = 0; j < service->method_count; j++) {
            char name[256];
            snprintf(name, sizeof name, "%s/%s", service->name, service->methods[j].name);
            server->rpcs[next++] = metrics_rpc(server->metrics, name);
        }
    }
    server->rpcs[next] = metrics_rpc(server->metrics, "unknown");
    return status_ok();
}

status server_create_tracer(struct server *server)
{
    const struct settings *settings = server->settings;
    if (settings->otlp_endpoint == NULL)
        return status_ok();
    TRY(otlp_create(settings->otlp_endpoint, settings->otlp_headers, &server->otlp));
    const struct tracer_options options = {
        .one_in = settings->otlp_sample,
        .log = server->log,
        .clock = server->clock,
        .metrics = server->metrics,
        .version = TRESTLE_VERSION,
        .send = otlp_send,
        .context = server->otlp,
    };
    return tracer_create(&options, &server->tracer);
}

/* --- HTTP --- */

/* Whether the request is not one that a page of another site has a browser make; else it has been
 * answered. */
static bool check_browser(struct server *server, struct http_request *request)
{
    enum { FORBIDDEN = 403 };
    const struct browser_marks marks = browser_marks_of(request);
    status s = browser_guard_admit(&server->guard, &marks);
    if (status_is_ok(s))
        return true;
    http_answer_begin(request, FORBIDDEN, "text/plain; charset=utf-8");
    http_answer_add(request, bytes_of(status_message(s)));
    http_answer_add(request, bytes_of("\n"));
    http_answer_end(request);
    status_free(s);
    return false;
}

/* In every answer of a server that may show deleted data. */
static const char OLD_DATA_HEADER[] = "trestle-old-data";
static const char OLD_DATA_WORDS[] = "may show deleted data";

static void serve_http(void *context, struct http_request *request)
{
    struct server *server = context;
    const char *target = http_request_target(request);
    if (!check_browser(server, request))
        return;
    if (server->old_data_headers != NULL)
        http_answer_header(request, OLD_DATA_HEADER, OLD_DATA_WORDS);
    if (rest_is_for(target))
        rest_handle(server->rest, request);
    else if (console_is_for(target))
        console_handle(server->console, request);
    else
        pages_handle(&server->pages, request);
}

static void serve_http2(void *context, void *peer, struct grpc_call *call, bytes body)
{
    struct server *server = context;
    struct http_client client = {NULL, NULL};
    if (peer != NULL)
        client = (struct http_client){access_peer_address(peer), access_peer_subject(peer)};
    http2_handle(call, body, &client, http1_server_loop(server->http1), serve_http, server);
}

static void close_rest(struct task *task)
{
    struct server *server = LIST_ENTRY(task, struct server, close_rest);
    rest_close(server->rest);
    atomic_store(&server->rest_is_closed, true);
}

static bool has_peers(void *context)
{
    const struct server *server = context;
    return replication_has_peers(server->copying);
}

static void look(void *context, struct condition_view *out)
{
    struct server *server = context;
    condition_look(cluster_condition(server->cluster), out);
}

static status create_router(struct server *server)
{
    const ProtobufCServiceDescriptor *services[API_SERVICES];
    size_t count = 0;
    for (size_t i = 0; i < API_SERVICES; i++)
        if (server->apis[i].rest != NULL)
            services[count++] = server->apis[i].rest;
    return http_router_create(proto_http_rules, proto_http_rule_count, services, count,
                              &server->router);
}

status server_create_http(struct server *server)
{
    server->pages.measured = &server->measured;
    server->pages.cluster = server->cluster;
    server->pages.hides_names = server->access != NULL;
    server->pages.guard = server->settings->metrics_auth ? server->access : NULL;
    server->close_rest.run = close_rest;
    TRY(create_router(server));
    TRY(http1_server_create(server->clock, serve_http, server, &server->http1));
    http1_server_bound_bodies(server->http1, sizing_http1_bodies(server->settings));
    server->rest_peer = access_gateway_create();
    if (server->rest_peer == NULL)
        return status_out_of_memory();
    TRY(rest_create(server->grpc, server->rest_peer, server->router,
                    http1_server_loop(server->http1), &server->rest));
    const struct console_options options = {.rest = server->rest,
                                            .access = server->access,
                                            .clock = server->clock,
                                            .look = look,
                                            .has_peers = has_peers,
                                            .look_context = server,
                                            .is_secure = server->tls != NULL,
                                            .injects_faults = server->faults != NULL};
    return console_create(&options, &server->console);
}

/* --- gRPC --- */

static status make_headers(struct server *server)
{
    const struct grpc_field field = {OLD_DATA_HEADER, bytes_of(OLD_DATA_WORDS)};
    if (cluster_old_data(server->cluster) == NULL)
        return status_ok();
    server->old_data_headers = grpc_headers_create(&field, 1);
    return server->old_data_headers == NULL ? status_out_of_memory() : status_ok();
}

status server_create_grpc(struct server *server)
{
    struct grpc_server_options options;
    TRY(make_headers(server));
    grpc_server_options_init(&options);
    options.max_message_size = server->settings->max_message;
    options.room = server->settings->memory > 0 ? &server->rooms.requests : NULL;
    options.is_short = server->settings->memory > 0 ? &server->memory.is_short : NULL;
    options.max_concurrent_streams = (uint32_t)server->settings->max_streams;
    options.on_call_end = call_ended;
    options.wants_steps = server->tracer != NULL;
    options.slow_us = slow_log_threshold_us(server->slow);
    options.admit = server->access != NULL ? admit : server->audit != NULL ? admit_anybody : NULL;
    options.inject = server->faults == NULL ? NULL : inject;
    options.take = take;
    options.http = serve_http2;
    options.headers = server->old_data_headers;
    options.context = server;
    return grpc_server_create(&options, server->services, SERVICES, &server->grpc);
}
