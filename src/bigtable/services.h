/* The services of Bigtable's API over one cluster: tables of methods for wire/grpc.h.
 *
 * google.bigtable.v2.Bigtable, google.bigtable.admin.v2.BigtableTableAdmin, its sibling
 * BigtableInstanceAdmin, google.longrunning.Operations, google.cloud.location.Locations. Methods
 * that are not built answer UNIMPLEMENTED. */
#ifndef TRESTLE_BIGTABLE_SERVICES_H
#define TRESTLE_BIGTABLE_SERVICES_H

#include "access/access.h"
#include "bigtable/peers_hook.h"
#include "bigtable/query_room.h"
#include "bigtable/stream_readers.h"
#include "cluster/backup/backup.h"
#include "control/operations.h"
#include "wire/grpc.h"

#include <stdatomic.h>

/* Values of the header server-timing that are ready: see data_call.h. */
enum { BIGTABLE_READY_TIMINGS = 12 };

enum { BIGTABLE_KINDS = 5 }; /* of long-running operations */

/* The context of all services, which every handler sees. Outlives them. */
struct bigtable {
    struct cluster *cluster;
    struct metrics *metrics;
    struct backups *backups;
    struct control *control; /* lent */
    struct pool *queries;    /* threads that SQL runs on */
    unsigned query_threads;  /* how many */
    unsigned query_helpers;  /* of these, that may help with one query */
    struct plan_cache *plans;
    uint64_t query_memory; /* bytes that one query may keep */
    struct stream_readers stream_readers;
    _Atomic size_t paused_query_bytes; /* of queries that wait for their turn */
    struct request_room *values;       /* that ReadRows gets one by one; NULL: no bound */
    size_t largest_cell;               /* bytes, that there is memory for; with `values` */
    struct query_room query_room;      /* not used without `values` */
    struct views *views;               /* materialized ones */
    const char *hold_views; /* while this file is there they are not kept up; NULL: none is */
    struct backup_scheduler *backup_scheduler;
    struct backup_failures *backup_failures;
    bool backups_expire; /* else they stay behind their time, and can still be read */
    const char *zone_id; /* where the server is */
    bool auto_create;    /* see default_instance.h */
    bool gc_on_read;     /* hide from readers what a garbage-collection rule condemns */
    const struct bigtable_peers *peers; /* NULL: it can have none */
    struct access *access;              /* NULL: everybody may do everything */
    struct control_watcher policy_watcher;
    struct control_watcher profile_watcher;
    struct served_by *served_by;
    struct metadata *timings[BIGTABLE_READY_TIMINGS]; /* by data_call_ready_us */
};

struct bigtable_options {
    struct cluster *cluster;
    struct control
        *control; /* of the same cluster; closed between bigtable_stop and bigtable_free */
    struct metrics *metrics; /* may be NULL */
    struct backups *backups; /* of the same cluster; outlives the services */
    bool backups_expire;
    uint64_t query_memory;       /* bytes that one query may keep */
    unsigned query_threads;      /* queries that run at a time */
    struct request_room *values; /* for large values; outlives it. NULL: no bound */
    size_t max_message;          /* bytes; with `values` */
    const char *zone_id;         /* where the server is; outlives it */
    bool auto_create;
    bool gc_on_read;
    const char *hold_views;             /* see above; outlives it */
    const struct bigtable_peers *peers; /* outlives it; NULL: it can have none */
};

/* On failure bigtable_stop and bigtable_free are still due. */
status bigtable_init(struct bigtable *bigtable, const struct bigtable_options *options);

/* The kinds of its long-running operations, with it as their context. */
void bigtable_kinds(struct bigtable *bigtable, struct operation_kind out[BIGTABLE_KINDS]);

/* Begins what happens by itself, after operations_start and before any call: see
 * backup_scheduler.h. */
status bigtable_start(struct bigtable *bigtable);

/* Once a second, from one thread: looks at files. */
void bigtable_look(struct bigtable *bigtable);

/* Ends that, when no call is left. Operations may still run. All zeroes are fine. */
void bigtable_stop(struct bigtable *bigtable);
/* When no operation runs: the control plane is closed. All zeroes are fine. */
void bigtable_free(struct bigtable *bigtable);

/* Makes the stored policies count, those that are there and those that come. Before any call. */
void bigtable_enforce_policies(struct bigtable *bigtable, struct access *access);

/* The id of a cluster that no client named: of an instance that was never made. It is in the zone
 * of the server. */
#define BIGTABLE_CLUSTER_ID "trestle"

struct grpc_service bigtable_data_service(struct bigtable *bigtable);
struct grpc_service bigtable_table_admin_service(struct bigtable *bigtable);
struct grpc_service bigtable_instance_admin_service(struct bigtable *bigtable);
struct grpc_service bigtable_operations_service(struct bigtable *bigtable);
struct grpc_service bigtable_locations_service(struct bigtable *bigtable);

#endif
