/* The file LOCK, by which a directory is one process's at a time. What is locked is the file, not
 * its name: who removes it lets another process make, and lock, one of its own.
 *
 * RocksDB has the first, and keeps it. One that is made anew is locked here, as RocksDB does it, by
 * fcntl. Such a lock is the process's, and goes with the first descriptor of that file that it
 * closes: so nobody opens LOCK while another thread takes it, and one that is ours is not opened.
 */
#include "store/log_ends.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using rocksdb::IOStatus;

enum { ATTEMPTS = 16 }; /* at a file that is removed again and again */

lock_file::~lock_file()
{
    if (fd >= 0)
        close(fd);
}

void lock_file::begin(const std::string &directory)
{
    std::lock_guard<std::mutex> lock(mutex);
    path = directory + "/LOCK";
    inode = inode_of(path);
}

static bool is_locked_by_another(int fd)
{
    struct flock wanted = {};
    wanted.l_type = F_WRLCK;
    wanted.l_whence = SEEK_SET;
    return fcntl(fd, F_GETLK, &wanted) == 0 && wanted.l_type != F_UNLCK;
}

lock_state lock_file::look()
{
    std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
    if (!lock.owns_lock() || inode == 0 || !is_gone(path, inode))
        return LOCK_OURS;
    int found = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (found < 0)
        return LOCK_GONE;
    bool is_taken = is_locked_by_another(found);
    close(found);
    return is_taken ? LOCK_TAKEN : LOCK_GONE;
}

/* Not so if somebody has removed it since it was opened. */
static bool is_file_at(int fd, const std::string &path)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && stat(path.c_str(), &there) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

static bool lock_whole(int fd)
{
    struct flock wanted = {};
    wanted.l_type = F_WRLCK;
    wanted.l_whence = SEEK_SET;
    return fcntl(fd, F_SETLK, &wanted) == 0;
}

static status refuse(const std::string &path, int error)
{
    if (error == EAGAIN || error == EACCES)
        return status_make(STATUS_FAILED_PRECONDITION, "%s: another process has locked it",
                           path.c_str());
    return status_from_errno(error, "cannot lock %s", path.c_str());
}

/* Of the file that the name leads to at the end. */
static status lock_at(const std::string &path, int *out)
{
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        bool is_locked = fd >= 0 && lock_whole(fd);
        int error = errno;
        *out = fd;
        if (is_locked && is_file_at(fd, path))
            return status_ok();
        if (fd >= 0)
            close(fd);
        if (!is_locked)
            return refuse(path, error);
    }
    return status_make(STATUS_UNAVAILABLE, "%s: it is removed again and again", path.c_str());
}

status lock_file::take()
{
    std::lock_guard<std::mutex> lock(mutex);
    int taken = -1;
    if (!is_gone(path, inode))
        return status_ok();
    TRY(lock_at(path, &taken));
    if (fd >= 0)
        close(fd);
    fd = taken;
    inode = inode_of(path);
    return status_ok();
}
