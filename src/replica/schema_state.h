/* How much a server has of what is administered: which picture of the leader's (schema_snapshot.h)
 * it has mirrored as a whole. It is written down, so that of several that followed a leader which
 * is gone the one that has most can be told, also after starts.
 *
 * The record is `schema-mirrored` of the catalog's keyspace, a MirrorRecord. */
#ifndef TRESTLE_REPLICA_SCHEMA_STATE_H
#define TRESTLE_REPLICA_SCHEMA_STATE_H

#include "replica/peers.h"
#include "replica/schema_snapshot.h"

/* All of it is empty if there is none. DATA_LOSS if it does not parse. May wait for the disk. */
status mirror_record_read(struct cluster *cluster, struct arena *arena,
                          const Replica__MirrorRecord **out);
/* Durably. Blocks. */
status mirror_record_write(struct cluster *cluster, const Replica__MirrorRecord *record);

/* Of this server: of one that leads, or led and has not compared that since, all of that epoch. In
 * the arena. May wait for the disk. */
status schema_state_tell(struct control *control, struct peers *peers, struct arena *arena,
                         Replica__SchemaState *out);

/* Whether `a` has more than `b`, or the same that is whole where b is not. */
bool schema_state_is_newer(const Replica__SchemaState *a, const Replica__SchemaState *b);
bool schema_state_is_same(const Replica__SchemaState *a, const Replica__SchemaState *b);

#endif
