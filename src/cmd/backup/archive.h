/* `trestle archive`: what an archive has, and a data directory taken on to a later moment by it. */
#ifndef TRESTLE_CMD_BACKUP_ARCHIVE_H
#define TRESTLE_CMD_BACKUP_ARCHIVE_H

#include "archive/restore.h"
#include "base/dates.h"

/* The arguments behind "archive", ended by NULL; returns the exit status. */
int archive_command(const char *const *arguments);

/* The kinds `verify` and `replay`; see command.h. */
int archive_verify_kind(const char *const *arguments);
int archive_replay_kind(const char *const *arguments);

/* Options of commands that read pieces, besides the key. */
struct archive_reading {
    uint64_t rate;        /* bytes a second */
    const char *data_dir; /* a stopped server's, that the archive is held against; NULL: none */
};

/* The place that the first argument names, by the options behind it; and the help of these.
 * `reading` NULL: there are none of its options. */
status archive_open_place(const char *const *arguments, struct archive_reading *reading,
                          struct place **out);
void archive_write_place_options(const char *command, bool is_reading, struct buffer *out);

/* Takes an open store on by the archive in the place. `table`: a name, whose rows alone are taken;
 * NULL: all. `scratch` of the restore is in the directory. */
struct archive_taking {
    struct place *place;
    const char *what; /* as in archive_restore */
    uint64_t until;
    uint64_t from; /* as in archive_restore; so is the next */
    uint64_t next;
    const char *table;
    const struct log *log;
};
status archive_take_on(const struct archive_taking *taking, struct store *store,
                       const char *directory, struct archive_restored *out);

#define ARCHIVE_UNTIL_SENTENCE                                                                     \
    "A time like 2026-11-23T10:15:00Z, or a version: changes after it are left out. By default "   \
    "all that is archived is taken."
#define ARCHIVE_KEY_SENTENCE                                                                       \
    "The key that the archive is encrypted with: the server's --backup-key."
#define ARCHIVE_TABLE_SENTENCE                                                                     \
    "A table as it is called then, projects/P/instances/I/tables/T: its rows alone are taken, "    \
    "and those of others stay as they are in DIR. Quicker, to copy the table from there."

/* Two moments as people read them: dates_tell. */
void archive_tell_dates(uint64_t first, uint64_t second, date_text texts[2]);

/* Prints one line: what became of the directory, and up to when. */
void archive_tell_restored(const char *directory, const struct archive_restored *restored);

#endif
