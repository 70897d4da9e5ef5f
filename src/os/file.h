/* What the server asks of file systems beside what the store does. */
#ifndef TRESTLE_OS_FILE_H
#define TRESTLE_OS_FILE_H

#include "base/status.h"

#include <limits.h>

/* Bytes that this process may still write to the file system that `path` is on. */
status disk_free_bytes(const char *path, uint64_t *out);

/* Whether another process holds a lock on the file (fcntl), as RocksDB does on LOCK; false if that
 * cannot be told. Not for a file that this process has locked: it would lose the lock. */
bool file_is_locked(const char *path);

/* Keeps others out, processes and threads that ask likewise, by a file of that name, which is made
 * if it is not there, until the lock is given back or the process ends. What is locked is the file
 * that the name leads to: only the holder of the lock may remove it. FAILED_PRECONDITION if another
 * has it. */
struct file_lock;
status file_lock_take(const char *path, struct file_lock **out);
void file_lock_release(struct file_lock *lock); /* NULL is fine */

/* Gives a file, or a directory, the mode of another; fine if that is not there. */
status file_take_mode(const char *path, const char *of);

/* The path without symbolic links, `.` and `..`, as far as it is there; what is not there yet
 * stands behind that as it was given. INVALID_ARGUMENT for the empty one, and what is too long. */
status path_resolve(const char *path, char out[PATH_MAX]);

/* Whether `inner` is `outer` or lies in it, by path_resolve. */
status path_is_within(const char *inner, const char *outer, bool *out);

/* Whether a file system, or a part of one, is mounted there: it cannot get another name. False if
 * that cannot be told. */
bool path_is_mount_point(const char *path);

/* Where a directory is to be made under its name, or replaced there: path_resolve. `act` is for
 * people, "restore into". FAILED_PRECONDITION for what is there and cannot be replaced: a mount
 * point, what is no directory, a symbolic link that leads nowhere. */
status path_of_new_directory(const char *path, const char *act, char out[PATH_MAX]);

/* Reads a file of at most `most` bytes. `forbidden` are permission bits that it must not have, such
 * as 022 for what only its owner may change: FAILED_PRECONDITION if it has one. The buffer is empty
 * before, and freed by the caller after success. */
status file_read(const char *path, size_t most, unsigned forbidden, struct buffer *out);

/* Makes durable which names there are in the directory that a file is in: that the file has this
 * one. */
status file_sync_parent(const char *path);

/* What tells a file that was written again, put in the place of another, or made readable, from
 * what it was. */
struct file_stamp {
    uint64_t device;
    uint64_t inode;
    int64_t size;
    int64_t modified_ns;
    int64_t changed_ns; /* of what the file is about: who may read it, above all */
};

/* All zeroes if the file cannot be looked at. */
struct file_stamp file_stamp(const char *path);

static inline bool file_stamp_equal(struct file_stamp a, struct file_stamp b)
{
    return a.device == b.device && a.inode == b.inode && a.size == b.size &&
           a.modified_ns == b.modified_ns && a.changed_ns == b.changed_ns;
}

#endif
