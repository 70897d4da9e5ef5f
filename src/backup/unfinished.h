/* An unfinished directory is made beside its name, and gets that when it is whole.
 *
 *     DIR.restoring    on its way: the lock UNFINISHED.lock comes first, then the file UNFINISHED,
 *                      and then all else
 *     DIR              whole: by a rename. Then UNFINISHED goes, which means nothing there
 *
 * Invariants
 *  1. A directory of that name that has the mark was left by a process that was killed, and is
 *     removed. An empty directory is as good as none; all else is not ours, and is left alone.
 *  2. When a directory is removed its mark goes last, so that a process that is killed meanwhile
 *     leaves nothing of ours without it.
 *  3. From before the mark is there until DIR has its name, or nothing is left, its maker has the
 *     lock: no other process removes what it makes, nor marks what it does not have. The store that
 *     is opened in there meanwhile has a lock of its own, which comes and goes.
 *
 * All of it blocks. */
#ifndef TRESTLE_BACKUP_UNFINISHED_H
#define TRESTLE_BACKUP_UNFINISHED_H

#include "store/files.h"

struct unfinished {
    struct files *files;
    const char *directory; /* what is made; its parent is there */
    const char *path;      /* while it is on its way */
    const char *maker;     /* the command, for people: the mark's words */
    /* Hears of what a killed one has left, before it is removed. May be NULL. */
    void (*tell)(const char *path);
    struct file_lock *lock; /* private */
};

/* FAILED_PRECONDITION if there is something in the directory that is to be made. */
status unfinished_require_free(struct files *files, const char *directory);
/* Makes it, durably, with nothing but the mark in it, and keeps others out of it.
 * FAILED_PRECONDITION if something is there that is not ours, or another process makes it at
 * present; NOT_FOUND without its parent. */
status unfinished_begin(struct unfinished *unfinished);
/* Gives it its name, durably: nothing is there, or an empty directory, whose mode it gets. If that
 * fails it is to be abandoned. */
status unfinished_end(struct unfinished *unfinished);
/* Removes what there is of it. */
status unfinished_abandon(struct unfinished *unfinished);

/* --- marks, by themselves --- */

status unfinished_mark(struct files *files, const char *path, const char *maker);
status unfinished_unmark(struct files *files, const char *path); /* fine without one */

/* The state of the path: nothing is there or in it, it has a mark, or it is not ours. */
enum unfinished_state { UNFINISHED_ABSENT, UNFINISHED_OURS, UNFINISHED_FOREIGN };
status unfinished_look(struct files *files, const char *path, enum unfinished_state *out);

/* Removes the directory and all in it, and follows no symbolic link. Fine if there is none. */
status unfinished_remove(struct files *files, const char *path);

/* Whether a file of that name is a mark, the beginning of one, or its maker's lock. */
bool unfinished_is_mark(const char *name);

#endif
