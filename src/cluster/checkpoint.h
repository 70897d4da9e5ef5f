/* A checkpoint: the files of the whole server at one instant, in a directory of their own.
 *
 * It is exact: whatever was committed up to `sequence` is in it, nothing after that is, and each
 * keyspace that the catalog names. Writers wait for the milliseconds in which the instant is fixed.
 */
#ifndef TRESTLE_CLUSTER_CHECKPOINT_H
#define TRESTLE_CLUSTER_CHECKPOINT_H

#include "cluster/cluster.h"

struct checkpoint_facts {
    uint64_t sequence;                  /* the last commit that is in it */
    int64_t wall_us;                    /* the instant, by the wall clock */
    uint64_t archive_stream;            /* see change_log.h, stream; 0: no archive is kept */
    char identity[STORE_IDENTITY_SIZE]; /* of the server */
};

/* Makes the directory, which is not there and in the data directory or beside it, on the same file
 * system. Tables in it are links: the space of what compactions replace comes back when it is
 * removed. On failure nothing is left, unless the disk refuses that, too. Blocking. */
status cluster_checkpoint(struct cluster *cluster, const char *directory,
                          struct checkpoint_facts *out);

/* Removes such a directory, or what there is of one; fine if there is none. */
status cluster_remove_checkpoint(struct cluster *cluster, const char *directory);

/* What tells this server's data from all others': see store_identity. */
status cluster_identity(struct cluster *cluster, char out[STORE_IDENTITY_SIZE]);

#endif
