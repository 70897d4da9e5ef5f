/* How far the peers have come: for consistency tokens, which say that everything that was written
 * before them, wherever that was, can be read everywhere.
 *
 * All block: for pool threads. */
#ifndef TRESTLE_REPLICA_PROGRESS_H
#define TRESTLE_REPLICA_PROGRESS_H

#include "replica/peers.h"

struct progress {
    struct cluster *cluster;
    struct peers *peers;
};

/* What this server answers to TellProgress, but for what it has of instances. */
status progress_tell(const struct progress *progress, struct arena *arena,
                     Replica__TellProgressResponse **out);
/* What that peer answers, asked about so many instances. UNAVAILABLE, after two seconds at most. */
status progress_ask(struct peers *peers, unsigned number, const char **instances, size_t count,
                    struct arena *arena, const Replica__TellProgressResponse **out);

/* Up to which version the one that answers has applied what that cluster's clients changed. */
uint64_t progress_applied_of(const Replica__TellProgressResponse *answer, unsigned number);

/* Appends where all clusters are now, as text of a token's characters; nothing if this server has
 * no peers. UNAVAILABLE if one of them does not answer. */
status progress_mark(const struct progress *progress, struct arena *arena, struct buffer *out);

/* Whether all clusters that there are have applied what the marks say, of those of them that there
 * are still. One that does not answer has not. INVALID_ARGUMENT: such marks were never made. */
status progress_check(const struct progress *progress, struct arena *arena, const char *marks,
                      bool *is_reached);

#endif
