/* Whole backups: all that a server has, at one instant, in a place (place/place.h).
 *
 *     backups/<name>       manifests, one a backup (whole_manifest.c)
 *     files/<content>      what they refer to, each by its content's name
 *     damaged/<content>    marks of those that were found damaged, until they are written again
 *
 * A part of a server, a table or an instance, may be backed up alone (whole_scope.h). Such a backup
 * is one of a server that has nothing else.
 *
 * A whole backup is a manifest: which files a data directory has, and what the content of each is.
 * A content is kept once in a place, by its SHA-256, whichever backups and servers refer to it: so
 * the second backup of a server takes the room, and the time, of what has changed. Every manifest
 * is complete by itself: none needs another one.
 *
 * Invariants
 *  1. A manifest is written when all that it refers to is in the place, durably. A backup that was
 *     killed has none.
 *  2. A content is removed when no manifest refers to it.
 *  3. A backup that refers to a content that is there already has read it, or one did so within a
 *     period (whole_contents.h); one that is damaged is written again.
 *  4. A content is read from the source twice before it is written, and both times it was the same;
 *     a restored file is what the manifest says, or the restore fails.
 *
 * Any thread; all of it blocks. */
#ifndef TRESTLE_BACKUP_WHOLE_H
#define TRESTLE_BACKUP_WHOLE_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "place/place.h"

enum { WHOLE_NAME_SIZE = 64, WHOLE_DIGEST_SIZE = 32 };

struct whole_file {
    const char *name; /* in the data directory */
    uint64_t size;
    uint8_t sha256[WHOLE_DIGEST_SIZE];
    uint32_t tail_crc32c; /* of its last bytes: see whole_create.c */
};

/* A manifest's content. */
struct whole_backup {
    const char *server; /* store_identity of the server */
    uint64_t version;   /* it is exact up to this commit: a sequence (tablet/version.h) */
    int64_t instant_us; /* by the server's wall clock, as are the next two */
    int64_t start_us;
    int64_t end_us;
    const char *program;     /* the release that wrote it */
    const char *settings;    /* of the server, "key = value" a line; empty: not known */
    bool is_scheduled;       /* made by a schedule, and removed by it */
    uint64_t archive_stream; /* of the archive (archive/piece.h) that goes on from it; 0: none */
    const char *scope;       /* see whole_scope.h; NULL or empty: all that the server has */
    uint64_t closed_ranges;  /* of its rows: known to be out of service when it was made */
    struct whole_file *files;
    size_t file_count;
};

uint64_t whole_size(const struct whole_backup *backup); /* bytes of all its files */

struct whole_hold;

/* How work goes, and an end to it. Another thread may look at the counts. */
struct whole_work {
    struct clock *clock;
    uint64_t bytes_per_second;      /* read; 0: no bound */
    bool (*goes_on)(void *context); /* false: CANCELLED. May be NULL */
    void *context;
    _Atomic uint64_t bytes_total;
    _Atomic uint64_t bytes_done;
    /* Of what is written to a place: what was not there yet. */
    _Atomic uint64_t files_copied;
    _Atomic uint64_t bytes_copied;
    _Atomic uint64_t files_mended; /* of those copied: what was there was damaged */
    /* Private. */
    int64_t start_us;
    uint64_t bytes_read;
    struct whole_hold *hold; /* of what is restored: whole_hold.h */
};

/* For callers that read by themselves: counts what was read, and holds the work to its rate.
 * CANCELLED. */
void whole_begin(struct whole_work *work, uint64_t bytes_total);
status whole_pace(struct whole_work *work, uint64_t bytes);

/* --- making --- */

/* Makes the folders of whole backups, unless they are there. NOT_FOUND without the place. */
status whole_prepare(struct place *place);

/* Before anything is added or removed; place_unlock gives it back. Clears away what a killed writer
 * has left. FAILED_PRECONDITION if another process has it; NOT_FOUND without whole_prepare. */
status whole_lock(struct place *place, struct place_lock **out);

