/* CopyRows: all rows of an instance's tables, for a peer that has none of them yet, and where it
 * goes on behind them. A call has a thread; at most COPIES_MOST run at a time, since each reads all
 * that there is. */
#ifndef TRESTLE_REPLICA_COPY_SERVICE_H
#define TRESTLE_REPLICA_COPY_SERVICE_H

#include "control/control.h"
#include "replica/link_rate.h"
#include "replica/peers.h"
#include "replica/placed.h"
#include "wire/grpc.h"

#include <stdatomic.h>

enum { COPIES_MOST = 2 };

/* The context of the handler, which outlives all calls. */
struct copy_service {
    struct cluster *cluster;
    struct control *control;
    struct peers *peers;
    struct placed *placed;
    struct link_rate *rate;
    atomic_size_t running;
};

void copy_service_handle(void *service, struct grpc_call *call, bytes request);

#endif
