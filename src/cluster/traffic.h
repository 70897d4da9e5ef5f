/* How large tables are, and how much is read and written of them, for metrics.
 *
 * Requests count by tablet, as they do anyhow (tablet.h); each look sums up what a table's tablets
 * have now, and what those had that it has no longer. What a request counts for a tablet that was
 * split or merged meanwhile is lost.
 *
 * The LIMIT_TABLE_METRICS heaviest tables have series of their own, the others share one, "other".
 * A table weighs what it takes, and what was read and written of it in the last hour or so. Where
 * there is room a new one has its series from the first look, with all that it has counted. Once it
 * has its series it keeps them until it is deleted or another one weighs more than twice as much
 * and TRAFFIC_MARGIN_BYTES: so series do not come and go. What was counted under a name stays
 * there: no series ever falls, and all together are what was read and written since the start. */
#ifndef TRESTLE_CLUSTER_TRAFFIC_H
#define TRESTLE_CLUSTER_TRAFFIC_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum traffic_number {
    TRAFFIC_ROWS_READ,
    TRAFFIC_ROWS_WRITTEN,
    TRAFFIC_READ_BYTES,
    TRAFFIC_WRITTEN_BYTES,
    TRAFFIC_NUMBERS,
};

struct traffic_counts {
    uint64_t numbers[TRAFFIC_NUMBERS];
};

enum { TRAFFIC_MARGIN_BYTES = 1 << 20 };

/* A part of struct table. */
struct table_traffic {
    struct traffic_counts gone; /* of tablets that it has no longer; guarded by its map_lock */
    /* Guarded by the cluster's traffic.lock. */
    struct traffic_counts seen; /* up to the last look */
    struct traffic_counts own;  /* of these, what was counted under its name */
    uint64_t bytes;             /* when it was last measured */
    uint64_t log_bytes;         /* and of its change stream */
    uint64_t lately;            /* bytes read and written; what is old fades */
    bool is_named;
};

/* A part of struct cluster. */
struct cluster_traffic {
    pthread_mutex_t lock; /* taken before a table's map_lock */
    struct traffic_counts others;
    int64_t measured_us; /* by the steady clock; 0: never */
};

struct cluster;
struct tablet;

/* A tablet's counts are added. */
void traffic_add_tablet(struct traffic_counts *to, const struct tablet *tablet);

/* For maintenance: measures tables and chooses those with a name, if it is time to. */
void traffic_run(struct cluster *cluster);

/* Sets the metrics of tables. Any thread; does not wait for the disk. */
void traffic_measure(struct cluster *cluster);

/* Which are named: the rule, and at most `most`. */
void traffic_choose(struct table_traffic *const *tables, size_t count, size_t most);

/* What is known of a table's last hours after so much more time. */
uint64_t traffic_fade(uint64_t lately, int64_t passed_us);

#endif
