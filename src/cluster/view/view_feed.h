/* A source's feed: which of its rows were changed, in the order of commits, for its views. Keys
 * alone: what a row has become is read from the table.
 *
 * It lies in the log of change streams (stream/log.h), under the id of the table, which is no
 * tablet's. Splits and merges do not touch it, and no change stream shows it. What is logged of a
 * commit is in the same batch.
 *
 * Positions are those of change streams: everything up to one has been seen. */
#ifndef TRESTLE_CLUSTER_VIEW_VIEW_FEED_H
#define TRESTLE_CLUSTER_VIEW_VIEW_FEED_H

#include "cluster/cluster.h"
#include "stream/log.h"

struct shard;

/* Rows of the source that a commit has changed, or may have. */
struct view_change {
    bytes from; /* the row's key; of a range the first key, which may be empty */
    bytes to;   /* of a range: exclusive; empty: no bound */
    bool is_range;
    bool is_drop; /* of a range: none of the rows that were there before it is there (DropRowRange);
                     else they may all be others than they were */
    uint64_t version; /* of the commit: version_time_us says when it was */
    struct stream_position position;
};

/* Where the feed is now: all that is committed from now on is behind it, and a read of the source
 * that begins now sees all up to there. Of a source that is viewed. */
status view_feed_end(struct table *source, struct stream_position *out);

/* Calls `visit` with change after change, by rising position, behind `after`, until it fails, says
 * that it has enough, which that change was the last of, or about `most_bytes` were looked at; one
 * at least is. `*reached`, set in any case: everything up to there was visited. `*is_end`: that is
 * all that was committed when it began. OUT_OF_RANGE: the log has lost what is behind `after`, all
 * of the source has to be looked at again. DATA_LOSS: likewise. May block for the disk. */
status view_feed_read(struct table *source, struct stream_position after, size_t most_bytes,
                      status (*visit)(void *context, const struct view_change *change,
                                      bool *enough),
                      void *context, struct stream_position *reached, bool *is_end);

/* Whether something may be behind the position. Cheap, any thread. */
bool view_feed_may_have(struct table *source, struct stream_position after);

/* When the first change behind the position was committed, microseconds since 1970 by the versions'
 * clock; INT64_MAX: there is none. Errors as view_feed_read's. May block for the disk. */
status view_feed_first_us(struct table *source, struct stream_position after, int64_t *out);

/* The log is kept for this view from the sequence on, in memory alone: all of it until that is
 * first said after a start; UINT64_MAX: nothing is needed. --change-log-bytes and the reserve of
 * the disk take it all the same. Any thread. */
void view_feed_keep(struct table *view, uint64_t from_sequence);

/* Leaves a range of all rows: any of them may be another one than it was, without a commit that
 * said so. Of a source that is viewed. Blocks. */
status view_feed_tell_all(struct table *source);

/* For upkeep (stream/stream_upkeep.h): from which sequence on some view of the shard keeps the log;
 * UINT64_MAX: none does. */
uint64_t view_feeds_kept_from(struct shard *shard);

/* Told once when something of the source has been logged: `wake` is called on the commit thread,
 * under the lock of the list of those who wait. So it must be quick, call none of these functions,
 * and take no lock with which anybody calls them. In line until then, or until taken out. What was
 * logged before it was in line it is not told of: so whoever waits gets into line, and then asks
 * view_feed_may_have once more before it rests. */
struct view_feed_waiter {
    struct stream_waiter waiter; /* private */
    void (*wake)(struct view_feed_waiter *waiter);
};
void view_feed_wait(struct table *source, struct view_feed_waiter *waiter);
/* False: it has been told, and `wake` has returned. */
bool view_feed_forget(struct table *source, struct view_feed_waiter *waiter);

#endif
