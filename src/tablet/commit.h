/* The commit queue: where a change becomes durable. One queue and one thread per store.
 *
 *     commit_submit ──► waiting ──► one batch, one store_write ──► acknowledged, in order
 *
 * Invariants
 *  1. Sequences rise in queue order: under the queue's lock a commit gets its sequence, its version
 *     and its place together. What is submitted later has a greater sequence and is never durable
 *     earlier. A sequence says where a commit stands, and is what positions, tokens and marks of
 *     "applied up to" are made of; a version says which of two changes counts for more, and nothing
 *     else (version.h). Versions rise, too, except those that come from another cluster.
 *  2. `done` is called after store_write has returned OK for the batch that holds the change, or
 *     with why not. No change is acknowledged after the store was fenced.
 *  3. Every version that was ever acknowledged is below a ceiling that is itself durable: a batch
 *     that reaches the ceiling carries a new one, a second ahead. After a restart versions begin
 *     above the ceiling, so a clock set back never makes a new write lose to an old cell. Sequences
 *     have a ceiling of their own in the same way. (A second
 *     keeps the cost at one small record a second, and puts versions after a restart at most a
 *     second ahead of the clock. It need not cover anything else: the ceiling is in the same batch
 *     as the versions above the old one, so either both survive a power cut or neither.)
 *  4. The queue is bounded in bytes: beyond it commit_submit refuses with RESOURCE_EXHAUSTED and
 *     RetryInfo.
 *  5. No caller waits long without an answer. When a batch takes longer than the limit (a store
 *     that holds writes back until it has compacted, a disk that does not answer), commit_submit
 *     refuses with UNAVAILABLE and RetryInfo, and what waits behind that batch is refused, too. The
 *     batch itself goes on: how it ends is not known.
 *  6. A commit may be of several rows (`others`), of any keyspaces: they have one version and one
 *     place, and are in one batch, all of them, or all are refused.
 *  7. A *rewrite* puts in place of a row's operands what they come to, which alters nothing that a
 *     reader sees. A batch of nothing else is written without a sync. That is safe: whatever is
 *     acknowledged is synced after it was written, and a sync covers all of the log before it. So
 *     what a power cut takes from the end of the log are rewrites alone, and the operands that they
 *     stood for are in the log before them. (Nor can a table have a rewrite whose log is lost while
 *     one of the operands is: the store syncs a log before a table takes over what is in it.)
 *     A view's commit (COMMIT_VIEW) is not synced by itself either. What it follows from, changes
 *     of its source that have been applied, is in the log before it, and so is what it builds on;
 *     how far it has come is a record in the same batch. So a power cut takes the newest of these
 *     commits, each whole, and they are made again from where the rest has come to.
 *     Nor is what the server writes of itself (COMMIT_OWN): nothing follows from it, and a power
 *     cut may take the newest of it. And a change that another cluster has (`is_lazy`) is asked
 *     for again from a place that is recorded, by a synced commit, after it.
 *  8. Observers (commit_observer.h) see each commit that changes anything, at its place, and what
 *     they make of it is in the same batch. The change log (change_log.h) is one of them. A queue
 *     without it ends the log that the store has: the first batch removes its record, so a log with
 *     a hole is not taken for a whole one.
 *  9. A change of structure, a commit by which tables or tablets come, change or go, ends its
 *     batch. What follows from it in memory is there (`apply`) before anything behind it is looked
 *     at. A change of rows is in the tablet that has its row at its place: one that was routed
 *     before that was split or merged is routed anew, and one whose table has gone is refused with
 *     NOT_FOUND. So each change is before or after each change of structure, by sequence.
 * 10. What follows from a read of a row is committed only if the row was not dropped since
 *     (row/drops.h), with whatever lock it was read: a drop takes none. A drop that is a record
 *     (COMMIT_DROP_ROWS) ends its batch, too, and is known to folds before anything behind it is
 *     written. */
#ifndef TRESTLE_TABLET_COMMIT_H
#define TRESTLE_TABLET_COMMIT_H

#include "base/clock.h"
#include "base/list.h"
#include "base/metrics.h"
#include "os/loop.h"
#include "row/drops.h"
#include "row/fragment.h"
#include "store/store.h"
#include "tablet/tokens.h"
#include "tablet/version.h"
#include "tablet/write_times.h"

struct commit;
struct commit_observer;
struct commit_queue;
struct event_writer;
struct foreign_change;
struct schema;
struct table; /* the cluster's: only its identity is looked at here */
struct tablet;

