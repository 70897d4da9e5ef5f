/* Which subjects there are points of, and what becomes of these in time: ten seconds fold to
 * minutes, minutes to hours, and what is too old goes.
 *
 * What is known of it in memory only saves looking: after a kill a start finds by the points what
 * is to be folded, and folding again comes to the same. One thread. Functions block. */
#ifndef TRESTLE_HISTORY_HISTORY_KEEP_H
#define TRESTLE_HISTORY_HISTORY_KEEP_H

#include "history/history_store.h"

enum { HISTORY_SUBJECTS_MOST = 1024 }; /* so many are kept; others are left out until some go */

struct history_subject_state {
    char *name;
    bool waits[HISTORY_LEVELS];         /* it has got points that may not have been folded */
    int64_t removed_us[HISTORY_LEVELS]; /* nothing is kept from before */
};

/* All zeroes is a start. */
struct history_keep {
    struct history_subject_state *subjects;
    size_t count;
    bool is_loaded;
    int64_t
        folded_us[HISTORY_LEVELS]; /* up to when each level was folded, by the versions' clock */
};

void history_keep_free(struct history_keep *keep);

/* A point of ten seconds of the subject is to be written. False: there are too many subjects, or no
 * memory for one more. */
bool history_keep_note(struct history_keep *keep, const char *subject);

/* Does what is due: `now_us` by the versions' clock. What fails is done the next time. */
status history_keep_run(struct history_keep *keep, struct cluster *cluster, int64_t retention_us,
                        int64_t now_us);

#endif
