/* See server.h. How a server starts, and how it stops; how it serves is in server_calls.c.
 *
 * Invariants
 *  1. Parts are made in the order of struct server's fields (server_private.h) and destroyed in the
 *     opposite one, with the loops stopped in between, when no connection and no call is left. The
 *     loops themselves go after the threads that post to them: one may just be leaving loop_post.
 *  2. The listener belongs to the first loop; connections are dealt to all loops in turn. */
#include "server/server_private.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/sizing.h"
#include "os/thread.h"
#include "server/otlp_headers.h"
#include "server/serve_check.h"

#include <stdlib.h>

#define SERVER_MAGIC 0x53525652u

/* --- start --- */

/* What is wrong with a setting, as a refusal that says where it came from. */
static status blame(const struct server *server, const char *member, status s)
{
    if (s.code != STATUS_INVALID_ARGUMENT)
        return s;
    status refusal = settings_refuse(server->settings, member, "%s", status_message(s));
    status_free(s);
    return refusal;
}

/* Before the server starts: no look comes earlier. */
static void create_measured(struct server *server)
{
    server->measured = (struct measured){
        .metrics = server->metrics,
        .cluster = server->cluster,
        .backups = server->backups,
        .stream_readers = &server->bigtable.stream_readers,
        .views = server->bigtable.views,
        .control = server->control,
        .whole_backups = server->whole_backups,
        .slow = server->slow,
        .places = server->places,
        .peers = server->peers,
        .peer_watch = &server->peer_watch,
        .grpc = server->grpc,
        .pool = server->pool,
        .queries = server->bigtable.queries,
        .datastore = server->datastore.pool,
        .loops = server->loops,
        .loop_count = server->worker_count,
        .started_us = clock_wall_us(server->clock),
    };
}

/* Of a server that serves. */
static void limit_cache(void *context, uint64_t bytes)
{
    struct server *server = context;
    cluster_limit_cache(server->cluster, bytes);
}

static status create_parts(struct server *server)
{
    const struct settings *settings = server->settings;
    struct address address;
    TRY(blame(server, "listen", address_parse(settings->listen, &address)));
    TRY(serve_check(settings)); /* before anything is made */
    TRY(server_read_fault_rules(server));
    TRY(blame(server, "allowed_hosts", server_create_guard(server)));
    TRY(stacks_open(&server->stacks));
    TRY(metrics_create(&server->metrics));
    server->memory = (struct memory_guard){.limit_bytes = settings->memory,
                                           .clock = server->clock,
                                           .log = server->log,
                                           .metrics = server->metrics,
                                           .limit_cache = limit_cache,
                                           .context = server,
                                           .cache_bytes = sizing_blocks(settings)};
    TRY(blame(server, "tls_cert", server_create_tls(server)));
    TRY(pool_create((unsigned)settings->pool_threads, LIMIT_POOL_QUEUE, "pool", &server->pool));
    TRY(server_open_cluster(server));
    TRY(server_open_backups(server));
    TRY(server_watch_places(server));
    server_recall_metrics(server);
    TRY(server_create_services(server));
    TRY(server_create_rpc_metrics(server));
    TRY(blame(server, "otlp_headers", otlp_headers_check(settings->otlp_headers)));
    TRY(blame(server, "otlp_endpoint", server_create_tracer(server)));
    TRY(blame(server, "auth", server_create_access(server)));
    TRY(blame(server, "inject", server_create_faults(server)));
    TRY(server_create_grpc(server));
    TRY(server_create_http(server));
    TRY(server_create_workers(server));
    server_show_running(server);
    create_measured(server);
    server_tell_build(server);
    TRY(server_open_history(server));
    TRY(server_start_services(server));
    TRY(advice_watch_start(&server->insight, &server->advice));
    return server_open_listener(server, &address);
}

status server_create(const struct settings *settings, struct log *log, struct clock *clock,
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
    large_rooms_init(&server->rooms, settings);
    status s = create_parts(server);
    if (!status_is_ok(s)) {
        status_ignore(server_destroy(server));
        return s;
    }
    *out = server;
    return status_ok();
}

const struct address *server_address(const struct server *server)
{
    return listener_address(server->listener);
}

static status follow_schema(struct server *server)
{
    const struct schema_follow_options options = {.peers = server->peers,
                                                  .mirror = {.control = server->control},
                                                  .data_directory = server->settings->data_dir,
                                                  .log = server->log};
    TRY(schema_follow_start(&options, &server->schema_follow));
    const struct peers_schema schema = {.context = server->schema_follow,
                                        .tell = schema_follow_tell,
                                        .catch_up = schema_follow_catch_up,
                                        .check_unused = schema_follow_check_unused,
                                        .is_copying = replication_is_copying,
                                        .progress = replication_progress,
                                        .replication = server->copying};
    peers_set_schema(server->peers, &schema);
    return status_ok();
}

status server_start(struct server *server)
{
    CHECK_MAGIC(server, SERVER_MAGIC);
    cluster_seal_old_data(server->cluster);
    server_look(server);
    TRY(server_start_workers(server));
    TRY(peers_begin(server->peers, server_address(server)));
    TRY(follow_schema(server));
    router_set_schema(server->peer_router, schema_follow_knows_since, server->schema_follow);
    TRY(replication_start(server->copying, schema_follow_knows_since, server->schema_follow));
    health_set(server->health, true);
    return status_ok();
}

