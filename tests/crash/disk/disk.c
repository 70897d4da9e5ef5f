/* Disks that are full, read-only, short of space, or fail now and then, for a program that is
 * loaded with this library (LD_PRELOAD): without a root's rights, and changed while the program
 * runs.
 *
 *   DISK_ROOTS   directories, with colons between, absolute: each on a disk of its own
 *   DISK_STATE   a file of 16 bytes for each of them, two numbers of this machine's order: what the
 *                disk is like now (enum kind), and how much of that
 *
 * A full disk takes what has room on it already: bytes that are overwritten, blocks that were taken
 * before they were needed, and names, as file systems do that keep those apart. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { DESCRIPTORS = 65536, DISKS = 4, PERMILLE = 1000 };

enum kind {
    SOUND,
    LOW,       /* the number: bytes that are free, by what statvfs says */
    FULL,      /* nothing is free */
    READ_ONLY, /* also for files that are open */
    FAILING,   /* the number: how many in a thousand reads, writes and syncs fail with EIO */
};

struct disk {
    char root[PATH_MAX];
    size_t size; /* of the root's name */
};

struct state {
    int64_t kind;
    int64_t number;
};

static struct disk disks[DISKS];
static int disk_count;
static const volatile struct state *states; /* NULL: nothing is watched */
static atomic_schar disk_of[DESCRIPTORS];   /* 1 for the first disk; 0: none */
static _Atomic int64_t given_up[DISKS];     /* bytes of a full disk that were cut off from files */
static _Atomic uint64_t draws;              /* so that what fails follows from how often */

/* --- loading --- */

static void die(const char *what)
{
    dprintf(STDERR_FILENO, "disk: %s\n", what);
    _exit(98);
}

static void add_root(const char *root, size_t size)
{
    if (disk_count == DISKS || size == 0 || size >= PATH_MAX || root[0] != '/')
        die("DISK_ROOTS has no such paths");
    struct disk *disk = &disks[disk_count++];
    memcpy(disk->root, root, size);
    disk->size = size;
}

static void map_states(const char *path)
{
    size_t size = (size_t)disk_count * sizeof(struct state);
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED)
        die("DISK_STATE is no such file");
    syscall(SYS_close, file);
    states = mapped;
}

__attribute__((constructor)) static void load(void)
{
    const char *roots = getenv("DISK_ROOTS"), *state = getenv("DISK_STATE");
    unsetenv("LD_PRELOAD"); /* programs that this one starts are not meant */
    while (roots != NULL && *roots != '\0') {
        size_t size = strcspn(roots, ":");
        add_root(roots, size);
        roots += size + (roots[size] == ':');
    }
    if (disk_count > 0 && state != NULL)
        map_states(state);
}

/* --- what a disk is like --- */

static struct state state_of(int disk)
{
    struct state sound = {SOUND, 0};
    if (disk == 0)
        return sound;
    return (struct state){states[disk - 1].kind, states[disk - 1].number};
}

static bool is_below(const char *path, const struct disk *disk)
{
    return strncmp(path, disk->root, disk->size) == 0 &&
           (path[disk->size] == '/' || path[disk->size] == '\0');
}

/* Of a path; relative ones are on none. */
static int disk_at(const char *path)
{
    for (int i = 0; states != NULL && path != NULL && i < disk_count; i++)
        if (is_below(path, &disks[i]))
            return i + 1;
    return 0;
}

/* A descriptor may have been closed by the C library itself, and be a socket now. */
static int disk_under(int fd, struct stat *st)
{
    int disk = fd >= 0 && fd < DESCRIPTORS ? atomic_load(&disk_of[fd]) : 0;
    if (disk == 0 || states[disk - 1].kind == SOUND || fstat(fd, st) != 0)
        return 0;
    return S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) ? disk : 0;
}

