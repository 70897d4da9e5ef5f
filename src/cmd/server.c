/* See server.h.
 *
 * Invariants
 *  1. Parts are made in the order of struct server's fields and destroyed in the opposite one, with
 *     the loops stopped in between, when no connection and no call is left. The loops themselves go
 *     after the threads that post to them: one may just be leaving loop_post.
 *  2. The listener belongs to the first loop; connections are dealt to all loops in turn. */
#include "cmd/server.h"

#include "access/access.h"
#include "base/check.h"
#include "base/limits.h"
#include "bigtable/services.h"
#include "cluster/backup.h"
#include "cmd/connection.h"
#include "cmd/otlp.h"
#include "cmd/pages.h"
#include "cmd/reload.h"
#include "console/console.h"
#include "datastore/datastore.h"
#include "faults/faults.h"
#include "insight/insight.h"
#include "insight/slow_log.h"
#include "insight/tracer.h"
#include "os/listener.h"
#include "os/pool.h"
#include "os/thread.h"
#include "proto/descriptors.h"
#include "wire/browser_guard.h"
#include "wire/health.h"
#include "wire/http2.h"
#include "wire/reflection.h"
#include "wire/rest.h"

#include "google/bigtable/admin/v2/bigtable_instance_admin.pb-c.h"
#include "google/bigtable/admin/v2/bigtable_table_admin.pb-c.h"
#include "google/bigtable/v2/bigtable.pb-c.h"
#include "google/cloud/location/locations.pb-c.h"
#include "google/datastore/admin/v1/datastore_admin.pb-c.h"
#include "google/datastore/v1/datastore.pb-c.h"
#include "google/firestore/admin/v1/firestore_admin.pb-c.h"
#include "google/longrunning/operations.pb-c.h"
#include "trestle/insight/v1/insight.pb-c.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { API_SERVICES = 9, SERVICES = API_SERVICES + 3 };

/* An event loop, its thread, its connections. */
struct worker {
    pthread_t thread;
    struct connection_group connections;
    struct server *server;
    struct task drain;
    struct task close;
};

/* Whose methods REST serves. */
static const ProtobufCServiceDescriptor *const rest_services[] = {
    &bt__bigtable__descriptor,
    &bt_admin__bigtable_instance_admin__descriptor,
    &bt_admin__bigtable_table_admin__descriptor,
    &lro__operations__descriptor,
    &location__locations__descriptor,
    &ds__datastore__descriptor,
    &ds_admin__datastore_admin__descriptor,
    &fs_admin__firestore_admin__descriptor,
    &insight__insight__descriptor,
};

struct server {
    uint32_t magic;
    const struct settings *settings;
    const struct log *log;
    struct clock *clock;

    struct metrics *metrics;
    struct tls_context *tls;
    struct reloadable tls_files;
    struct pool *pool;
    struct cluster *cluster;
    struct backups *backups;
    struct bigtable bigtable;
    struct datastore datastore;
    struct slow_log *slow;
    struct otlp *otlp; /* both NULL: nothing is traced */
    struct tracer *tracer;
    struct insight insight;
    struct grpc_service api_services[API_SERVICES];
    struct health *health;
    struct reflection *reflection;
    const struct grpc_service *services[SERVICES]; /* of the APIs, then the others */
    struct access *access;                         /* NULL: off */
    struct log audit;                              /* its own file, or as `log` */
    struct reloadable access_files;
    struct fault_rules fault_rules;
    struct faults *faults; /* NULL: none are injected */
    struct grpc_server *grpc;
    struct rpc_metrics **rpcs; /* by method_index, see wire/grpc_server.h */
    struct browser_guard guard;
    struct measured measured;
    struct pages pages;
    struct http_router *router;
    struct http1_server *http1;
    struct access_peer *rest_peer; /* NULL with access control off */
    struct rest *rest;
    struct console *console;
    struct task close_rest;
    atomic_bool rest_is_closed;
    struct worker *workers;
    struct loop **loops; /* theirs */
    unsigned worker_count;
    unsigned started; /* workers whose thread runs */
    struct listener *listener;

    unsigned next_worker; /* the first loop's */
    atomic_size_t open;
};
#define SERVER_MAGIC 0x53525652u

/* --- parts --- */