/* --- while it serves --- */

void server_reload(struct server *server, bool all)
{
    CHECK_MAGIC(server, SERVER_MAGIC);
    reloadable_check(&server->tls_files, all, server->log);
    reloadable_check(&server->tls_client_ca, all, server->log);
    reloadable_check(&server->access_files, all, server->log);
}

void server_look(struct server *server)
{
    CHECK_MAGIC(server, SERVER_MAGIC);
    server_look_at_tls(server);
    if (server->audit != NULL)
        audit_tick(server->audit);
    (void)cluster_condition(server->cluster);
    peer_watch_look(&server->peer_watch);
    bigtable_look(&server->bigtable);
    memory_guard_tend(&server->memory);
}

bool server_memory_is_bounded(const struct server *server)
{
    return server->settings->memory > 0;
}

void server_look_at_memory(struct server *server)
{
    const struct memory_wishes wishes =
        large_rooms_look(&server->rooms, cluster_growth(server->cluster));
    memory_guard_look(&server->memory, &wishes);
}

/* --- stop --- */

static bool is_quiet(void *context)
{
    struct server *server = context;
    return atomic_load(&server->open) == 0 && grpc_server_call_count(server->grpc) == 0;
}

/* Clients that have no call have been asked to leave; one that is cut off, or has stopped, does not
 * hear it, and is not waited for. */
struct draining {
    struct server *server;
    int64_t idle_since_us; /* clock_steady_us; 0: calls run */
};

static bool is_drained(void *context)
{
    enum { IDLE_US = 5 * 1000 * 1000 };
    struct draining *draining = context;
    int64_t now_us = clock_steady_us(draining->server->clock);
    if (grpc_server_call_count(draining->server->grpc) > 0)
        draining->idle_since_us = 0;
    else if (draining->idle_since_us == 0)
        draining->idle_since_us = now_us;
    return is_quiet(draining->server) ||
           (draining->idle_since_us != 0 && now_us - draining->idle_since_us > IDLE_US);
}

void server_drain(struct server *server)
{
    CHECK_MAGIC(server, SERVER_MAGIC);
    struct draining draining = {.server = server};
    health_shut_down(server->health);
    server_drain_workers(server);
    http1_server_drain(server->http1);
    if (!thread_wait_for(is_drained, &draining, server->settings->drain_timeout))
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
static void end_calls(struct server *server)
{
    server_close_workers(server);
    if (server->rest != NULL)
        loop_post(http1_server_loop(server->http1), &server->close_rest);
    if (server->started > 0)
        thread_wait_for(is_over, server, INT64_MAX);
    router_rest(server->peer_router);
    server_stop_workers(server);
}

static status close_cluster(struct cluster *cluster)
{
    if (cluster == NULL)
        return status_ok();
    status s = cluster_await_files(cluster);
    cluster_close(cluster);
    return s;
}

status server_destroy(struct server *server)
{
    if (server == NULL)
        return status_ok();
    CHECK_MAGIC(server, SERVER_MAGIC);
    replication_stop(server->copying);
    if (server->peer_router != NULL)
        router_set_schema(server->peer_router, NULL, NULL);
    peers_set_schema(server->peers, NULL);
    schema_follow_stop(server->schema_follow);
    peers_stop(server->peers);
    end_calls(server);
    advice_watch_stop(server->advice); /* both look at what goes next */
    history_close(server->history);
    listener_close(server->listener);
    http1_server_stop(server->http1);
    console_destroy(server->console);
    rest_destroy(server->rest);
    access_peer_destroy(server->rest_peer);
    http_router_destroy(server->router);
    grpc_server_destroy(server->grpc);
    grpc_headers_destroy(server->old_data_headers);
    faults_destroy(server->faults);
    free(server->rpcs);
    tracer_destroy(server->tracer); /* sends what waits; spans name methods of the services */
    otlp_destroy(server->otlp);
    slow_log_destroy(server->slow);
    reflection_destroy(server->reflection);
    health_destroy(server->health);
    whole_runner_destroy(server->whole_backups);
    whole_repairer_destroy(server->whole_repairs);
    schema_service_destroy(server->schema_service);
    router_destroy(server->peer_router);
    bigtable_stop(&server->bigtable);
    datastore_rest(&server->datastore);
    control_close(server->control); /* with it the operations end, Datastore's, too */
    bigtable_free(&server->bigtable);
    datastore_free(&server->datastore);
    replication_destroy(server->copying); /* it watches edits, and operations ask it */
    peers_close(server->peers);
    backups_close(server->backups);
    access_close(server->access);
    rule_table_free(&server->rules);
    audit_close(server->audit);
    status s = close_cluster(server->cluster);
    place_watch_stop(server->places);
    place_close(server->archive);
    pool_destroy(server->pool);
    http1_server_destroy(server->http1);
    server_free_workers(server);
    tls_context_destroy(server->tls);
    metrics_destroy(server->metrics);
    stacks_close(server->stacks);
    large_rooms_destroy(&server->rooms);
    server->magic = 0;
    free(server);
    return s;
}
