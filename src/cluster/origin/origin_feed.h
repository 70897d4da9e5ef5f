/* The origin feed of a shard: what clients of this cluster have changed in its rows, whole, in the
 * order of commits, for the other clusters that are to have it. It is off until somebody begins it.
 *
 * It lies in the log of change streams (stream/log.h), in the batch of the change that it tells of,
 * under an id of its own: so a power cut takes both or neither, segments go as wholes when nobody
 * keeps them, and no change stream, view or archive sees it. Positions are those of change streams:
 * everything up to one has been seen.
 *
 * Versions say which of two changes counts for more, here and wherever it is applied
 * (foreign_rows.h); they need not rise along the feed. */
#ifndef TRESTLE_CLUSTER_ORIGIN_ORIGIN_FEED_H
#define TRESTLE_CLUSTER_ORIGIN_ORIGIN_FEED_H

#include "cluster/cluster.h"
#include "stream/log.h"
#include "tablet/event.h"

struct shard;

/* What one commit did to a row, or to a range of rows. Slices are the reader's for as long as the
 * visit lasts. */
struct origin_change {
    uint64_t table;             /* its id in this cluster */
    bytes from;                 /* the row's key; of a range the first key, which may be empty */
    bytes to;                   /* of a range: exclusive; empty: no bound */
    bool is_drop;               /* a range: its rows of before the version are gone */
    struct event_change change; /* of a row: the fragment, with its version, and big cells */
    bytes encoded;              /* the same, for event_change_read elsewhere */
    uint64_t version;
    struct stream_position position;
};

/* From its return on all that is committed is in the feeds of all shards, until they are ended,
 * over starts as well; fine if they have begun. Blocks. */
status origin_feeds_begin(struct cluster *cluster);
/* Nothing is in them from its return on, and nothing is kept for them. Blocks. */
status origin_feeds_end(struct cluster *cluster);
/* At a start, once there are queues: goes on with those that had begun. */
status origin_feeds_resume(struct cluster *cluster);
bool origin_feed_is_on(const struct shard *shard); /* any thread */

/* The cluster's home, the only shard that others follow; and up to which sequence all of its
 * commits can be read. Any thread. */
struct shard *origin_shard(struct cluster *cluster);
uint64_t origin_feed_logged(const struct shard *shard);

/* Where the feed is now: all that is committed from now on is behind it. Blocks. */
status origin_feed_end(struct shard *shard, struct stream_position *out);

/* Calls `visit` with change after change, by rising position, behind `after` (of a sequence 0: from
 * the feed's beginning on), until it fails, says
 * that it has enough, which that change was the last of, or about `most_bytes` were looked at; one
 * at least is. `*reached`, set in any case: everything up to there was visited. `*is_end`: that is
 * all that was committed when it began. OUT_OF_RANGE: the log has lost what is behind `after`.
 * DATA_LOSS. May block for the disk. */
status origin_feed_read(struct shard *shard, struct stream_position after, size_t most_bytes,
                        status (*visit)(void *context, const struct origin_change *change,
                                        bool *enough),
                        void *context, struct stream_position *reached, bool *is_end);

/* Bytes of it behind the position, as it is kept, estimated; of a sequence 0: all of it. Looks at
 * indexes of table files. Any thread. */
uint64_t origin_feed_bytes(struct shard *shard, struct stream_position after);

/* Whether something may be behind the position. Cheap, any thread. */
bool origin_feed_may_have(struct shard *shard, struct stream_position after);

/* What is known to be all of it: whatever is committed behind the sequence has a greater version
 * than this. The sequence may be of a commit that is still on its way: shard_logged says when it
 * has come. Any thread. */
struct origin_complete {
    uint64_t sequence;
    uint64_t version;
};
struct origin_complete origin_feed_complete(struct shard *shard);

/* Told once, when something has been put into the feed: as stream_log_wait, of which only `loop`
 * and `task` are the caller's. False of the second: it has been told. */
void origin_feed_wait(struct shard *shard, struct stream_waiter *waiter);
bool origin_feed_forget(struct shard *shard, struct stream_waiter *waiter);

/* The log is kept from the sequence on, in memory alone: all of it until that is first said after a
 * start; UINT64_MAX: nothing is needed. --change-log-bytes and the reserve of the disk take it all
 * the same. Any thread. */
void origin_feed_keep(struct shard *shard, uint64_t from_sequence);
/* For upkeep (stream/stream_upkeep.h): UINT64_MAX if it is off. */
uint64_t origin_feed_kept_from(const struct shard *shard);

#endif
