/* What is asked for rather than counted: before metrics are looked at, their gauges are set. */
#ifndef TRESTLE_SERVER_MEASURE_H
#define TRESTLE_SERVER_MEASURE_H

#include "backup/runner.h"
#include "bigtable/stream_readers.h"
#include "cluster/backup/backup.h"
#include "control/operations.h"
#include "datastore/datastore.h"
#include "introspect/slow_log.h"
#include "replica/peer_watch.h"
#include "replica/peers.h"
#include "server/place_watch.h"
#include "views/views.h"
#include "wire/grpc_server.h"

/* What is measured; all of it outlives the measuring. */
struct measured {
    struct metrics *metrics;
    struct cluster *cluster;
    struct stream_readers *stream_readers;
    struct views *views;
    struct control *control;
    struct whole_runner *whole_backups;
    struct slow_log *slow;
    struct backups *backups;
    struct place_watch *places;
    struct peers *peers;
    struct peer_watch *peer_watch;
    const struct grpc_server *grpc;
    struct pool *pool;
    struct pool *queries;
    struct pool *datastore;
    struct loop **loops;
    size_t loop_count;
    int64_t started_us; /* clock_wall_us */
};

/* Any thread; several may. `context` is the struct measured. */
void measure(void *context);

#endif
