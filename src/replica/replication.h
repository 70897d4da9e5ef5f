/* What makes this server's tables what the peers' are: a thread that looks who they are, asks where
 * to begin if this server is new among them, and has a puller for each (puller.h). What rows are to
 * be here, and are copied, is placement.h's.
 *
 * A server without peers has the thread, which then looks at a number twice a second, and nothing
 * else. */
#ifndef TRESTLE_REPLICA_REPLICATION_H
#define TRESTLE_REPLICA_REPLICATION_H

#include "bigtable/peers_hook.h"
#include "replica/peers.h"
#include "replica/pull_apply.h"
#include "wire/grpc.h"

struct replication;

struct replication_options {
    struct pull_apply_options apply; /* of all pullers */
    struct control *control;
    struct peers *peers;
    const struct log *log;
    struct metrics *metrics; /* may be NULL */
};

/* What the options point to outlives it. */
status replication_create(const struct replication_options *options, struct replication **out);
/* When no call is left. NULL is fine, as of the next ones. */
void replication_destroy(struct replication *replication);
/* Begins, after peers_begin; and ends that, before peers_stop. `knows_schema_since` of the options
 * and its context, if the caller did not have them before. */
status replication_start(struct replication *replication,
                         bool (*knows_schema_since)(void *context, int64_t since_us),
                         void *context);
void replication_stop(struct replication *replication);

/* What it answers to TellProgress. */
status replication_progress(void *replication, const Replica__TellProgressRequest *request,
                            struct arena *arena, const Replica__TellProgressResponse **out);

/* The handlers of PullChanges and CopyRows; their context is the struct replication. */
void replication_pull_changes(void *replication, struct grpc_call *call, bytes request);
void replication_copy_rows(void *replication, struct grpc_call *call, bytes request);

/* Whether it is not known yet from where to follow the others: no rows of any instance are here.
 * Cheap; any thread. */
bool replication_is_copying(const void *replication);
/* Waits until that is known, some seconds at most. Blocks. */
void replication_await_beginning(void *replication);
/* Whether all rows of the instance are here (placed_is_here). */
bool replication_is_here(void *replication, bytes instance);

/* Of consistency tokens: progress.h. */
status replication_mark(void *replication, struct arena *arena, struct buffer *out);
status replication_has_reached(void *replication, struct arena *arena, const char *marks,
                               bool *out);
/* As bigtable_peers.has_peers, copied and location. */
bool replication_has_peers(const void *replication);
bool replication_creation(void *replication, const char *cluster,
                          void (*tell)(void *context, const struct table_copied *table),
                          void *context);
bool replication_location(void *replication, unsigned number, struct buffer *out);

/* For the service (service.h): placement_tell_copied. */
status replication_copied(void *replication, struct arena *arena, Replica__PlacedInstance **out);

/* How often that peer's changes began to wait for each reason; zeroes: it is not followed. Any
 * thread. */
void replication_parks(struct replication *replication, unsigned number,
                       uint64_t out[PARK_REASONS]);

/* For peers_set_progress: what is known of that peer's changes. */
void replication_tell(void *replication, struct arena *arena, Replica__PeerState *state);

#endif