struct whole_source {
    struct files *files;   /* of `directory` */
    const char *directory; /* a checkpoint, or a data directory that no process has open */
    /* With all but files, times of making and program. */
    const struct whole_backup *facts;
    /* How often a content that the place keeps for this server is read again; 0: never. */
    int64_t check_period_us;
    /* Hears of a content of the place that is damaged, and what is wrong; it is written again. May
     * be NULL. */
    void (*tell_damaged)(void *context, const char *content, const char *wrong);
    void *context;
};

/* Adds a backup to the place, which is locked. `name`: what it is called, by its instant. */
status whole_create(struct place *place, const struct whole_source *source, struct whole_work *work,
                    char name[WHOLE_NAME_SIZE]);

/* --- reading --- */

/* Into the arena. NOT_FOUND; DATA_LOSS if it is damaged; FAILED_PRECONDITION if a later release
 * wrote it. */
status whole_read(struct place *place, const char *name, struct arena *arena,
                  struct whole_backup *out);

/* The same where the user names the backup, or is told of no other: the error names a manifest that
 * cannot be read. */
status whole_read_named(struct place *place, const char *name, struct arena *arena,
                        struct whole_backup *out);

/* The names of all, rising, which need not be from the oldest to the newest (whole_order.h); in the
 * arena. NOT_FOUND if the place keeps no whole backups. */
status whole_names(struct place *place, struct arena *arena, const char *const **out,
                   size_t *count);

/* Whether a place that is called so has the backup still. Fails if the place does not look like one
 * that has ever had any: it may be away. */
status whole_look_for(const char *place, const char *name, bool *is_there);

/* Reads all that the backup refers to, and calls `report` for what is missing or damaged, with the
 * content's name and what is wrong. Fails if it could not go on. */
status whole_verify(struct place *place, const struct whole_backup *backup, struct whole_work *work,
                    void (*report)(void *context, const char *file, const char *wrong),
                    void *context);

/* Has the next backup that refers to the content of this name write it again. The place's lock is
 * not needed. */
status whole_mark_damaged(struct place *place, const char *content);

/* Writes the backup's files into the directory, which is there and empty; FORMAT, without which no
 * server takes it for a data directory, comes last. */
status whole_fetch(struct place *place, const struct whole_backup *backup, struct files *files,
                   const char *directory, struct whole_work *work);

/* --- expiry --- */

/* An expiry: which backups go. Each server's are counted by themselves, and so are those of each
 * part of it. */
struct whole_expiry {
    const char *server;  /* of this server alone, NOT_FOUND if there is none; NULL: of all */
    const char *scope;   /* of this part alone, empty: of whole servers; NULL: of any */
    bool scheduled_only; /* those that schedules made */
    uint64_t keep;       /* the newest of those of a server, by whole_order.h; at least 1 */
    /* Was made a moment ago, with the place locked, so it is the newest of its server. UNAVAILABLE
     * if the place does not show it. NULL: none. */
    const char *made;
    /* Moments since then can be restored with an archive: of each server the newest that was made
     * before it stays, and all later ones. Microseconds since 1970; before it is what was made
     * before it both by the wall clock and by the versions'. 0 counts for nothing. */
    int64_t reach_us;
    bool is_trial; /* nothing is removed: what would be is told, and counted */
    /* Hears of each backup that is gone. May be NULL. */
    void (*tell)(void *context, const char *name, const char *server);
    void *context;
};

/* Removes those, except one that is being restored (whole_hold.h), and then contents that no
 * manifest refers to any more. The place is locked, except for a trial. The counts are right if it
 * fails, too.
 *
 * Backups that a place does not show are taken to be gone, so it is asked twice: UNAVAILABLE, and
 * no content is removed, if it does not show the same manifests, less those that went;
 * FAILED_PRECONDITION if it has contents and no manifest at all. A manifest that cannot be read
 * stays, and with it everything: DATA_LOSS. */
status whole_expire(struct place *place, const struct whole_expiry *expiry, struct whole_work *work,
                    size_t *backups_removed, size_t *files_removed);

#endif
