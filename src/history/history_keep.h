/* Which subjects there are points of, and what becomes of these in time: ten seconds fold to
 * minutes, minutes to hours, and what is too old goes.
 *
 * What is known of it in memory only saves looking: after a kill a start finds by the points what
 * is to be folded, and folding again comes to the same. One thread. Functions block. */
#ifndef TRESTLE_HISTORY_HISTORY_KEEP_H
#define TRESTLE_HISTORY_HISTORY_KEEP_H

#include "history/history_store.h"

enum { HISTORY_SUBJECTS_MOST = 1024 }; /* so many are kept, the server one of them */

struct history_subject_state {
    char *name;
    int64_t newest_us;                  /* when its newest point begins; 0: not asked since load */
    bool waits[HISTORY_LEVELS];         /* it has got points that may not have been folded */
    int64_t removed_us[HISTORY_LEVELS]; /* nothing is kept from before */
};

/* All zeroes is a start. */
struct history_keep {
    struct history_subject_state *subjects;
    size_t count;
    bool is_loaded;
    int64_t
        full_us; /* there was no place for a point that begins then; 0: there is, or none asked */
    int64_t
        folded_us[HISTORY_LEVELS]; /* up to when each level was folded, by the versions' clock */
};

void history_keep_free(struct history_keep *keep);

/* A point of ten seconds of the subject, which begins at `from_us`, is to be written. Where all
 * places are taken, that of a table that is gone becomes free, and its points go: of several the
 * one that was silent longest. `*is_kept` is false if all are of tables that are there. */
status history_keep_note(struct history_keep *keep, struct cluster *cluster, const char *subject,
                         int64_t from_us, bool *is_kept);

/* Does what is due: `now_us` by the versions' clock. What fails is done the next time. */
status history_keep_run(struct history_keep *keep, struct cluster *cluster, int64_t retention_us,
                        int64_t now_us);

#endif
