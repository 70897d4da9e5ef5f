/* What the files of backup.h share. */
#ifndef TRESTLE_CLUSTER_BACKUP_BACKUP_PRIVATE_H
#define TRESTLE_CLUSTER_BACKUP_BACKUP_PRIVATE_H

#include <pthread.h>

#include "cluster/backup/backup.h"
#include "cluster/cluster_private.h"

enum {
    BACKUP_MEMORY = 64 << 20,   /* of one manifest: a table of some 30 TB */
    BACKUP_FILE_SIZE = 64 << 20 /* at which the next file begins */
};

/* --- backup_manifest.c --- */

struct backup_file {
    const char *name;
    struct file_sum sum;
};

struct manifest {
    struct table_record table; /* of the source */
    struct schema *schema;     /* the same; freed by manifest_free */
    const bytes *split_keys;
    size_t split_count;
    struct backup_file *files;
    size_t file_count;
    int64_t newest_us;
    int64_t start_us;
    int64_t end_us;
    bytes extra;
};

uint64_t manifest_size_bytes(const struct manifest *manifest);
status manifest_write(struct files *files, const char *directory, const struct manifest *manifest);
/* Into the arena. NOT_FOUND if there is none; DATA_LOSS if it is damaged; FAILED_PRECONDITION if a
 * later release wrote it. `*out` is to be freed whatever comes. */
status manifest_read(struct files *files, const char *directory, struct arena *arena,
                     struct manifest *out);
void manifest_free(struct manifest *manifest);

/* --- backup_names.c --- */

/* A path, freed with buffer_free; `failed` without memory. */
const char *path_join(struct buffer *path, const char *directory, const char *name);

/* The directory's name for a backup's. INVALID_ARGUMENT if it has another form or is too long. */
status backup_directory_name(const char *backup, struct buffer *out);
/* The other way round; false for a name that backup_directory_name does not make. */
bool backup_name_of_directory(const char *name, struct buffer *out);

/* Removes the backup's directory with what backups have in theirs, the manifest first. */
status backup_remove_directory(struct files *files, const char *directory);

/* --- backup.c --- */

struct backups {
    uint32_t magic;
    struct cluster *cluster;
    struct files *files;
    const struct log *log;
    struct metrics *metrics;
    uint64_t bytes_per_second;
    char *directory;
    struct disk_reserve reserve; /* of the disk that it is on */
    char *staging;               /* directory of copies on their way into the store */
    struct files_lock *files_lock;
    pthread_mutex_t editing;       /* of manifests that stand; held with the disk; before `lock` */
    pthread_mutex_t lock;          /* of what follows; held for a search or a copy */
    struct known_backup **entries; /* by name */
    size_t count;
    size_t capacity;
};

/* Publishes a backup that was reserved and now is whole. */
void backups_publish(struct backups *backups, const char *name, const struct manifest *manifest);

/* The path of its directory. */
status backups_path(const struct backups *backups, const char *name, struct buffer *path);

/* --- backup_copy.c --- */

/* Makes an empty directory. ALREADY_EXISTS if there is a backup that was not fit to be listed. */
status backup_begin_directory(struct backups *backups, const char *directory);
/* Writes the manifest: from then on the backup is there. */
status backup_finish_directory(struct backups *backups, const char *directory,
                               const struct manifest *manifest);
/* Removes what there is of a reserved backup, and gives its name up. Returns `why`. */
status backup_abandon(struct backups *backups, const char *name, status why);

/* Copies the files of one directory into another, as long as that one's disk has room. DATA_LOSS if
 * one is not as the manifest says. */
status backup_copy_files(struct backups *backups, const struct manifest *manifest, const char *from,
                         const char *to, struct disk_reserve *reserve, struct backup_work *work);

/* --- backup_rows.c --- */

/* Where rows are written to. */
struct rows_target {
    struct backups *backups;
    const char *directory;
    struct disk_reserve *reserve; /* of the disk that it is on */
    struct backup_work *work;
    struct arena *arena; /* what is added to the manifest is in it */
};

/* What is read, and what of it is left out since it was dropped; none that is held. NULL: nothing.
 */
struct rows_source {
    struct store_cursor *cursor;
    struct row_drops *drops;
};

/* Writes all that there is into files, one source after the other, and names them in the manifest:
 * keys rise from each to the next. On failure some may be there. */
status backup_write_rows(const struct rows_target *target, const struct rows_source *sources,
                         size_t count, struct manifest *manifest);

/* The same of what a keyspace has in some ranges of keys, rising, that do not meet. */
struct rows_range {
    bytes from;
    bytes to; /* exclusive; empty: no bound */
};
status backup_write_ranges(const struct rows_target *target, struct keyspace *keyspace,
                           struct row_drops *drops, const struct rows_range *ranges, size_t count,
                           struct manifest *manifest);

/* --- backup_restore.c --- */

struct staged_backup {
    struct backups *backups;
    struct arena *arena;
    struct manifest manifest;
    struct buffer directory;
    uint64_t keyspace_id;
    int64_t lowered_us; /* how far its versions were lowered, in time */
    /* What the backup's files lack, and is out of service in the table: in the arena. */
    struct damage_record *damages;
    size_t damage_count;
    size_t damage_capacity;
};

/* One with an arena. What is staged is made by `stage`, in an empty directory, with the manifest's
 * newest_us known when `staged_backup_begin` is called, and its files when `staged_backup_finish`
 * is. */
status staged_backup_create(struct backups *backups, struct staged_backup **out);
status staged_backup_begin(struct staged_backup *staged);
status staged_backup_finish(struct staged_backup *staged, struct backup_work *work);

/* --- backup_pace.c --- */

/* Holds work back to the rate, counts it, ends it when it is cancelled. */
struct pace {
    struct backup_work *work;
    struct clock *clock;
    uint64_t bytes_per_second;
    int64_t start_us;
    uint64_t bytes; /* since then */
    bool counts;    /* into bytes_done */
};

struct pace pace_start(const struct backups *backups, struct backup_work *work, bool counts);
bool pace_go_on(void *pace, uint64_t bytes); /* for store_pacer */

#endif
