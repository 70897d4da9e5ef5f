/* The library's interposed functions. They do what the C library's do, by bare system calls, and
 * keep the journal. Beside the ones below, nothing that makes durable or names files may be used by
 * a program under this library: no mmap for writing, no sync(2), no O_TMPFILE, no fopen for
 * writing. */
#include "powercut.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { DESCRIPTORS = 65536 };

static struct settings settings;
static bool is_watching;                    /* set once, before the program runs */
static atomic_bool watched_fd[DESCRIPTORS]; /* opened below the root */

static atomic_int moments_left; /* until the process is killed; 0: as long as it likes */

typedef int timedwait_function(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
typedef int clockwait_function(pthread_cond_t *, pthread_mutex_t *, clockid_t,
                               const struct timespec *);
/* Seconds that another process adds to the wall clock while this one runs; NULL: none does. */
static const volatile int64_t *moved_clock_s;
static timedwait_function *real_timedwait;
static clockwait_function *real_clockwait;

/* --- loading --- */

static enum mode parse_mode(const char *name)
{
    static const char *const names[] = {"keep", "lose", "tear", "holes"};
    for (unsigned i = 0; name != NULL && i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0)
            return (enum mode)i;
    }
    if (name != NULL)
        die("powercut: unknown POWERCUT_MODE \"%s\"\n", name);
    return MODE_KEEP;
}

static int64_t parse_number(const char *variable)
{
    const char *text = getenv(variable);
    char *end;
    errno = 0;
    int64_t number = text != NULL ? strtoll(text, &end, 10) : 0;
    if (text != NULL && (errno != 0 || *end != '\0' || end == text))
        die("powercut: %s is not a number\n", variable);
    return number;
}

static void parse_path(const char *variable, char path[PATH_MAX])
{
    const char *text = getenv(variable);
    if (text == NULL || text[0] != '/' || snprintf(path, PATH_MAX, "%s", text) >= PATH_MAX)
        die("powercut: %s is not an absolute path\n", variable);
    for (size_t size = strlen(path); size > 1 && path[size - 1] == '/'; size--)
        path[size - 1] = '\0';
}

/* What the file says, now and later; it has 8 bytes of this machine's order. */
static void map_clock_file(void)
{
    const char *path = getenv("POWERCUT_CLOCK_FILE");
    if (path == NULL)
        return;
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    void *mapped =
        file < 0 ? MAP_FAILED : mmap(NULL, sizeof *moved_clock_s, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED)
        die("powercut: %s: %s\n", path, strerror(errno));
    syscall(SYS_close, file);
    moved_clock_s = mapped;
}

__attribute__((constructor)) static void load(void)
{
    real_timedwait = (timedwait_function *)dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    real_clockwait = (clockwait_function *)dlsym(RTLD_NEXT, "pthread_cond_clockwait");
    settings.clock_offset_s = parse_number("POWERCUT_CLOCK");
    map_clock_file();
    if (getenv("POWERCUT_FAIL") != NULL)
        parse_path("POWERCUT_FAIL", settings.fail_file);
    /* Programs that this one starts are not meant. */
    unsetenv("LD_PRELOAD");
    if (getenv("POWERCUT_ROOT") == NULL)
        return;
    parse_path("POWERCUT_ROOT", settings.root);
    parse_path("POWERCUT_JOURNAL", settings.journal);
    settings.mode = parse_mode(getenv("POWERCUT_MODE"));
    settings.seed = (uint64_t)parse_number("POWERCUT_SEED");
    settings.no_sync = parse_number("POWERCUT_NO_SYNC") != 0;
    if (syscall(SYS_mkdir, settings.journal, 0755) != 0 && errno != EEXIST)
        die("powercut: %s: %s\n", settings.journal, strerror(errno));
    journal_begin(&settings); /* finds out whether another process has it */
    cut_power(&settings);
    journal_begin(&settings);
    if (getenv("POWERCUT_KILL") != NULL)
        parse_path("POWERCUT_KILL", settings.kill_file);
    is_watching = true;
}

/* --- the kill --- */

