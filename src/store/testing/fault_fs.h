/* For tests: a file system that fails when told to, and that knows what a power cut would leave. */
#ifndef TRESTLE_STORE_TESTING_FAULT_FS_H
#define TRESTLE_STORE_TESTING_FAULT_FS_H

#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fault_fs;

struct fault_fs *fault_fs_create(void);
void fault_fs_destroy(struct fault_fs *fs); /* after the store is closed */

/* store_open on this file system, over the system's. */
status fault_fs_open(struct fault_fs *fs, const struct store_options *options, struct store **out);

/* store_accept_old_data on it. */
status fault_fs_accept(struct fault_fs *fs, const char *directory);

enum fault_operation {
    FAULT_CREATE,
    FAULT_ALLOCATE, /* room taken in advance, by fallocate */
    FAULT_APPEND,   /* half of the data is written */
    FAULT_SYNC,
    FAULT_SYNC_DIRECTORY,
    FAULT_READ,
    FAULT_RENAME, /* of the new name */
    FAULT_REMOVE,
};

enum fault_kind {
    FAULT_NO_SPACE,
    FAULT_IO,
    FAULT_UNSUPPORTED, /* EOPNOTSUPP */
};

/* From now on the operation fails on every file whose name contains `part`, after `pass` of them
 * that do not. One rule per operation; the last one holds. */
void fault_fs_fail(struct fault_fs *fs, enum fault_operation operation, const char *part,
                   enum fault_kind kind, unsigned pass);
/* The same for what the calling thread does; what RocksDB does in the background works. */
void fault_fs_fail_here(struct fault_fs *fs, enum fault_operation operation, const char *part,
                        enum fault_kind kind, unsigned pass);
/* From now on the disk does not read these bytes, the `count` from `from` on, of files whose name
 * contains `part`: a bad sector. One such rule; the last one holds. */
void fault_fs_break_bytes(struct fault_fs *fs, const char *part, uint64_t from, uint64_t count);
/* All works again. */
void fault_fs_heal(struct fault_fs *fs);
/* How many operations have failed so far. */
unsigned fault_fs_failures(const struct fault_fs *fs);

/* How many of them while RocksDB was putting together an iterator over range tombstones: each would
 * have freed memory twice (level0.cc), so it stays 0. */
unsigned fault_fs_failures_while_merging(const struct fault_fs *fs);

/* Copies the store's directory, with those in it, as a power cut at this moment would leave it: of
 * each file what was synced, and `torn` bytes more of what was written after that, if there are so
 * many; no file whose name was not synced with its directory. The store must not be written to
 * meanwhile; RocksDB's own threads may tidy up. */
void fault_fs_cut_power(struct fault_fs *fs, const char *directory, const char *copy, size_t torn);

/* How many bytes of the file with this suffix, the newest if there are several, are not synced. */
size_t fault_fs_unsynced(struct fault_fs *fs, const char *suffix);

#ifdef __cplusplus
}
#endif

#endif
