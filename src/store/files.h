/* Files beside the store's own: those of backups, and copies of them on their way into a store.
 *
 * They go through RocksDB's interface to file systems, so that a test can make each operation fail
 * and cut the power (fault_fs.h). Paths are the system's; any thread; all of it blocks. */
#ifndef TRESTLE_STORE_FILES_H
#define TRESTLE_STORE_FILES_H

#include "store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

struct files;

struct files *files_of_system(void);
struct files *files_of_store(struct store *store); /* as long as the store is open */

/* Whether the directory has a store, but not the file that says which one it is (store_identity):
 * an opening for writing makes it another one. */
bool files_lack_identity(const char *directory);

/* Makes the directory, durably, unless it is there; its parent is. */
status files_make_directory(struct files *files, const char *path);
/* Makes durable which names the directory has. */
status files_sync_directory(struct files *files, const char *path);
status files_sync_parent(struct files *files, const char *path); /* of the directory it is in */

/* Calls `visit` for each name in the directory, in no order, until it fails. NOT_FOUND. */
status files_list(struct files *files, const char *path,
                  status (*visit)(void *context, const char *name), void *context);

/* Removes a file, or an empty directory; fine if there is none. Not durable by itself. */
status files_remove(struct files *files, const char *path);
status files_remove_directory(struct files *files, const char *path);
/* Removes a directory with the files in it, of which none is a directory; fine if there is none. */
status files_remove_flat_directory(struct files *files, const char *path);

/* Gives a file another name on the same file system, in place of what has that. Not durable by
 * itself. */
status files_rename(struct files *files, const char *from, const char *to);

/* A second name for a file, on the same file system. ALREADY_EXISTS. Not durable by itself. */
status files_link(struct files *files, const char *path, const char *name);

struct file_look {
    uint64_t size; /* of a directory: whatever the system says */
    bool is_directory;
};

/* NOT_FOUND. */
status files_look(struct files *files, const char *path, struct file_look *out);

/* Appends the whole file. NOT_FOUND; DATA_LOSS if it is larger than `most` bytes. */
status files_read(struct files *files, const char *path, size_t most, struct buffer *out);

/* Appends the last bytes of the file, `most` of them if it has so many. NOT_FOUND. */
status files_read_tail(struct files *files, const char *path, size_t most, struct buffer *out,
                       uint64_t *size);

/* A file that is read from its beginning to its end. One thread at a time. NOT_FOUND. */
struct file_reader;
status files_open(struct files *files, const char *path, struct file_reader **out);
/* Up to `size` bytes; 0 at the end only. */
status file_reader_next(struct file_reader *reader, uint8_t *to, size_t size, size_t *got);
void file_reader_close(struct file_reader *reader); /* NULL is fine */

/* A new file, in place of the one that there is, which is written from its beginning to its end.
 * One thread at a time. */
struct file_writer;
status files_create(struct files *files, const char *path, struct file_writer **out);
status file_writer_append(struct file_writer *writer, bytes piece);
/* Syncs the file, though not its name. */
status file_writer_finish(struct file_writer *writer);
/* Closes the file; one that was not finished stays, in whatever state. NULL is fine. */
void file_writer_close(struct file_writer *writer);

/* Puts the content in place of the file's, durably, so that a crash finds the one or the other.
 * What a crash leaves behind is `path` with ".new" at its end. */
status files_replace(struct files *files, const char *path, bytes content);

/* What a file must be to be the one that was written. */
struct file_sum {
    uint64_t size;
    uint32_t crc32c;
};

/* The sum of what comes piece after piece. One thread at a time. */
struct running_sum;
status running_sum_create(struct running_sum **out);
void running_sum_add(struct running_sum *sum, bytes piece);
/* Frees it. */
void running_sum_finish(struct running_sum *sum, struct file_sum *out);

/* Reads the file to its end. The pacer hears of each piece. */
status files_sum(struct files *files, const char *path, const struct store_pacer *pacer,
                 struct file_sum *out);

/* Copies the file, and syncs the copy, though not its name. */
status files_copy(struct files *files, const char *from, const char *to,
                  const struct store_pacer *pacer, struct file_sum *out);

/* Keeps other processes out of the directory, by a file LOCK in it, until the lock is given back.
 * FAILED_PRECONDITION if one has it. */
struct files_lock;
status files_lock_directory(struct files *files, const char *directory, struct files_lock **out);
void files_unlock_directory(struct files *files, struct files_lock *lock); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
