/* What of other clusters' changes has been applied here: of each, up to which place in its origin
 * feed (origin_feed.h), and up to which version. Durable, and written after what it tells of: so
 * after a crash some changes are applied again, and none is left out. That is fine, since whatever
 * may come again is still kept so that it counts once (tablet/foreign_change.h): a place that is
 * recorded, and what is complete there, is known before folds go by it.
 *
 * Folds go by the least of what is complete: nothing of before that comes any more, from nobody,
 * nor from this cluster, whose clock may be behind: so it is not above what this one has settled
 * (commit_settled_version). Of what may still come they keep tombstones, and adds apart
 * (row/fold.h). */
#ifndef TRESTLE_CLUSTER_ORIGIN_ORIGIN_APPLIED_H
#define TRESTLE_CLUSTER_ORIGIN_ORIGIN_APPLIED_H

#include "base/status.h"
#include "stream/position.h"
#include "tablet/version.h"

#include <pthread.h>

struct cluster;

struct origin_applied {
    struct stream_position position; /* all up to there has been applied, and is durable; of a feed
                                        from its beginning on ORIGIN_BEGINNING */
    /* What is behind it has greater versions; 0: that is not known, and all may still come. */
    uint64_t complete;
};

/* Before all that is in a feed. (All zeroes is no place: what was before the feed is to be copied
 * first.) */
#define ORIGIN_BEGINNING ((struct stream_position){0, 1})
static inline bool origin_wants_copy(const struct origin_applied *applied)
{
    return applied->position.sequence == 0 && applied->position.ordinal == 0;
}

/* `complete` of a place from which all is to be copied, while there may be rows here that go first:
 * a version that nothing has. */
enum { ORIGIN_HAS_ROWS = 1 };

/* A cluster's: all zeroes, but for the lock, is one that follows none. */
struct origins {
    pthread_mutex_t lock;
    struct {
        bool is_followed;
        struct origin_applied applied;
    } of[VERSION_CLUSTERS];
    unsigned holds;
    bool keeps_all;
};

/* At a start, before anything is folded. DATA_LOSS. */
status origins_load(struct cluster *cluster);

/* False: that cluster is not followed. Any thread. */
bool origin_applied(struct cluster *cluster, unsigned number, struct origin_applied *out);
/* Records it, of one that was not followed, too; what is complete must
 * not fall, unless all is to be copied. Folds go by it
 * from the return on. Blocks. */
status origin_applied_record(struct cluster *cluster, unsigned number,
                             const struct origin_applied *applied);
/* The same without a record, at the place that is recorded: a start may forget it. Any thread. */
void origin_applied_note(struct cluster *cluster, unsigned number, uint64_t complete);
/* It is followed no more, and folds wait for it no more. Fine if it was not. Blocks. */
status origin_applied_forget(struct cluster *cluster, unsigned number);

/* Goes back to an earlier place, from which on some of what has been applied comes again: while all
 * is kept, and if whoever applies it leaves out what would count twice. Blocks. */
status origin_applied_rewind(struct cluster *cluster, unsigned number,
                             const struct origin_applied *applied);

/* Whether folds keep all that may matter to what may still come, however old it is: while rows are
 * copied here from another cluster. Over starts as well. Blocks. */
status origins_keep_all(struct cluster *cluster, bool keeps_all);
bool origins_keeps_all(struct cluster *cluster); /* any thread */

/* What folds go by does not rise until it is let go. `*out`, but for its lock: what there is now.
 * Any thread. */
void origins_hold(struct cluster *cluster, struct origins *out);
void origins_let_go(struct cluster *cluster);

/* The least of what is complete; 0: none are followed. Cheap, any thread. */
uint64_t origins_complete(const struct cluster *cluster);

#endif
