/* What placement.c (life), placement_look.c (what is wanted), placement_copy.c (copies) and
 * creations.c share. */
#ifndef TRESTLE_REPLICA_PLACEMENT_PRIVATE_H
#define TRESTLE_REPLICA_PLACEMENT_PRIVATE_H

#include "base/vector.h"
#include "os/thread.h"
#include "replica/copier.h"
#include "replica/placement.h"
#include "replica/sites.h"

enum { PLACEMENT_ARENA_BYTES = 64 << 20 };

struct placement {
    struct placement_options options;
    struct placed *placed;
    struct control_watcher instances;
    struct control_watcher clusters;
    bool has_looker, has_copier;
    pthread_t looker;
    pthread_t copier;
    struct thread_stop look_stop;
    struct thread_stop copy_stop;

    /* The looker's. */
    bool is_fresh; /* nothing has changed since it looked last */
    uint64_t edits;
    uint64_t generation;
    bool awaits_clusters; /* that are not READY */

    /* The copier's. */
    int64_t wait_us;
    bool has_told; /* the log, of what fails */

    pthread_mutex_t lock; /* of the next ones */
    int64_t new_since_us; /* clock_steady_us: what there was then is not known yet */
    bool is_stopping;
    struct client_session *session; /* of the copy under way, or NULL */
    char *copied;                   /* the instance, or NULL */
    struct arena *told;             /* of the next one */
    struct vector tables;           /* of struct table_copy, of that instance */
    struct arena *created;          /* of the next one */
    struct vector creations;        /* of struct creation */
    int64_t created_us;             /* clock_steady_us, when they were told last */
};

/* What is known of a cluster that is being made. */
struct creation {
    const char *cluster;
    const Replica__PlacedInstance *placed;
    bool is_news; /* nobody has asked since */
};

struct table_copy {
    uint64_t uid;
    const char *name;
    int64_t size_bytes;
    int64_t copied_bytes;
    bool is_over;
};

static inline struct cluster *placement_cluster(const struct placement *placement)
{
    return placement->options.apply.cluster;
}

bool placement_is_stopping(void *placement);

/* A turn of the looker, and of the copier. Both block. */
status placement_look(struct placement *placement);
status placement_copy(struct placement *placement);

/* An instance, or a cluster of one, is made, or changes: in that edit. */
void placement_note_instance(void *placement, const char *name, const struct resource *resource);
void placement_note_cluster(void *placement, const char *name, const struct resource *resource);

/* Ends the copy of that instance, if it is under way. Any thread. */
void placement_cancel_copy(struct placement *placement, const char *instance);

/* Deletes all rows of the instance's tables, which no puller writes to from then on, nor on the
 * way: its changes are left out already. */
status placement_clear(struct placement *placement, const char *instance);

/* Of the server that leads: clusters that were added become READY where all rows are there.
 * `*awaits`: some are not yet. */
status creations_look(struct placement *placement, const Replica__PeerList *list,
                      struct arena *arena, bool *awaits);

#endif
