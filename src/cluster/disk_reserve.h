/* Refuses writes while the disk has less free space than is kept in reserve, so that the store
 * itself never meets a full disk: what it has to write by itself, flushes and compactions, lives on
 * the reserve. Writes go on by themselves when there is space again. */
#ifndef TRESTLE_CLUSTER_DISK_RESERVE_H
#define TRESTLE_CLUSTER_DISK_RESERVE_H

#include <stdatomic.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/metrics.h"
#include "base/status.h"

struct disk_reserve {
    const char *directory;
    uint64_t reserve_bytes;
    struct clock *clock;
    struct metrics *metrics;
    struct condition *condition; /* told when writes are refused, and admitted again */
    atomic_llong asked_us;       /* when the disk was last asked; 0: never */
    _Atomic uint64_t missing_bytes;
    atomic_bool is_short;
};

/* OK, or RESOURCE_EXHAUSTED with RetryInfo. Asks the disk at most every 100 ms. Any thread; the
 * argument is a struct disk_reserve. */
status disk_reserve_admit(void *context);

/* Asks the disk as seldom, and notes what comes of it. Any thread. */
void disk_reserve_look(struct disk_reserve *reserve);

/* How many bytes had better be freed, so that writes need not be refused: what is missing to the
 * reserve and a quarter of it. 0: none. Asks the disk as seldom. Any thread. */
uint64_t disk_reserve_missing(struct disk_reserve *reserve);

#endif