/* Off loopback, data and credentials would cross networks in the clear, and be anybody's. */
static status check_exposure(const struct settings *settings, const struct address *address)
{
    bool is_secure = settings->tls_cert != NULL && settings->auth == AUTH_ON;
    if (address_is_loopback(address) || is_secure || settings->insecure)
        return status_ok();
    return settings_refuse(
        settings, "listen",
        "%s is not loopback: give tls-cert, tls-key and auth=on, or say insecure",
        settings->listen);
}

static struct tls_server_files tls_files(const struct settings *settings)
{
    return (struct tls_server_files){
        .certificate = settings->tls_cert,
        .key = settings->tls_key,
        .client_authority = settings->tls_client_ca,
        .client_required = settings->tls_client_certs == TLS_CLIENT_CERTS_REQUIRED,
    };
}

static status reload_tls(void *context)
{
    struct server *server = context;
    const struct tls_server_files files = tls_files(server->settings);
    return tls_server_reload(server->tls, &files);
}

static status create_tls(struct server *server)
{
    const struct tls_server_files files = tls_files(server->settings);
    if (files.certificate == NULL)
        return status_ok();
    server->tls_files =
        (struct reloadable){.what = "TLS",
                            .reload = reload_tls,
                            .context = server,
                            .paths = {files.certificate, files.key, files.client_authority}};
    reloadable_init(&server->tls_files);
    return tls_server_create(&files, &server->tls);
}

static status open_cluster(struct server *server)
{
    const struct settings *settings = server->settings;
    const struct cluster_options options = {
        .data_directory = settings->data_dir,
        .log = server->log,
        .clock = server->clock,
        .metrics = server->metrics,
        .pool = server->pool,
        .durability = settings->durability == DURABILITY_SYNC ? STORE_SYNCED : STORE_ASYNC,
        .cache_bytes = settings->cache,
        .write_buffer_bytes = settings->write_buffer,
        .open_files = (int)settings->open_files,
        .background_threads = (int)settings->background_threads,
        .disk_reserve_bytes = settings->disk_reserve,
        .spill_bytes = settings->spill_threshold,
        .split_bytes = settings->split_size,
        .split_rows_per_second = settings->split_load,
        .merge_after_us = settings->merge_after,
        .balance = settings->balance,
        .gc_on_read = settings->gc_on_read,
        .gc_interval_us = settings->gc_interval,
        .heat = settings->heat,
        .heat_window_us = settings->heat_window,
        .undelete_window_us = settings->undelete_window,
    };
    return cluster_open(&options, &server->cluster);
}

static status open_backups(struct server *server)
{
    const struct settings *settings = server->settings;
    struct buffer beside_data = {0};
    buffer_append_format(&beside_data, "%s/backups%c", settings->data_dir, 0);
    if (beside_data.failed)
        return status_out_of_memory();
    const struct backups_options options = {
        .cluster = server->cluster,
        .directory =
            settings->backup_dir != NULL ? settings->backup_dir : (const char *)beside_data.data,
        .bytes_per_second = settings->backup_rate,
        .log = server->log,
        .metrics = server->metrics,
    };
    status s = backups_open(&options, &server->backups);
    buffer_free(&beside_data);
    return s;
}

/* On one's own machine any instance will do, as with an emulator; elsewhere a mistyped name is an
 * error. */
static bool auto_creates(const struct settings *settings, const struct address *address)
{
    if (settings->auto_create == AUTO_CREATE_AUTO)
        return address_is_loopback(address);
    return settings->auto_create == AUTO_CREATE_ON;
}

static void call_ended(void *context, const struct grpc_call_record *record)
{
    struct server *server = context;
    metrics_rpc_ended(server->rpcs[record->method_index],
                      metrics_profile(server->metrics, record->profile), record->code,
                      record->duration_us);
    if (record->note != NULL)
        access_audit(server->access, record);
    bool is_slow = slow_log_concerns(server->slow, record);
    if (is_slow)
        slow_log_add(server->slow, record, server->access);
    if (server->tracer != NULL)
        tracer_add(server->tracer, record, is_slow);
}

static status admit(void *context, void *peer, struct grpc_call *call, size_t method_index,
                    bytes request)
{
    struct server *server = context;
    return access_admit(server->access, peer, call, method_index, request);
}

