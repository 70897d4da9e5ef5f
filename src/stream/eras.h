/* The moments that a server's data was restored to. A restore makes a server that goes on from a
 * moment of another one's past: what that other one did later is not in it, though readers may have
 * been given it. Their tokens must not be taken here for places in a log that has gone on
 * otherwise.
 *
 * Invariants
 *  1. From a restore on a server is in a new *era*, with a random number of its own. A server that
 *     was never restored is in era 0. A token says in which era it was made.
 *  2. A restore adds an era, and keeps those before: the data knows all that led to it.
 *  3. A position of an era counts here if it is not behind any restore since, and the era is one of
 *     those that led here.
 *
 * They are one record of the keyspace `system` (cluster/catalog.h). */
#ifndef TRESTLE_STREAM_ERAS_H
#define TRESTLE_STREAM_ERAS_H

#include "store/store.h"
#include "stream/position.h"

struct stream_era {
    uint64_t id;    /* not 0 */
    uint64_t until; /* a sequence: of the eras before it what was committed up to here is there */
};

struct stream_eras {
    struct stream_era *all; /* in the order in which they began */
    size_t count;
};

/* DATA_LOSS if the record does not parse. `*out` is to be freed in any case. */
status stream_eras_read(struct keyspace *system, struct stream_eras *out);
void stream_eras_free(struct stream_eras *eras);

/* The store was restored to that sequence: adds an era, durably. Nobody serves the store. */
status stream_eras_begin(struct store *store, struct keyspace *system, uint64_t until);

/* The present one: 0 without a restore. */
uint64_t stream_eras_present(const struct stream_eras *eras);

/* Whether the token's positions count here. OUT_OF_RANGE says to when the server was restored;
 * INVALID_ARGUMENT: the token is another server's. */
status stream_eras_check(const struct stream_eras *eras, const struct stream_token *token);

#endif
