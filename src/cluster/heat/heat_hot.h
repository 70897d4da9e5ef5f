/* The tablets that were hot of late: a list that is bounded. Private to cluster/. Any thread. */
#ifndef TRESTLE_CLUSTER_HEAT_HEAT_HOT_H
#define TRESTLE_CLUSTER_HEAT_HEAT_HOT_H

#include "base/list.h"
#include "cluster/heat/heat.h"

#include <pthread.h>

struct hot_list {
    pthread_mutex_t lock; /* guards the rest */
    struct list entries;  /* by rising id: the oldest first */
    size_t count;
    uint64_t newest_id; /* of the last entry there was */
    uint64_t last_id;   /* that was given out */
    size_t range_count; /* as it was when it was last asked for */
    bool has_changed;   /* since then */
};

void hot_list_init(struct hot_list *list);
void hot_list_free(struct hot_list *list);

/* An id greater than all before. */
uint64_t hot_list_new_id(struct hot_list *list);

/* Copies it, in place of the one that has its id, if there is one. Without memory it goes
 * unnoticed, and so it does if that one has been forgotten. */
void hot_list_put(struct hot_list *list, const struct hot_tablet *hot);

/* Forgets what ended before that, microseconds since 1970. */
void hot_list_forget(struct hot_list *list, int64_t before_us);

void hot_list_visit(struct hot_list *list,
                    bool (*visit)(void *context, const struct hot_tablet *hot), void *context);

size_t hot_list_count(struct hot_list *list);

/* How many ranges of keys they are: one that was hot several times counts once. */
size_t hot_list_range_count(struct hot_list *list);

#endif
