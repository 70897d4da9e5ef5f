/* Makes what is administered here what it is at the peer that leads: schema_snapshot.h says what
 * that is.
 *
 *  1. Each step is one write: a kill finds it done or not, and whoever mirrors again, from any
 *     state, comes to the same end. A failure ends its own step; the others are taken all the same.
 *  2. Nothing is there without its parent: what goes goes from the leaves, what comes comes from
 *     the root. So a start in between finds nothing to adopt (bigtable/default_instance.h).
 *  3. A table is another one if its uid is. A table that went at the leader is deleted here as a
 *     client would delete it, and kept for the undelete window, and if it is undeleted there it
 *     comes back here, with its rows; if it is not kept any more it is made anew, empty.
 *  4. Materialized views come as resources: their engine, which watches these, makes their tables,
 *     each cluster's own (views/views.h). They go with their tables.
 *
 * Resources keep the leader's versions, and so their etags. */
#ifndef TRESTLE_REPLICA_SCHEMA_MIRROR_H
#define TRESTLE_REPLICA_SCHEMA_MIRROR_H

#include "replica/schema_snapshot.h"

struct schema_mirror_options {
    struct control *control;
    /* Called once for each table that was made here just now, empty. What is in it at its peers
     * comes by what is pulled of them, from where they were pulled up to; rows from before that are
     * to be copied, which is the caller's to see to, from here on and after a kill: from the making
     * of the table, which is durable, to this call nothing is on record. NULL: nobody asks. */
    void (*made)(void *context, struct table *table);
    void *context;
    /* Tables go as a client deletes them also if their instances do: they are kept for the undelete
     * window. Of a server that led, and has some that nobody else has. */
    bool keeps_tables;
};

/* Blocks; one at a time. The first failure of a step. */
status schema_mirror(const struct schema_mirror_options *options,
                     const struct schema_snapshot *wanted);

#endif
