/* The insides of the control plane, for the files of control/.
 *
 * Locks, in the order in which they may be taken:
 *   edit_lock   one edit at a time; held across its write, and so before `admin` of the cluster
 *   index_lock  the array of resources; held for a search or a move of pointers */
#ifndef TRESTLE_CONTROL_CONTROL_PRIVATE_H
#define TRESTLE_CONTROL_CONTROL_PRIVATE_H

#include <pthread.h>

#include "base/list.h"
#include "cluster/catalog.h"
#include "cluster/catalog_txn.h"
#include "control/control.h"

struct operation_runs;

struct control {
    uint32_t magic;
    struct cluster *cluster;
    const struct log *log;
    struct operation_runs *operations; /* see operations.c */

    pthread_rwlock_t index_lock;
    struct resource **resources; /* by kind and name; each entry holds a reference */
    size_t count;
    size_t capacity;

    pthread_mutex_t edit_lock;
    atomic_ullong edit_count;
    const char *location;             /* control_location */
    uint64_t last_version;            /* guarded by edit_lock, as is the next */
    uint64_t swept_version;           /* of the last edit that forgot old operations */
    struct control_watcher *watchers; /* by `next`; guarded by edit_lock, too */
};
#define CONTROL_MAGIC 0x6374726cu

/* --- the registry: see registry.c --- */

/* Makes room for `extra` more, so that registry_put cannot fail. With edit_lock held, as for the
 * next two. */
status registry_make_room(struct control *control, size_t extra);
/* Puts it in, in place of the one of its name; takes the reference. */
void registry_put(struct control *control, struct resource *resource);
/* Removes the resource, if it is there. */
void registry_remove(struct control *control, enum resource_kind kind, const char *name);

/* The resource, retained; NULL if there is none. */
struct resource *registry_find(struct control *control, enum resource_kind kind, const char *name);
/* The first one of the kind at the name, or after it, retained; NULL at the end. */
struct resource *registry_from(struct control *control, enum resource_kind kind, const char *name);

/* Adds the newest version to a transaction: it must not be given again, even if the resource that
 * had it is gone and the clock is set back. */
status registry_save_version(uint64_t version, struct catalog_txn *txn);

/* Reads all resources of the catalog into the empty index. */
status registry_load(struct control *control);

/* --- what deleted tables had: see kept.c --- */

/* Adds the resource to what is kept under the table's id. */
status kept_put(struct catalog_txn *txn, uint64_t table_id, const struct resource *resource);

/* The records of one table, or of all (id 0); see catalog_visit. */
status kept_read(struct keyspace *catalog, uint64_t table_id,
                 status (*visit)(void *context, bytes key, bytes value, struct arena *arena),
                 void *context);
/* Parses a kept resource; DATA_LOSS for what is none. */
status kept_parse(bytes key, bytes value, struct arena *arena, uint64_t *table_id,
                  struct resource **out);

/* --- edits --- */

/* A step that follows once the edit is visible; `run` is called under edit_lock. */
struct edit_on_commit {
    struct link link;
    void (*run)(struct edit_on_commit *on_commit);
    void (*drop)(struct edit_on_commit *on_commit); /* instead, if the edit failed */
};
void edit_add_on_commit(struct edit *edit, struct edit_on_commit *on_commit);

#endif
