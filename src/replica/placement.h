/* Sees to it that the rows of those instances are here that have a cluster here, and of no others
 * (placed.h): as instances' clusters come and go, rows are copied from whichever peer has them, and
 * go once the others have them. And, where this server leads, a cluster that was added becomes
 * READY once its rows are where it is.
 *
 *      thread `placement`  looks what there is (sites.h), and says what is wanted, and what is to
 * go thread `copy`       copies what is wanted, one instance after the other
 *
 * A copy of rows that are changed at all other clusters meanwhile: first pulling stops (`hold`)
 * while places are set, and goes on; then rows are copied, while changes behind these places are
 * applied to them. What the source has is in its rows up to its own place in each feed. Where this
 * server has come further than that, it goes back to there, and leaves out of what comes again what
 * is of instances that had it. Folds keep all meanwhile (origins_keep_all): so cells, deletions and
 * adds may come in any order, and some of them twice (cluster/origin/origin_copy.h).
 *
 * Where no peer has all rows of an instance, and all of them say so, the one that had all once, or
 * else the one with the least number, stands by what it has. What it lacks is on record then
 * (`lacks`): clusters some of whose changes will never come to it. Of such a one these are not
 * copied: what their clients were told is there would go. So they stand by what they have, too, and
 * the rows of the two differ from then on, which their logs say. */
#ifndef TRESTLE_REPLICA_PLACEMENT_H
#define TRESTLE_REPLICA_PLACEMENT_H

#include "bigtable/peers_hook.h"
#include "control/control.h"
#include "replica/peers.h"
#include "replica/placed.h"
#include "replica/pull_apply.h"

struct placement;

struct placement_options {
    struct pull_apply_options apply; /* of copies */
    struct control *control;
    struct peers *peers;
    const struct log *log;
    /* Ends all pulling, and waits for that; and lets it go on, from the places that are recorded
     * then. */
    void (*hold)(void *context);
    void (*release)(void *context);
    void *context;
};

/* Reads what is here. What the options point to outlives it. */
status placement_create(const struct placement_options *options, struct placement **out);
void placement_destroy(struct placement *placement); /* NULL is fine */
/* As of replication_start and _stop (replication.h). */
status placement_start(struct placement *placement,
                       bool (*knows_schema_since)(void *context, int64_t since_us), void *context);
void placement_stop(struct placement *placement);

struct placed *placement_placed(struct placement *placement);

/* For the thread that looks whom to follow, before it records from where. `is_new`: rows of all
 * instances that there are elsewhere are to be copied; else all are here. Fine once it has begun.
 * Blocks, and so do the next ones. */
status placement_begin(struct placement *placement, bool is_new);
/* It has asked from where on to go on: what was made by an edit behind that version comes by
 * itself.
 */
status placement_set_since(struct placement *placement, uint64_t version);
/* There are no peers any more: all is here. */
status placement_end(struct placement *placement);
/* Some of what that cluster's clients have changed will never come: what others have, too, is to be
 * copied anew. */
status placement_lose(struct placement *placement, unsigned number);

/* As bigtable_peers.copied, of a server that leads. */
bool placement_creation(struct placement *placement, const char *cluster,
                        void (*tell)(void *context, const struct table_copied *table),
                        void *context);

/* The instance whose rows are being copied here, in the arena; NULL: none's are. Any thread. */
status placement_tell_copied(struct placement *placement, struct arena *arena,
                             Replica__PlacedInstance **out);
/* What is here of the instances of these names, in the arena. */
status placement_tell(struct placement *placement, const char *const *instances, size_t count,
                      struct arena *arena, Replica__TellProgressResponse *out);

#endif
