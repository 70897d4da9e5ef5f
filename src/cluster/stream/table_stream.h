/* A table's change stream, for the services: whether there is one, its partitions, what is read.
 *
 * A partition is a tablet's range. A table without a stream pays nothing but a look at a pointer
 * for each commit. */
#ifndef TRESTLE_CLUSTER_STREAM_TABLE_STREAM_H
#define TRESTLE_CLUSTER_STREAM_TABLE_STREAM_H

#include "cluster/cluster.h"
#include "stream/log.h"

struct tablet;

/* What a table's record says of its stream, at one instant. */
struct stream_facts {
    int64_t retention_us; /* 0: there is no stream */
    uint64_t life;        /* another one each time that it is switched on; never 0 */
    int64_t oldest_us;    /* nothing from before is kept: switched on then, or older than the
                             retention */
    int64_t logged_us; /* the log has nothing from before, and all from then on: if that is later,
                          some was evicted or lost */
};
struct stream_facts table_stream_facts(struct table *table);
/* From when on the stream can be read. */
static inline int64_t stream_facts_from(const struct stream_facts *facts)
{
    return facts->oldest_us > facts->logged_us ? facts->oldest_us : facts->logged_us;
}

/* What the logs have of the table's rows, about; 0 without a stream. May read from the disk. */
uint64_t table_stream_log_bytes(struct table *table);

/* Calls `visit` with the range of each partition, in order, all of one instant, until it fails. */
status table_stream_partitions(struct table *table,
                               status (*visit)(void *context, bytes start, bytes end),
                               void *context);
/* Whether [start, end) is a partition, and which shard it is in. Cheap. */
bool table_stream_is_partition(struct table *table, bytes start, bytes end, uint32_t *shard);

/* A token for [start, end) at a time (the next commit is of then or later). The range lies in one
 * shard: it is a partition, or within one. OUT_OF_RANGE: the log has lost some from then on. */
status table_stream_token_at(struct table *table, int64_t time_us, bytes start, bytes end,
                             struct arena *arena, struct stream_token *out);

/* Whether the token stands at a place of this server's log, or of before a restore that led to it;
 * then it is of the present era from now on. OUT_OF_RANGE: it is behind what was restored.
 * INVALID_ARGUMENT. */
status table_stream_adopt(struct table *table, struct stream_token *token);

/* Reads on from the token, at most about `most_bytes`. `*token` moves: its parts are what was
 * visited through, its time the watermark: no commit of the partition up to it is to come. Facts of
 * retention are its caller's to look at. OUT_OF_RANGE if the log has lost what is behind it.
 * Blocks: on a pool thread. `*is_at_end`: all that was committed when it began has been visited. */
status table_stream_read(struct table *table, struct stream_token *token, size_t most_bytes,
                         status (*visit)(void *context, const struct stream_record *record,
                                         bool *enough),
                         void *context, bool *is_at_end);
/* The watermark of a reader of the range, in that shard, who has got all before the position and
 * might be told `time_us`: earlier while the stream is being told of a drop of rows. Cheap. */
int64_t table_stream_watermark(const struct table *table, uint32_t shard, bytes start, bytes end,
                               struct stream_position position, int64_t time_us);
status table_stream_read_piece(struct table *table, uint32_t shard,
                               const struct stream_record *record, uint32_t piece,
                               struct buffer *out);

/* Wakes whoever waits for changes in these tablets, which are no partitions any more, or whose
 * stream has ended. */
void table_stream_wake(struct tablet *const *tablets, size_t count);

/* Waiting for more: stream_log_wait, with the tablet that has [start, end) now. False: the range is
 * no partition any more (or the stream is off), and there is nothing to wait for. A change of the
 * table's tablets, or of its stream, wakes as a record does. */
bool table_stream_wait(struct table *table, bytes start, bytes end, struct stream_waiter *waiter);
bool table_stream_forget(struct table *table, uint32_t shard, struct stream_waiter *waiter);

#endif
