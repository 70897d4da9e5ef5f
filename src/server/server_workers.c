/* A server's event loops: each with a thread and the connections that were dealt to it. */
#include "server/server_private.h"

#include "base/limits.h"
#include "os/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
    group->trusts_loopback = server->settings->auth == AUTH_OFF;
    group->metrics = server->metrics;
    group->log = server->log;
    group->idle_timeout_us = server->settings->idle_timeout;
    group->open = &server->open;
    return status_ok();
}

status server_create_workers(struct server *server)
{
    unsigned count = (unsigned)server->settings->threads;
    if (count == 0)
        count = thread_processors();
    server->workers = calloc(count, sizeof *server->workers);
    server->loops = calloc(count + 1, sizeof *server->loops);
    if (server->workers == NULL || server->loops == NULL)
        return status_out_of_memory();
    while (server->worker_count < count)
        TRY(create_worker(server));
    server->loops[count] = http1_server_loop(server->http1);
    return status_ok();
}

/* On the thread of that loop. */
static void visit_connections(void *context, size_t loop, void *to,
                              void (*each)(void *to, struct grpc_connection *connection))
{
    const struct server *server = context;
    if (loop < server->worker_count)
        connection_group_visit(&server->workers[loop].connections, to, each);
    else if (rest_connection(server->rest) != NULL)
        each(to, rest_connection(server->rest));
}

void server_show_running(struct server *server)
{
    server->insight.running = (struct running_source){.loops = server->loops,
                                                      .count = server->worker_count + 1,
                                                      .context = server,
                                                      .connections = visit_connections,
                                                      .access = server->access,
                                                      .clock = server->clock};
}

/* One that is refused, in the log: every ten seconds at most. */
static void tell_refused(struct server *server, const struct address *peer)
{
    enum { TOLD_EVERY_US = 10 * 1000 * 1000 };
    char text[ADDRESS_TEXT_SIZE];
    int64_t now = clock_steady_us(server->clock);
    if (server->has_told_refused && now - server->refused_told_us < TOLD_EVERY_US) {
        server->refused_untold++;
        return;
    }
    address_format(peer, text);
    log_warn(server->log, "a connection is refused: there are as many as max-connections",
             LOG_STR("peer", text), LOG_INT("connections", atomic_load(&server->open)),
             LOG_INT("untold", server->refused_untold));
    server->has_told_refused = true;
    server->refused_told_us = now;
    server->refused_untold = 0;
}

static void refuse(struct server *server, int socket, const struct address *peer)
{
    metrics_add(server->metrics, METRIC_connections_refused_total, 1);
    close(socket);
    tell_refused(server, peer);
}

static void deal_out(void *context, int socket, const struct address *peer)
{
    struct server *server = context;
    size_t open = atomic_load(&server->open), most = server->settings->max_connections;
    size_t reserved = address_is_loopback(peer) ? LIMIT_RESERVED_CONNECTIONS : 0;
    if (open >= most + reserved) {
        refuse(server, socket, peer);
        return;
    }
    if (open >= most)
        metrics_add(server->metrics, METRIC_connections_reserved_total, 1);
    metrics_add(server->metrics, METRIC_connections_accepted_total, 1);
    struct worker *worker = &server->workers[server->next_worker++ % server->worker_count];
    connection_begin(&worker->connections, socket, peer, open >= most);
}

static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    loop_run(worker->connections.loop);
    return NULL;
}

status server_open_listener(struct server *server, const struct address *address)
{
    return listener_open(server->workers[0].connections.loop, address, deal_out, server,
                         &server->listener);
}

status server_start_workers(struct server *server)
{
    for (; server->started < server->worker_count; server->started++) {
        struct worker *worker = &server->workers[server->started];
        char name[32];
        snprintf(name, sizeof name, "loop-%u", server->started);
        TRY(thread_start(&worker->thread, name, run_worker, worker));
    }
    return status_ok();
}

void server_drain_workers(struct server *server)
{
    for (unsigned i = 0; i < server->started; i++)
        loop_post(server->workers[i].connections.loop, &server->workers[i].drain);
}

void server_close_workers(struct server *server)
{
    for (unsigned i = 0; i < server->started; i++)
        loop_post(server->workers[i].connections.loop, &server->workers[i].close);
}

void server_stop_workers(struct server *server)
{
    for (unsigned i = 0; i < server->started; i++) {
        loop_stop(server->workers[i].connections.loop);
        pthread_join(server->workers[i].thread, NULL);
    }
}

void server_free_workers(struct server *server)
{
    for (unsigned i = 0; i < server->worker_count; i++) {
        grpc_spares_destroy(server->workers[i].connections.spares);
        loop_destroy(server->workers[i].connections.loop);
    }
    free(server->workers);
    free(server->loops);
}
