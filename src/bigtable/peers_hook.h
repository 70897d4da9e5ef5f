/* What the services ask of a server's peers, which are known further up (replica/). */
#ifndef TRESTLE_BIGTABLE_PEERS_HOOK_H
#define TRESTLE_BIGTABLE_PEERS_HOOK_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/status.h"

struct bigtable;

/* How much of a table has been copied to a cluster. */
struct table_copied {
    const char *name;   /* lives for the call */
    int64_t size_bytes; /* about */
    int64_t copied_bytes;
    bool is_over;
};

struct bigtable_peers {
    /* Whether what is administered here is what is administered at another server; appends that
     * one's address, HOST:PORT, if it is known. Any thread; may wait for a lock, not for more. */
    bool (*follows)(void *context, struct buffer *leader_address);
    /* A call that changes what peers share may begin; and has ended, if it might. Of a server that
     * is about to hand over, or to lead: UNAVAILABLE. Any thread; never long. */
    status (*administer_begin)(void *context);
    void (*administer_end)(void *context);
    /* Whether this server was removed from its peers. Any thread; cheap. */
    bool (*has_left)(const void *context);
    void *context;
    /* Whether no rows are here yet, since it is not known where to begin with what other servers
     * have. Any thread; cheap. */
    bool (*is_copying)(const void *replication);
    /* Whether all rows of the instance are here, `projects/P/instances/I`. As it. */
    bool (*is_here)(void *replication, bytes instance);
    /* Where all clusters are, for a consistency token, and whether all have reached what it says:
     * replica/progress.h. Both block. */
    status (*mark)(void *replication, struct arena *arena, struct buffer *out);
    status (*has_reached)(void *replication, struct arena *arena, const char *marks, bool *out);
    /* Appends the location of the cluster of that number; false: there is none, as without peers.
     * Any thread; may wait for a lock. */
    bool (*location)(void *replication, unsigned number, struct buffer *out);
    bool (*has_peers)(const void *replication); /* any thread; cheap */
    /* Calls `tell` for each table of a cluster that is being made, with what is known of its copy.
     * False: that is nothing, or nothing new since it was asked last. Any thread; may wait for a
     * lock, not for more. */
    bool (*copied)(void *replication, const char *cluster,
                   void (*tell)(void *context, const struct table_copied *table), void *context);
    void *replication;
};

/* Whether this server has peers: clusters of an instance may be several copies then. Cheap. */
bool bigtable_has_peers(const struct bigtable *bigtable);
/* UNIMPLEMENTED if this server has peers: rows that come by another way than as changes would not
 * be at the others. `what` says what comes so. Any thread. */
status check_has_no_peers(const struct bigtable *bigtable, const char *what);

/* INVALID_ARGUMENT if this server has peers and none of them serves the location, whose name has
 * been checked: a cluster there would be nowhere. */
status check_location_is_served(const struct bigtable *bigtable, const char *location);

/* UNAVAILABLE while not all rows of any instance are here, or of that one, or if this server was
 * removed from its peers. Cheap. */
status check_is_whole(const struct bigtable *bigtable);
status check_is_here(const struct bigtable *bigtable, bytes instance);

/* FAILED_PRECONDITION, saying where to ask, if this server follows another one: to be asked before
 * anything is changed that peers share. */
status check_leads(const struct bigtable *bigtable);
/* The same, and UNAVAILABLE while another one is about to lead: to be asked before such a change,
 * which ends, if it was OK, with the second. */
status change_shared_begin(const struct bigtable *bigtable);
void change_shared_end(const struct bigtable *bigtable);

#endif
