/* The long work on backups: making one, copying one, restoring a table from one. Each is a kind of
 * operation (control/operations.h), ordered in an edit and carried out on an operation's thread.
 *
 * A job that a crash or a stop cuts short is done again, from its beginning, at the next start: the
 * operation's record has all that it needs to know. A backup that was finished, while its operation
 * was not, is known by the operation's name, which it keeps.
 *
 * A backup that is copied or restored is held from the order to the end, so that it cannot be
 * deleted. */
#ifndef TRESTLE_BIGTABLE_BACKUP_JOBS_H
#define TRESTLE_BIGTABLE_BACKUP_JOBS_H

#include "bigtable/backup_facts.h"

/* --- ordering a backup, made or copied --- */

struct backup_order {
    struct bigtable *bigtable;
    struct arena *arena;
    BtAdmin__Backup *backup; /* with its name, source and times; completed when it is ordered */
    bool is_automated;       /* its times are its policy's, and not checked */
    bool is_reserved;        /* its name is taken */
};

/* Takes an order for a backup of a table, in an edit of its own. */
status backup_order_create(struct backup_order *order, const ProtobufCMessage **operation);

/* Stages an operation that makes the backup, in a cluster that exists, and takes the backup's name.
 * If the edit fails afterwards, backup_order_undo is due. */
status backup_order_stage(struct backup_order *order, struct edit *edit, const char *kind,
                          const ProtobufCMessage *metadata, const ProtobufCMessage **operation);
void backup_order_undo(struct backup_order *order);

/* Whether the backup can be read: it is ready, and has not expired. */
status check_backup_is_of_use(const struct bigtable *bigtable, const BtAdmin__Backup *backup);

/* --- carrying out --- */

struct backup_job {
    struct backup_work work;
    struct bigtable *bigtable;
    struct operation *operation;
    struct arena *arena;
    const char *table; /* whose backup it is; NULL: not known yet. In the arena */
    bool by_policy;
    const ProtobufCMessage *metadata;     /* what to show while it goes on; NULL: nothing new */
    BtAdmin__OperationProgress *progress; /* in the metadata; NULL: it tells of none */
    Pb__Timestamp **end;                  /* in the metadata: when it ended, however it did */
    int64_t shown_us;                     /* when, by clock_steady_us */
};

/* Runs `work` with a job for the operation. */
status backup_job_run(struct bigtable *bigtable, struct operation *operation,
                      status (*work)(struct backup_job *job));

/* At a start: calls `take_up` with an arena. */
status backup_job_recover(const struct bigtable *bigtable, const char *operation, bytes argument,
                          status (*take_up)(const struct bigtable *bigtable, const char *operation,
                                            bytes argument, struct arena *arena));

/* The same of an operation that makes a backup: unless that is made, calls `reserve`, which takes
 * its name and what else it needs. */
status
backup_job_recover_making(const struct bigtable *bigtable, const char *operation, bytes argument,
                          status (*reserve)(const struct bigtable *bigtable, const char *operation,
                                            struct backup_facts *facts));

/* From here on clients see how far it is. `*slot` is the metadata's progress. */
status backup_job_show(struct backup_job *job, const ProtobufCMessage *metadata,
                       BtAdmin__OperationProgress **slot);
/* Shows that the job is at its end. */
status backup_job_complete(struct backup_job *job);

/* Ends the operation with a backup that is made. Without this end there is no backup. */
status backup_job_finish(struct backup_job *job, const BtAdmin__Backup *backup,
                         const ProtobufCMessage *metadata);

/* Whether what the operation was to make is there. ALREADY_EXISTS for another one's of its name. */
status backup_job_is_done(const struct bigtable *bigtable, const char *operation, const char *name,
                          struct arena *arena, bool *is_done);

/* Takes the backup's name, again. */
status backup_job_reserve(const struct bigtable *bigtable, const char *operation,
                          struct backup_facts *facts);

/* --- kinds --- */

extern const struct operation_kind create_backup_kind; /* contexts are the struct bigtable */
extern const struct operation_kind copy_backup_kind;
extern const struct operation_kind restore_table_kind;

#endif
