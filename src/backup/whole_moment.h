/* A server at a moment: the whole backup that comes nearest before it, and what was archived since
 * (archive/restore.h). */
#ifndef TRESTLE_BACKUP_WHOLE_MOMENT_H
#define TRESTLE_BACKUP_WHOLE_MOMENT_H

#include "archive/restore.h"
#include "backup/whole.h"

struct whole_moment {
    struct place *place; /* of whole backups */
    struct place *archive;
    uint64_t until;   /* a sequence, or ARCHIVE_END */
    const char *name; /* of the backup that is to be taken; NULL: the newest that can be */
};

/* The backup, in `*name` what it is called, both in the arena, and from where to where it is to be
 * taken. NOT_FOUND; FAILED_PRECONDITION
 * if the moment cannot be had, with the nearest that can, if it is not clear of which server, or if
 * none is named and one from between the newest and the moment cannot be read.
 * Reads every manifest, and no piece of the archive. */
status whole_find_base(const struct whole_moment *moment, struct arena *arena, const char **name,
                       struct whole_backup *out, struct archive_reach *read_tier);

#endif
