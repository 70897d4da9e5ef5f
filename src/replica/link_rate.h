/* How fast changes and copies go to each other cluster, of a server whose links are not to be
 * filled by them: so many bytes a second to each, whatever it has asked for, over all its calls.
 *
 * What was sent is paid for afterwards: until its time has passed nothing more goes there. So a
 * change of any size goes as a whole, and over any while that is longer than its time no more goes
 * than is let. Nothing is saved up while nothing goes.
 *
 * Threads: any. */
#ifndef TRESTLE_REPLICA_LINK_RATE_H
#define TRESTLE_REPLICA_LINK_RATE_H

#include "base/clock.h"
#include "tablet/version.h"

#include <pthread.h>
#include <stddef.h>

struct link_rate {
    uint64_t bytes_per_second; /* 0: no bound; does not change */
    struct clock *clock;
    pthread_mutex_t lock;
    int64_t free_us[VERSION_CLUSTERS]; /* `lock`: from when on, by the steady clock */
};

void link_rate_init(struct link_rate *rate, uint64_t bytes_per_second, struct clock *clock);
void link_rate_destroy(struct link_rate *rate);

/* How many bytes one message is to have, about, if it may have so many: no more than go in a tenth
 * of a second, but some. */
size_t link_rate_piece(const struct link_rate *rate, size_t most);

/* Microseconds until something may go to the cluster of that number (below VERSION_CLUSTERS); 0:
 * now. */
int64_t link_rate_wait_us(struct link_rate *rate, unsigned number);
/* So many bytes have been sent to it. */
void link_rate_charge(struct link_rate *rate, unsigned number, size_t bytes);

#endif
