/* The scrub: each table file is read from the disk once a period, to find bit rot before a request
 * needs the damaged data, or a backup is made without it. What is damaged goes out of service
 * (damage.h).
 *
 * A thread of its own, which takes a two-hundredth of a processor at most: after each piece it
 * rests for two hundred times what that took. */
#ifndef TRESTLE_CLUSTER_SCRUB_H
#define TRESTLE_CLUSTER_SCRUB_H

#include "base/status.h"

struct shard;
struct scrub;

/* `*out` stays NULL if the period is 0: nothing is scrubbed. */
status scrub_start(struct shard *shard, struct scrub **out);
void scrub_stop(struct scrub *scrub); /* NULL is fine */

#endif
