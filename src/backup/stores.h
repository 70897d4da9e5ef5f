/* How stores are opened that are made of whole backups, or are to become such: the one set of
 * options for all of src/backup. */
#ifndef TRESTLE_BACKUP_STORES_H
#define TRESTLE_BACKUP_STORES_H

#include "base/log.h"
#include "store/store.h"

enum backup_store {
    BACKUP_STORE_BESIDE, /* beside a server's own, whose memory is for others (--memory) */
    BACKUP_STORE_ALONE,  /* by a command: what is replayed goes through it */
};

/* The caller sets what is not of the one kind or the other alone. Both are pointed to. */
struct store_options backup_store_options(enum backup_store kind, const char *directory,
                                          const struct log *log);

#endif
