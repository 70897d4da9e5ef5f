/* A data directory, the copy of a server's, that is taken on in its place:
 *
 *     DIR             as it was, with no other user, up to the end
 *     DIR.replaying   what is taken on: DIR's tables by links, all else copied; no identity
 *     DIR.former      for a moment at the end: DIR, which goes
 *
 * Invariants
 *  1. A replay that fails leaves DIR as it was; or as it is to be, if only the new name could not
 *     be made durable.
 *  2. A replay that is killed leaves DIR as it was, or whole as it is to be; or, in the middle of
 *     the two renames at the end, DIR.former, which the next replay calls DIR again.
 *  3. DIR.replaying and DIR.former are removed only with the mark (unfinished.h).
 *
 * Blocking. */
#ifndef TRESTLE_BACKUP_REPLAY_H
#define TRESTLE_BACKUP_REPLAY_H

#include "store/files.h"

struct directory_replay {
    struct files *files;
    const char *directory; /* no slash at its end, and no symbolic link */
    const struct log *log;
    /* The store of what is taken on is open, in the directory, and has no other user. */
    status (*take_on)(void *context, struct store *store, const char *directory);
    void *context;
    void (*tell)(const char *path); /* see unfinished.h */
};

/* NOT_FOUND without the directory; FAILED_PRECONDITION if it is in use, or something is in the way;
 * what `take_on` fails with. */
status directory_replay(const struct directory_replay *replay);

#endif
