/* A mark in a place, by which who restores a backup keeps it from expiry: an object in the folder
 * holds, which says of which backup, and until when. It is put anew every minute, for a quarter of
 * an hour by the wall clock of who restores: so the mark of one that was killed lapses. Who expires
 * looks at them by his own clock: clocks that differ by more than that quarter keep nothing.
 *
 * Where it cannot be put, in a place that may only be read, there is none, and an expiry that comes
 * in between is told as that (ABORTED). */
#ifndef TRESTLE_BACKUP_WHOLE_HOLD_H
#define TRESTLE_BACKUP_WHOLE_HOLD_H

#include "backup/whole.h"

struct whole_hold;

/* From now on the backup is held, by the work's clock, or work->hold is NULL. What is pointed to
 * outlives that. Blocking. */
void whole_hold_begin(struct whole_work *work, struct place *place,
                      const struct whole_backup *backup);
void whole_hold_renew(struct whole_hold *hold); /* when it is due; NULL is fine. Blocking */
void whole_hold_end(struct whole_work *work);   /* Blocking */

/* Which backups are held. */
struct whole_held {
    const char *server;
    int64_t instant_us;
    int64_t until_us;
};

/* Into the arena. What lapsed before `now_us`, or cannot be read, is removed if `tidies`; it holds
 * nothing. */
status whole_held_list(struct place *place, int64_t now_us, bool tidies, struct arena *arena,
                       struct whole_held **out, size_t *count);

#endif
