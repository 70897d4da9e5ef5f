/* The stream's log of one shard: what happened to the rows of tables that have a change stream, in
 * the order of commits, for readers that come later (docs/internals/streams.md).
 *
 * Invariants
 *  1. A record is in the same batch as the change that it tells of: both are there, or neither.
 *  2. Records lie in *segments*, keyspaces that are never compacted and go whole, the oldest first.
 *     One segment is open; from the commit that records a new one on, that one is.
 *  3. Sequences of a segment are all below those of the next.
 *  4. A reader holds nothing between two calls: no cursor, no snapshot. What is under its cursor
 *     stays until the call has ended.
 *
 * Threads: what is said to be the commit thread's is; the rest is any thread's, and may block. */
#ifndef TRESTLE_STREAM_LOG_H
#define TRESTLE_STREAM_LOG_H

#include "stream/record.h"
#include "tablet/commit.h"

struct stream_log;

struct stream_log_options {
    struct store *store;
    struct keyspace *system; /* keeps the directory of segments */
    struct clock *clock;
    const struct log *log;
    struct metrics *metrics; /* may be NULL */
    uint64_t segment_bytes;  /* when the next one begins; 0: 256 MiB */
    int64_t segment_us;      /* 0: an hour */
};

/* With the segments that the store has; none is made. */
status stream_log_open(const struct stream_log_options *options, struct stream_log **out);
void stream_log_close(struct stream_log *log); /* NULL is fine; after the queue */

/* --- on the commit thread: called by the cluster's observer, between `begin` and `written` --- */

/* A batch begins: may put a mark into it once a record comes. */
void stream_log_begin(struct stream_log *log, struct store_batch *batch);

/* Claims memory for a record. False: there is none. `list`: NULL if the change has none, and then
 * it is made of the change's fragment by `families` (row/schema.h). */
struct stream_append {
    enum stream_record_kind kind;
    uint64_t tablet;
    struct stream_position position;
    uint64_t version;
    bytes row_key;
    const struct change_list *list;
};
bool stream_log_prepare(struct stream_log *log, const struct stream_append *append);
/* Puts the record, and the pieces of what lies apart, into the batch. There must be an open segment
 * (stream_log_has_segment). */
void stream_log_append(struct stream_log *log, const struct stream_append *append,
                       struct store_batch *batch);
/* The batch is in the store, or is not: readers of what it logged are woken. */
void stream_log_written(struct stream_log *log, bool is_written);

/* A commit of the catalog that begins a segment (stream_log_begin_segment) is at its place. */
void stream_log_see_segment(struct stream_log *log, const struct commit *commit);

/* --- segments: one caller at a time, which may block --- */

bool stream_log_has_segment(const struct stream_log *log);
/* Whether the open one is full, or old, and has something. */
bool stream_log_wants_segment(struct stream_log *log);
/* Makes the keyspace `id`, new, the open segment, by a commit in the queue; waits for it. `batch`:
 * what else that is to record (the catalog's next id), or NULL. */
status stream_log_begin_segment(struct stream_log *log, struct commit_queue *commits, uint64_t id,
                                struct store_batch *batch);
/* Drops closed segments whose last commit is of before `before_us`, and then, while the log has
 * more than `most_bytes` (0: no bound), the oldest closed ones. `*evicted`: how many went for the
 * bound. */
status stream_log_truncate(struct stream_log *log, struct commit_queue *commits, int64_t before_us,
                           uint64_t most_bytes, size_t *evicted);

uint64_t stream_log_bytes(struct stream_log *log); /* about; a metric */
/* The least sequence that the log still has all records from; 0: from the beginning. */
uint64_t stream_log_oldest(struct stream_log *log);
/* Which keyspaces are segments: for whoever looks for orphans. */
bool stream_log_has_keyspace(const struct stream_log *log, uint64_t id);

/* A position before which all commits are of before `time_us`: where a reader of that time begins.
 * What it meets of before that time it passes over. */
status stream_log_find_time(struct stream_log *log, int64_t time_us, struct stream_position *out);

/* --- reading --- */

/* What is read: records of these tablets, of rows in [start, end of the last part), behind each
 * part's position, up to `through`. */
struct stream_query {
    const uint64_t *tablets;
    size_t tablet_count;
    bytes start;
    const struct stream_part *parts;
    size_t part_count;
    uint64_t through;  /* a sequence: all commits up to it are in the store */
    size_t most_bytes; /* of records to visit, about: at least one is */
};

/* Calls `visit` with record after record, by rising position, until it returns false or fails, or
 * `most_bytes` are reached. `*reached`: everything of the query up to there was visited; that is
 * {through, UINT32_MAX} when nothing is left. OUT_OF_RANGE if a part's position is before
 * stream_log_oldest. DATA_LOSS. Blocks for the disk. */
status stream_log_read(struct stream_log *log, const struct stream_query *query,
                       status (*visit)(void *context, const struct stream_record *record,
                                       bool *enough),
                       void *context, struct stream_position *reached);

/* Piece `piece` (from 1) of that record. Blocks. */
status stream_log_read_piece(struct stream_log *log, uint64_t tablet,
                             struct stream_position position, uint32_t piece, struct buffer *out);

/* --- waking --- */

/* Told once, when a record of one of the tablets has been written. In line until then, or until
 * taken out. */
struct stream_waiter {
    struct link link; /* private */
    uint64_t tablet;
    struct loop *loop;
    struct task task; /* posted to the loop */
};
void stream_log_wait(struct stream_log *log, struct stream_waiter *waiter);
/* False: it has been posted already, or is being. */
bool stream_log_forget(struct stream_log *log, struct stream_waiter *waiter);

#endif
