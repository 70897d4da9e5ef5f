/* The power cut itself, carried out when the library is loaded: names first, since the sizes are
 * known by inode, then bytes. */
#include "powercut.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };

struct event {
    char kind;
    uint64_t inode; /* of the file; for names, of the directory */
    uint64_t size;  /* of X: the inode of the directory that was removed */
    char *paths[3]; /* as in the journal */
    bool is_undone;
};

/* The library is loaded once in a process, and nftw has no context. */
static struct {
    const struct settings *settings;
    struct event *events;
    size_t count;
    uint64_t random;
    unsigned files_cut;
    unsigned names_undone;
    uint64_t bytes_lost;
} cut;

/* splitmix64: the next number from 0 up to and including `most`. */
static uint64_t random_up_to(uint64_t most)
{
    uint64_t z = (cut.random += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    return most == UINT64_MAX ? z : z % (most + 1);
}

/* --- reading the journal --- */

static void parse_line(char *line)
{
    struct event event = {.kind = line[0]};
    char *rest = strchr(line, '\t');
    if (rest != NULL)
        *rest++ = '\0';
    if (sscanf(line + 1, "%" SCNu64 " %" SCNu64, &event.inode, &event.size) < 1)
        return; /* the last line of a process that was killed while it wrote */
    for (size_t i = 0; i < 3 && rest != NULL; i++)
        event.paths[i] = strdup(strsep(&rest, "\t"));

    if ((cut.count & (cut.count + 1)) == 0) { /* full at 1, 3, 7, … */
        size_t capacity = 2 * (cut.count + 1);
        cut.events = realloc(cut.events, capacity * sizeof *cut.events);
        if (cut.events == NULL)
            die("powercut: out of memory\n");
    }
    cut.events[cut.count++] = event;
}

static bool read_journal(const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    while ((size = getline(&line, &capacity, file)) > 0) {
        if (line[size - 1] != '\n')
            break;
        line[size - 1] = '\0';
        parse_line(line);
    }
    free(line);
    fclose(file);
    return true;
}

/* --- names --- */

static bool is_name_event(const struct event *event)
{
    return event->kind == 'N' || event->kind == 'U' || event->kind == 'X' || event->kind == 'R';
}

/* Its directory was synced later, or is gone for good, and what was in it with it. A new directory
 * may have the inode of one that is gone. */
static bool is_durable(size_t index)
{
    uint64_t directory = cut.events[index].inode;
    for (size_t i = index + 1; i < cut.count; i++) {
        const struct event *event = &cut.events[i];
        if (event->kind == 'D' && event->inode == directory)
            return true;
        if (event->kind == 'X' && event->size == directory)
            return is_durable(i);
    }
    return false;
}

static void move(const char *from, const char *to)
{
    if (syscall(SYS_rename, from, to) != 0)
        die("powercut: %s cannot be moved to %s: %s\n", from, to, strerror(errno));
}

static void restore(const char *trash, const char *path)
{
    char kept[PATH_MAX + NAME_MAX];
    if (trash == NULL || strcmp(trash, "-") == 0)
        return;
    snprintf(kept, sizeof kept, "%s/%s", cut.settings->journal, trash);
    move(kept, path);
}

/* Puts the path into the directory's new name if it leads through the directory. */
static void follow_rename(const struct event *rename, char path[PATH_MAX])
{
    char moved[PATH_MAX];
    size_t size = strlen(rename->paths[0]);
    if (strncmp(path, rename->paths[0], size) != 0 || path[size] != '/')
        return;
    if (snprintf(moved, sizeof moved, "%s%s", rename->paths[1], path + size) >= PATH_MAX)
        die("powercut: %s is too long\n", path);
    strcpy(path, moved);
}

/* What a path of the event is now: a directory above it may have been renamed since, and that may
 * stay so. */
static void present_path(size_t index, const char *path, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s", path);
    for (size_t i = index + 1; i < cut.count; i++)
        if (cut.events[i].kind == 'R' && !cut.events[i].is_undone)
            follow_rename(&cut.events[i], out);
}

static void undo_name(size_t index)
{
    struct event *event = &cut.events[index];
    char path[PATH_MAX], to[PATH_MAX];
    present_path(index, event->paths[0], path);
    switch (event->kind) {
    case 'N':
        if (syscall(SYS_unlink, path) != 0)
            syscall(SYS_rmdir, path);
        break;
    case 'U':
        restore(event->paths[1], path);
        break;
    case 'X':
        if (syscall(SYS_mkdir, path, 0755) != 0)
            die("powercut: %s cannot be made again: %s\n", path, strerror(errno));
        break;
    case 'R':
        present_path(index, event->paths[1], to);
        move(to, path);
        restore(event->paths[2], to);
        break;
    }
    event->is_undone = true;
    cut.names_undone++;
}

/* File systems order names: if one survives, so do those before it. */
static void undo_names(void)
{
    size_t pending = 0;
    for (size_t i = 0; i < cut.count; i++)
        pending += is_name_event(&cut.events[i]) && !is_durable(i);
    size_t undo = cut.settings->mode == MODE_LOSE ? pending : random_up_to(pending);
    for (size_t i = cut.count; i > 0 && undo > 0; i--) {
        if (is_name_event(&cut.events[i - 1]) && !is_durable(i - 1)) {
            undo_name(i - 1);
            undo--;
        }
    }
}

/* --- bytes --- */

/* How much of the file is safe; false if nobody wrote to it. */
static bool synced_size(uint64_t inode, uint64_t *size)
{
    bool known = false;
    for (size_t i = 0; i < cut.count; i++) {
        const struct event *event = &cut.events[i];
        if (event->inode != inode)
            continue;
        if (event->kind == 'C')
            *size = 0;
        else if (event->kind == 'S' || (event->kind == 'O' && !known))
            *size = event->size;
        else
            continue;
        known = true;
    }
    return known;
}

static void clear_pages(const char *path, uint64_t from, uint64_t to)
{
    static const char zeroes[PAGE];
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY, 0);
    if (fd < 0)
        die("powercut: %s: %s\n", path, strerror(errno));
    for (uint64_t page = from / PAGE; page * PAGE < to; page++) {
        if (random_up_to(1) == 0)
            continue;
        uint64_t begin = page * PAGE < from ? from : page * PAGE;
        uint64_t end = (page + 1) * PAGE < to ? (page + 1) * PAGE : to;
        if (syscall(SYS_pwrite64, fd, zeroes, end - begin, begin) != (ssize_t)(end - begin))
            die("powercut: %s: %s\n", path, strerror(errno));
        cut.bytes_lost += end - begin;
    }
    close(fd);
}

