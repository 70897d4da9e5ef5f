/* What the kinds of `trestle backup` share. */
#ifndef TRESTLE_CMD_BACKUP_PRIVATE_H
#define TRESTLE_CMD_BACKUP_PRIVATE_H

#include "backup/whole_restore.h"
#include "base/options.h"

enum { BACKUP_COMMAND_MEMORY = 256 << 20 };

/* The words in front of the options, by their number, and then the options. */
struct backup_words {
    const struct option_table *table;
    size_t least;     /* of words */
    size_t most;      /* up to 2 */
    const char *need; /* what to say if they are not there */
};

/* Reads them; `out` is the object of the options. A word that is not there is NULL. */
status backup_read_words(const struct backup_words *words, const char *const *arguments,
                         const char *given[2], void *out);

/* A manifest by its name, or the newest if that is NULL; `*name` is then what it is called. */
status backup_find(struct place *place, const char **name, struct arena *arena,
                   struct whole_backup *out);

/* Work at this rate, in bytes a second. */
struct whole_work backup_work_at(uint64_t rate);

/* "3 files, 1.2 MB". */
void backup_append_size(struct buffer *out, uint64_t files, uint64_t bytes);

int backup_create_kind(const char *const *arguments);

/* --- a moment that an archive is to be asked for: backup_moment.c --- */

struct backup_moment {
    const char *archive; /* a place; NULL: the backup is restored as it is */
    const char *until;   /* NULL: as far as the archive goes */
    const char *table;   /* NULL: all */
};

/* The backup NAME, or the one that goes best with the moment if `*name` is NULL; and, if there is
 * an archive, the restore is told to take it on. What is allocated is freed by backup_moment_end.
 */
struct backup_moment_work;
status backup_moment_begin(const struct backup_moment *moment, struct whole_restore *restore,
                           struct arena *arena, const char **name, struct whole_backup *backup,
                           struct backup_moment_work **out);
/* Tells what was done. */
void backup_moment_tell(const struct backup_moment_work *work, const char *directory);
void backup_moment_end(struct backup_moment_work *work); /* NULL is fine */

#endif
