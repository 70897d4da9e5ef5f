/* What the files of the power-cut library share. See ../README.md for what it does.
 *
 * The journal, POWERCUT_JOURNAL/log, has one line an event, in the order of the events. Files and
 * directories are named by inode, since names change. Text after a tab is a path.
 *
 *     C ino            the file is new or was truncated: none of its bytes are synced
 *     O ino size       an older file was opened for writing: this much of it is safe
 *     S ino size       it was synced at this size
 *     D ino            the directory was synced
 *     N dir \t path    a name was made in the directory (a file, a link, a directory)
 *     U dir \t path \t trash     a name was removed; the file lives on as POWERCUT_JOURNAL/trash
 *     X dir gone \t path    an empty directory was removed; gone: its inode
 *     R dir \t from \t to \t trash    renamed; `trash` as above, or "-" if `to` was free
 *
 * Bytes that are overwritten in place, or cut off, count as synced at once: what is tested here
 * only appends. Paths with a tab or a newline are not supported. */
#ifndef TRESTLE_POWERCUT_H
#define TRESTLE_POWERCUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum mode { MODE_KEEP, MODE_LOSE, MODE_TEAR, MODE_HOLES };

struct settings {
    char root[PATH_MAX];    /* empty: files are left alone */
    char journal[PATH_MAX]; /* the directory */
    enum mode mode;
    uint64_t seed;
    bool no_sync;
    int64_t clock_offset_s;
    char kill_file[PATH_MAX]; /* empty: there is none */
    char fail_file[PATH_MAX]; /* likewise */
};

/* Ends the process: a test that cannot be set up must not pass. */
__attribute__((format(printf, 1, 2), noreturn)) void die(const char *format, ...);

/* Opens the journal, empty; it must not be in use by another process. */
void journal_begin(const struct settings *settings);
__attribute__((format(printf, 1, 2))) void journal_write(const char *format, ...);
/* A second name for the file at `path`, in the trash, lest it is gone when `path` is; the name goes
 * to `trash`. False if there is no such file. */
bool journal_keep(const char *path, char trash[NAME_MAX]);

/* Does to the files what the journal says that a power cut would have done. */
void cut_power(const struct settings *settings);

#endif
