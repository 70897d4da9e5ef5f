/* All schedules of a server: of all that it has, and of parts of it (whole_scope.h) alone. Each is
 * as whole_schedule.h says, keeps what it made by a number of its own, and knows nothing of the
 * others; they have one place, and take turns, so that a short period keeps no other from its turn.
 *
 * A list of parts is text: NAME=PERIOD[/KEEP] with commas between, the name in full. One whose name
 * has a comma in it cannot be said.
 *
 * Pure, except whole_schedules_learn; one thread at a time. */
#ifndef TRESTLE_BACKUP_WHOLE_SCHEDULES_H
#define TRESTLE_BACKUP_WHOLE_SCHEDULES_H

#include "backup/whole_schedule.h"

enum { WHOLE_SCHEDULES_MOST = 65, WHOLE_ERROR_SIZE = 512 };

struct whole_scheduled {
    const char *scope; /* empty: all that the server has */
    struct whole_schedule schedule;
    int64_t end_us;    /* when the newest was ready, by the wall clock; 0: none is known */
    uint64_t failures; /* since the start */
    char error[WHOLE_ERROR_SIZE]; /* of the last attempt; empty if that was good */
};

/* All zeroes: there is none. */
struct whole_schedules {
    struct whole_scheduled *all; /* that of all that the server has first, if there is one */
    size_t count;
    size_t turn; /* the one that comes first of those that are due */
    char *names; /* that the scopes point into */
};

struct whole_schedule_wish {
    int64_t period_us; /* of all that the server has; 0: there is no such schedule */
    uint64_t keep;     /* of that, and of each part that names no number; 0: all stay */
    const char *parts; /* the list; NULL: none */
};

/* INVALID_ARGUMENT names the part of the list that is none, and what is wrong with it. */
status whole_schedules_create(const struct whole_schedule_wish *wish, struct whole_schedules *out);
void whole_schedules_free(struct whole_schedules *schedules);

/* How long until one is due; 0: `*index` is, now. Far in the future if there is none. */
int64_t whole_schedules_wait_us(const struct whole_schedules *schedules, int64_t wall_us,
                                int64_t steady_us, size_t *index);

/* An attempt of that one has ended, with what whole_schedule_note is told; takes nothing of the
 * status. `end_us`: when the backup was ready. */
void whole_schedules_note(struct whole_schedules *schedules, size_t index, status s,
                          const struct whole_backup *made, int64_t steady_us);

/* Learns from the place which is the newest that each schedule of the server made, of those that
 * are not known yet, in one pass. Manifests that cannot be read are left out. On failure nothing
 * has changed. */
status whole_schedules_learn(struct whole_schedules *schedules, struct place *place,
                             const char *server);

/* Schedules that are not known could not be learnt: to all of these that is an attempt that failed.
 * Takes nothing of the status. */
void whole_schedules_give_up(struct whole_schedules *schedules, status s, int64_t steady_us);

/* Appends which schedules are overdue, in words: "…: none; there is no table …; of projects/…:
 * 2026-…". As many as go into `most` bytes, the number of the others, and at least one. False:
 * nothing is. */
bool whole_schedules_tell_overdue(const struct whole_schedules *schedules, const char *place,
                                  int64_t wall_us, size_t most, struct buffer *out);

#endif
