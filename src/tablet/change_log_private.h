/* A change log's insides: for change_log.c and change_log_events.c. */
#ifndef TRESTLE_TABLET_CHANGE_LOG_PRIVATE_H
#define TRESTLE_TABLET_CHANGE_LOG_PRIVATE_H

#include "tablet/change_log.h"
#include "tablet/event.h"

#include <pthread.h>
#include <stdatomic.h>

#define CHANGE_LOG_MAGIC 0x63686c67u

/* Events of the batch under way that are not in it yet: the commit thread's alone. */
struct pending_events {
    struct buffer bytes;
    struct event_writer writer;
    uint64_t from; /* the sequence of the first; 0: there is none */
    struct {       /* as it was before the last of them */
        size_t size;
        struct event_writer writer;
        uint64_t from;
    } before;
};

struct change_log {
    uint32_t magic;
    struct change_log_options options;
    struct keyspace *keyspace;

    pthread_mutex_t lock;
    struct change_log_state state; /* changed by the commit thread alone, under the lock */
    atomic_ullong waiting_bytes;   /* the same, without it */
    atomic_ullong newest;

    /* The commit thread's. */
    struct change_log_state before; /* the batch under way */
    uint64_t waiting_before;
    uint64_t added_bytes;
    struct pending_events pending;
};

/* Before a batch is filled. Turns the log off, in that batch, if too much waits; true: it did. */
bool change_log_begin_batch(struct change_log *log, struct store_batch *batch);
void change_log_append(struct change_log *log, struct store_batch *batch, uint64_t first_sequence,
                       bytes entry);
/* `last_sequence`: of the newest event that was appended; 0: none was. */
void change_log_end_batch(struct change_log *log, bool is_written, uint64_t last_sequence);

#endif
