/* The changes of a table of a Bigtable endpoint, in the order in which each row had them: Google's
 * or our own. GenerateInitialChangeStreamPartitions once, then a ReadChangeStream of each
 * partition, closed and opened anew as partitions split and merge.
 *
 *     partition ── ReadChangeStream ─► messages ─► whole changes ─┐
 *     partition ── ReadChangeStream ─► …                          ├─► change_feed_next
 *     partition that waits for the rest of those it is made of    ┘
 *
 * Invariants
 *  1. A change is given once it is whole (`done`), and then its partition's token moves. So a state
 *     that is saved after a change was given is behind it, and one that was saved before it gives
 * it again: nothing is left out, and nothing comes twice to who saves its state with what it did.
 *  2. Changes of one row come in the order of their commits, whatever becomes of partitions.
 *  3. A merged partition is opened once the tokens of those that it is made of tile it, with all of
 *     them; one of a split at once.
 *  4. What has come and is not wanted yet is bounded, and of all changes of large values only one
 *     is put together at a time; then servers wait.
 *
 * One thread; changes are waited for by running the session's loop. */
#ifndef TRESTLE_CLIENT_CHANGE_FEED_H
#define TRESTLE_CLIENT_CHANGE_FEED_H

#include "client/change_assembly.h"
#include "client/client_session.h"

struct change_feed;

struct change_feed_options {
    struct client_session *session;
    const char *table;       /* its full name */
    const char *app_profile; /* "": none */
    int64_t from_us;         /* commits of then or later; 0: what comes from now on. Not with
                                `state` */
    int64_t end_us;          /* commits up to then, and the feed ends; 0: it does not */
    int64_t heartbeat_us;    /* 0: one second */
    bytes state;             /* of change_feed_save: goes on there; empty: begins */
};

/* Makes no call yet. What the options point to outlives the feed, except `state`. INVALID_ARGUMENT:
 * a state that is none, or is another table's. */
status change_feed_create(const struct change_feed_options *options, struct change_feed **out);
void change_feed_destroy(struct change_feed *feed); /* NULL is fine */

/* The next change, waited for `wait_us` at most (INT64_MAX: for as long as it takes): NULL if none
 * has come until then. It lives until the next call. `*is_end`: none will, since end_us has passed
 * in all partitions. Fails with what the server says (OUT_OF_RANGE: what comes next is not kept any
 * more), DATA_LOSS if that makes no changes, UNAVAILABLE when a partition has not been reached for
 * a minute; CANCELLED for SIGINT, if the session heeds it. After a failure the feed can be saved,
 * and nothing else. */
status change_feed_next(struct change_feed *feed, int64_t wait_us,
                        const struct feed_change **change, bool *is_end);

/* Appends where the feed stands, as JSON: behind every change that was given so far. Before
 * change_feed_start_us is known, what goes on there begins anew, at a later time. */
status change_feed_save(const struct change_feed *feed, struct buffer *out);

/* The time from which what has not answered is read: `from_us`, or, if that was 0, a time of the
 * server's that is at most when the feed was created. 0: not known yet. It is known when a change
 * is given, at the latest. What goes on from a state that was saved may have changes of shortly
 * before the feed was created. */
int64_t change_feed_start_us(const struct change_feed *feed);

/* Appends the state as it was at the beginning: none was given. Only once change_feed_start_us is
 * known. */
status change_feed_save_start(const struct change_feed *feed, struct buffer *out);

/* Every change committed up to then has been given: the least watermark of its partitions. 0: not
 * known yet, since some partition has not answered. Never goes back. */
int64_t change_feed_watermark_us(const struct change_feed *feed);

/* What has failed for `since_us` (clock_steady_us) and is tried again, of what has failed longest:
 * in words that live until the next call. NULL: nothing has. */
const char *change_feed_trouble(const struct change_feed *feed, int64_t *since_us);

size_t change_feed_partitions(const struct change_feed *feed); /* that are read, or wait */

#endif
