/* SIGINT and SIGTERM as a request to stop, for jobs that go on until they are told to: blocked in
 * the process, and read from a signalfd on the job's loop. Before and after they end the process,
 * as ever. */
#ifndef TRESTLE_TRANSFER_STOP_SIGNALS_H
#define TRESTLE_TRANSFER_STOP_SIGNALS_H

#include "os/loop.h"

#include <signal.h>

/* `stop` is called on the loop's thread for each. It is not moved while it watches. */
struct stop_signals {
    struct loop *loop; /* NULL: it does not watch */
    void (*stop)(void *context);
    void *context;
    struct watch watch;
    sigset_t old_mask;
};

status stop_signals_watch(struct stop_signals *signals, struct loop *loop,
                          void (*stop)(void *context), void *context);
void stop_signals_end(struct stop_signals *signals); /* all zeroes is fine */

#endif
