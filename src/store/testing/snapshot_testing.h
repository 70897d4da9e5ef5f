/* What tests may count on of a snapshot, by the version of RocksDB. */
#ifndef TRESTLE_STORE_TESTING_SNAPSHOT_TESTING_H
#define TRESTLE_STORE_TESTING_SNAPSHOT_TESTING_H

#include "store/store.h"

#include <stdlib.h>

/* Whether a snapshot keeps a value that lies under a newer operand from a compaction's filter:
 * RocksDB 7.8, of Debian 12, does, and 9.10, of Debian 13, does not. Nothing of ours counts on it:
 * whoever reads at an instant holds the drops (docs/internals/drops.md). */
static inline bool snapshots_keep_values(void)
{
    char version[STORE_VERSION_SIZE];
    store_rocksdb_version(version);
    return strtoul(version, NULL, 10) < 9;
}

#endif
