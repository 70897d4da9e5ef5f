/* What a peer's clients have changed, applied here: the answers of its PullChanges, one after the
 * other. Each change keeps its version, and counts once however often it comes
 * (cluster/foreign_rows.h).
 *
 * What cannot be applied yet *parks*: a change of a table or a family that is not known here yet,
 * and one whose version is too far ahead of this server's clock. Then nothing behind it is applied
 * either, and all of it is to be pulled again. It is never changed to fit: a version that was
 * lowered would count for less here than elsewhere. */
#ifndef TRESTLE_REPLICA_PULL_APPLY_H
#define TRESTLE_REPLICA_PULL_APPLY_H

#include "cluster/cluster.h"
#include "replica/placed.h"
#include "trestle/replica/v1/replica.pb-c.h"

enum park_reason {
    PARK_NONE,
    PARK_CLOCK_AHEAD,
    PARK_TABLE_UNKNOWN,
    PARK_FAMILY_UNKNOWN,
    PARK_INSTANCE_UNKNOWN, /* whether its rows are to be here */
    PARK_LOST,             /* the peer has given up what comes next: for good */
};

enum { PARK_REASONS = PARK_LOST + 1 };

/* In words, as PeerState.parked has them; "" of PARK_NONE. */
const char *park_words(enum park_reason reason);

/* Of one peer; for one thread. */
struct pull_apply;

struct pull_apply_options {
    struct cluster *cluster;
    /* Whether what is administered was looked at, where it is, since `since_us` (clock_steady_us):
     * a table that is not known here then is there no more, and its changes go. */
    bool (*knows_schema_since)(void *context, int64_t since_us);
    void *context;
    /* Whose clients' changes it is, and which instances' rows are here: those of others are left
     * out. NULL: all are applied. */
    unsigned origin;
    struct placed *placed;
};

status pull_apply_create(const struct pull_apply_options *options, struct pull_apply **out);
void pull_apply_destroy(struct pull_apply *apply); /* NULL is fine */

/* Applies an answer, as a whole or up to what fails. UNAVAILABLE, with `*parked` set, if something
 * is to wait. Blocks. */
status pull_apply_run(struct pull_apply *apply, const Replica__PullChangesResponse *answer,
                      enum park_reason *parked);

/* Tables may have come or gone: they are looked for anew. */
void pull_apply_forget_tables(struct pull_apply *apply);

#endif
