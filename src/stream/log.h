/* The stream's log of one shard: what happened to the rows of tables that have a change stream, in
 * the order of commits, for readers that come later (bytes: docs/internals/format.md, "Change
 * streams").
 *
 * Invariants
 *  1. A record is in the same batch as the change that it tells of: both are there, or neither.
 *  2. Records lie in *segments*, keyspaces that are logs (store.h): they are never compacted and go
 *     whole, the oldest first: when they are too old, or the log too large. One segment is open;
 *     from the commit that records a new one on, that one is.
 *  3. Sequences of a segment are all below those of the next.
 *  4. A reader holds nothing between two calls: no cursor, no snapshot. What is under its cursor
 *     stays until the call has ended.
 *  5. A segment whose keyspace is not there (a salvage has lost it) ends what can be read: the log
 *     goes from the next one on.
 *
 * Threads: what is said to be the commit thread's is; the rest is any thread's, and may block. */
#ifndef TRESTLE_STREAM_LOG_H
#define TRESTLE_STREAM_LOG_H

#include "stream/record.h"
#include "tablet/commit.h"

struct stream_log;

enum { STREAM_SEGMENT_BYTES = 256 << 20 };

struct stream_log_options {
    struct store *store;
    struct keyspace *system; /* keeps the directory of segments (segment_records.h) */
    struct clock *clock;
    const struct log *log;
    uint64_t segment_bytes; /* when the next one begins; 0: STREAM_SEGMENT_BYTES */
    int64_t segment_us;     /* 0: an hour */
    /* Told when a segment's keyspace has been dropped: what is remembered of it may go. May be
     * NULL. */
    void (*dropped)(void *context, uint64_t keyspace);
    void *context;
};

/* With the segments that the store has; none is made. DATA_LOSS if their directory does not parse.
 */
status stream_log_open(const struct stream_log_options *options, struct stream_log **out);
void stream_log_close(struct stream_log *log); /* NULL is fine; after the queue, without waiters */

/* --- on the commit thread: called by the cluster's observer, between `begin` and `written`. Of a
 * commit each row is prepared, and then all are appended, or cancelled --- */

/* A batch begins. */
void stream_log_begin(struct stream_log *log);

struct stream_append {
    enum stream_record_kind kind;
    uint64_t tablet;
    struct stream_position position;
    uint64_t version;
    bytes row_key;
    const struct change_list *list; /* not NULL; stays until it is appended */
};
/* Claims memory for a record. False: there is none, and nothing is prepared of that one. */
bool stream_log_prepare(struct stream_log *log, const struct stream_append *append);
/* Takes back what of the present commit was prepared. */
void stream_log_cancel(struct stream_log *log);
/* Calls `visit` with what the records that were prepared put into the batch, in order, until it
 * fails: for the change log (change_log_options.visit_beside), whose event is to have it. */
status stream_log_visit_prepared(void *log,
                                 status (*visit)(void *context, const struct store_change *change),
                                 void *context);
/* Puts what was prepared into the batch: records, and the pieces of what lies apart; of feeds
 * (feed.h) it is the batch's from here on. If there is any there must be an open segment
 * (stream_log_has_segment). */
void stream_log_append(struct stream_log *log, struct store_batch *batch);
/* The batch is in the store, or is not: readers of what it logged are woken. */
void stream_log_written(struct stream_log *log, bool is_written);

/* A commit of the catalog is at its place: if it begins a segment (stream_log_begin_segment), that
 * one is open from here on, and what commits have left in feeds so far is put into the one before.
 * Of all others nothing follows. */
void stream_log_see_segment(struct stream_log *log, const struct commit *commit,
                            struct store_batch *batch);

/* --- tokens --- */

/* What a token is to say of the server (eras.h). */
uint64_t stream_log_era(const struct stream_log *log);
/* Whether a token of any era stands at a place of this log: stream_eras_check. */
status stream_log_check_era(const struct stream_log *log, const struct stream_token *token);

/* --- segments: one caller at a time, which may block --- */

/* Cheap; any thread. */
bool stream_log_has_segment(const struct stream_log *log);
/* Whether the open one is full, or old by the wall clock, and has something. */
bool stream_log_wants_segment(struct stream_log *log);
/* Makes the keyspace `id`, new, the open segment, by a commit in the queue; waits for it. `batch`:
 * what else that is to record (the catalog's next id), or NULL. If it fails there is no such
 * keyspace, or, if the store is fenced, one that no record may name. */
status stream_log_begin_segment(struct stream_log *log, struct commit_queue *commits, uint64_t id,
                                struct store_batch *batch);

