/* Notices that the data directory is not where it was: removed, another one in its place, its disk
 * unmounted. What is written then goes into files that have no name any more, and new ones would
 * come to lie among somebody else's: the store is fenced, and only a restart ends that.
 *
 * It is known by its inode and that of the file FORMAT in it. From the first look at which it is
 * not there nothing is written; for good only if the next one agrees, since a network's disk may
 * fail to answer once. */
#ifndef TRESTLE_CLUSTER_DATA_DIRECTORY_H
#define TRESTLE_CLUSTER_DATA_DIRECTORY_H

#include "base/clock.h"
#include "base/condition.h"
#include "os/file.h"
#include "store/store.h"

#include <stdatomic.h>

struct data_directory {
    const char *path;
    struct store *store;
    struct clock *clock;
    struct condition *condition;
    struct file_stamp directory; /* as they were when the store was opened */
    struct file_stamp format;
    atomic_llong asked_us;   /* when it was last looked at; 0: never */
    atomic_uint wrong_looks; /* in a row, up to now */
    atomic_bool is_gone;
};

/* The store has just been opened in it. */
void data_directory_note(struct data_directory *directory);

/* Looks at most every 100 ms. Any thread, without locks under which the store's health is noted. */
void data_directory_look(struct data_directory *directory);

/* The same; UNAVAILABLE if it is gone. */
status data_directory_admit(struct data_directory *directory);

#endif
