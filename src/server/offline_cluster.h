/* A data directory opened as a server opens it, without a listener, for a command that writes to
 * it. Nothing is done unasked that can wait. */
#ifndef TRESTLE_SERVER_OFFLINE_CLUSTER_H
#define TRESTLE_SERVER_OFFLINE_CLUSTER_H

#include "base/clock.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "os/pool.h"
#include "store/store.h"

struct offline_cluster {
    struct pool *pool;
    struct cluster *cluster;
};

/* `name`: of its threads. `accepts_old_data`: see store_options; what the log has lost is done
 * without then, too. */
status offline_cluster_open(const char *directory, const char *name, struct clock *clock,
                            const struct log *log, bool accepts_old_data,
                            struct offline_cluster *out);
/* Opens it so that what damage has taken from the catalog is given up (cluster/lost_records.h), and
 * closes it again. */
status offline_cluster_put_right(const char *directory, const char *name, struct clock *clock,
                                 const struct log *log);
/* As a start with --salvage opens it: without what is lost. */
status offline_cluster_salvage(const char *directory, const char *name, struct clock *clock,
                               const struct log *log, struct offline_cluster *out);
void offline_cluster_close(const struct offline_cluster *offline);

/* How a command opens the store alone. What is given outlives the options. */
struct store_options offline_store_options(const char *directory, const struct log *log);

#endif
