/* How a change stream is told of a drop of rows (row/drops.h). Readers of the table do not see the
 * rows any more from the drop's commit on; readers of the stream are told of each row that was
 * there, one after the other, in the order of their keys, by a job (tell_dropped.h). One for each
 * keyspace that has rows of a table.
 *
 *     none ── announced ── begun ── ended
 *                 └─ withdrawn       (also: written off, when the stream is not there any more)
 *
 * Invariants
 *  1. A row under the drop is told once: by the job when its turn has come, or by the first commit
 *     after the drop that changes it, in that commit's batch and in front of it. What is decided is
 *     decided on the commit thread: a row is *owed* until a commit that tells it is there.
 *  2. Who changes rows looks under the row's lock whether the row may be owed (telling_awaits), and
 *     reads then what it had, by the drops there were before (telling_before). A drop is announced
 *     with every row lock of the shard held: so nobody who has not looked comes behind it.
 *  3. As long as rows are owed the keyspace's drops are held (row_drops_hold): what rows had is in
 *     the store until they are told. A row that has been written since is owed no more, so what is
 *     read of one that is owed was there before the drop.
 *  4. How far all is told, and which rows were told before their turn, is on record
 *     (tablet/telling_records.h), in the batches that tell it.
 *  5. What is told has the drop's version, and so its time, and stands behind commits that are
 *     newer. So from the drop's sequence to that of the commit that told the last row no watermark
 *     passes the drop's time (telling_cap): that span is known as long as the log has it.
 *
 * Threads: a look takes a lock, a leaf, and none as long as no drop is under way. */
#ifndef TRESTLE_CLUSTER_STREAM_TELLING_H
#define TRESTLE_CLUSTER_STREAM_TELLING_H

#include "base/bytes.h"
#include "base/status.h"
#include "tablet/telling_records.h"

struct row_drops;
struct telling;
struct told_row;

status telling_create(uint64_t keyspace_id, struct telling **out);
void telling_destroy(struct telling *telling); /* NULL is fine */

/* What the store has on record, at a start: one that was under way goes on. `drops`: those of the
 * keyspace, loaded, and held then. DATA_LOSS. Blocks. */
status telling_load(struct telling *telling, struct keyspace *system, struct row_drops *drops);

/* --- a drop: with admin held --- */

/* Claims all memory for a drop of those rows (`to` empty: no bound), of which the stream with that
 * life is to be told. None is under way. */
status telling_reserve(struct telling *telling, bytes from, bytes to, uint64_t life,
                       struct row_drops *drops);
/* With every row lock held: from now on whoever changes such a row looks. Holds the drops. */
void telling_announce(struct telling *telling, struct row_drops *drops);
/* Its record, when the drop has its version and its sequence. The slices are good until it ends. */
struct telling_record telling_first_record(struct telling *telling, uint64_t version,
                                           uint64_t sequence);
/* The drop is committed: the rows are owed. On the commit thread. */
void telling_begin(struct telling *telling, uint64_t version, uint64_t sequence);
/* The drop has failed. */
void telling_withdraw(struct telling *telling, struct row_drops *drops);
/* Lets the drops go, unless one is under way or they are not held for it. */
void telling_let_go(struct telling *telling, struct row_drops *drops);

/* --- who changes a row, with its lock held --- */

/* Whether the row may be owed: what it had is to be read (telling_before), once what was submitted
 * for it before is applied. */
bool telling_awaits(struct telling *telling, bytes row_key);
/* The drops that there were before; valid while the row's lock is held, and for the job. */
struct row_drops *telling_before(struct telling *telling);

/* --- on the commit thread --- */

/* Whether the row is owed to the stream with that life, and the drop's version. */
bool telling_owes(struct telling *telling, uint64_t life, bytes row_key, uint64_t *version);

/* Rows of a shard that are told before their turn. All zeroes: none. */
struct told_batch {
    struct told_row *prepared; /* by the present commit */
    struct told_row *added;    /* by commits of the present batch */
};
/* Claims memory for a row that is owed. False: there is none. */
bool told_batch_prepare(struct told_batch *batch, struct telling *telling, bytes row_key);
void told_batch_cancel(struct told_batch *batch);
/* Calls `visit` with what is to be put for those that are prepared, until it fails. */
status told_batch_visit(const struct told_batch *batch, struct keyspace *system,
                        status (*visit)(void *context, const struct store_change *change),
                        void *context);
/* The commit is in the batch: they are owed no more. */
void told_batch_add(struct told_batch *batch);
void told_batch_written(struct told_batch *batch, bool is_written);

/* Whether the drop of that sequence is under way. */
bool telling_is_of(struct telling *telling, uint64_t sequence);
/* A row whose turn has come: its record may go. */
void telling_pass_row(struct telling *telling, bytes row_key);
/* All rows before `next`, which becomes empty, are told. */
void telling_advance(struct telling *telling, struct buffer *next);
/* All rows are told, by the commit of that sequence; 0: nobody is to be told any more. */
void telling_end(struct telling *telling, uint64_t sequence);

/* --- the job --- */

/* Between the two the job may use what telling_before returned. */
void telling_begin_work(struct telling *telling);
void telling_end_work(struct telling *telling);
/* One has been written off: waits until the job does not work on it any more. It never waits for
 * `admin` meanwhile. */
void telling_await_work(struct telling *telling);

/* Whether one has begun and not ended. Cheap; any thread. */
bool telling_has_begun(struct telling *telling);
struct telling_place {
    uint64_t sequence; /* of the drop; 0: none has begun */
    uint64_t version;
    uint64_t life;
    struct buffer first; /* the range; to be freed, as the next two */
    struct buffer next;  /* the first row that is still to be told */
    struct buffer to;
};
/* Where it is. Without memory the buffers say so. */
void telling_look(struct telling *telling, struct telling_place *out);
/* Whether the row was told before its turn, in a batch that is written. */
bool telling_has_told(struct telling *telling, bytes row_key);

/* --- readers of streams --- */

/* Of a reader of [start, end) who has got all up to the sequence: the version of the drop of which
 * he has still to be told; 0: of none. */
uint64_t telling_cap(struct telling *telling, uint64_t life, bytes start, bytes end,
                     uint64_t sequence);

/* The next span that nobody needs any more: of another life, or with an end before `oldest`, the
 * log's; or there are too many. False: there is none. */
bool telling_find_outdated(struct telling *telling, uint64_t life, uint64_t oldest,
                           uint64_t *sequence);
/* Its record is gone. */
void telling_forget(struct telling *telling, uint64_t sequence);
/* Whether there is anything on record. */
bool telling_has_any(struct telling *telling);

#endif