/* What a commit is, and which of its fields it has. */
enum commit_kind {
    COMMIT_ROWS = 1,  /* changes of rows, as clients asked for: `change`, `others` */
    COMMIT_COLLECT,   /* what rules condemn is deleted: the same, of tombstones alone */
    COMMIT_BARRIER,   /* nothing: marks a place in the queue */
    COMMIT_REWRITE,   /* a row's operands come together: `record`, in their place */
    COMMIT_UPKEEP,    /* how a row is kept, which alters nothing that is seen: `extend` */
    COMMIT_DROP,      /* a range of rows goes: `extend` */
    COMMIT_DROP_ROWS, /* the same, by a record that is a tombstone over them: `extend`, and
                         `catalog` with its `apply` */
    COMMIT_TELL,      /* a change stream is told of rows that were dropped: the same fields. Changes
                         nothing that readers of the table see */
    COMMIT_CATALOG,   /* records of the catalog's keyspace, what became of keyspaces: `extend` or
                         a `catalog` that describes, or both */
    COMMIT_INTERNAL,  /* the queue's own, and its observers': `extend`. Not observed */
    COMMIT_VIEW,      /* what the upkeep of a view writes: `records`, and rows as `others`. Not
                         observed */
    COMMIT_OWN,       /* rows that the server keeps of itself: `change`, `others`. Not observed */
    /* Changes of structure: `extend`, and what `catalog` says. */
    COMMIT_SPLIT,          /* a tablet becomes two */
    COMMIT_MERGE,          /* two tablets become one */
    COMMIT_CREATE_TABLE,   /* a table is there from here on, with its tablets */
    COMMIT_CHANGE_TABLE,   /* its schema, or what else is said of it */
    COMMIT_DELETE_TABLE,   /* it is there no more, but may come back */
    COMMIT_UNDELETE_TABLE, /* it does */
    COMMIT_END_TABLES,     /* they are gone for good, whether they had been deleted before or not */
};

/* Whether tables or tablets come, change or go. */
static inline bool commit_is_structural(enum commit_kind kind)
{
    return kind >= COMMIT_SPLIT;
}

/* Whether what follows from it in memory has to be there before anything behind it is looked at. */
static inline bool commit_ends_batch(enum commit_kind kind)
{
    return commit_is_structural(kind) || kind == COMMIT_DROP_ROWS || kind == COMMIT_TELL;
}

/* What a commit of the catalog is beside its records. Its owner's, as the commit. */
struct catalog_change {
    /* What its event says besides, before what `extend` does; NULL: nothing. Called on the commit
     * thread, if there is a change log. */
    void (*describe)(const struct catalog_change *change, struct event_writer *writer);
    /* Of a change of structure: what follows from it in memory, once it is durable (commit.h, 9).
     * Called on the commit thread: must be quick, and cannot fail. NULL: nothing. */
    void (*apply)(const struct catalog_change *change);
    /* What becomes of what, for observers: as it was before `apply`. */
    struct table *const *tables; /* whose structure changes: one, except for COMMIT_END_TABLES */
    size_t table_count;
    struct tablet *const *former; /* of a split and a merge: the tablets that go */
    size_t former_count;
    struct tablet *const *fresh; /* of these: what comes in their place; of a new table, all */
    size_t fresh_count;
    const struct schema *schema; /* of a new table, and of a change of one: what it is then */
};

/* Whether it has rows, which may have to be routed anew. */
static inline bool commit_has_rows(enum commit_kind kind)
{
    return kind == COMMIT_ROWS || kind == COMMIT_COLLECT || kind == COMMIT_VIEW ||
           kind == COMMIT_OWN;
}

/* Whether it has a `change`, that a client asked for or a rule. */
static inline bool commit_changes_rows(enum commit_kind kind)
{
    return kind == COMMIT_ROWS || kind == COMMIT_COLLECT;
}

/* One change on its way. Its owner keeps it until `done` has run: on the owner's loop if it named
 * one, else on the commit thread, where it must be quick and must not block. */