static int cut_file(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)where;
    uint64_t synced = 0, size = (uint64_t)st->st_size;
    if (type != FTW_F || !synced_size(st->st_ino, &synced) || size <= synced)
        return 0;
    uint64_t left = synced;
    if (cut.settings->mode != MODE_LOSE)
        left += random_up_to(size - synced);
    if (syscall(SYS_truncate, path, left) != 0)
        die("powercut: %s: %s\n", path, strerror(errno));
    if (cut.settings->mode == MODE_HOLES)
        clear_pages(path, synced, left);
    cut.files_cut++;
    cut.bytes_lost += size - left;
    return 0;
}

/* --- all of it --- */

static void empty_journal(void)
{
    DIR *directory = opendir(cut.settings->journal);
    if (directory == NULL)
        die("powercut: %s: %s\n", cut.settings->journal, strerror(errno));
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (strncmp(entry->d_name, "trash-", 6) == 0 || strcmp(entry->d_name, "log") == 0)
            unlinkat(dirfd(directory), entry->d_name, 0);
    }
    closedir(directory);
}

static void report(void)
{
    char text[200];
    if (cut.files_cut + cut.names_undone == 0)
        return;
    snprintf(text, sizeof text,
             "powercut: seed %" PRIu64 ": %u files cut, %" PRIu64 " bytes lost, %u names undone\n",
             cut.settings->seed, cut.files_cut, cut.bytes_lost, cut.names_undone);
    syscall(SYS_write, STDERR_FILENO, text, strlen(text));
}

static void forget_events(void)
{
    for (size_t i = 0; i < cut.count; i++) {
        for (size_t j = 0; j < 3; j++)
            free(cut.events[i].paths[j]);
    }
    free(cut.events);
    cut.events = NULL;
    cut.count = 0;
}

void cut_power(const struct settings *settings)
{
    char path[PATH_MAX + 8];
    cut.settings = settings;
    cut.random = settings->seed;
    snprintf(path, sizeof path, "%s/log", settings->journal);
    if (settings->mode != MODE_KEEP && read_journal(path)) {
        undo_names();
        if (nftw(settings->root, cut_file, 16, FTW_PHYS) != 0 && errno != ENOENT)
            die("powercut: %s: %s\n", settings->root, strerror(errno));
        report();
        forget_events();
    }
    empty_journal();
}
