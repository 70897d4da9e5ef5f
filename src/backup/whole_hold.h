/* A hold is a mark in a place by which a restore keeps its backup from expiry: an object in the
 * folder holds, which says of which backup, and until when. It is put again every minute, for a
 * quarter of an hour by the restore's wall clock: so the mark of one that was killed lapses. An
 * expiry looks at them by its own clock: clocks that differ by more than that quarter keep nothing.
 *
 * Where it cannot be put, in a place that may only be read, there is none, and an expiry that comes
 * in between is told as that (ABORTED). */
#ifndef TRESTLE_BACKUP_WHOLE_HOLD_H
#define TRESTLE_BACKUP_WHOLE_HOLD_H

#include "backup/whole.h"

struct whole_hold;

/* From now on the backup is held, by the work's clock, or work->hold is NULL. All that is pointed
 * to outlives that. Blocking. */
void whole_hold_begin(struct whole_work *work, struct place *place,
                      const struct whole_backup *backup);
void whole_hold_renew(struct whole_hold *hold); /* when it is due; NULL is fine. Blocking */
void whole_hold_end(struct whole_work *work);   /* Blocking */

/* A backup that is held. */
struct whole_held {
    const char *server;
    int64_t instant_us;
    int64_t until_us;
};

/* Into the arena. A hold that lapsed before `now_us`, or cannot be read, is removed if `tidies`; it
 * holds nothing. */
status whole_held_list(struct place *place, int64_t now_us, bool tidies, struct arena *arena,
                       struct whole_held **out, size_t *count);

#endif
