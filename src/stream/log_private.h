/* What the files of the stream's log share.
 *
 * `lock` guards the list of segments and who reads them. The commit thread takes it where a segment
 * begins, and otherwise looks at `open`, which it alone changes. */
#ifndef TRESTLE_STREAM_LOG_PRIVATE_H
#define TRESTLE_STREAM_LOG_PRIVATE_H

#include "stream/eras.h"
#include "stream/feed.h"
#include "stream/log.h"

#include <pthread.h>
#include <stdatomic.h>

enum stream_magic { STREAM_LOG_MAGIC = 0x53744c67 };

enum {
    WAITER_BUCKETS = 256,
    MOST_TOUCHED = 64, /* tablets that are told apart in one batch */
};

struct segment {
    uint64_t number;
    struct keyspace *keyspace; /* NULL: it is not there */
    uint64_t keyspace_id;
    uint64_t from;
    int64_t from_us;
    atomic_bool has_any;
    atomic_ullong written; /* bytes of keys and values: since the log was opened, and what was in
                              no table then */
    unsigned readers;      /* under the log's lock */
};

/* Of commits from here on the log has all that it is to have. */
struct log_start {
    uint64_t sequence; /* stream_log_oldest */
    int64_t time_us;   /* stream_log_since */
};

/* A record that is prepared. */
struct prepared {
    struct stream_append append;
    size_t at; /* of its value among `values` */
    size_t size;
    bool has_mark;
};

/* What the batch has of a feed, and has not put. */
struct feed_page {
    struct stream_feed *feed;
    struct buffer values;
    size_t settled; /* bytes of commits that are in the batch; the rest is the present one's */
    struct stream_position settled_last;
    struct stream_position last; /* of the entries */
    uint64_t logged;             /* the newest sequence of the batch; 0: none */
};

struct stream_log {
    uint32_t magic;
    struct stream_log_options options;
    struct stream_eras eras; /* does not change */

    pthread_mutex_t lock;      /* of what follows */
    pthread_cond_t left;       /* a reader has left */
    struct segment **segments; /* by rising number */
    size_t count;
    size_t capacity;
    struct log_start start;
    struct beginning *beginning;

    _Atomic(struct segment *) open; /* NULL: none */
    atomic_ullong newest;
    atomic_ullong written; /* stream_log_written_bytes */
    atomic_bool has_evicted;

    /* The commit thread's. */
    struct segment *before; /* the batch under way has begun a segment: the one before it */
    bool has_begun;
    struct log_start start_before;
    struct buffer values;
    struct prepared *prepared; /* of the present commit */
    size_t prepared_count;
    size_t prepared_capacity;
    int64_t marked_us;
    uint64_t last;           /* sequence that the batch has logged; 0: none */
    struct feed_page *pages; /* `page_count` of the batch; of all the memory is kept */
    size_t page_count;
    size_t page_capacity;
    uint64_t touched[MOST_TOUCHED];
    size_t touched_count;
    bool has_touched_more;

    /* waiters.c */
    atomic_size_t waiting;
    pthread_mutex_t waiting_lock;
    struct list waiters[WAITER_BUCKETS];
};

/* The segments that there are, held: they stay until segments_release. Memory: the caller's, by
 * `free`. NULL without memory. */
struct held_segments {
    struct segment **all;
    size_t count;
    struct log_start start;
};
bool segments_hold(struct stream_log *log, struct held_segments *out);
void segments_release(struct stream_log *log, struct held_segments *held);

/* Takes the oldest segment, which is not the last, out of the list, and waits for its readers. The
 * caller frees it. */
struct segment *segments_take_oldest(struct stream_log *log);

/* Bytes of table files, and of what was logged and is in none; 0 if the keyspace is not there. The
 * segment is held, or its keyspace stays for another reason. */
uint64_t segment_bytes(const struct segment *segment);

/* OUT_OF_RANGE in words. */
status log_start_refuse(const struct log_start *start);
/* The same unless all behind the position is there. */
status log_start_check(struct stream_position after, const struct log_start *start);

/* Whether segment `i` may have something behind the position, up to the sequence. */
bool segments_may_have(const struct held_segments *held, size_t i, struct stream_position after,
                       uint64_t through);

/* On the commit thread: so many bytes are in the batch, for the open segment. */
void log_count_appended(struct stream_log *log, uint64_t bytes);

/* feed.c, on the commit thread: what of the present commit was prepared is taken back, or is the
 * batch's; the batch is in the store, or is not. */
void feeds_cancel(struct stream_log *log);
void feeds_settle(struct stream_log *log, struct store_batch *batch);
void feeds_written(struct stream_log *log, bool is_written);
void feeds_free(struct stream_log *log);

/* On the commit thread: the batch's segment counts, or does not. */
void segments_written(struct stream_log *log, bool is_written);

void waiters_init(struct stream_log *log);
void waiters_destroy(struct stream_log *log);
/* On the commit thread, when all that the batch has touched is in the store. */
void waiters_wake_touched(struct stream_log *log);

#endif
