/* trestle.insight.v1.Insight: what Trestle tells of itself and of its tables beyond Google's
 * interface. The console's pages and `trestle status` ask here; see insight.proto.
 *
 * Methods run on pool threads. A method that only lists what another module keeps is a file here,
 * by the name of what it lists. */
#ifndef TRESTLE_INTROSPECT_INSIGHT_H
#define TRESTLE_INTROSPECT_INSIGHT_H

#include "base/log.h"
#include "bigtable/services.h"
#include "introspect/repair_source.h"
#include "introspect/running.h"

struct advice_watch;
struct audit;
struct datastore;
struct history;
struct metrics;
struct settings;
struct slow_log;
struct stacks;

/* The context of the service. All of it outlives it. */
struct insight {
    struct bigtable *bigtable;
    struct datastore *datastore;
    const struct settings *settings;
    struct access *access; /* NULL: access control is off */
    struct audit *audit;   /* NULL: nothing is audited */
    struct slow_log *slow;
    struct metrics *metrics;
    struct history *history; /* set before calls come, as is the next */
    struct advice_watch *watch;
    struct log *log; /* whose level may be set */
    struct running_source running;
    struct repair_source repairs;
    struct stacks *stacks;
    void (*measure)(void *context); /* sets the gauges before they are read; any thread */
    void *measured;
};

struct grpc_service insight_service(struct insight *insight);

#endif
