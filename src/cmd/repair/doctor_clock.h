/* Entries of a directory that lie ahead of the clock: written while that was wrong, or, if it is
 * behind now, since. Nothing is lost by it, and nothing of it is damage, unless it is above the
 * version ceiling too: then what is written next would count for less. See
 * docs/internals/clocks.md. */
#ifndef TRESTLE_CMD_REPAIR_DOCTOR_CLOCK_H
#define TRESTLE_CMD_REPAIR_DOCTOR_CLOCK_H

#include "row/fragment.h"
#include "store/store.h"

#include <stdio.h>

struct doctor_clock {
    int64_t wall_us;  /* less a minute, which is nothing */
    uint64_t ceiling; /* the durable one of versions; 0: nothing was ever written */
};

/* Counts of one table's entries ahead. All zeroes: nothing yet. */
struct doctor_ahead {
    uint64_t entries; /* with versions ahead of the wall clock */
    uint64_t newest;  /* version */
    uint64_t moments; /* of Datastore, likewise: times of cells */
    int64_t newest_us;
    uint64_t entries_above; /* the ceiling */
    uint64_t moments_above;
};

status doctor_clock_init(struct keyspace *catalog, int64_t wall_us, struct doctor_clock *out);

void doctor_clock_note(const struct doctor_clock *clock, const struct entry *entry,
                       struct doctor_ahead *ahead);
void doctor_clock_note_moment(const struct doctor_clock *clock, int64_t at_us,
                              struct doctor_ahead *ahead);

/* A line for each kind of what is ahead; nothing if nothing is. */
void doctor_clock_print(const struct doctor_clock *clock, const struct doctor_ahead *ahead,
                        const char *table, FILE *to);
/* The same of the ceiling itself. */
void doctor_clock_print_ceiling(const struct doctor_clock *clock, FILE *to);

#endif
