/* The archiver: takes what the commit queue leaves in the change log (tablet/change_log.h) to a
 * place, in pieces (piece.h), on a thread of its own. No commit waits for it.
 *
 * Invariants
 *  1. A piece is put only when all that is in it has been synced to the store's log: the archive
 *     never has what the store lost.
 *  2. A piece that was put is recorded, and leaves the log, in one commit after it. A crash between
 *     leaves the piece in the place: the next start finds it, and goes on behind it.
 *  3. While the place does not take a piece, the same piece is tried again: what a put that failed
 *     has left there is either nothing or just that.
 *  4. A place that has more of the stream than this store knows of is another server's, or this
 *     store is older than its archive: then a new stream is begun.
 *
 *  5. With `retention_us` pieces go whose changes are all older than that, by the clock of
 *     versions, which stands still while nothing is written, and no later than the wall clock. But
 *     none goes that is behind a whole backup that is kept, of those that were noted (bases.h):
 *     each of them reaches the present. A place of backups that is away keeps what it had.
 *
 * Health: archive_behind while the oldest that waits is older than a minute; archive_gap after the
 * log went off, until a whole backup was made after it (archiver_note_base). */
#ifndef TRESTLE_ARCHIVE_ARCHIVER_H
#define TRESTLE_ARCHIVE_ARCHIVER_H

#include "archive/bases.h"
#include "archive/kept_files.h"
#include "base/condition.h"
#include "place/place.h"
#include "tablet/commit.h"

struct archiver;

struct archiver_options {
    struct place *place; /* outlives it, as all the rest */
    struct change_log *log;
    struct commit_queue *commits;
    const struct log *server_log;
    struct clock *clock;
    struct metrics *metrics;     /* may be NULL */
    struct condition *condition; /* may be NULL */
    struct kept_files kept;
    struct keyspace *catalog; /* of bases.h */
    int64_t retention_us;     /* 0: nothing expires */
    /* Whether a whole backup is still there; fails if that cannot be told. Blocks. */
    status (*look_for)(const char *place, const char *name, bool *is_there);
    size_t segment_bytes; /* a piece is made of so much, or of what is there after so long */
    int64_t segment_us;
};

/* Without a thread: archiver_step does all. */
status archiver_create(const struct archiver_options *options, struct archiver **out);
/* Starts its thread. */
status archiver_start(struct archiver *archiver);
/* Ends the thread, after one piece more if the place has taken the last one; the log keeps what
 * waits. NULL is fine. Before the queue is destroyed. */
void archiver_destroy(struct archiver *archiver);

/* Does what there is to do, up to the first failure, which is what it returns; what it returns is
 * noted, too. `is_urgent`: also what could wait to become a larger piece. For the thread, and tests
 * without one. */
status archiver_step(struct archiver *archiver, bool is_urgent);

/* Sets metrics, and what of health it knows: also while the thread waits for the place. Any thread.
 */
void archiver_look(struct archiver *archiver);

/* A whole backup has been made; its stream is the archiver's to say. Blocks. Any thread. */
status archiver_note_base(struct archiver *archiver, const struct archive_base *base);

#endif
