/* Declarations that the kinds of `trestle backup` share. */
#ifndef TRESTLE_CMD_BACKUP_BACKUP_PRIVATE_H
#define TRESTLE_CMD_BACKUP_BACKUP_PRIVATE_H

#include "backup/whole_restore.h"
#include "client/target_options.h"
#include "trestle/backup/v1/whole_backups.pb-c.h"

enum { BACKUP_COMMAND_MEMORY = 256 << 20 };

/* The words in front of the options, by their number, and then the options. */
struct backup_words {
    const struct option_table *table;
    size_t least;     /* of words */
    size_t most;      /* up to 2 */
    const char *need; /* what to say if they are not there */
};

#define BACKUP_KEY_SENTENCE                                                                        \
    "The key that what is in the place is encrypted with: the server's --backup-key."

/* Reads them; `out` is the object of the options, and `origins` are the table's, all zeroes. A word
 * that is not there is NULL. */
status backup_read_words(const struct backup_words *words, const char *const *arguments,
                         const char *given[2], void *out, struct option_origin *origins);

/* A manifest by its name, or, if that is NULL, the newest by whole_find_newest. */
status backup_find(struct place *place, const char *from, struct arena *arena, const char **name,
                   struct whole_backup *out);

/* The full name of a database out of PROJECT, PROJECT/DB or itself; in the arena. */
status backup_database_name(const char *given, struct arena *arena, const char **out);

#define BACKUP_DATABASE_SENTENCE                                                                   \
    "Only this Datastore database: PROJECT for the default one, or PROJECT/DB."

/* The part that --table, --instance or --database asks for; NULL: all. INVALID_ARGUMENT. */
struct backup_part {
    const char *table;
    const char *instance;
    const char *database;
};
status backup_choose_part(const struct backup_part *part, struct arena *arena, const char **out);

/* Work at this rate, in bytes a second. */
struct whole_work backup_work_at(uint64_t rate);

/* "3 files, 1.2 MB". */
void backup_append_size(struct buffer *out, uint64_t files, uint64_t bytes);

int backup_create_kind(const char *const *arguments);
int backup_restore_kind(const char *const *arguments);
int backup_schedule_kind(const char *const *arguments);

/* --- runs of a server: backup_runs.c --- */

#define BACKUP_SERVICE "/trestle.backup.v1.WholeBackups/"

/* Begins one by this call, waits for its end, and hands it to `tell`; or says why it failed. */
struct backup_listener {
    void (*tell)(void *context, const Wb__WholeBackupRun *done);
    void *context;
};
status backup_run(const struct target_options *target, const char *method,
                  const ProtobufCMessage *request, const struct backup_listener *listener);

/* --- tables alone, into a directory: backup_tables.c --- */

struct lost_rows;
struct backup_tables {
    struct place *place;
    const struct whole_backup *backup;
    const char *from; /* see whole_tables.h, as for the next two */
    const char *to;
    bool with_policies;
    bool salvage;
    const char *directory; /* to be made: not there, or empty */
    const struct log *log;
    struct whole_work *work;
    void (*tell)(const char *path); /* see backup/unfinished.h */
    /* Told of each range of theirs that is out of service. */
    status (*closed)(void *context, const struct lost_rows *lost);
    void *context;
};

/* `*made`: how many tables it has. */
status backup_make_tables(const struct backup_tables *tables, size_t *made);

/* --- a moment that an archive is to be asked for: backup_moment.c --- */

struct backup_moment {
    const char *archive; /* a place; NULL: the backup is restored as it is */
    const char *key;     /* a file: of the archive, too; NULL: it is not encrypted */
    const char *until;   /* NULL: as far as the archive goes */
    const char *table;   /* NULL: all */
};

/* The backup NAME, or the one that goes best with the moment if `*name` is NULL; and, if there is
 * an archive, the restore is told to take it on. backup_moment_end frees what is allocated. */
struct backup_moment_work;
status backup_moment_begin(const struct backup_moment *moment, struct whole_restore *restore,
                           struct arena *arena, const char **name, struct whole_backup *backup,
                           struct backup_moment_work **out);
/* Tells what was done. */
void backup_moment_tell(const struct backup_moment_work *work, const char *directory);
void backup_moment_end(struct backup_moment_work *work); /* NULL is fine */

#endif