/* What went though nobody had said that it was too old. */
struct stream_evicted {
    size_t segments;
    uint64_t bytes;
};
struct stream_bounds {
    int64_t before_us;   /* what is of before that is too old */
    uint64_t keep_from;  /* but it is kept from this sequence on; UINT64_MAX: it need not be */
    uint64_t most_bytes; /* what the log may have; UINT64_MAX: no bound */
};
/* Drops closed segments whose last commit is too old and need not be kept, and then, while the log
 * has more than it may, the oldest closed ones: evicts them. That one is gone is durable before it
 * goes. `*evicted` is set in any case. Waits for those who read there. */
status stream_log_truncate(struct stream_log *log, struct commit_queue *commits,
                           const struct stream_bounds *bounds, struct stream_evicted *evicted);

/* Whether some were since it was opened. Any thread. */
bool stream_log_has_evicted(const struct stream_log *log);

/* The log's size: table files, and what has been logged since it was opened and is in no file yet.
 */
uint64_t stream_log_bytes(struct stream_log *log);
size_t stream_log_segments(struct stream_log *log);
/* What it has of these tablets, about. Where they are many, and it has many segments, of some of
 * these alone. May read indexes of tables from the disk. */
uint64_t stream_log_tablets_bytes(struct stream_log *log, const uint64_t *tablets, size_t count);
/* Bytes of keys and values that were logged since it was opened. Any thread. */
uint64_t stream_log_written_bytes(const struct stream_log *log);

/* The least sequence that the log has all records from; UINT64_MAX: it has no segment. */
uint64_t stream_log_oldest(struct stream_log *log);
/* Its time: of commits before it the log has none, of those from then on all. INT64_MIN: it has no
 * segment. */
int64_t stream_log_since(struct stream_log *log);

/* Whether the keyspace is a segment: one that its directory names. */
bool stream_log_has_keyspace(struct stream_log *log, uint64_t id);

/* A position before which all commits are of before `time_us`: where a reader of that time begins.
 * What it meets of before that time it passes over. OUT_OF_RANGE if that is before
 * stream_log_since, in words that say that time; UNAVAILABLE without a segment. */
status stream_log_find_time(struct stream_log *log, int64_t time_us, struct stream_position *out);

/* --- reading --- */

/* All records up to this sequence are in the store; 0: none was written since the log was opened.
 * A reader that was woken reads through this, or commit_applied if that is greater. */
uint64_t stream_log_newest(const struct stream_log *log);

/* What is read: records of these tablets, of rows in [start, end of the last part), behind each
 * part's position, up to `through`. */
struct stream_query {
    const uint64_t *tablets; /* none twice */
    size_t tablet_count;
    bytes start;
    const struct stream_part *parts; /* one at least */
    size_t part_count;
    uint64_t through;  /* a sequence: all commits up to it are in the store */
    size_t most_bytes; /* of records that are looked at, about: at least one is */
};

/* Calls `visit` with record after record, by rising position, until it says that it has enough,
 * which that record was the last of, or fails, or `most_bytes` have been looked at. `*reached`, set
 * in any case: everything of the query up to there was visited; that is {through, UINT32_MAX} when
 * nothing is left. OUT_OF_RANGE if a part's position is before stream_log_oldest, in words that say
 * stream_log_since. DATA_LOSS.
 * Blocks for the disk. */
status stream_log_read(struct stream_log *log, const struct stream_query *query,
                       status (*visit)(void *context, const struct stream_record *record,
                                       bool *enough),
                       void *context, struct stream_position *reached);

/* Appends piece `piece` (from 1) of that record. OUT_OF_RANGE if the log has it no more. Blocks. */
status stream_log_read_piece(struct stream_log *log, uint64_t tablet,
                             struct stream_position position, uint32_t piece, struct buffer *out);

/* --- waking --- */

/* Told once, when a record of that tablet has been written. In line until then, or until taken out.
 * What was written before it was in line it is not told of: so whoever waits gets into line, and
 * then reads once more before it rests. */
struct stream_waiter {
    struct link link;  /* private */
    uint64_t tablet;   /* or a feed */
    struct loop *loop; /* NULL: the task is run where it is woken, under the lock of this list:
                          quickly, and without a call of these functions */
    struct task task;  /* posted to the loop */
};
void stream_log_wait(struct stream_log *log, struct stream_waiter *waiter);
/* False: it has been posted already, or, without a loop, has run. */
bool stream_log_forget(struct stream_log *log, struct stream_waiter *waiter);
/* As if a record of the tablet had been written: it was split, merged, or its stream is off. */
void stream_log_wake(struct stream_log *log, uint64_t tablet);

#endif
