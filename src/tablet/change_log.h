/* The change log: a keyspace of its own in which each batch of the commit queue leaves an entry
 * with its events (event.h), until the archive has taken it away.
 *
 * Invariants
 *  1. An entry is in the same batch as the changes that it tells of. So after a crash, and in a
 *     copy of the directory, both are there or neither, and the log ends where the data does.
 *  2. An entry's key is the sequence of its first event, 8 bytes, big-endian: keys rise as batches
 *     are written.
 *  3. The log is on or off. It goes off by itself, on the commit thread, once more than
 *     `limit_bytes` wait in it: no commit ever waits for the archive. What it had is deleted then,
 *     and what comes meanwhile is not in it. Its state says from where to where the gap is, until
 *     it has been told. Damage of what waits turns it off, too (change_log_begin_gap).
 *  4. The state is a record of the catalog's keyspace, changed by commits alone (change_log_edit,
 *     and the queue's own): in one order with the events. A batch that is not written leaves it as
 *     it was.
 *  5. A queue that writes to the store without a log ends the log (commit.h, 8).
 *
 * Threads: what is said to be the commit thread's is; the rest is any thread's. */
#ifndef TRESTLE_TABLET_CHANGE_LOG_H
#define TRESTLE_TABLET_CHANGE_LOG_H

#include "store/store.h"

struct change_log;
struct commit_observer;
struct commit_queue;

enum { CHANGE_LOG_CHAIN_BYTES = 32 };

struct change_log_state {
    uint64_t keyspace; /* id of the log's */
    uint64_t stream;   /* names all that was ever taken from this log; never 0 */
    uint64_t began;    /* a sequence: events after it are in the stream */
    bool is_on;
    uint64_t taken; /* events up to this sequence were taken, or are in a gap that was told */
    /* A gap that has not been told: events after `gap_from` up to `gap_to`, which is 0 as long as
     * the log is off. `gap_from` 0: there is none. */
    uint64_t gap_from;
    uint64_t gap_to;
    /* For the archiver: how many pieces were made, and what the last one is known by. */
    uint64_t pieces;
    uint8_t chain[CHANGE_LOG_CHAIN_BYTES];
    uint64_t last_gap; /* where the last gap that was told ended; 0: there was none */
    uint64_t based;    /* the newest whole backup goes up to this sequence; 0: none is known */
    uint64_t place;    /* what the place is known by that the pieces are in; 0: none was put */
};

/* --- the record --- */

/* `*exists` false: the store has no log. DATA_LOSS. */
status change_log_read(struct keyspace *catalog, struct change_log_state *out, bool *exists);
status change_log_exists(struct keyspace *catalog, bool *exists);
void change_log_put(struct store_batch *batch, struct keyspace *catalog,
                    const struct change_log_state *state);
void change_log_end(struct store_batch *batch, struct keyspace *catalog);

/* The log is off, and what waits in it is lost: all after `taken` is in a gap. */
void change_log_begin_gap(struct change_log_state *state);

/* The sequence of the newest event that the log's keyspace has; `taken` if it has none. */
status change_log_find_newest(struct keyspace *keyspace, uint64_t taken, uint64_t *newest);

/* --- life --- */

struct change_log_options {
    struct store *store;
    struct keyspace *catalog;
    uint64_t limit_bytes;
    /* Calls `visit` with the puts that observers which are asked before the log have prepared
     * beside the rows of a commit, for its event to have them, too. On the commit thread, while the
     * commit is prepared. NULL: there are none. */
    status (*visit_beside)(void *context,
                           status (*visit)(void *visit_context, const struct store_change *change),
                           void *visit_context);
    void *beside_context;
};

/* With the state that the store has, whose keyspace there is. */
status change_log_open(const struct change_log_options *options,
                       const struct change_log_state *state, struct change_log **out);
void change_log_close(struct change_log *log); /* NULL is fine; after the queue */

/* The log as an observer of the queue whose commits it is to have. */
struct commit_observer change_log_observer(struct change_log *log);

/* On the commit thread, or when nothing commits: whether events are taken in now. */
bool change_log_is_on(const struct change_log *log);

/* --- taking it away --- */

void change_log_look(struct change_log *log, struct change_log_state *out);
/* How much waits to be taken, about; a metric, too. */
uint64_t change_log_waiting_bytes(const struct change_log *log);
/* The sequence of the newest event in the log; not above it if nothing waits. */
uint64_t change_log_newest(const struct change_log *log);

/* Entries that wait, oldest first: calls `visit` with each, until it sets `*enough`, or fails. */
status change_log_read_waiting(struct change_log *log,
                               status (*visit)(void *context, bytes entry, bool *enough),
                               void *context);

/* Changes the state by a commit that is synced, and waits: `edit` gets the state and the commit's
 * sequence on the commit thread; must be quick. Entries up to `taken` go in the same batch,
 * `taken_bytes` of them. */
status change_log_edit(struct change_log *log, struct commit_queue *queue,
                       void (*edit)(void *context, struct change_log_state *state,
                                    uint64_t sequence),
                       void *context, uint64_t taken_bytes);

#endif
