/* Bases: the whole backups that a server has made of itself, from which its archive goes on. A
 * record of the catalog's keyspace each: docs/internals/format.md. It is put after the backup was
 * made, and goes when the backup is seen to be gone. A server that dies between has a backup that
 * it does not know of.
 *
 * Any thread; all of it blocks. */
#ifndef TRESTLE_ARCHIVE_BASES_H
#define TRESTLE_ARCHIVE_BASES_H

#include "tablet/commit.h"

struct archive_base {
    uint64_t stream; /* that goes on from it */
    uint64_t version;
    const char *place; /* what it is called */
    const char *name;
};

/* Durable on return. */
status bases_add(struct commit_queue *commits, struct keyspace *catalog,
                 const struct archive_base *base);
status bases_remove(struct commit_queue *commits, struct keyspace *catalog,
                    const struct archive_base *base);

/* Calls `visit` with each, whose strings are its own for that long, by rising version, until it
 * fails. DATA_LOSS. */
status bases_visit(struct keyspace *catalog,
                   status (*visit)(void *context, const struct archive_base *base), void *context);

#endif
