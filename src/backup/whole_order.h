/* The order of whole backups. Names and instants are the wall clock's, which may have been wrong
 * for a while, so order is by what the backups have: the commit version, by which the commits of a
 * server follow each other whatever its clocks do (docs/internals/clocks.md). A server that was
 * restored goes on above what its backup had, so this holds for the two as well; backups of servers
 * that have nothing to do with each other are ordered by what each took the time for.
 *
 * Any thread; all of it blocks, except whole_compare. */
#ifndef TRESTLE_BACKUP_WHOLE_ORDER_H
#define TRESTLE_BACKUP_WHOLE_ORDER_H

#include "backup/whole.h"

/* The key by which a backup is ordered. */
struct whole_age {
    uint64_t version;
    const char *name; /* decides if nothing was committed between the two */
};

/* Negative if `a` is older, positive if it is newer. */
int whole_compare(const struct whole_age *a, const struct whole_age *b);

/* The names of all, from the oldest to the newest, in the arena; every manifest is read. One that
 * cannot be read stands where its name says; and where names of others contradict their versions,
 * so that names say nothing, it is the newest. NOT_FOUND if the place keeps no whole backups;
 * UNAVAILABLE and RESOURCE_EXHAUSTED of a manifest. */
status whole_names_by_age(struct place *place, struct arena *arena, const char *const **out,
                          size_t *count);

#endif
