/* What damage.c and damage_adopt.c share. */
#ifndef TRESTLE_CLUSTER_DAMAGE_PRIVATE_H
#define TRESTLE_CLUSTER_DAMAGE_PRIVATE_H

#include "cluster/cluster_private.h"

enum { DAMAGES_MAGIC = 0x64616d67 };

struct damage {
    struct damage *next;
    struct damage_record record; /* its texts are those below */
    char *from;
    char *to;
    char *what;
    bool is_stored;
};

struct damages {
    uint32_t magic;
    struct shard *shard;
    struct cluster *cluster; /* the shard's */
    pthread_mutex_t lock;
    struct damage *first; /* the oldest */
    size_t count;
    bool is_loaded;
    pthread_mutex_t repairing; /* a range is brought back: one at a time. Before `lock` */
};

/* With the lock held, as the next ones. NULL: there is no memory. */
struct damage *damages_add(struct damages *damages, const struct damage_record *record,
                           bool *is_new);
/* Refused requests are told in these words from now on. */
status damage_close_as(const struct damage *damage, struct keyspace *keyspace, const char *words);
/* The same, in words that name the table; logs them. */
void damage_close(const struct damages *damages, const struct damage *damage,
                  struct keyspace *keyspace);
/* By health, and metrics. */
void damages_show(const struct damages *damages);

#endif