struct commit {
    enum commit_kind kind;
    struct table *table; /* whose rows it changes, held until `done`; NULL: not needed */
    /* Where the row was routed to, with a reference of the commit's, which its owner gives back:
     * not the same after `done`, if that tablet was in the map no more (9). NULL: not needed. */
    struct tablet *tablet;
    struct keyspace *keyspace;
    bytes row_key;
    uint64_t row_hash; /* row_lock_hash */
    struct packed_change *change;
    /* Beside a change: the row's record as it was read under the lock that is still held. What it
     * and the change come to is stored in place of both, so that operands do not pile up. Empty:
     * the change becomes an operand. Of a rewrite: the record takes the place of the row's
     * operands; it holds all that was submitted for the row before. */
    bytes record;
    /* Of a view's row: the change is all that there is of it, and takes the place of whatever there
     * was; of nothing: the row goes. It sets cells only, none of them large, and the row never had
     * a large one. */
    bool is_whole;
    /* Of a change that another cluster gave a version: that one, and what the change comes to
     * (foreign_change.h), prepared under the row's lock, which is still held; no `others`. Without
     * `foreign` the change becomes an operand, which is right only if the row has seen nothing
     * newer. 0, NULL: the queue gives the version. */
    uint64_t given_version;
    const struct foreign_change *foreign;
    /* What a change, a rewrite or an upkeep follows from was read when all commits up to this
     * sequence were in the store. If a later one has dropped the row it is refused with ABORTED,
     * and `is_outdated` says that this is why: whoever still wants it reads again. `drops`: the
     * table's; NULL: it follows from no read, or no row can be dropped. */
    struct row_drops *drops;
    uint64_t read_as_of;
    bool is_outdated; /* set before `done` runs */
    /* Adds to the batch at this commit's place. Called on the commit thread; what it needs it has
     * from around the commit, which is a part of something larger. */
    void (*extend)(struct commit *commit, struct store_batch *batch);
    const struct catalog_change *catalog; /* of a commit of the catalog; may be NULL */
    /* Where `token` was claimed (tokens.h): its record goes into the same batch, and it is
     * forgotten if the commit fails. NULL: the change has none. */
    struct tokens *tokens;
    struct fingerprint token;
    /* Of a view's: what becomes of its records, which nobody else writes. Stays until `done`. */
    const struct store_batch *records;
    /* Changes of other rows that go with this one, or not at all, none of a row twice: each with
     * its kind, `table`, `tablet`, `keyspace`, `row_key`, `row_hash` and `change`, all locked as
     * this one. The owner's, until `done`. */
    struct commit *others;
    size_t other_count;
    bool frees_space; /* goes on when `admit` refuses */
    bool is_synced;   /* whatever the queue's durability */
    bool is_lazy;     /* of a change that another cluster has: see 7 */
    bool is_repair;   /* its rows may be out of service: it brings them back */
    /* Its version is of this time or later: that of its cells, if it was not read just before from
     * commit_version_us. So the durable ceiling is above that, too. */
    int64_t least_us;
    struct loop *loop;
    struct task done;
    /* Both set by commit_submit, for `extend`, observers and `done`. */
    uint64_t sequence;
    uint64_t version;
    status result;            /* set before `done` runs; the owner frees it */
    struct write_times times; /* set before `done` runs */
    bool
        is_folded; /* set before observers hear that it is applied: it left no operand of its own */
    struct link link; /* before it is submitted its owner's, then the queue's */
    /* Private to the queue. */
    struct commit *next_of_row;
    struct commit *last_of_row;
    size_t bytes; /* what it counts for in the queue, once it is in it */
    void *waiter;
};

struct commit_options {
    struct store *store;
    struct keyspace *catalog; /* keeps the version ceiling */
    struct clock *clock;
    unsigned cluster; /* that versions are to name: less than VERSION_CLUSTERS */
    enum store_durability durability;
    size_t queue_limit_bytes;
    int64_t stall_limit_us; /* how long a batch may take */
    /* Asked before each batch: not OK refuses what is in it, except commits that free space; for
     * the disk reserve. May be NULL. */
    status (*admit)(void *context);
    void *admit_context;
    /* Where the table's row is now, with a reference; NOT_FOUND: the table is gone. Asked on the
     * commit thread, of changes whose tablet is in the map no more. */
    status (*route)(struct table *table, bytes row_key, struct tablet **out);
    /* As row_rules.rising_from, of all keyspaces. NULL: no such changes come. */
    const _Atomic(uint64_t) *tombstones_from;
    const struct commit_observer *observers; /* outlive the queue */
    size_t observer_count;
    bool has_change_log;     /* is one of them */
    struct metrics *metrics; /* may be NULL */
};

status commit_queue_create(const struct commit_options *options, struct commit_queue **out);
/* Commits what waits, then ends the thread. */
void commit_queue_destroy(struct commit_queue *queue);

/* Takes the commit, which must stay until `done`; that may be called before this returns, unless
 * this is the thread of its loop. On failure it was not taken and `done` is not called: DATA_LOSS
 * if one of its rows is out of service, the change does not delete all of it, and it is no repair.
 * Any thread. */
status commit_submit(struct commit_queue *queue, struct commit *commit);

/* The same of several, linked by their `link` in the order in which they are to be: with one look
 * at the clocks, and one turn at the queue, so that a batch has all of them or none before them.
 * Those that were not taken are left in the list, each with its `result` and its sequence 0. */
