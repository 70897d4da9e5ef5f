/* The change streams that are being read now: of which tables, and how far they are behind. Of a
 * reader between two calls the server knows nothing: what it is at is in its token (streams.md).
 *
 * A reader is *behind* by the time up to which it has been given all there is: by the versions'
 * clock, as commit times are. One that has been given all, and waits, is not behind.
 *
 * Any thread. The lock is held for a walk over the readers, and no other is taken with it. */
#ifndef TRESTLE_BIGTABLE_STREAM_READERS_H
#define TRESTLE_BIGTABLE_STREAM_READERS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/status.h"

struct metrics;
struct table;

/* Zeroed, nobody reads. A part of struct bigtable. */
struct stream_readers {
    pthread_mutex_t lock;
    struct list readers; /* in the order in which they came */
    size_t count;
    atomic_int pieces; /* see below */
};

/* Whether a reader may keep a piece of the log, of 1 MiB, until its next read: a few may at a time.
 * Who may gives it back. No lock. */
bool stream_readers_may_keep(struct stream_readers *readers);
void stream_readers_give_back(struct stream_readers *readers);

/* A part of a call, which holds what this points to until it has left. */
struct stream_reader {
    struct link link; /* private */
    struct table *table;
    bytes start; /* its partition */
    bytes end;
    const char *profile;         /* the app profile; "" */
    int64_t since_us;            /* when the call began, by the wall clock */
    _Atomic int64_t position_us; /* it has been given all up to this commit time */
    atomic_bool has_all;         /* and there is nothing more */
    _Atomic int64_t records;     /* that it was given */
};

/* RESOURCE_EXHAUSTED: LIMIT_CHANGE_STREAMS are being read. */
status stream_readers_enter(struct stream_readers *readers, struct stream_reader *reader);
void stream_readers_leave(struct stream_readers *readers, struct stream_reader *reader);

/* A reader at a moment, for who looks. */
struct stream_reader_view {
    struct table *table; /* with a reference */
    bytes start;
    bytes end;
    const char *profile;
    int64_t since_us;
    int64_t position_us; /* as above; now, if it has all */
    int64_t behind_us;   /* at least 0 */
    bool has_all;
    int64_t records;
};

/* All that there are, in the order in which they came; memory from the arena. `*out` is to be given
 * back by stream_readers_release in any case. */
struct stream_reader_list {
    struct stream_reader_view *all;
    size_t count;
};
status stream_readers_look(struct stream_readers *readers, struct arena *arena,
                           struct stream_reader_list *out);
void stream_readers_release(struct stream_reader_list *list);

/* Sets the metrics of readers; by name of the LIMIT_TABLE_METRICS tables whose slowest reader is
 * most behind, of the others together. */
void stream_readers_measure(struct stream_readers *readers, struct metrics *metrics);

#endif
