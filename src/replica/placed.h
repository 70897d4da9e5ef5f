/* Which instances' rows this server has: all servers that are peers have all tables, but the rows
 * of those instances alone that have a cluster here. Of each instance a *state*, in memory and in
 * the catalog:
 *
 *                     a cluster is made here              copied
 *      NOT ─────────────────────────────────► WANTED ───────────► HERE
 *       ▲                                       │  ▲  copying fails  │ the cluster is deleted
 *       └───────────────────────────────────────┘  └────────────     ▼
 *       ▲                  all others have them                   LEAVING
 *       └───────────────────────────────────────────────────────────┘
 *
 * and of each other cluster a place in its feed, *from* which on its changes are applied to the
 * instance's rows: what is before that is in the rows that were copied, or nothing of theirs.
 *
 * The records are in the catalog:
 *
 *     'placed' <instance>      PlacedRecord (proto/trestle/replica/v1/replica.proto)
 *     'placed'                 8 bytes, big-endian: placed_since
 *
 * A server without the last one has never had peers: then all rows are here.
 *
 * Threads: any may ask; who changes holds the lock of changes meanwhile, over the disk. */
#ifndef TRESTLE_REPLICA_PLACED_H
#define TRESTLE_REPLICA_PLACED_H

#include "cluster/cluster.h"
#include "stream/position.h"
#include "tablet/version.h"
#include "trestle/replica/v1/replica.pb-c.h"

struct placed;

/* Reads the records. DATA_LOSS. */
status placed_open(struct cluster *cluster, struct placed **out);
void placed_close(struct placed *placed); /* NULL is fine */

void placed_lock_changes(struct placed *placed);
void placed_unlock_changes(struct placed *placed);

/* --- the whole --- */

/* Whether there are, or were, peers. */
bool placed_has_begun(struct placed *placed);
/* The version of an edit: an instance that turns up, with a cluster here from the beginning, has no
 * rows elsewhere if it was made by a later one. */
uint64_t placed_since(struct placed *placed);
/* Begins, or changes that. UINT64_MAX: it is not known. Durable on return. Blocks, as all that
 * changes. */
status placed_set_since(struct placed *placed, uint64_t version);
/* Forgets all: there are no peers any more. */
status placed_end(struct placed *placed);

/* --- an instance: "projects/P/instances/I" --- */

typedef Replica__PlacedInstance__State placed_state;
#define PLACED_NOT     REPLICA__PLACED_INSTANCE__STATE__NOT
#define PLACED_WANTED  REPLICA__PLACED_INSTANCE__STATE__WANTED
#define PLACED_COPYING REPLICA__PLACED_INSTANCE__STATE__COPYING
#define PLACED_HERE    REPLICA__PLACED_INSTANCE__STATE__HERE
#define PLACED_LEAVING REPLICA__PLACED_INSTANCE__STATE__LEAVING

struct placed_instance {
    placed_state state;
    uint64_t made_in; /* the version of the edit that made the cluster here; 0: none */
    bool was_whole;   /* of one that is wanted: all that it had once is still here */
    bool has_rows;    /* there may be rows, which go before others are copied */
    uint32_t lacks;   /* a bit for each cluster some of whose changes will never come here */
    bool is_noted;    /* there is no record of it: placed_note_new */
};

/* False: it was never heard of. */
bool placed_find(struct placed *placed, bytes instance, struct placed_instance *out);
/* All rows are here: HERE or LEAVING, or there were never peers. Cheap: a lock and a search. */
bool placed_is_here(struct placed *placed, bytes instance);

/* An instance that is made just now, with a cluster here, of which nothing was heard before: all of
 * it is here, and a start finds that out by itself as long as placed_since is what it is. Any
 * thread; never waits for the disk. */
status placed_note_new(struct placed *placed, const char *instance, uint64_t made_in);

/* Durable on return, but that one is being copied: of that a start says WANTED. */
status placed_set(struct placed *placed, const char *instance, const struct placed_instance *to);
/* It is no more. */
status placed_forget(struct placed *placed, const char *instance);

/* Calls `visit` for each by name, until it says false; not under a lock, and `name` lives for the
 * call alone. RESOURCE_EXHAUSTED. */
status placed_visit(struct placed *placed,
                    bool (*visit)(void *context, const char *name,
                                  const struct placed_instance *instance),
                    void *context);

/* --- from where on changes are applied --- */

enum placed_rule { PLACED_APPLY, PLACED_SKIP, PLACED_UNKNOWN };

/* What to do with changes to the instance's rows of the clients of a cluster, none of which is
 * behind `reached`, and all of which are on one side of each instance's place (placed_bound).
 * UNKNOWN: the instance was never heard of. */
enum placed_rule placed_rule(struct placed *placed, bytes instance, unsigned origin,
                             struct stream_position reached);
/* The first place behind `after` at which the rule of some instance changes; false: there is none.
 */
bool placed_bound(struct placed *placed, unsigned origin, struct stream_position after,
                  struct stream_position *until);

/* {0, 0}: from the beginning. */
struct stream_position placed_from(struct placed *placed, bytes instance, unsigned origin);
/* Of one that is about to be copied: in memory until placed_set says that it is here. */
void placed_set_from(struct placed *placed, const char *instance, unsigned origin,
                     struct stream_position from);
/* All whose rows are here have what is up to the place: so that it may come again. Durable. */
status placed_raise(struct placed *placed, unsigned origin, struct stream_position to);

#endif
