/* The tables that a stream of changes has told its reader of: their ids here, and the uids that all
 * peers know them by. One thread's. */
#ifndef TRESTLE_REPLICA_TABLE_NAMES_H
#define TRESTLE_REPLICA_TABLE_NAMES_H

#include "cluster/cluster.h"

enum { TABLE_NAMES_MOST = 64 }; /* that are remembered; of more the oldest are told again */

struct table_names {
    struct {
        uint64_t id;
        uint64_t uid;
    } of[TABLE_NAMES_MOST];
    size_t count;
    size_t told;
};

/* The uid of the table of that id, which is told in the answer (pull_message_table) if it was not
 * before. 0: it is no shared table, or none that there is. */
uint64_t table_names_tell(struct table_names *names, struct cluster *cluster, uint64_t id,
                          struct buffer *answer);

#endif
