/* The parts of a server. server.c makes and ends them in their order; each function that makes one
 * is in the file that its section names. */
#ifndef TRESTLE_SERVER_SERVER_PRIVATE_H
#define TRESTLE_SERVER_SERVER_PRIVATE_H

#include "access/access.h"
#include "access/rules.h"
#include "backup/repairer.h"
#include "backup/service.h"
#include "bigtable/services.h"
#include "cluster/backup/backup.h"
#include "console/console.h"
#include "datastore/datastore.h"
#include "faults/faults.h"
#include "history/history.h"
#include "introspect/advice_watch.h"
#include "introspect/insight.h"
#include "introspect/slow_log.h"
#include "introspect/tracer.h"
#include "os/listener.h"
#include "os/pool.h"
#include "os/stacks.h"
#include "place/place.h"
#include "replica/peer_watch.h"
#include "replica/replication.h"
#include "replica/router.h"
#include "replica/schema_follow.h"
#include "replica/schema_service.h"
#include "replica/service.h"
#include "server/certificate.h"
#include "server/connection.h"
#include "server/large_work.h"
#include "server/measure.h"
#include "server/memory_guard.h"
#include "server/otlp.h"
#include "server/pages.h"
#include "server/reload.h"
#include "server/server.h"
#include "wire/browser_guard.h"
#include "wire/health.h"
#include "wire/reflection.h"
#include "wire/rest.h"

#include <pthread.h>
#include <stdatomic.h>

enum { API_SERVICES = 11, SERVICES = API_SERVICES + 3 };

/* An event loop, its thread, its connections. */
struct worker {
    pthread_t thread;
    struct connection_group connections;
    struct server *server;
    struct task drain;
    struct task close;
};

struct server {
    uint32_t magic;
    const struct settings *settings;
    struct log *log;
    struct clock *clock;

    struct stacks *stacks;
    struct metrics *metrics;
    struct tls_context *tls;
    struct reloadable tls_files; /* the certificate and its key */
    struct reloadable tls_client_ca;
    struct pool *pool;
    struct place *archive; /* NULL: none is made */
    struct cluster *cluster;
    struct metadata *old_data_headers; /* NULL: what is served is all true */
    struct backups *backups;
    struct place_watch *places;
    struct control *control;
    struct operation_kind kinds[BIGTABLE_KINDS + DATASTORE_KINDS_MOST];
    struct bigtable bigtable;
    struct datastore datastore;
    struct slow_log *slow;
    struct otlp *otlp; /* both NULL: nothing is traced */
    struct tracer *tracer;
    struct insight insight;
    struct advice_watch *advice;
    struct history *history;
    struct whole_runner *whole_backups;
    struct whole_repairer *whole_repairs;
    struct backup_service backup_service;
    struct peers *peers;
    struct bigtable_peers peers_hook; /* of the services */
    struct replication *copying;      /* of the peers' changes */
    struct peer_watch peer_watch;
    struct router *peer_router; /* which of them answers a call */
    struct schema_service *schema_service;
    struct schema_follow *schema_follow;
    struct replica_service replication;
    struct grpc_service apis[API_SERVICES];
    struct health *health;
    struct reflection *reflection;
    const struct grpc_service *services[SERVICES]; /* of the APIs, then the others */
    struct access *access;                         /* NULL: off */
    struct audit *audit;                           /* NULL: with access control off and no file */
    struct rule_table rules; /* what the audit log goes by with access control off */
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
    struct access_peer *rest_peer;
    struct rest *rest;
    struct console *console;
    struct task close_rest;
    atomic_bool rest_is_closed;
    struct worker *workers;
    struct loop **loops; /* theirs, then that of HTTP/1.1 */
    unsigned worker_count;
    unsigned started; /* workers whose thread runs */
    struct listener *listener;

    /* The first loop's: */
    unsigned next_worker;
    bool has_told_refused; /* connections, to the log */
    int64_t refused_told_us;
    int64_t refused_untold;

    atomic_size_t open;
    struct memory_guard memory;
    struct large_rooms rooms; /* with a bound on memory */
};

/* --- server_parts.c --- */

/* INVALID_ARGUMENT for an address off loopback without TLS and access control. */
status server_check_exposure(const struct settings *settings, const struct address *address);
/* The files that the settings name. */
struct tls_server_files server_tls_files(const struct settings *settings);
status server_create_tls(struct server *server);
/* Whether the certificate is at its end. */
void server_look_at_tls(struct server *server);
status server_open_cluster(struct server *server);
status server_open_backups(struct server *server);
/* Where they are: beside the data unless the settings say otherwise. A string, in `out`; NULL
 * without memory. */
const char *server_backup_directory(const struct settings *settings, struct buffer *out);
/* The backups that the server makes by itself. */
struct whole_schedule_wish server_backup_schedules(const struct settings *settings);
/* How much space is left where backups and the archive go. */
status server_watch_places(struct server *server);
/* Sets those metrics that a start cannot know, and that are remembered: before anything else does.
 */
void server_recall_metrics(struct server *server);
/* Begins to remember metrics, when all that is measured is there. */
status server_open_history(struct server *server);
/* The metric of which program this is. */
void server_tell_build(struct server *server);

/* --- server_services.c --- */

status server_create_services(struct server *server);

/* Takes up the work that the last run left. */
status server_start_services(struct server *server);

/* --- server_access.c --- */

status server_create_guard(struct server *server);
status server_create_access(struct server *server);

/* --- server_calls.c --- */

/* Before anything else is touched: most of what may be wrong with faults is wrong there. */
status server_read_fault_rules(struct server *server);
status server_create_faults(struct server *server);
status server_create_rpc_metrics(struct server *server);
status server_create_tracer(struct server *server);
status server_create_grpc(struct server *server);
status server_create_http(struct server *server);

/* --- server_workers.c --- */

/* Lets requests see what runs. After server_create_http. */
void server_show_running(struct server *server);

status server_create_workers(struct server *server);
status server_open_listener(struct server *server, const struct address *address);
status server_start_workers(struct server *server);

/* No more connections; those that there are end when their calls have. Does not wait. */
void server_drain_workers(struct server *server);

/* Connections end now, and their calls are cancelled. Does not wait. */
void server_close_workers(struct server *server);

/* When no connection and no call is left: ends the threads. */
void server_stop_workers(struct server *server);

/* After all threads that post to a loop have ended. */
void server_free_workers(struct server *server);

#endif
