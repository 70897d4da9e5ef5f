/* The services of Datastore's API over one cluster: tables of methods for wire/grpc.h.
 *
 * google.datastore.v1.Datastore, google.datastore.admin.v1.DatastoreAdmin, and of
 * google.firestore.admin.v1.FirestoreAdmin the methods on indexes and fields, and the list of
 * databases. Methods that are not built answer UNIMPLEMENTED. How a database lies in a table:
 * docs/internals/datastore-layout.md.
 */
#ifndef TRESTLE_DATASTORE_DATASTORE_H
#define TRESTLE_DATASTORE_DATASTORE_H

#include "base/metrics.h"
#include "cluster/cluster.h"
#include "control/operations.h"
#include "os/pool.h"
#include "wire/grpc.h"

#include <pthread.h>

/* The context of both services, which every handler sees. Outlives them. */
struct datastore {
    struct cluster *cluster;
    struct control *control; /* operations.h is what is used of it */
    struct metrics *metrics;
    struct clock *clock;
    struct pool
        *pool; /* its own threads: one that waits for entities holds up none of the cluster's */
    pthread_mutex_t databases_lock;
    struct ds_open_database *databases; /* database.h */
    unsigned database_count;
    struct ds_transactions *transactions; /* transaction.h */
    struct ds_range_locks *range_locks;   /* of pessimistic transactions; NULL: there are none */
    struct ds_background *background;     /* background_work.h */
    struct ds_usage *usage;               /* usage.h; NULL: nothing is counted */
    const char *export_directory;         /* see datastore_options */
};

struct datastore_options {
    struct cluster *cluster;
    struct control *control; /* of the same cluster */
    struct metrics *metrics;
    unsigned threads; /* requests that run at a time; at least 1 */
    bool is_pessimistic;
    int64_t transaction_bytes;      /* of what transactions have read, in all */
    int64_t statistics_interval_us; /* between two counts of a database; 0: none */
    int64_t ttl_interval_us;        /* between two looks for what has expired; 0: none */
    bool counts_usage;              /* whether what clients do is counted, for the advisor */
    const char *export_directory;   /* where buckets for exports are; NULL: none. Outlives it */
};

/* Must be freed whether it succeeds or not. */
status datastore_init(struct datastore *datastore, const struct datastore_options *options);

/* The kinds of its long-running operations, with it as their context; how many they are. */
enum { DATASTORE_KINDS_MOST = 8 };
size_t datastore_kinds(struct datastore *datastore, struct operation_kind *out);

/* When no call is left: nothing begins in it by itself any more. Before the control plane is
 * closed, which its background jobs ask. All zeroes is fine. */
void datastore_rest(struct datastore *datastore);
/* When no call is left, and no operation runs: the control plane is closed. Before the cluster is.
 * All zeroes is fine. */
void datastore_free(struct datastore *datastore);

struct grpc_service datastore_service(struct datastore *datastore);
struct grpc_service datastore_admin_service(struct datastore *datastore);
struct grpc_service datastore_firestore_service(struct datastore *datastore);

#endif