/* Reads how many moments are left, once the file is there. */
static bool find_kill_file(void)
{
    char text[24] = "";
    int fd = (int)syscall(SYS_openat, AT_FDCWD, settings.kill_file, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return false;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    int none = 0;
    return size > 0 && atomic_compare_exchange_strong(&moments_left, &none, atoi(text));
}

/* Called just before and just after each sync, and after each change of names, below the root. */
static void pass_moment(void)
{
    if (!is_watching || settings.kill_file[0] == '\0')
        return;
    if (atomic_load(&moments_left) == 0 && !find_kill_file())
        return;
    if (atomic_fetch_sub(&moments_left, 1) == 1)
        kill(getpid(), SIGKILL);
}

/* --- paths --- */

/* The path as an absolute one; false if it cannot be below the root. */
static bool watched_path(int directory, const char *path, char out[PATH_MAX])
{
    if (!is_watching || path == NULL)
        return false;
    char base[PATH_MAX] = "";
    if (path[0] != '/') {
        char link[64] = "/proc/self/cwd";
        if (directory != AT_FDCWD)
            snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
        ssize_t size = readlink(link, base, sizeof base - 1);
        if (size < 0)
            return false;
        base[size] = '\0';
    }
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    int size = snprintf(out, PATH_MAX, "%s%s%s", base, path[0] == '/' ? "" : "/", path);
    if (size >= PATH_MAX)
        return false;
    while (size > 1 && out[size - 1] == '/')
        out[--size] = '\0';
    size_t root = strlen(settings.root);
    return strncmp(out, settings.root, root) == 0 && (out[root] == '/' || out[root] == '\0');
}

/* 0 if there is none. */
static uint64_t inode_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_ino : 0;
}

static uint64_t parent_inode(const char *path)
{
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%s", path);
    *strrchr(parent, '/') = '\0';
    return inode_of(parent[0] != '\0' ? parent : "/");
}

/* What fails leaves no trace in the journal. */
static int done(long result)
{
    return (int)result;
}

/* --- opening --- */

static void note_open(int fd, const char *path, int flags, bool existed)
{
    struct stat st;
    if (fd >= DESCRIPTORS || fstat(fd, &st) != 0)
        die("powercut: descriptor %d cannot be watched\n", fd);
    atomic_store(&watched_fd[fd], true);
    if (!S_ISREG(st.st_mode) || (flags & O_ACCMODE) == O_RDONLY)
        return;
    if (!existed)
        journal_write("N%" PRIu64 "\t%s\n", parent_inode(path), path);
    if (!existed || (flags & O_TRUNC) != 0)
        journal_write("C%" PRIu64 "\n", (uint64_t)st.st_ino);
    else
        journal_write("O%" PRIu64 " %" PRIu64 "\n", (uint64_t)st.st_ino, (uint64_t)st.st_size);
    if (!existed)
        pass_moment();
}

static int watched_open(int directory, const char *path, int flags, mode_t mode)
{
    char absolute[PATH_MAX];
    struct stat st;
    bool is_watched = watched_path(directory, path, absolute);
    bool existed = is_watched && stat(absolute, &st) == 0;
    int fd = done(syscall(SYS_openat, directory, path, flags, mode));
    if (fd >= 0 && is_watched)
        note_open(fd, absolute, flags, existed);
    else if (fd >= 0 && fd < DESCRIPTORS)
        atomic_store(&watched_fd[fd], false);
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
        return watched_open(AT_FDCWD, path, flags, mode);                                          \
    }

#define OPENAT(name)                                                                               \
    int name(int directory, const char *path, int flags, ...)                                      \
    {                                                                                              \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        mode_t mode = mode_argument(flags, arguments);                                             \
        va_end(arguments);                                                                         \
        return watched_open(directory, path, flags, mode);                                         \
    }