void commit_submit_all(struct commit_queue *queue, struct list *commits);

/* As commit_submit for what may as well be left undone: takes it only while the queue is less than
 * half full and nothing is held up. */
bool commit_offer(struct commit_queue *queue, struct commit *commit);

/* For threads that may block: submits, and waits for the result. Sets `loop` and `done` itself. */
status commit_and_wait(struct commit_queue *queue, struct commit *commit);
/* The same; between the two, if it was taken, calls `submitted`: it has its version and its place,
 * so the locks under which it was made are needed no longer. */
status commit_and_wait_unlocked(struct commit_queue *queue, struct commit *commit,
                                void (*submitted)(void *context), void *context);

/* The same as commit_and_wait of several, as commit_submit_all has them: each has its result, those
 * that are left in the list, which were not taken, as well. */
void commits_and_wait(struct commit_queue *queue, struct list *commits);

/* Writes a batch of the catalog's records that its caller has filled, synced, as a commit of that
 * kind, and waits. Enters also when the queue is full or the disk's reserve reached: what must be
 * looked at before is its caller's. `change`: NULL if the kind is COMMIT_CATALOG and there is
 * nothing to be said. */
status commit_write(struct commit_queue *queue, enum commit_kind kind, struct store_batch *batch,
                    const struct catalog_change *change);

/* How full the queue is: 0 to 1; 1 while it refuses for a stall. */
double commit_queue_load(struct commit_queue *queue);

/* How long the batch under way has taken so far; 0 if none is. */
int64_t commit_under_way_us(struct commit_queue *queue);

/* Holds the commit thread between two batches until commit_release: what is submitted meanwhile
 * waits. `*applied`: all commits up to this sequence, and none above it, are in the store. One
 * holder at a time, for milliseconds: writers wait. May wait for the batch under way. */
void commit_hold(struct commit_queue *queue, uint64_t *applied);
void commit_release(struct commit_queue *queue);

/* What the versions' clock shows: the wall clock, but never behind a version or a time already
 * given, also before a restart. While the wall clock is behind, it goes on half as fast as the
 * steady one, so that no two moments are one, and the wall clock catches up. For what must not go
 * back: the times of cells that the server sets, Datastore's moments. Ages are judged by the wall
 * clock (docs/internals/clocks.md). */
int64_t commit_version_us(struct commit_queue *queue);

/* How far it is ahead of the wall clock; 0 if it is not. */
int64_t commit_clock_lead_us(struct commit_queue *queue);

/* Versions from now on name that cluster: less than VERSION_CLUSTERS. Any thread. */
void commit_set_cluster(struct commit_queue *queue, unsigned cluster);

/* Versions, and times, from now on are greater than this version, also after a restart and whatever
 * the clock says: for cells that come from elsewhere. Durable with the store's next synced write.
 * Blocks. */
status commit_raise_version(struct commit_queue *queue, uint64_t version);

/* The same of sequences. */
status commit_raise_sequence(struct commit_queue *queue, uint64_t sequence);

/* How far above the newest version, or sequence, a new ceiling is. */
enum { COMMIT_CEILING_SLACK_US = 1000 * 1000 };

/* What no version and no sequence that was acknowledged has reached; 0: none was given yet. */
struct commit_ceilings {
    uint64_t version;
    uint64_t sequence;
};

/* The ceilings that the catalog's keyspace has. Stores of formats before 3 have one: their
 * sequences were their versions. */
status commit_read_ceilings(struct keyspace *catalog, struct commit_ceilings *out);

/* Puts them into a store without a running queue. */
void commit_put_ceilings(struct store_batch *batch, struct keyspace *catalog,
                         const struct commit_ceilings *ceilings);

/* Whether the record of the catalog's keyspace is one of those that a queue keeps of itself: the
 * ceilings, and the next. */
bool commit_is_own_record(bytes key);

/* From this version on versions name the cluster that gave them (version_cluster); UINT64_MAX: the
 * store has none that does. */
status commit_read_clusters_from(struct keyspace *catalog, uint64_t *out);

/* Commits up to this sequence have been applied to the store, or have failed: a read that begins
 * now sees them. */
uint64_t commit_applied(const struct commit_queue *queue);
/* A version such that all that this queue gives to what is not in the store yet are greater, also
 * after a start, wherever the clock is then. Only rises. Any thread. */
uint64_t commit_settled_version(const struct commit_queue *queue);
/* The sequence that was given last: when all up to it has been applied, whatever comes later has a
 * later time than commit_version_us showed before this was asked. Any thread. */
uint64_t commit_submitted(struct commit_queue *queue);

#endif