static bool fails(struct state state)
{
    uint64_t z = atomic_fetch_add(&draws, 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return state.kind == FAILING && (z >> 32) % PERMILLE < (uint64_t)state.number;
}

static int refuse(int error)
{
    errno = error;
    return -1;
}

/* Whether a name may be changed. */
static int check_name(const char *path)
{
    return state_of(disk_at(path)).kind == READ_ONLY ? EROFS : 0;
}

static off_t taken_by(const struct stat *st)
{
    enum { BLOCK = 512 };
    return (off_t)st->st_blocks * BLOCK;
}

/* Whether a full disk has room for bytes up to `end`: the file's own, or what others gave up. */
static bool has_room(int disk, const struct stat *st, off_t end)
{
    int64_t more = end - (st->st_size > taken_by(st) ? st->st_size : taken_by(st));
    if (more <= 0)
        return true;
    if (atomic_fetch_sub(&given_up[disk - 1], more) >= more)
        return true;
    atomic_fetch_add(&given_up[disk - 1], more);
    return false;
}

/* Whether bytes up to `end` may be written. */
static int check_write(int fd, off_t end)
{
    struct stat st;
    int disk = disk_under(fd, &st);
    const struct state state = state_of(disk);
    if (state.kind == SOUND)
        return 0;
    if (state.kind == READ_ONLY)
        return EROFS;
    if (state.kind == FULL && !has_room(disk, &st, end))
        return ENOSPC;
    return fails(state) ? EIO : 0;
}

static int check_read(int fd)
{
    struct stat st;
    return fails(state_of(disk_under(fd, &st))) ? EIO : 0;
}

/* Where the next write goes. */
static off_t position(int fd)
{
    struct stat st;
    if ((fcntl(fd, F_GETFL) & O_APPEND) != 0 && fstat(fd, &st) == 0)
        return st.st_size;
    return (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR);
}

/* --- opening --- */

static int open_on_disk(int directory, const char *path, int flags, mode_t mode)
{
    bool is_for_writing = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
    int error = is_for_writing ? check_name(path) : 0;
    if (error != 0)
        return refuse(error);
    int fd = (int)syscall(SYS_openat, directory, path, flags, mode);
    if (fd >= 0 && fd < DESCRIPTORS)
        atomic_store(&disk_of[fd], (signed char)disk_at(path));
    return fd;
}

static mode_t mode_argument(int flags, va_list arguments)
{
    return (flags & O_CREAT) != 0 ? (mode_t)va_arg(arguments, int) : 0;
}

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        mode_t mode = mode_argument(flags, arguments);                                             \
        va_end(arguments);                                                                         \
        return open_on_disk(AT_FDCWD, path, flags, mode);                                          \
    }

OPEN(open)
OPEN(open64)

int close(int fd)
{
    if (fd >= 0 && fd < DESCRIPTORS)
        atomic_store(&disk_of[fd], 0);
    return (int)syscall(SYS_close, fd);
}

/* --- writing and reading --- */

ssize_t write(int fd, const void *from, size_t size)
{
    struct stat st;
    int error = disk_under(fd, &st) == 0 ? 0 : check_write(fd, position(fd) + (off_t)size);
    return error != 0 ? refuse(error) : syscall(SYS_write, fd, from, size);
}

#define PWRITE(name)                                                                               \
    ssize_t name(int fd, const void *from, size_t size, off_t offset)                              \
    {                                                                                              \
        int error = check_write(fd, offset + (off_t)size);                                         \
        return error != 0 ? refuse(error) : syscall(SYS_pwrite64, fd, from, size, offset);         \
    }

PWRITE(pwrite)
PWRITE(pwrite64)

ssize_t read(int fd, void *to, size_t size)
{
    int error = check_read(fd);
    return error != 0 ? refuse(error) : syscall(SYS_read, fd, to, size);
}

#define PREAD(name)                                                                                \
    ssize_t name(int fd, void *to, size_t size, off_t offset)                                      \
    {                                                                                              \
        int error = check_read(fd);                                                                \
        return error != 0 ? refuse(error) : syscall(SYS_pread64, fd, to, size, offset);            \
    }

PREAD(pread)
PREAD(pread64)

