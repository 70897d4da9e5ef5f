/* Backups: a table as it was at one instant, in a directory that needs nothing else.
 *
 * What is kept
 *     <directory>/<project>,<instance>,<cluster>,<backup>/000001.sst …    rows (store/export.cc)
 *                                                         MANIFEST       all the rest
 * The manifest is written last and removed first: a directory without one is a backup that was not
 * finished, or not wholly deleted, and is cleared away at the next start. docs/internals/format.md
 * has the bytes. A backup carried into another server's directory is there after its next start.
 *
 * Invariants
 *  1. One instant: the rows come from one cursor, made under the lock under which schemas change,
 *     and are folded by the rules of that instant. Writers wait for nothing.
 *  2. What was written is read again before the manifest names it, and what is restored is held
 *     against the manifest while it is copied.
 *  3. Restoring raises the clock of commit versions above the backup's, so that no later write
 *     loses to a restored cell, whatever the machine's clock says.
 *  4. One process at a time has the directory (file LOCK).
 *
 * Threads: any; all functions that touch files block, for as long as the work takes. */
#ifndef TRESTLE_CLUSTER_BACKUP_BACKUP_H
#define TRESTLE_CLUSTER_BACKUP_BACKUP_H

#include "cluster/cluster.h"
#include "store/files.h"

struct backups;

struct backups_options {
    struct cluster *cluster;
    const char *directory;     /* made if missing; its parent is there */
    uint64_t bytes_per_second; /* of rows read, or of files copied; 0: no bound */
    const struct log *log;
    struct metrics *metrics; /* may be NULL */
};

/* Reads what there is, and clears away what a crash left. FAILED_PRECONDITION if another process
 * has the directory. */
status backups_open(const struct backups_options *options, struct backups **out);
void backups_close(struct backups *backups); /* NULL is fine; no work may be under way */

/* Full names: projects/P/instances/I/clusters/C/backups/B. */
struct backup_info {
    const char *name;
    const char *source_table; /* full name */
    bool is_ready;            /* else it is being made */
    uint64_t size_bytes;      /* of its files */
    int64_t start_us;         /* of its making */
    int64_t end_us;           /* 0 as long as it is being made */
    bytes extra;              /* what the services keep; theirs to encode */
};

/* Copies into the arena. NOT_FOUND. */
status backup_describe(struct backups *backups, const char *name, struct arena *arena,
                       struct backup_info *out);

/* The backups whose names start with the prefix, by name; `*out` is in the arena. */
status backups_list(struct backups *backups, const char *prefix, struct arena *arena,
                    struct backup_info **out, size_t *count);

/* Whether there are any such. */
bool backups_have_any(struct backups *backups, const char *prefix);

/* Sets the metrics of what there is. */
void backups_measure(struct backups *backups);

/* --- work that takes its time --- */

/* How it goes, and an end to it. */
struct backup_work {
    /* Asked often, on the thread that works, also while that waits for its turn at the rate: false
     * ends the work with CANCELLED. NULL: it goes on to its end. */
    bool (*goes_on)(struct backup_work *work);
    void *context;
    uint64_t bytes_done;  /* 0 before the work begins, as is the next */
    uint64_t bytes_total; /* an estimate */
};

/* Takes the name, which shows as a backup that is being made until it is made, or given up: for
 * backup_create, backup_copy, or backup_give_up. ALREADY_EXISTS; INVALID_ARGUMENT for a name of
 * another form. */
status backup_reserve(struct backups *backups, const char *name, const char *source_table,
                      bytes extra);
void backup_give_up(struct backups *backups, const char *name);

/* Fill what was reserved. On failure nothing is left, nor is the name. */
status backup_create(struct backups *backups, const char *name, struct table *table,
                     struct backup_work *work);
status backup_copy(struct backups *backups, const char *from, const char *name,
                   struct backup_work *work);

/* Replaces `extra`, durably. NOT_FOUND; FAILED_PRECONDITION while it is being made. */
status backup_set_extra(struct backups *backups, const char *name, bytes extra);

/* Gone at once, with its files. NOT_FOUND; FAILED_PRECONDITION while it is being made or held. */
status backup_delete(struct backups *backups, const char *name);

/* Keeps what is to be copied or restored from being deleted, until it is let go as often.
 * NOT_FOUND; FAILED_PRECONDITION while it is being made. */
status backup_hold(struct backups *backups, const char *name);
void backup_let_go(struct backups *backups, const char *name);

/* Restoring has two steps: the first copies the files into the data directory, the second makes
 * them a table, quickly. */
struct staged_backup;
status backup_stage(struct backups *backups, const char *name, struct backup_work *work,
                    struct staged_backup **out);
void staged_backup_destroy(struct staged_backup *staged); /* NULL is fine */

/* What a restored table is to be, beside what the source was. */
struct restore_spec {
    const char *table; /* full name */
    bool deletion_protection;
    bytes extra;             /* see table_info */
    struct catalog_txn *txn; /* see table_spec */
};

/* What the source was when it was backed up; valid as long as the staged backup. */
struct table_info staged_backup_source(const struct staged_backup *staged);

/* Once for each staged backup. ALREADY_EXISTS; DATA_LOSS. */
status staged_backup_restore(struct staged_backup *staged, const struct restore_spec *spec,
                             struct table **out);

/* --- for the doctor --- */

struct backups_check {
    void *context;
    /* A backup, and what is wrong with it; NULL: nothing. */
    void (*visit)(void *context, const char *name, uint64_t size_bytes, const char *wrong);
};

/* Reads every file of every backup; needs no server, and minds none. What is being made meanwhile
 * is passed over. NOT_FOUND if there is no such directory. */
status backups_verify(struct files *files, const char *directory,
                      const struct backups_check *check);

#endif
