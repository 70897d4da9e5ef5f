/* A thread by which what is administered here is what is administered at the peer that leads, as
 * long as that is another one: it asks there (PullSchema), and mirrors what comes
 * (schema_mirror.h). What was administered here while this server led itself, and is not at the one
 * that leads now, is kept in a file first (edits_file.h).
 *
 * Which picture is here as a whole is on record (schema_state.h). */
#ifndef TRESTLE_REPLICA_SCHEMA_FOLLOW_H
#define TRESTLE_REPLICA_SCHEMA_FOLLOW_H

#include "replica/peers.h"
#include "replica/schema_mirror.h"

struct schema_follow;

struct schema_follow_options {
    struct peers *peers;
    struct schema_mirror_options mirror;
    const char *data_directory; /* for edits_file.h */
    const struct log *log;
};

/* Begins; what the options point to outlives it. */
status schema_follow_start(const struct schema_follow_options *options, struct schema_follow **out);
/* Ends it, and waits for that: before the peers' stop, within a step of a mirror. NULL is fine. */
void schema_follow_stop(struct schema_follow *follow);

/* Whether all that was administered up to that time (clock_steady_us) has been mirrored: a table
 * that is not known here is none of the leader's, or was none then. Of a server that leads itself,
 * or has no peers, it always is so. If it is not so yet, the leader is asked at once. `follow` is a
 * struct schema_follow. Any thread. */
bool schema_follow_knows_since(void *follow, int64_t since_us);

/* For peers_set_schema, with `follow` as the context: what is here, and how a peer's comes here
 * that need not lead. UNAVAILABLE: it could not be had whole. */
status schema_follow_tell(void *follow, struct arena *arena, Replica__SchemaState *out);
status schema_follow_catch_up(void *follow, unsigned from);
status schema_follow_check_unused(void *follow, const char *location);

/* The bigtable_peers function (bigtable/peers_hook.h), of the peers. */
bool schema_follows(void *peers, struct buffer *leader_address);

#endif