/* How who must not wait looks whether something is in memory: it fails as any other read. */
#define PREADV2(name)                                                                              \
    ssize_t name(int fd, const struct iovec *vectors, int count, off_t offset, int flags)          \
    {                                                                                              \
        int error = check_read(fd);                                                                \
        return error != 0 ? refuse(error)                                                          \
                          : syscall(SYS_preadv2, fd, vectors, count, offset, 0, flags);            \
    }

PREADV2(preadv2)
PREADV2(preadv64v2)

#define FALLOCATE(name)                                                                            \
    int name(int fd, int mode, off_t offset, off_t size)                                           \
    {                                                                                              \
        int error = check_write(fd, offset + size);                                                \
        return error != 0 ? refuse(error) : (int)syscall(SYS_fallocate, fd, mode, offset, size);   \
    }

FALLOCATE(fallocate)
FALLOCATE(fallocate64)

static int cut_on_disk(int fd, off_t size)
{
    struct stat before, after;
    int disk = disk_under(fd, &before), error = check_write(fd, 0);
    if (error != 0)
        return refuse(error);
    int result = (int)syscall(SYS_ftruncate, fd, size);
    if (disk != 0 && result == 0 && fstat(fd, &after) == 0)
        atomic_fetch_add(&given_up[disk - 1], taken_by(&before) - taken_by(&after));
    return result;
}

#define FTRUNCATE(name)                                                                            \
    int name(int fd, off_t size)                                                                   \
    {                                                                                              \
        return cut_on_disk(fd, size);                                                              \
    }

FTRUNCATE(ftruncate)
FTRUNCATE(ftruncate64)

static int sync_on_disk(int fd, long number)
{
    int error = check_write(fd, 0);
    return error != 0 ? refuse(error) : (int)syscall(number, fd);
}

int fsync(int fd)
{
    return sync_on_disk(fd, SYS_fsync);
}

int fdatasync(int fd)
{
    return sync_on_disk(fd, SYS_fdatasync);
}

/* --- names --- */

int access(const char *path, int how)
{
    int error = (how & W_OK) != 0 ? check_name(path) : 0;
    return error != 0 ? refuse(error) : (int)syscall(SYS_faccessat, AT_FDCWD, path, how);
}

int rename(const char *from, const char *to)
{
    int error = check_name(to);
    return error != 0 ? refuse(error)
                      : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int link(const char *from, const char *to)
{
    int error = check_name(to);
    return error != 0 ? refuse(error) : (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path)
{
    int error = check_name(path);
    return error != 0 ? refuse(error) : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int rmdir(const char *path)
{
    int error = check_name(path);
    return error != 0 ? refuse(error) : (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

int mkdir(const char *path, mode_t mode)
{
    int error = syscall(SYS_faccessat, AT_FDCWD, path, F_OK) != 0 ? check_name(path) : 0;
    return error != 0 ? refuse(error) : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

/* --- space --- */

static int tell_space(const char *path, struct statvfs *out)
{
    struct statfs real;
    const struct state state = state_of(disk_at(path));
    if (statfs(path, &real) != 0)
        return -1;
    *out = (struct statvfs){.f_bsize = (unsigned long)real.f_bsize,
                            .f_frsize = (unsigned long)real.f_bsize,
                            .f_blocks = real.f_blocks,
                            .f_bfree = real.f_bfree,
                            .f_bavail = real.f_bavail,
                            .f_files = real.f_files,
                            .f_ffree = real.f_ffree,
                            .f_favail = real.f_ffree,
                            .f_flag = state.kind == READ_ONLY ? ST_RDONLY : 0,
                            .f_namemax = (unsigned long)real.f_namelen};
    if (state.kind == FULL)
        out->f_bavail = out->f_bfree = 0;
    if (state.kind == LOW)
        out->f_bavail = out->f_bfree = (fsblkcnt_t)state.number / (fsblkcnt_t)real.f_bsize;
    return 0;
}

int statvfs(const char *restrict path, struct statvfs *restrict out)
{
    return tell_space(path, out);
}

/* The same structure where a word has 64 bits. */
int statvfs64(const char *restrict path, struct statvfs64 *restrict out);
int statvfs64(const char *restrict path, struct statvfs64 *restrict out)
{
    return tell_space(path, (struct statvfs *)(void *)out);
}