/* One entry a method, and one for paths that name none. */
static status create_rpc_metrics(struct server *server)
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

static status create_bigtable(struct server *server)
{
    struct bigtable *bigtable = &server->bigtable;
    struct grpc_service *services = server->api_services;
    struct address address;
    TRY(address_parse(server->settings->listen, &address));
    const struct bigtable_options options = {
        .query_memory = server->settings->query_memory,
        .query_threads = server->settings->query_threads,
        .cluster = server->cluster,
        .metrics = server->metrics,
        .backups = server->backups,
        .backups_expire = server->settings->backup_expiry,
        .log = server->log,
        .auto_create = auto_creates(server->settings, &address),
        .gc_on_read = server->settings->gc_on_read,
    };
    TRY(bigtable_init(bigtable, &options));
    services[0] = bigtable_data_service(bigtable);
    services[1] = bigtable_table_admin_service(bigtable);
    services[2] = bigtable_instance_admin_service(bigtable);
    services[3] = bigtable_operations_service(bigtable);
    services[4] = bigtable_locations_service(bigtable);
    return status_ok();
}

static status create_datastore(struct server *server)
{
    const struct datastore_options options = {
        .cluster = server->cluster,
        .control = server->bigtable.control,
        .metrics = server->metrics,
        .threads = server->settings->datastore_threads,
        .is_pessimistic = server->settings->datastore_concurrency == CONCURRENCY_PESSIMISTIC,
        .statistics_interval_us = server->settings->datastore_statistics_interval,
        .ttl_interval_us = server->settings->datastore_ttl_interval,
        .export_directory = server->settings->export_directory,
    };
    TRY(datastore_init(&server->datastore, &options));
    server->api_services[5] = datastore_service(&server->datastore);
    server->api_services[6] = datastore_admin_service(&server->datastore);
    server->api_services[7] = datastore_firestore_service(&server->datastore);
    return status_ok();
}

static int64_t slow_request_us(const struct server *server)
{
    return server->settings->slow_request == 0 ? INT64_MAX : server->settings->slow_request;
}

static status create_insight(struct server *server)
{
    const struct slow_log_options slow = {.threshold_us = slow_request_us(server),
                                          .log = server->log,
                                          .clock = server->clock,
                                          .metrics = server->metrics};
    TRY(slow_log_create(&slow, &server->slow));
    server->insight = (struct insight){
        .bigtable = &server->bigtable,
        .settings = server->settings,
        .slow = server->slow,
        .metrics = server->metrics,
        .measure = measure,
        .measured = &server->measured,
    };
    server->api_services[8] = insight_service(&server->insight);
    return status_ok();
}

