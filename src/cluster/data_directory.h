/* Notices that the data directory is not where it was: removed, another one in its place, its disk
 * unmounted. What is written then goes into files that have no name any more, and new ones would
 * come to lie among another program's: the store is fenced, and only a restart ends that.
 *
 * It is known by its inode and that of the file FORMAT in it, and is somebody else's once another
 * process has locked the file LOCK that is there. From the first look at which it is not there
 * nothing is written; for good only if the next one agrees, since a network's disk may fail to
 * answer once.
 *
 * Files of the store may be gone while the directory is there (store_look_for_files). They are made
 * again, on a thread of its own; as long as a log is missing nothing is written. */
#ifndef TRESTLE_CLUSTER_DATA_DIRECTORY_H
#define TRESTLE_CLUSTER_DATA_DIRECTORY_H

#include "base/clock.h"
#include "base/condition.h"
#include "os/file.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>

struct data_directory {
    const char *path;
    struct store *store;
    struct clock *clock;
    struct condition *condition;
    const struct log *log;
    struct file_stamp directory;    /* as they were when the store was opened */
    _Atomic(uint64_t) format_inode; /* 0: any */
    atomic_llong asked_us;          /* when it was last looked at; 0: never */
    atomic_uint wrong_looks;        /* in a row, up to now */
    atomic_bool is_gone;
    atomic_uint lacking_looks; /* in a row, at which files of the store's own were missing */
    atomic_bool lacks_log;     /* at the last of them */

    bool has_thread;
    pthread_t thread;
    pthread_mutex_t restoring; /* held while missing files are made */
    bool has_failed;           /* under it: that they cannot be has been told */
    pthread_mutex_t lock;      /* of the next two */
    pthread_cond_t wake;
    bool is_due; /* some file is to be made again */
    bool is_stopping;
};

/* The store has just been opened in it. */
void data_directory_note(struct data_directory *directory);

/* Looks at most every 100 ms. Any thread, without locks under which the store's health is noted. */
void data_directory_look(struct data_directory *directory);

/* The same; UNAVAILABLE if it is gone, or a log is. */
status data_directory_admit(struct data_directory *directory);

/* After data_directory_note, before the first write: starts the thread. And ends it, also one that
 * was not started. */
status data_directory_start(struct data_directory *directory);
void data_directory_stop(struct data_directory *directory);

/* Looks, and makes missing files again: OK if none is missing afterwards. Blocking, between start
 * and stop. */
status data_directory_await_files(struct data_directory *directory);

#endif
