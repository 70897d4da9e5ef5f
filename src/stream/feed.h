/* Feeds: what commits have changed, in their order, for those who follow it: of a table which rows,
 * for its views (cluster/view/view_feed.h), and of a shard all rows with what was changed in them,
 * for other clusters (cluster/origin/origin_feed.h). They lie in the log of change streams, under
 * an id that is no tablet's: so no reader of a change stream meets them.
 *
 * What the commits of a batch have of a feed lies together, in *pages*:
 *
 *     key    as a record's (record.h): the feed's id, the position of the last entry, piece 0
 *     value  04, sequence: 8, varint ordinal: where the first entry is; then entry after entry
 *     entry  varint: four times by how much its sequence is greater than that of the one before (of
 *            the first: 0), plus its kind: 0 a row, 1 a range, 2 a row with its change, 3 a range
 *            of which all rows are dropped; varint: zigzag of version less sequence; varint,
 *            bytes: the key; of a range varint, bytes: its end, empty: no bound; of a row with its
 *            change varint, bytes: that
 *
 * Ordinals number what a commit has of the feed, from 0 on. */
#ifndef TRESTLE_STREAM_FEED_H
#define TRESTLE_STREAM_FEED_H

#include "stream/position.h"

#include <stdatomic.h>

struct store_batch;
struct stream_log;

enum { STREAM_FEED_PAGE = 4 /* the first byte of a page, where records have their kind */ };

/* A feed, its owner's; stays as long as something may be logged of it. */
struct stream_feed {
    uint64_t id;          /* not 0; no tablet's */
    atomic_ullong newest; /* all that is logged of it up to this sequence is in the store; 0:
                             nothing was since the log was opened */
};

struct stream_feed_entry {
    struct stream_position position;
    uint64_t version; /* of the commit */
    bytes key;        /* of a row, or the first of a range: then it may be empty */
    bytes end;        /* of a range: exclusive; empty: no bound */
    bytes change;     /* of a row, if has_change: what its feed's owner makes of it */
    bool has_change;
    bool is_range;
    bool is_drop; /* of a range: none of the rows that were there before it is there */
};

/* --- on the commit thread, as what is said of records in log.h --- */

/* Claims memory for what the present commit leaves: its next entry of that feed. False: there is
 * none, and nothing is prepared of that entry. stream_log_cancel takes back what the commit has. */
bool stream_log_prepare_feed(struct stream_log *log, struct stream_feed *feed,
                             const struct stream_feed_entry *entry);
/* Puts what commits have left so far into the batch: at its end. */
void stream_log_put_feeds(struct stream_log *log, struct store_batch *batch);

/* --- reading --- */

struct stream_feed_query {
    uint64_t feed;
    struct stream_position after;
    uint64_t through;  /* a sequence: all commits up to it are in the store */
    size_t most_bytes; /* that are looked at, about: one page is at least */
};

/* Calls `visit` with each entry behind the position, by rising position, as stream_log_read does
 * with records; `*reached` and errors are as there. Blocks for the disk. */
status stream_log_read_feed(struct stream_log *log, const struct stream_feed_query *query,
                            status (*visit)(void *context, const struct stream_feed_entry *entry,
                                            bool *enough),
                            void *context, struct stream_position *reached);

/* Bytes of the feed behind the position, estimated: on disk and in write buffers. */
uint64_t stream_log_feed_bytes(struct stream_log *log, uint64_t feed, struct stream_position after);

/* Calls `visit` with each entry of a page, until it fails or says that it has enough. DATA_LOSS if
 * it does not parse, or does not end where its key says. */
status stream_feed_page_read(bytes key, bytes value,
                             status (*visit)(void *context, const struct stream_feed_entry *entry,
                                             bool *enough),
                             void *context, bool *enough);

#endif