static status create_tracer(struct server *server)
{
    const struct settings *settings = server->settings;
    if (settings->otlp_endpoint == NULL)
        return status_ok();
    TRY(otlp_create(settings->otlp_endpoint, &server->otlp));
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

static status create_services(struct server *server)
{
    TRY(create_bigtable(server));
    TRY(create_datastore(server));
    TRY(create_insight(server));
    size_t count = 0;
    while (count < API_SERVICES) {
        server->services[count] = &server->api_services[count];
        count++;
    }
    TRY(health_create(server->services, count, &server->health));
    server->services[count++] = health_service(server->health);
    TRY(reflection_create(server->services, count, proto_descriptor_set(), &server->reflection));
    server->services[count++] = reflection_service_v1(server->reflection);
    server->services[count++] = reflection_service_v1alpha(server->reflection);
    CHECK(count == SERVICES);
    return status_ok();
}

/* Also again, when the file has been renamed: whoever writes meanwhile has the old one or the new.
 */
static status open_audit_log(struct server *server)
{
    const char *path = server->settings->audit_log;
    if (path == NULL)
        return status_ok();
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return status_from_errno(errno, "cannot open %s", path);
    if (server->audit.fd == server->log->fd) {
        server->audit.fd = fd;
        return status_ok();
    }
    int replaced = dup3(fd, server->audit.fd, O_CLOEXEC);
    int error = errno;
    close(fd);
    return replaced < 0 ? status_from_errno(error, "cannot use %s", path) : status_ok();
}

static status reload_access(void *context)
{
    struct server *server = context;
    TRY(open_audit_log(server));
    return access_reload(server->access);
}

static status create_access(struct server *server)
{
    const struct settings *settings = server->settings;
    server->audit = *server->log;
    server->audit.level = LOG_INFO; /* whatever else the log leaves out */
    if (settings->auth == AUTH_OFF)
        return status_ok();
    server->access_files = (struct reloadable){
        .what = "access control",
        .reload = reload_access,
        .context = server,
        .paths = {settings->auth_tokens, settings->auth_jwks, settings->auth_policy}};
    reloadable_init(&server->access_files);
    TRY(open_audit_log(server));
    const struct access_options options = {.data_directory = settings->data_dir,
                                           .token_file = settings->auth_tokens,
                                           .jwks_file = settings->auth_jwks,
                                           .audience = settings->auth_audience,
                                           .issuer = settings->auth_issuer,
                                           .policy_file = settings->auth_policy,
                                           .log = server->log,
                                           .audit = &server->audit,
                                           .clock = server->clock};
    TRY(access_open(&options, server->services, SERVICES, &server->access));
    bigtable_enforce_policies(&server->bigtable, server->access);
    server->insight.access = server->access;
    return status_ok();
}

/* --- faults --- */

/* Before anything else is touched: most of what may be wrong is wrong here. */
static status read_fault_rules(struct server *server)
{
    const char *rules = server->settings->inject;
    return rules == NULL ? status_ok() : fault_rules_parse(bytes_of(rules), &server->fault_rules);
}

/* Nobody is to wonder why calls fail. */
static void warn_of_faults(const struct server *server)
{
    struct buffer rules = {0};
    faults_write(server->faults, &rules);
    log_warn(server->log, "faults are injected: calls are delayed or fail on purpose",
             LOG_BYTES("inject", buffer_bytes(&rules)));
    buffer_free(&rules);
}

static status create_faults(struct server *server)
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

/* --- serving --- */

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

static status create_guard(struct server *server)
{
    const struct settings *settings = server->settings;
    server->guard = (struct browser_guard){.allowed_hosts = settings->allowed_hosts,
                                           .any_host = settings->auth == AUTH_ON};
    return browser_guard_check_hosts(settings->allowed_hosts);
}

static void serve_http(void *context, struct http_request *request)
{
    struct server *server = context;
    const char *target = http_request_target(request);
    if (!check_browser(server, request))
        return;
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

static status create_grpc(struct server *server)
{
    struct grpc_server_options options;
    grpc_server_options_init(&options);
    options.max_message_size = server->settings->max_message;
    options.max_concurrent_streams = (uint32_t)server->settings->max_streams;
    options.on_call_end = call_ended;
    options.slow_us = slow_request_us(server);
    options.admit = server->access == NULL ? NULL : admit;
    options.inject = server->faults == NULL ? NULL : inject;
    options.http = serve_http2;
    options.context = server;
    return grpc_server_create(&options, server->services, SERVICES, &server->grpc);
}

static void close_rest(struct task *task)
{
    struct server *server = LIST_ENTRY(task, struct server, close_rest);
    rest_close(server->rest);
    atomic_store(&server->rest_is_closed, true);
}

static status create_http1(struct server *server)
{
    server->pages.measured = &server->measured;
    server->pages.cluster = server->cluster;
    server->pages.guard = server->settings->metrics_auth ? server->access : NULL;
    server->close_rest.run = close_rest;
    TRY(http_router_create(proto_http_rules, proto_http_rule_count, rest_services,
                           sizeof rest_services / sizeof *rest_services, &server->router));
    TRY(http1_server_create(server->clock, serve_http, server, &server->http1));
    if (server->access != NULL) {
        server->rest_peer = access_gateway_create();
        if (server->rest_peer == NULL)
            return status_out_of_memory();
    }
    TRY(rest_create(server->grpc, server->rest_peer, server->router,
                    http1_server_loop(server->http1), &server->rest));
    const struct console_options options = {.rest = server->rest,
                                            .access = server->access,
                                            .clock = server->clock,
                                            .is_secure = server->tls != NULL,
                                            .injects_faults = server->faults != NULL};
    return console_create(&options, &server->console);
}

static void drain_worker(struct task *task)
{
    struct worker *worker = LIST_ENTRY(task, struct worker, drain);
    struct server *server = worker->server;
    if (worker == server->workers) {
        listener_close(server->listener);
        server->listener = NULL;
    }
    connection_group_drain(&worker->connections);
}

static void close_worker(struct task *task)
{
    struct worker *worker = LIST_ENTRY(task, struct worker, close);
    connection_group_close(&worker->connections);
}

static status create_worker(struct server *server)
{
    struct worker *worker = &server->workers[server->worker_count];
    struct connection_group *group = &worker->connections;
    TRY(loop_create(server->clock, &group->loop));
    server->loops[server->worker_count++] = group->loop;
    TRY(grpc_spares_create(&group->spares));
    worker->server = server;
    worker->drain.run = drain_worker;
    worker->close.run = close_worker;
    group->grpc = server->grpc;
    group->http1 = server->http1;
    group->tls = server->tls;
    group->metrics = server->metrics;
    group->log = server->log;
    group->idle_timeout_us = server->settings->idle_timeout;
    group->knows_peers = server->access != NULL;
    group->open = &server->open;
    return status_ok();
}

static status create_workers(struct server *server)
{
    unsigned count = (unsigned)server->settings->threads;
    if (count == 0)
        count = thread_processors();
    server->workers = calloc(count, sizeof *server->workers);
    server->loops = calloc(count, sizeof *server->loops);
    if (server->workers == NULL || server->loops == NULL)
        return status_out_of_memory();
    while (server->worker_count < count)
        TRY(create_worker(server));
    return status_ok();
}

/* Nobody looks before the server has started. */
static void create_measured(struct server *server)
{
    server->measured = (struct measured){
        .metrics = server->metrics,
        .cluster = server->cluster,
        .backups = server->backups,
        .grpc = server->grpc,
        .pool = server->pool,
        .queries = server->bigtable.queries,
        .datastore = server->datastore.pool,
        .loops = server->loops,
        .loop_count = server->worker_count,
        .started_us = clock_wall_us(server->clock),
    };
}

static void deal_out(void *context, int socket, const struct address *peer)
{
    struct server *server = context;
    if (atomic_load(&server->open) >= server->settings->max_connections) {
        metrics_add(server->metrics, METRIC_connections_refused_total, 1);
        close(socket);
        return;
    }
    metrics_add(server->metrics, METRIC_connections_accepted_total, 1);
    struct worker *worker = &server->workers[server->next_worker++ % server->worker_count];
    connection_begin(&worker->connections, socket, peer);
}

/* --- life --- */

/* What is wrong with a setting, as a refusal that says where it came from. */
static status blame(const struct server *server, const char *member, status s)
{
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status refusal = settings_refuse(server->settings, member, "%s", status_message(s));
    status_free(s);
    return refusal;
}

static status start_services(struct server *server)
{
    struct operation_kind kinds[DATASTORE_KINDS_MOST];
    size_t count = datastore_kinds(&server->datastore, kinds);
    return bigtable_start(&server->bigtable, kinds, count);
}

static status create_parts(struct server *server)
{
    const struct settings *settings = server->settings;
    struct address address;
    TRY(blame(server, "listen", address_parse(settings->listen, &address)));
    TRY(check_exposure(settings, &address));
    TRY(blame(server, "inject", read_fault_rules(server)));
    TRY(blame(server, "allowed_hosts", create_guard(server)));
    TRY(metrics_create(&server->metrics));
    TRY(blame(server, "tls_cert", create_tls(server)));
    TRY(pool_create((unsigned)settings->pool_threads, LIMIT_POOL_QUEUE, "pool", &server->pool));
    TRY(open_cluster(server));
    TRY(open_backups(server));
    TRY(create_services(server));
    TRY(create_rpc_metrics(server));
    TRY(blame(server, "otlp_endpoint", create_tracer(server)));
    TRY(blame(server, "auth", create_access(server)));
    TRY(blame(server, "inject", create_faults(server)));
    TRY(create_grpc(server));
    TRY(create_http1(server));
    TRY(create_workers(server));
    create_measured(server);
    TRY(start_services(server));
    return listener_open(server->workers[0].connections.loop, &address, deal_out, server,
                         &server->listener);
}

status server_create(const struct settings *settings, const struct log *log, struct clock *clock,
                     struct server **out)
{
    *out = NULL;
    struct server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return status_out_of_memory();
    server->magic = SERVER_MAGIC;
    server->settings = settings;
    server->log = log;
    server->clock = clock;
    server->audit.fd = log->fd;
    status s = create_parts(server);
    if (!status_is_ok(s)) {
        server_destroy(server);
        return s;
    }
    *out = server;
    return status_ok();
}

const struct address *server_address(const struct server *server)
{
    return listener_address(server->listener);
}

static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    loop_run(worker->connections.loop);
    return NULL;
}

status server_start(struct server *server)
{
    CHECK_MAGIC(server, SERVER_MAGIC);
    for (; server->started < server->worker_count; server->started++) {
        struct worker *worker = &server->workers[server->started];
        char name[32];
        snprintf(name, sizeof name, "loop-%u", server->started);
        TRY(thread_start(&worker->thread, name, run_worker, worker));
    }
    health_set(server->health, true);
    return status_ok();
}

void server_reload(struct server *server, bool all)
{
    CHECK_MAGIC(server, SERVER_MAGIC);
    reloadable_check(&server->tls_files, all, server->log);
    reloadable_check(&server->access_files, all, server->log);
}

static bool is_quiet(void *context)
{
    struct server *server = context;
    return atomic_load(&server->open) == 0 && grpc_server_call_count(server->grpc) == 0;
}

void server_drain(struct server *server)
{
    CHECK_MAGIC(server, SERVER_MAGIC);
    health_shut_down(server->health);
    for (unsigned i = 0; i < server->started; i++)
        loop_post(server->workers[i].connections.loop, &server->workers[i].drain);
    http1_server_drain(server->http1);
    if (!thread_wait_for(is_quiet, server, server->settings->drain_timeout))
        log_warn(server->log, "clients have not left in time",
                 LOG_INT("connections", atomic_load(&server->open)),
                 LOG_INT("calls", grpc_server_call_count(server->grpc)));
}

/* Nothing runs, and REST begins no more. */
static bool is_over(void *context)
{
    struct server *server = context;
    return atomic_load(&server->rest_is_closed) && is_quiet(server);
}

/* Calls end in their own time: a handler in the store or in the pool cannot be torn out. */
static void stop_workers(struct server *server)
{
    for (unsigned i = 0; i < server->started; i++)
        loop_post(server->workers[i].connections.loop, &server->workers[i].close);
    if (server->rest != NULL)
        loop_post(http1_server_loop(server->http1), &server->close_rest);
    if (server->started > 0)
        thread_wait_for(is_over, server, INT64_MAX);
    for (unsigned i = 0; i < server->started; i++) {
        loop_stop(server->workers[i].connections.loop);
        pthread_join(server->workers[i].thread, NULL);
    }
}

void server_destroy(struct server *server)
{
    if (server == NULL)
        return;
    CHECK_MAGIC(server, SERVER_MAGIC);
    stop_workers(server);
    listener_close(server->listener);
    http1_server_destroy(server->http1);
    console_destroy(server->console);
    rest_destroy(server->rest);
    access_peer_destroy(server->rest_peer);
    http_router_destroy(server->router);
    grpc_server_destroy(server->grpc);
    faults_destroy(server->faults);
    if (server->audit.fd != server->log->fd)
        close(server->audit.fd);
    free(server->rpcs);
    tracer_destroy(server->tracer); /* sends what waits; spans name methods of the services */
    otlp_destroy(server->otlp);
    slow_log_destroy(server->slow);
    reflection_destroy(server->reflection);
    health_destroy(server->health);
    bigtable_free(&server->bigtable); /* with it the operations end, Datastore's, too */
    datastore_free(&server->datastore);
    backups_close(server->backups);
    access_close(server->access);
    if (server->cluster != NULL)
        cluster_close(server->cluster);
    pool_destroy(server->pool);
    for (unsigned i = 0; i < server->worker_count; i++) {
        grpc_spares_destroy(server->workers[i].connections.spares);
        loop_destroy(server->workers[i].connections.loop);
    }
    free(server->workers);
    free(server->loops);
    tls_context_destroy(server->tls);
    metrics_destroy(server->metrics);
    server->magic = 0;
    free(server);
}
