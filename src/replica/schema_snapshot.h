/* A picture of what is administered at a server and its peers have, too, at one moment: tables
 * with their families, and the resources of instances.
 *
 * Left out is what each cluster has for itself: operations, backups and their policies, the
 * server's own tables, those of views (the views themselves are in it, and each cluster keeps them
 * from its own rows), and, so far, Datastore's databases.
 *
 * Its digest says whether two servers have the same. It is the SHA-256 of all tables, by name, and
 * then of all resources, by kind and name; texts after their sizes, numbers in 8 bytes, the
 * greatest first:
 *
 *     't', uid, name, record (cluster/shared_table.h)
 *     'r', kind, name, body, extra, version
 *
 * Where tablets begin is not in it.
 *
 * Threads: any; nothing waits for the disk. */
#ifndef TRESTLE_REPLICA_SCHEMA_SNAPSHOT_H
#define TRESTLE_REPLICA_SCHEMA_SNAPSHOT_H

#include "base/vector.h"
#include "cluster/shared_table.h"
#include "control/control.h"
#include "trestle/replica/v1/replica.pb-c.h"

enum { SCHEMA_DIGEST_BYTES = 32 };

/* Not changed once it is whole. Counted by reference. */
struct schema_snapshot {
    atomic_uint references;
    struct arena *arena;     /* of all that is in it, but for resources */
    struct vector tables;    /* of struct shared_table, by name */
    struct vector resources; /* of struct resource *, by kind and name, each with a reference */
    uint8_t digest[SCHEMA_DIGEST_BYTES];
};

/* Whether it is in pictures; of resources see resource_is_shared. */
bool schema_has_table(const struct table *table);

/* What there is now, of one moment. RESOURCE_EXHAUSTED. */
status schema_snapshot_take(struct control *control, struct schema_snapshot **out);
/* An empty one, for schema_snapshot_add. */
status schema_snapshot_create(struct schema_snapshot **out);
void schema_snapshot_retain(struct schema_snapshot *snapshot);
void schema_snapshot_release(struct schema_snapshot *snapshot); /* NULL is fine */

bytes schema_snapshot_digest(const struct schema_snapshot *snapshot);

/* NULL if it has none of that name. */
const struct shared_table *schema_snapshot_table(const struct schema_snapshot *snapshot,
                                                 const char *name);
struct resource *schema_snapshot_resource(const struct schema_snapshot *snapshot,
                                          enum resource_kind kind, const char *name);

/* --- from peer to peer --- */

/* Calls `send` with piece after piece, of about a mebibyte at most, the last one with the digest,
 * until it fails. */
status schema_snapshot_send(const struct schema_snapshot *snapshot, uint64_t epoch,
                            status (*send)(void *context, const Replica__PullSchemaResponse *piece),
                            void *context);

/* Adds what a piece has, copied. `*is_whole`: it was the last. Kinds of resources that this program
 * does not know are left out. INVALID_ARGUMENT for what is none, or comes out of order. */
status schema_snapshot_add(struct schema_snapshot *snapshot,
                           const Replica__PullSchemaResponse *piece, bool *is_whole);

#endif