/* With _FORTIFY_SOURCE open becomes __open_2. */
#define OPEN_2(name)                                                                               \
    int name(const char *path, int flags);                                                         \
    int name(const char *path, int flags)                                                          \
    {                                                                                              \
        return watched_open(AT_FDCWD, path, flags, 0);                                             \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
OPEN_2(__open_2)
OPEN_2(__open64_2)

int creat(const char *path, mode_t mode)
{
    return watched_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

/* --- syncing --- */

/* The size is taken before the sync: what is written meanwhile is not promised. */
static int watched_sync(int fd, long number)
{
    struct stat st;
    if (settings.fail_file[0] != '\0' && syscall(SYS_access, settings.fail_file, F_OK) == 0) {
        errno = EIO;
        return -1;
    }
    bool is_watched = is_watching && fd >= 0 && fd < DESCRIPTORS && atomic_load(&watched_fd[fd]) &&
                      fstat(fd, &st) == 0;
    if (is_watched)
        pass_moment();
    int result = is_watched && settings.no_sync ? 0 : done(syscall(number, fd));
    if (result == 0 && is_watched && S_ISDIR(st.st_mode))
        journal_write("D%" PRIu64 "\n", (uint64_t)st.st_ino);
    else if (result == 0 && is_watched)
        journal_write("S%" PRIu64 " %" PRIu64 "\n", (uint64_t)st.st_ino, (uint64_t)st.st_size);
    if (is_watched)
        pass_moment();
    return result;
}

int fsync(int fd)
{
    return watched_sync(fd, SYS_fsync);
}

int fdatasync(int fd)
{
    return watched_sync(fd, SYS_fdatasync);
}

/* --- names --- */

static int watched_rename(int from_directory, const char *from, int to_directory, const char *to,
                          unsigned flags)
{
    char absolute_from[PATH_MAX], absolute_to[PATH_MAX], trash[NAME_MAX];
    bool is_watched = watched_path(from_directory, from, absolute_from);
    bool to_is_watched = watched_path(to_directory, to, absolute_to);
    if (is_watched != to_is_watched)
        die("powercut: %s is moved over the root's border\n", from);
    bool replaces = is_watched && journal_keep(absolute_to, trash);
    int result = done(syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
    if (result == 0 && is_watched)
        journal_write("R%" PRIu64 "\t%s\t%s\t%s\n", parent_inode(absolute_to), absolute_from,
                      absolute_to, replaces ? trash : "-");
    if (is_watched)
        pass_moment();
    return result;
}

int rename(const char *from, const char *to)
{
    return watched_rename(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat(int from_directory, const char *from, int to_directory, const char *to)
{
    return watched_rename(from_directory, from, to_directory, to, 0);
}

int renameat2(int from_directory, const char *from, int to_directory, const char *to,
              unsigned flags)
{
    return watched_rename(from_directory, from, to_directory, to, flags);
}

static int remove_directory(int directory, const char *path)
{
    char absolute[PATH_MAX];
    bool is_watched = watched_path(directory, path, absolute);
    uint64_t inode = is_watched ? inode_of(absolute) : 0;
    int result = done(syscall(SYS_unlinkat, directory, path, AT_REMOVEDIR));
    if (result == 0 && is_watched) {
        journal_write("X%" PRIu64 " %" PRIu64 "\t%s\n", parent_inode(absolute), inode, absolute);
        pass_moment();
    }
    return result;
}

int unlinkat(int directory, const char *path, int flags)
{
    char absolute[PATH_MAX], trash[NAME_MAX];
    if ((flags & AT_REMOVEDIR) != 0)
        return remove_directory(directory, path);
    bool kept = watched_path(directory, path, absolute) && journal_keep(absolute, trash);
    int result = done(syscall(SYS_unlinkat, directory, path, flags));
    if (result == 0 && kept)
        journal_write("U%" PRIu64 "\t%s\t%s\n", parent_inode(absolute), absolute, trash);
    if (kept)
        pass_moment();
    return result;
}

int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char *path)
{
    return remove_directory(AT_FDCWD, path);
}

int remove(const char *path)
{
    int result = unlinkat(AT_FDCWD, path, 0);
    return result != 0 && errno == EISDIR ? rmdir(path) : result;
}

static void note_name(int directory, const char *path)
{
    char absolute[PATH_MAX];
    /* The root itself is there before and after: its parent is not watched. */
    if (watched_path(directory, path, absolute) && strcmp(absolute, settings.root) != 0)
        journal_write("N%" PRIu64 "\t%s\n", parent_inode(absolute), absolute);
}

int linkat(int from_directory, const char *from, int to_directory, const char *to, int flags)
{
    int result = done(syscall(SYS_linkat, from_directory, from, to_directory, to, flags));
    if (result == 0)
        note_name(to_directory, to);
    return result;
}

int link(const char *from, const char *to)
{
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int mkdirat(int directory, const char *path, mode_t mode)
{
    int result = done(syscall(SYS_mkdirat, directory, path, mode));
    if (result == 0)
        note_name(directory, path);
    return result;
}

int mkdir(const char *path, mode_t mode)
{
    return mkdirat(AT_FDCWD, path, mode);
}

/* --- the clock --- */

static int64_t clock_offset_s(void)
{
    return settings.clock_offset_s + (moved_clock_s == NULL ? 0 : *moved_clock_s);
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    int result = done(syscall(SYS_clock_gettime, clock, out));
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        out->tv_sec += clock_offset_s();
    return result;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    int result = done(syscall(SYS_gettimeofday, out, zone));
    if (result == 0)
        out->tv_sec += clock_offset_s();
    return result;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}

/* A moment of the wall clock, as the kernel sees it. Moments of the steady clock count from the
 * machine's start, which is less than thirty years ago. */
static struct timespec kernel_time(const struct timespec *moment)
{
    struct timespec shifted = *moment;
    if (moment->tv_sec > 1000000000)
        shifted.tv_sec -= clock_offset_s();
    return shifted;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    struct timespec shifted = kernel_time(until);
    return real_timedwait(condition, mutex, &shifted);
}

int pthread_cond_clockwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           clockid_t clock, const struct timespec *restrict until)
{
    struct timespec shifted = kernel_time(until);
    return real_clockwait(condition, mutex, clock, &shifted);
}
